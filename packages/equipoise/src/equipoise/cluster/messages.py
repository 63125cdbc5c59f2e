"""What a coordinator and a host send each other: frozen data as MessagePack, never a pickle.

A task takes the bytes of a request and returns those of its answer (`to_bytes`, `from_bytes`), so
nothing but Dask's own call is unpickled. A host that refuses a request answers with a `Refusal`,
which `from_bytes` raises.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from equipoise.design.limits import CampaignLimits
from equipoise.model.errors import UnusableInput, UserError
from equipoise.model.host import HostReference

Message = TypeVar("Message", bound=Struct)
Task = Callable[[bytes], bytes]
"""A function that workers have, too: it takes the bytes of a request and returns its answer's."""
_MAX_BLOCKS = 2**53
_UNREADABLE = (msgspec.DecodeError, msgspec.ValidationError, RecursionError)


class File(Struct, frozen=True):
    """A program or an input of a plan, by its content."""

    path: str
    """Relative to the working folder, absolute, or with a placeholder of
    `equipoise.cluster.files`."""
    digest: str | None
    """BLAKE2b of its bytes, 32 hexadecimal digits; ``None`` if the host has no such file."""
    mode: int = 0o644
    is_program: bool = False


class Build(Struct, frozen=True):
    """A level of a study that every host builds itself."""

    level: str
    line: str
    """Line for a shell, with placeholders of `equipoise.cluster.files`; ``{build}`` in it stands
    for the folder of the level."""


class Introduction(Struct, frozen=True):
    """A host, before anything is asked of it."""

    host: HostReference
    equipoise: str
    """Version."""
    folder: str
    """The worker's working folder, in which commands run unless files are shipped."""


class Inventory(Struct, frozen=True):
    """Request: the files of a plan, as the coordinator has them.

    Answer: the same paths in the same order, as the host has them.
    """

    files: tuple[File, ...]


class Shipment(Struct, frozen=True):
    """Request: keep one file; the answer is `Received`. One that is kept already stays.

    A relative path without ``..`` is the only one that can be shipped.
    """

    file: File
    content: bytes


class Received(Struct, frozen=True):
    """Answer: the host keeps the file."""

    digest: str


class Order(Struct, frozen=True):
    """Request: measure this plan, or go on with it; the answer is a `Status`.

    The same order again starts nothing while its process lives, or once the campaign has ended in
    this session. It starts a campaign again that died or failed.
    """

    fleet: str
    """Identity of the coordinator's run."""
    place: int
    session: int
    """Segment of the coordinator's run, from 1: a later one has a campaign go on that was halted or
    has ended. Orders of an earlier one start nothing: a task may arrive late."""
    plan: str
    """The host's plan, with its own seed and its membership, as `equipoise.cluster.files.portable`
    writes it: its paths are those of the host that reads it."""
    identity: str
    """Identity of the host's run."""
    shipped: tuple[File, ...] = ()
    """Files that the host got by content: they lie in a folder of the campaign, which is then its
    working folder."""
    builds: tuple[Build, ...] = ()
    """Levels to build before the first trial, in the order of the placeholders in the plan."""
    limits: CampaignLimits | None = None
    """New limits, of a campaign that is resumed."""
    allow_concurrent: bool = False
    durable: bool = False
    """Whether the host's ledger waits for the disk after each trial."""


State = Literal["absent", "waiting", "running", "ended", "failed", "died"]
"""``waiting`` for the host's lock; ``ended``: at its stop, or halted (see ``stopped_because``);
``failed``: a condition, the plan or the disk did; ``died``: it was killed and left no word."""


class Status(Struct, frozen=True):
    """How a host's campaign goes."""

    state: State
    blocks: Annotated[int, Meta(ge=0, le=_MAX_BLOCKS)] = 0
    """Complete blocks, as of the latest one."""
    running_s: float = 0.0
    """Seconds that the process has run, by the host's own clock that never jumps."""
    stopped_because: str | None = None
    failure: str | None = None
    """One line: what is wrong."""
    hint: str | None = None
    """What to do about ``failure``; while the campaign waits: which process measures."""


class Follow(Struct, frozen=True):
    """Request: say how the campaign goes, and what it has recorded since."""

    fleet: str
    place: int
    identity: str
    after: bytes
    """Where the coordinator's copy ends (`equipoise.ledger.parts`); empty for the beginning."""


class Followed(Struct, frozen=True):
    """Answer: the status, and a slice of the run; empty if nothing is new."""

    status: Status
    slice: bytes = b""
    more: bool = False
    """Whether more than this slice is there already: ask again at once."""


class Halt(Struct, frozen=True):
    """Request: end the campaign after its trial, as Ctrl-C does; the answer is a `Status`."""

    fleet: str
    place: int


class Refusal(Struct, frozen=True, tag="refusal"):
    """Answer to any request: the host cannot do it."""

    what: str
    hint: str | None = None

    @classmethod
    def of(cls, error: UserError) -> Refusal:
        """Return what an error says."""
        return cls(error.what, error.hint)

    def to_error(self) -> UnusableInput:
        """Return the error again."""
        return UnusableInput(self.what, hint=self.hint)


def to_bytes(message: Struct) -> bytes:
    """Encode a message."""
    return msgspec.msgpack.encode(message)


def from_bytes(content: bytes, kind: type[Message]) -> Message:
    """Decode a message of one kind.

    Raise `UnusableInput` if it is none: the other side has another version. Or it is a `Refusal`.
    """
    try:
        return msgspec.msgpack.decode(content, type=kind)
    except _UNREADABLE as error:
        with contextlib.suppress(*_UNREADABLE):
            raise msgspec.msgpack.decode(content, type=Refusal).to_error() from error
        raise other_version(f"a message of the cluster cannot be read: {error}") from error


def other_version(what: str) -> UnusableInput:
    """Return the error for something that the same version would not have sent."""
    return UnusableInput(what, hint="install the same version of Equipoise on every host")
