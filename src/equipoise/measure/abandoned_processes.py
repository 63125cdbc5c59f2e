"""Ending what a trial or a build has started, when its launcher is gone.

A process belongs to a campaign if its environment names a file in the campaign's scratch folder, or
if it descends from such a process. A process that only works in the folder may be a user's shell:
it is named, not killed.

Each process is killed through a pidfd that is opened before the environment is read. A process
number that the kernel gives to somebody else meanwhile is never signalled.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from equipoise.measure import builds, own_metrics
from equipoise.measure.launcher_cgroups import end_leaf, leaves_of, own_cgroup

_PROC = Path("/proc")
_PATIENCE_S = 10.0
_VARIABLES = (own_metrics.VARIABLE, builds.VARIABLE)
"""Variables that name a file or a folder in the scratch folder."""
_STATE, _PARENT = 0, 1
"""Fields of ``/proc/PID/stat`` behind the name, from 0 (proc_pid_stat(5))."""


def end_descendants(launcher: int, identity: str, scratch: Path | None) -> None:
    """End what the trials of a launcher left, after the launcher was killed.

    Parameters
    ----------
    launcher
        Process number of the launcher.
    identity
        Identity of its campaign, which its cgroups have in their names.
    scratch
        Scratch folder of its campaign, if it has one.
    """
    parent = own_cgroup()
    if parent is not None:
        for leaf in leaves_of(identity, parent, launcher):
            end_leaf(leaf)
    if scratch is not None:
        end_processes_of(scratch)


def end_processes_of(folder: Path) -> int:
    """Kill the processes that belong to a scratch folder; return how many there were.

    Only processes of this user are killed; root also kills those that it started as other users. A
    process that does not die within ten seconds is given up.
    """
    ended: set[int] = set()
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        with _opened(folder) as found:
            if not found:
                break
            for descriptor in found.values():
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            for descriptor in found.values():
                _wait_for_end(descriptor, deadline)
            ended |= found.keys()
    return len(ended)


def processes_working_in(folder: Path) -> tuple[int, ...]:
    """Return the processes whose working folder is a folder or lies in it."""
    inside = f"{os.path.realpath(folder)}/"
    found = []
    for process in _numbers():
        with contextlib.suppress(OSError):
            if f"{os.readlink(_PROC / str(process) / 'cwd')}/".startswith(inside):
                found.append(process)
    return tuple(found)


@contextmanager
def _opened(folder: Path) -> Iterator[Mapping[int, int]]:
    """Descriptors, by process number, of the living processes that belong to a folder."""
    with contextlib.ExitStack() as stack:
        found: dict[int, int] = {}
        parents = {process: parent for process in _numbers() if (parent := _parent(process))}
        protected = _own_line(parents)
        candidates = [one for one in parents if one not in protected]
        for process in candidates:
            if _is_started_for(process, folder):
                _open(process, folder, found, stack)
        # Parents do not always come before their children: look until nothing is added.
        before = -1
        while before != len(found):
            before = len(found)
            for process in candidates:
                if process not in found and parents[process] in found:
                    _open(process, folder, found, stack)
        yield found


def _open(process: int, folder: Path, found: dict[int, int], stack: contextlib.ExitStack) -> None:
    """Open a process and look again: only now it is certainly the same one."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return
    stack.callback(os.close, descriptor)
    descends = _parent(process) in found and _may_be_killed(process)
    if (descends or _is_started_for(process, folder)) and not _has_ended(descriptor):
        found[process] = descriptor


def _own_line(parents: Mapping[int, int]) -> set[int]:
    """This process and its ancestors."""
    line = {os.getpid()}
    parent = os.getppid()
    while parent in parents and parent not in line:
        line.add(parent)
        parent = parents[parent]
    return line


def _is_started_for(process: int, folder: Path) -> bool:
    if not _may_be_killed(process):
        return False
    inside = os.fsencode(folder) + b"/"
    beginnings = tuple(os.fsencode(name) + b"=" + inside for name in _VARIABLES)
    try:
        environment = (_PROC / str(process) / "environ").read_bytes()
    except OSError:
        # It has ended.
        return False
    return any(variable.startswith(beginnings) for variable in environment.split(b"\0"))


def _may_be_killed(process: int) -> bool:
    own = os.geteuid()
    try:
        return own == 0 or (_PROC / str(process)).stat().st_uid == own
    except OSError:
        return False


def _numbers() -> list[int]:
    return [int(name) for name in os.listdir(_PROC) if name.isdecimal()]


def _parent(process: int) -> int | None:
    """The parent of a process that has not ended; 0 for one without."""
    try:
        text = (_PROC / str(process) / "stat").read_bytes()
    except OSError:
        return None
    # The name stands in parentheses and may hold any character.
    fields = text.rpartition(b")")[2].split()
    return None if fields[_STATE] in (b"Z", b"X") else int(fields[_PARENT])


def _has_ended(descriptor: int) -> bool:
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(0))


def _wait_for_end(descriptor: int, deadline: float) -> None:
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    waiting.poll(max(0.0, deadline - time.monotonic()) * 1000.0)
