"""All processes of a running server, and what the kernel says of them (proc_pid_stat(5))."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_MINOR, _MAJOR, _USER, _SYSTEM = (6, 7), (8, 9), (10, 12), (11, 13)
"""Where its own and its ended children's counts stand behind the state in ``stat``, from 0."""
_SWITCHES = {"voluntary_ctxt_switches": 0, "nonvoluntary_ctxt_switches": 1}


@dataclass(frozen=True, slots=True)
class Consumed:
    """What a server has consumed since it started: all processes, those that ended among them.

    What a process that ended used is told by the one that waited for it, switches excepted:
    those are of the threads that are there.
    """

    user_s: float
    """In ticks of the kernel, mostly of 10 ms; so is ``sys_s``."""
    sys_s: float
    minor_faults: int
    major_faults: int
    voluntary_switches: int
    involuntary_switches: int
    pss_bytes: int | None
    """Memory, with what processes share counted once; ``None`` where the kernel does not say."""
    largest_rss_bytes: int
    """The peak of the largest process."""


def processes_of(launcher: int) -> tuple[int, ...]:
    """What a launcher runs, with every descendant."""
    try:
        return tuple(child.pid for child in psutil.Process(launcher).children(recursive=True))
    except psutil.NoSuchProcess:
        return ()


def consumed(processes: tuple[int, ...]) -> Consumed:
    """Add up what these processes have consumed; one that ends meanwhile counts nothing."""
    stats = [found for one in processes if (found := _stat(one)) is not None]
    switches = [_switches(one) for one in processes]

    def total(places: tuple[int, int]) -> int:
        return sum(stat[place] for stat in stats for place in places)

    return Consumed(
        user_s=total(_USER) / _TICKS_PER_S,
        sys_s=total(_SYSTEM) / _TICKS_PER_S,
        minor_faults=total(_MINOR),
        major_faults=total(_MAJOR),
        voluntary_switches=sum(one[0] for one in switches),
        involuntary_switches=sum(one[1] for one in switches),
        pss_bytes=_sum_of_known(_kilobytes(one, "smaps_rollup", "Pss") for one in processes),
        largest_rss_bytes=max(
            (_kilobytes(one, "status", "VmHWM") or 0 for one in processes), default=0
        ),
    )


def lines_of(process: int, name: str) -> list[str]:
    """The lines of a file of a process; none if it has ended."""
    try:
        return (PROC / str(process) / name).read_text("utf-8", "replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return []


def field_of(process: int, name: str) -> str | None:
    """A line of ``status`` of a process, without its name; ``None`` if it has ended."""
    return next(
        (
            value.strip()
            for line in lines_of(process, "status")
            for key, _, value in (line.partition(":"),)
            if key == name
        ),
        None,
    )


def _stat(process: int) -> list[int] | None:
    for line in lines_of(process, "stat"):
        # The name stands in parentheses and may hold any character.
        return [int(word) for word in line.rpartition(")")[2].split()[1:]]
    return None


def _switches(process: int) -> tuple[int, int]:
    counts = [0, 0]
    try:
        threads = os.listdir(PROC / str(process) / "task")
    except (FileNotFoundError, ProcessLookupError):
        return (0, 0)
    for thread in threads:
        for line in lines_of(process, f"task/{thread}/status"):
            name, _, value = line.partition(":")
            if name in _SWITCHES:
                counts[_SWITCHES[name]] += int(value)
    return (counts[0], counts[1])


def _kilobytes(process: int, name: str, key: str) -> int | None:
    for line in lines_of(process, name):
        if line.startswith(f"{key}:"):
            return 1024 * int(line.split()[1])
    return None


def _sum_of_known(values: Iterator[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def any_listens(processes: tuple[int, ...], port: int) -> bool:
    """Whether one of the processes listens on a TCP port."""
    return any(_listens(process, port) for process in processes)


def _listens(process: int, port: int) -> bool:
    return _asked(
        process,
        lambda one: any(
            line.status == psutil.CONN_LISTEN and line.laddr and line.laddr.port == port
            for line in one.net_connections("tcp")
        ),
    )


def _asked(process: int, ask: Callable[[psutil.Process], bool]) -> bool:
    try:
        return ask(psutil.Process(process))
    except psutil.NoSuchProcess:
        return False
