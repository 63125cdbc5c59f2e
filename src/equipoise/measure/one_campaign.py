"""One campaign at a time on a host: two would measure each other.

The turn is an abstract Unix socket (unix(7)): there is no file that somebody must be allowed
to open, that a cleaner removes or that is left behind; any user can take it, and the kernel
gives it back when its holder ends, however that happens. A waiter sleeps in the kernel until
then, so that waiting disturbs nothing. Campaigns in other network name spaces, as those of most
containers, are not seen; `equipoise doctor` sees what they take.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from equipoise.model.errors import EquipoiseError, UnusableInput

NAME = "equipoise-campaign"
PROC = Path("/proc")
_CREDENTIALS = struct.Struct("3i")
_MOST_WAITERS = 128
_RETRY_S = 1.0
"""How soon to look again where the holder cannot be waited for."""
_OVERRIDE = "--allow-concurrent"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has the turn, as the kernel tells."""

    process: int
    """0 if it lives in another process name space."""
    user: int

    def words(self) -> str:
        """``process 4711 of user 1000``."""
        process = f"process {self.process}" if self.process else "a process of another container"
        return f"{process} of user {self.user}"


class Turn:
    """The right to measure; a context manager. It ends with its process at the latest.

    Trials do not inherit it.
    """

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener

    def release(self) -> None:
        """Give it back; may be called again."""
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def wait_for_turn(
    on_wait: Callable[[Holder], None],
    timeout_s: float | None = None,
    *,
    name: str = NAME,
) -> Turn:
    """Take the turn on this host, after waiting for whoever has it.

    Parameters
    ----------
    on_wait
        Called when somebody has the turn, with who it is: once for each holder.
    timeout_s
        For how long to wait; ``None`` for ever, 0 not at all.
    name
        Which turn; tests have their own.

    Raises
    ------
    UnusableInput
        Somebody still has it after ``timeout_s``; or the holder is one of our own ancestors,
        which waits for us.
    EquipoiseError
        The system allows no such socket.
    """
    end_s = None if timeout_s is None else time.monotonic() + timeout_s
    told: Holder | None = None
    while True:
        turn = _take(name)
        if turn is not None:
            return turn
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            holder = _reach(line, name)
            if holder is not None:
                _refuse_ancestor(holder)
                if holder != told:
                    on_wait(holder)
                    told = holder
            left_s = None if end_s is None else end_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                raise _still_taken(told)
            if holder is not None:
                _sleep_until_released(line, left_s)
            else:
                time.sleep(_RETRY_S if left_s is None else min(_RETRY_S, left_s))


def take_run(run_id: str, key: str) -> Turn:
    """Take the right to add trials to one run, which one process at a time has.

    Parameters
    ----------
    key
        Name of the run that no run of another ledger has.

    Raises
    ------
    UnusableInput
        Another process measures the run now.
    EquipoiseError
        The system allows no such socket.
    """
    name = f"{NAME}-{key}"
    turn = _take(name)
    if turn is not None:
        return turn
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        holder = _reach(line, name)
    who = "another process" if holder is None else holder.words()
    raise UnusableInput(
        f"run {run_id} is being measured now, by {who}",
        hint=f"wait until that has ended; `equipoise show {run_id}` shows what it has so far",
    )


def _take(name: str) -> Turn | None:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(f"\0{name}")
        listener.listen(_MOST_WAITERS)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise EquipoiseError(
            f"cannot make sure that no other campaign runs on this host: {error.strerror or error}",
            hint=f"go on without, if none does: {_OVERRIDE}",
        ) from error
    return Turn(listener)


def _reach(line: socket.socket, name: str) -> Holder | None:
    """Connect to the holder; ``None`` if it is just taking its turn or giving it back."""
    # Without a limit, connecting would hang where too many wait already.
    line.settimeout(0)
    try:
        line.connect(f"\0{name}")
        credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError:
        return None
    process, user, _ = _CREDENTIALS.unpack(credentials)
    return Holder(process, user)


def _sleep_until_released(line: socket.socket, at_most_s: float | None) -> None:
    # Nobody answers on this line: it only ever ends, with its other end.
    waiting = select.poll()
    waiting.register(line, select.POLLIN)
    waiting.poll(None if at_most_s is None else 1000 * at_most_s)


def _still_taken(holder: Holder | None) -> UnusableInput:
    who = "somebody" if holder is None else holder.words()
    return UnusableInput(
        f"another campaign is running on this host ({who}): the two would measure each other",
        hint=f"wait until it has ended, or measure all the same: {_OVERRIDE}",
    )


def _refuse_ancestor(holder: Holder) -> None:
    """To wait for who waits for us would never end."""
    if holder.process in _ancestors(os.getppid()):
        raise UnusableInput(
            f"this campaign runs inside of another one ({holder.words()}), which waits for it",
            hint=f"give the inner one {_OVERRIDE}",
        )


def _ancestors(process: int) -> set[int]:
    found: set[int] = set()
    with contextlib.suppress(OSError, ValueError, IndexError):
        # An ancestor that cannot be read ends the chain: it has ended, or is hidden.
        while process > 0 and process not in found:
            found.add(process)
            stat = (PROC / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
            process = int(stat.rpartition(")")[2].split()[1])
    return found
