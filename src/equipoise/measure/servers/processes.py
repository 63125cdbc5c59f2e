"""Processes of a running server: what they consumed, and whether its settings took effect.

A wrapper may drop a variable, the loader may refuse a preload, a daemon may set its own CPUs: a
setting in the plan need not be in force. Source: proc_pid_stat(5) and its neighbours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
from msgspec import Struct

from equipoise.measure.environment.hardware import cpu_list
from equipoise.measure.launcher import Report
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import PADDING_VARIABLE, Process
from equipoise.model.record import Sample

_PROC = Path("/proc")
_PREFIX = "server_"
"""Beginning of the names of a server's metrics."""
_TUNABLES = "GLIBC_TUNABLES"
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_MINOR, _MAJOR, _USER, _SYSTEM = (6, 7), (8, 9), (10, 12), (11, 13)
"""Indices of a process's own and its ended children's counts, behind the state in ``stat``."""


class Consumption(Struct, frozen=True):
    """What all processes of a server have consumed since it started.

    A parent that waits for a child accounts for what the child used. Only the switches are those of
    the present threads.
    """

    user_s: float
    """In ticks of the kernel, mostly of 10 ms; so is ``sys_s``."""
    sys_s: float
    minor_faults: int
    major_faults: int
    voluntary_switches: int
    involuntary_switches: int
    pss_bytes: int | None
    """Memory, with what processes share counted once; ``None`` where the kernel hides it."""
    largest_rss_bytes: int
    """Peak of the largest process."""


def processes_of(launcher: int) -> tuple[int, ...]:
    """Return what a launcher runs, with every descendant."""
    try:
        return tuple(child.pid for child in psutil.Process(launcher).children(recursive=True))
    except psutil.NoSuchProcess:
        return ()


def consumption(processes: tuple[int, ...]) -> Consumption:
    """Add up what processes have consumed; one that ends meanwhile counts nothing."""
    stats = [fields for process in processes if (fields := _stat(process))]
    switches = [_switches(process) for process in processes]
    pss = [
        size
        for process in processes
        if (size := _kilobytes(process, "smaps_rollup", "Pss")) is not None
    ]

    def total(indices: tuple[int, int]) -> int:
        return sum(stat[index] for stat in stats for index in indices)

    return Consumption(
        user_s=total(_USER) / _TICKS_PER_S,
        sys_s=total(_SYSTEM) / _TICKS_PER_S,
        minor_faults=total(_MINOR),
        major_faults=total(_MAJOR),
        voluntary_switches=sum(voluntary for voluntary, _ in switches),
        involuntary_switches=sum(involuntary for _, involuntary in switches),
        pss_bytes=sum(pss) if pss else None,
        largest_rss_bytes=max(
            (_kilobytes(process, "status", "VmHWM") or 0 for process in processes), default=0
        ),
    )


def samples_of(before: Consumption, after: Consumption, life: Report | None) -> tuple[Sample, ...]:
    """Return what a server consumed between two readings.

    Parameters
    ----------
    before, after
        The readings.
    life
        Launcher's report of the server's whole life, if it has ended. It alone knows the switches
        of the processes that ended meanwhile, and the peak of all.
    """
    values: dict[str, float | None] = {
        "user_s": after.user_s - before.user_s,
        "sys_s": after.sys_s - before.sys_s,
        "minor_faults": after.minor_faults - before.minor_faults,
        "major_faults": after.major_faults - before.major_faults,
        "pss_bytes": after.pss_bytes,
        "max_rss_bytes": after.largest_rss_bytes,
    }
    if life is not None:
        values["max_rss_bytes"] = life.max_rss_bytes
        for name, earlier, whole in (
            ("voluntary_switches", before.voluntary_switches, life.voluntary_switches),
            ("involuntary_switches", before.involuntary_switches, life.involuntary_switches),
        ):
            values[name] = None if whole is None else whole - earlier
    # A process that nobody waited for takes its counts with it: below zero is unknown.
    return tuple(
        Sample(_PREFIX + name, float(value))
        for name, value in values.items()
        if value is not None and value >= 0
    )


def any_listens(processes: tuple[int, ...], port: int) -> bool:
    """Return whether one of the processes listens on a TCP port."""
    return any(_listens(process, port) for process in processes)


