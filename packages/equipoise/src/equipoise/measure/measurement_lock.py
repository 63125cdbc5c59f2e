"""Lock a host, so that only one campaign at a time measures on it.

The lock is an abstract Unix socket (unix(7)), so there is no file that could be left behind. Any
user can take the lock. The kernel releases the lock when the owner ends, even if the owner is
killed. A waiting campaign connects to the socket and sleeps in the kernel, so it disturbs nothing.
A campaign in most containers has another lock; `equipoise doctor` reports its CPU time.
"""

from __future__ import annotations

import contextlib
import errno
import math
import socket
import struct
import time
from collections.abc import Callable

from msgspec import Struct

from equipoise.files.writing import becomes_readable
from equipoise.model.errors import EquipoiseError, UnusableInput
from equipoise.shared.spelling import option

LOCK_NAME = "equipoise-campaign"
"""Name of the abstract socket."""
_CREDENTIALS = struct.Struct("3i")
"""Numbers of the process, the user and the group that own a socket (``ucred`` of unix(7))."""
_MAX_WAITERS = 128
"""Maximum number of processes that can wait for the lock without polling."""
_RETRY_INTERVAL_S = 1.0
"""Seconds between two attempts to take the lock, if this process cannot wait for the owner."""


class LockOwner(Struct, frozen=True):
    """The process that has the lock, as the kernel reports it."""

    pid: int
    """Process number; 0 for a process of another container, as the kernel hides the number."""
    uid: int

    def describe(self) -> str:
        """Return, for example, ``process 4711 of user 1000``."""
        process = f"process {self.pid}" if self.pid else "a process of another container"
        return f"{process} of user {self.uid}"


MeasurementLock = socket.socket
"""A lock that this process owns; closing the socket, or the end of the process, releases it."""


def lock_host(
    on_wait: Callable[[LockOwner], None],
    timeout_s: float | None = None,
    *,
    name: str = LOCK_NAME,
) -> MeasurementLock:
    """Take the lock of this host; wait while another campaign has the lock.

    ``on_wait`` is called with each owner for which this process waits. The function waits at most
    ``timeout_s`` seconds (``None``: without a limit; 0: not at all). Only tests give a ``name``.

    Raise `UnusableInput` if another process still has the lock after ``timeout_s``, or if the owner
    is an ancestor of this process: the ancestor waits for this process. Raise `EquipoiseError` if
    the system does not allow such a socket.
    """
    deadline_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
    known_owner: LockOwner | None = None
    while (lock := _try_lock(name)) is None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            owner = _connect_to_owner(client, name)
            if owner is not None:
                _refuse_ancestor(owner)
                if owner != known_owner:
                    on_wait(owner)
                    known_owner = owner
            remaining_s = deadline_s - time.monotonic()
            if remaining_s <= 0:
                owner_text = "an unknown process" if known_owner is None else known_owner.describe()
                raise UnusableInput(
                    f"another campaign is running on this host ({owner_text}), "
                    "and the two would disturb each other",
                    hint="wait until that campaign has ended, or measure anyway: "
                    f"{option('allow_concurrent', True)}",
                )
            if owner is None:
                time.sleep(min(_RETRY_INTERVAL_S, remaining_s))
            else:
                # The owner never answers. The connection ends when the owner releases the lock.
                becomes_readable(client.fileno(), None if timeout_s is None else remaining_s)
    return lock


def lock_run(run_id: str, unique_key: str) -> MeasurementLock:
    """Take the lock of one run of a ledger, so that only this process adds trials to the run.

    ``run_id`` names the run in messages. ``unique_key`` differs between the runs of all ledgers.
    Raise `UnusableInput` if another process has the lock. Raise `EquipoiseError` if the system does
    not allow such a socket.
    """
    name = f"{LOCK_NAME}-{unique_key}"
    lock = _try_lock(name)
    if lock is not None:
        return lock
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        owner = _connect_to_owner(client, name)
    owner_text = "another process" if owner is None else owner.describe()
    raise UnusableInput(
        f"{owner_text} is measuring run {run_id} now",
        hint=f"wait for its end; meanwhile, `equipoise show {run_id}` shows the trials so far",
    )


def _try_lock(name: str) -> MeasurementLock | None:
    """Take the lock; return ``None`` if another process has the lock."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(f"\0{name}")
        listener.listen(_MAX_WAITERS)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise EquipoiseError(
            f"cannot check whether another campaign runs on this host: {error.strerror or error}",
            hint=f"if no other campaign runs, add {option('allow_concurrent', True)}",
        ) from error
    return listener


def _connect_to_owner(client: socket.socket, name: str) -> LockOwner | None:
    """Connect to the owner of a lock; return ``None`` if nobody accepts a connection now."""
    # Without a time limit, connecting would hang if `_MAX_WAITERS` processes are waiting.
    client.settimeout(0)
    try:
        client.connect(f"\0{name}")
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError:
        return None
    pid, uid, _ = _CREDENTIALS.unpack(credentials)
    return LockOwner(pid, uid)


def _refuse_ancestor(owner: LockOwner) -> None:
    """Raise `UnusableInput` if the owner of the lock is an ancestor that waits for this process."""
    import psutil

    ancestors: list[psutil.Process] = []
    # An ancestor that has ended or is hidden cannot be read.
    with contextlib.suppress(psutil.Error):
        ancestors = psutil.Process().parents()
    if owner.pid in [ancestor.pid for ancestor in ancestors]:
        raise UnusableInput(
            f"this campaign runs inside another campaign ({owner.describe()}), which waits for it",
            hint=f"add {option('allow_concurrent', True)} to the inner command",
        )
