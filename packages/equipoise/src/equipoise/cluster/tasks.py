"""What a coordinator asks of a host: each function is a task of Dask, bytes in and bytes out.

A task never measures. It starts the campaign's own process, and says how that goes. What a host
refuses is an answer as well (`equipoise.cluster.messages.Refusal`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from importlib.metadata import version
from pathlib import Path

from equipoise.cluster import files, laboratory
from equipoise.cluster.folders import CampaignFolder, check_identity
from equipoise.cluster.messages import (
    Follow,
    Followed,
    Halt,
    Introduction,
    Inventory,
    Order,
    Received,
    Refusal,
    Shipment,
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
_MAX_TRIALS = 1000
"""Trials of a slice, unless they are larger than usual."""


def _answering(task: Task) -> Task:
    """Return the task with its errors as answers: Dask would log a stack trace for each."""

    @wraps(task)
    @command_line_spelling()
    def answering(request: bytes = b"") -> bytes:
        try:
            return task(request)
        except EquipoiseError as error:
            return to_bytes(Refusal.of(error))
        except OSError as error:
            # The folder of the worker is gone, or there are no open files left.
            known = limit_reached(error) or environment_fault(error)
            hint = "start the worker again, in a folder that stays"
            return to_bytes(Refusal.of(known) if known else Refusal(str(error), hint))

    return answering


@_answering
def introduce(request: bytes) -> bytes:
    """Answer with an `Introduction` of this host; the request is empty."""
    host = this_host()
    if host is None:
        raise UnusableInput(
            f"{os.uname().nodename} cannot keep an identity: its state folder is unusable",
            hint="set XDG_STATE_HOME on the host to a folder of your own",
        )
    return to_bytes(Introduction(host, version("equipoise"), folder=os.getcwd()))


@_answering
def examine(request: bytes) -> bytes:
    """Answer an `Inventory` with that of this host."""
    wanted = from_bytes(request, Inventory).files
    return to_bytes(Inventory(tuple(files.file_here(file, os.getcwd()) for file in wanted)))


@_answering
def receive(request: bytes) -> bytes:
    """Keep the file of a `Shipment` (`Received`)."""
    return to_bytes(Received(files.keep(from_bytes(request, Shipment))))


@_answering
def begin(request: bytes) -> bytes:
    """Start the campaign of an `Order`, or go on with it; answer with its `Status`."""
    return to_bytes(laboratory.begin(from_bytes(request, Order)))


@_answering
def follow(request: bytes) -> bytes:
    """Answer a `Follow` with how the campaign goes, and what it has recorded since (`Followed`)."""
    question = from_bytes(request, Follow)
    check_identity(question.identity)
    folder = CampaignFolder.of(question.fleet, question.place)
    # First the status: what an ended campaign recorded is then whole.
    status = folder.status()
    return to_bytes(Followed(status, *_slice(folder, question)))


def _slice(folder: CampaignFolder, question: Follow) -> tuple[bytes, bool]:
    """Return what the host's ledger has after the cursor, at most about `MAX_SLICE_BYTES`."""
    stored, progress = folder.stored(), folder.progress()
    path = default_ledger() if stored is None else Path(stored.ledger)
    begun = progress is not None and progress.run is not None
    if not begun and (stored is not None or not path.exists()):
        return b"", False
    with open_for_reading(path) as ledger:
        if ledger.id_of(question.identity) is None:
            return b"", False
        return bounded_slice(
            lambda most: ledger.slice(question.identity, question.after, max_trials=most)
        )


def bounded_slice(slice_of: Callable[[int], tuple[bytes, bool]]) -> tuple[bytes, bool]:
    """Return a slice of a run of about `MAX_SLICE_BYTES` at most, and whether more is there.

    ``slice_of`` returns one of so many trials at most.
    """
    most = _MAX_TRIALS
    while True:
        content, more = slice_of(most)
        if len(content) <= MAX_SLICE_BYTES or most == 1:
            return content, more
        most = max(1, most * MAX_SLICE_BYTES // (2 * len(content)))


@_answering
def halt(request: bytes) -> bytes:
    """End the campaign of a `Halt` after its trial, as Ctrl-C does; answer with its `Status`."""
    question = from_bytes(request, Halt)
    folder = CampaignFolder.of(question.fleet, question.place)
    folder.halt()
    return to_bytes(folder.status())
