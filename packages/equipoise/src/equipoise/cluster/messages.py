"""Messages between the coordinator of a fleet and a host, as MessagePack.

A fleet has the hosts of one campaign. The campaign is a run in the coordinator's ledger, and each
host has a run of its own. The identity of a run is a number with 32 hexadecimal digits.

A task takes the bytes of a request and returns the bytes of an answer (`to_bytes`, `from_bytes`).
If a host refuses a request, the answer is a `Refusal`, and `from_bytes` raises it as an error.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from equipoise.design.limits import CampaignLimits
from equipoise.model.errors import UnusableInput, UserError
from equipoise.model.host import HostReference

Message = TypeVar("Message", bound=Struct)
Task = Callable[[bytes], bytes]
"""Function on a worker that takes the bytes of a request and returns the bytes of the answer."""
_MAX_BLOCKS = 2**53
"""Maximum number of blocks that a host may report."""
_DECODING_ERRORS = (msgspec.DecodeError, msgspec.ValidationError, RecursionError)
"""Errors of msgspec for bytes that are not the expected message."""


class File(Struct, frozen=True):
    """A program or an input of a plan, identified by its content."""

    path: str
    """Path relative to the working folder, absolute, or with a placeholder of
    `equipoise.cluster.files`."""
    digest: str | None
    """BLAKE2b of the content, 32 hexadecimal digits; ``None`` if the host has no such file."""
    mode: int = 0o644
    """Permissions of the file."""
    is_program: bool = False
    """Whether the host must be able to execute the file."""


class Build(Struct, frozen=True):
    """Build of a level of a study; every host runs the build."""

    level: str
    line: str
    """Shell line that builds the level, with placeholders of `equipoise.cluster.files`.
    ``{build}`` stands for the folder of the level."""


class Introduction(Struct, frozen=True):
    """Answer to the first request: a host and its properties."""

    host: HostReference
    equipoise_version: str
    folder: str
    """The worker's working folder, in which commands run unless files are shipped."""


class FileInventory(Struct, frozen=True):
    """Request: the files of a plan on the coordinator.

    Answer: the same paths in the same order, with the files of the host.
    """

    files: tuple[File, ...]


class Shipment(Struct, frozen=True):
    """Request: keep one file. The answer is a `ShipmentReply`.

    The path of the file must be relative and without ``..``.
    """

    file: File
    content: bytes


class ShipmentReply(Struct, frozen=True):
    """Answer: the host keeps the file."""

    digest: str


class Order(Struct, frozen=True):
    """Request: measure this plan, or continue its campaign. The answer is a `Status`.

    If the campaign runs, or has ended in the segment of the order, a repeated order starts nothing.
    If the process died or failed, a repeated order starts the process again.
    """

    fleet_identity: str
    """Identity of the campaign's run in the coordinator's ledger."""
    host_index: int
    """Index of the host in the fleet, from 0."""
    segment: int
    """Number of the segment of the whole campaign, from 1. An order with a later segment continues
    a halted or ended campaign. An order with an earlier segment starts nothing."""
    plan: str
    """The host's plan, with placeholders for paths (`equipoise.cluster.files.portable_plan`). The
    plan has the seed of the host, and its place in the fleet."""
    run_identity: str
    """Identity of the run in the host's ledger."""
    shipped: tuple[File, ...] = ()
    """Files that the coordinator sent. Without such files, the campaign runs in the worker's
    working folder."""
    builds: tuple[Build, ...] = ()
    """Levels to build before the first trial, in the order of the placeholders in the plan."""
    limits: CampaignLimits | None = None
    """New limits of a resumed campaign."""
    allow_concurrent: bool = False
    """Whether to measure although another campaign runs on the host."""
    durable: bool = False
    """Whether the host's ledger waits for the disk after each trial."""


State = Literal["absent", "waiting", "running", "ended", "failed", "died"]
"""``absent``: the host has no such campaign; ``waiting``: the campaign waits for the host's
measurement lock; ``ended``: the campaign stopped or was halted (see ``stopped_because``);
``failed``: the campaign ended with a ``failure``; ``died``: its process reported no end."""


class Status(Struct, frozen=True):
    """Status of a host's campaign."""

    state: State
    blocks: Annotated[int, Meta(ge=0, le=_MAX_BLOCKS)] = 0
    """Number of complete blocks."""
    running_s: float = 0.0
    """Seconds that the process has run, by the host's monotonic clock."""
    stopped_because: str | None = None
    failure: str | None = None
    """Reason of a failure, in one line."""
    hint: str | None = None
    """Hint about ``failure``, or the reason why the campaign waits."""


class FollowRequest(Struct, frozen=True):
    """Request: send the status of the campaign, and its new records."""

    fleet_identity: str
    host_index: int
    run_identity: str
    cursor: bytes
    """End of the coordinator's copy of the record (`equipoise.ledger.parts`), or empty."""


class FollowReply(Struct, frozen=True):
    """Answer: the status, and a slice of the run's record; the slice is empty if nothing is new."""

    status: Status
    slice: bytes = b""
    """New records, as bytes of `equipoise.ledger.parts`."""
    has_more: bool = False
    """Whether there are more records after the slice."""


class HaltRequest(Struct, frozen=True):
    """Request: end the campaign after its current trial; the answer is a `Status`."""

    fleet_identity: str
    host_index: int


class Refusal(Struct, frozen=True, tag="refusal"):
    """Answer to a request that the host refuses: the reason."""

    what: str
    hint: str | None = None

    @classmethod
    def of(cls, error: UserError) -> Refusal:
        """Return the refusal for an error."""
        return cls(error.what, error.hint)

    def to_error(self) -> UnusableInput:
        """Return the refusal as an error."""
        return UnusableInput(self.what, hint=self.hint)


def to_bytes(message: Struct) -> bytes:
    """Encode a message."""
    return msgspec.msgpack.encode(message)


def from_bytes(content: bytes, message_type: type[Message]) -> Message:
    """Decode a message of the type ``message_type``.

    Raise `UnusableInput` if the content is a `Refusal`, or not a message of this version.
    """
    try:
        return msgspec.msgpack.decode(content, type=message_type)
    except _DECODING_ERRORS as error:
        with contextlib.suppress(*_DECODING_ERRORS):
            raise msgspec.msgpack.decode(content, type=Refusal).to_error() from error
        name = os.uname().nodename
        raise version_mismatch(f"{name} cannot read a message of the cluster: {error}") from error


def version_mismatch(what: str) -> UnusableInput:
    """Return the error for a message that another version of Equipoise has sent."""
    return UnusableInput(what, hint="install the same version of Equipoise on every host")