def _listens(process: int, port: int) -> bool:
    try:
        connections = psutil.Process(process).net_connections("tcp")
    except psutil.NoSuchProcess:
        return False
    return any(
        line.status == psutil.CONN_LISTEN and line.laddr and line.laddr.port == port
        for line in connections
    )


def check_effect(
    name: str,
    environment: Mapping[str, str],
    process: Process,
    user: int | None,
    processes: tuple[int, ...],
) -> None:
    """Refuse a server with a process in which a setting did not take effect.

    Parameters
    ----------
    name
        Name of the condition.
    environment
        Variables that the condition sets.
    process
        Settings of the condition's processes.
    user
        Number of the user that the server should run as; ``None`` for our own.
    processes
        Processes of the server, the first one started first.

    Raises
    ------
    ConditionFailed
        The message names the process and the setting.
    """
    for number in processes:
        # What the server starts may well have other variables of its own.
        tunables = environment.get(_TUNABLES) if number == processes[0] else None
        for problem in _problems(number, environment, tunables, process, user):
            raise ConditionFailed(
                f"the server of {name} did not take effect: its process {number} {problem}",
                hint="start the program itself, without a wrapper that changes its environment",
            )


def _problems(
    pid: int,
    environment: Mapping[str, str],
    tunables: str | None,
    process: Process,
    user: int | None,
) -> Iterator[str]:
    mapped = {line.split(maxsplit=5)[5] for line in _lines(pid, "maps") if line.count("/")}
    if not mapped:
        # It has ended meanwhile.
        return
    for library in environment.get("LD_PRELOAD", "").replace(":", " ").split():
        if "/" in library and os.path.realpath(library) not in mapped:
            yield f"does not map {library}"
    if tunables is not None and _has_lost(pid, f"{_TUNABLES}={tunables}"):
        yield f"does not have {_TUNABLES}={tunables}"
    cpus = _status(pid, "Cpus_allowed_list")
    if process.cpus is not None and cpus and not set(cpu_list(cpus)) <= set(process.cpus):
        yield f"may use the CPUs {cpu_list(cpus)}, not only {list(process.cpus)}"
    if process.huge_pages is False and _status(pid, "THP_enabled") == "1":
        yield "gets transparent huge pages"
    if user is not None and _status(pid, "Uid") not in (None, "\t".join([str(user)] * 4)):
        yield f"does not run as user {user}"


def _has_lost(pid: int, variable: str) -> bool:
    """Return whether a variable is not among those that a process began with.

    Some servers write their title over their variables; then nothing can be told.
    """
    variables = "".join(_lines(pid, "environ"))
    is_whole = f"\0{PADDING_VARIABLE}=" in variables
    # The C library cuts its tunables apart in place.
    forms = (variable, variable.replace(":", "\0"))
    return is_whole and not any(form in variables for form in forms)


def _lines(process: int, name: str) -> list[str]:
    """Return the lines of a file of a process; none if it has ended."""
    try:
        return (_PROC / str(process) / name).read_text("utf-8", "replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _value(process: int, name: str, key: str) -> str | None:
    """Return the text behind ``key:`` in a file of a process; ``None`` without such a line."""
    for line in _lines(process, name):
        before, colon, value = line.partition(":")
        if colon and before == key:
            return value.strip()
    return None


def _status(process: int, key: str) -> str | None:
    return _value(process, "status", key)


def _kilobytes(process: int, name: str, key: str) -> int | None:
    value = _value(process, name, key)
    return None if value is None else 1024 * int(value.split()[0])


def _stat(process: int) -> list[int]:
    # The name stands in parentheses and may hold any character.
    text = " ".join(_lines(process, "stat"))
    return [int(word) for word in text.rpartition(")")[2].split()[1:]]


def _switches(process: int) -> tuple[int, int]:
    """Return the voluntary and the involuntary switches of the present threads."""
    counts = {"voluntary_ctxt_switches": 0, "nonvoluntary_ctxt_switches": 0}
    try:
        threads = os.listdir(_PROC / str(process) / "task")
    except (FileNotFoundError, ProcessLookupError):
        return (0, 0)
    for thread in threads:
        for line in _lines(process, f"task/{thread}/status"):
            name, _, value = line.partition(":")
            if name in counts:
                counts[name] += int(value)
    voluntary, involuntary = counts.values()
    return voluntary, involuntary
