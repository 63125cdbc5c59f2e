"""Tasks of Dask that a coordinator runs on a host: a task takes a request and returns an answer.

A task never measures. Tasks start the campaign process of the host, and report the status of the
campaign. If a host refuses a request, the answer is an `equipoise.cluster.messages.Refusal`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from importlib.metadata import version
from pathlib import Path

from equipoise.cluster import campaign_process, files
from equipoise.cluster.folders import CampaignFolder, require_run_identity
from equipoise.cluster.messages import (
    FileInventory,
    FollowReply,
    FollowRequest,
    HaltRequest,
    Introduction,
    Order,
    Refusal,
    Shipment,
    ShipmentReply,
    Task,
    from_bytes,
    to_bytes,
)
from equipoise.files.limits import environment_fault, limit_reached
from equipoise.files.state import default_ledger, this_host
from equipoise.ledger import open_for_reading
from equipoise.model.errors import EquipoiseError, UnusableInput
from equipoise.shared.spelling import command_line_spelling

MAX_SLICE_BYTES = 1 << 20
"""Approximate maximum size of a slice: the part of a campaign's record in one answer."""
_MAX_TRIALS = 1000
"""Maximum number of trials in a slice."""


def _with_refusals(task: Task) -> Task:
    """Return a task that answers with a `Refusal` if ``task`` raises an error."""

    @wraps(task)
    @command_line_spelling()
    def answer(request: bytes = b"") -> bytes:
        try:
            return task(request)
        except EquipoiseError as error:
            return to_bytes(Refusal.of(error))
        except OSError as error:
            # For example, the folder of the worker was removed.
            known_error = limit_reached(error) or environment_fault(error)
            hint = "start the worker again in a folder that nobody removes"
            return to_bytes(Refusal.of(known_error) if known_error else Refusal(str(error), hint))

    return answer


@_with_refusals
def introduce(request: bytes) -> bytes:
    """Answer with an `Introduction` of this host; the request is empty."""
    host = this_host()
    if host is None:
        raise UnusableInput(
            f"{os.uname().nodename} cannot keep an identity: its state folder is unusable",
            hint="on the host, set XDG_STATE_HOME to a folder of your own",
        )
    return to_bytes(Introduction(host, version("equipoise"), folder=os.getcwd()))


@_with_refusals
def examine(request: bytes) -> bytes:
    """Answer the coordinator's `FileInventory` with the files of this host at the same paths."""
    requested = from_bytes(request, FileInventory).files
    return to_bytes(FileInventory(tuple(files.local_file(file, os.getcwd()) for file in requested)))


@_with_refusals
def receive(request: bytes) -> bytes:
    """Keep the file of a `Shipment`; answer with a `ShipmentReply`."""
    return to_bytes(ShipmentReply(files.keep_file(from_bytes(request, Shipment))))


@_with_refusals
def begin(request: bytes) -> bytes:
    """Start or continue the campaign of an `Order`; answer with its `Status`."""
    return to_bytes(campaign_process.begin(from_bytes(request, Order)))


@_with_refusals
def follow(request: bytes) -> bytes:
    """Answer a `FollowRequest` with the status and the new records (`FollowReply`)."""
    follow_request = from_bytes(request, FollowRequest)
    require_run_identity(follow_request.run_identity)
    folder = CampaignFolder.of(follow_request.fleet_identity, follow_request.host_index)
    # The status is read before the records: if it says "ended", no record can be missing.
    status = folder.status()
    return to_bytes(FollowReply(status, *_new_records(folder, follow_request)))


def _new_records(folder: CampaignFolder, request: FollowRequest) -> tuple[bytes, bool]:
    """Return about `MAX_SLICE_BYTES` of new records at most, and whether there are more."""
    stored_order, progress = folder.read_order(), folder.read_progress()
    path = default_ledger() if stored_order is None else Path(stored_order.ledger)
    has_begun = progress is not None and progress.run_id is not None
    if not has_begun and (stored_order is not None or not path.exists()):
        return b"", False
    with open_for_reading(path) as ledger:
        if ledger.id_of(request.run_identity) is None:
            return b"", False
        return bounded_slice(
            lambda limit: ledger.slice(request.run_identity, request.cursor, max_trials=limit)
        )


def bounded_slice(slice_with: Callable[[int], tuple[bytes, bool]]) -> tuple[bytes, bool]:
    """Return a slice of a record with about `MAX_SLICE_BYTES` at most, and whether there is more.

    ``slice_with`` takes the maximum number of trials and returns a slice.
    """
    max_trials = _MAX_TRIALS
    while True:
        content, has_more = slice_with(max_trials)
        if len(content) <= MAX_SLICE_BYTES or max_trials == 1:
            return content, has_more
        max_trials = max(1, max_trials * MAX_SLICE_BYTES // (2 * len(content)))


@_with_refusals
def halt(request: bytes) -> bytes:
    """End the campaign of a `HaltRequest` after its current trial; answer with its `Status`."""
    halt_request = from_bytes(request, HaltRequest)
    folder = CampaignFolder.of(halt_request.fleet_identity, halt_request.host_index)
    folder.halt()
    return to_bytes(folder.status())
