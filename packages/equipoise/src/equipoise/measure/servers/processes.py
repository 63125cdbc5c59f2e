"""Processes of a running server: what they consumed, and whether its settings took effect.

A wrapper may drop a variable, the loader may refuse a preload, a daemon may set its own CPUs: a
setting in the plan need not be in force. Source: proc_pid_stat(5) and its neighbours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from equipoise.measure.environment.hardware import cpu_list
from equipoise.measure.launcher import Report, User
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import PADDING_VARIABLE, TUNABLES_VARIABLE, Server
from equipoise.model.record import Sample

_PROC = Path("/proc")
_PREFIX = "server_"
"""Beginning of the names of a server's metrics."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_OF_STAT = {
    "user_s": (10, 12),
    "sys_s": (11, 13),
    "minor_faults": (6, 7),
    "major_faults": (8, 9),
}
"""Indices of a process's own and its ended children's counts, behind the state in ``stat``."""
_SWITCHES = {
    "voluntary_ctxt_switches": "voluntary_switches",
    "nonvoluntary_ctxt_switches": "involuntary_switches",
}
"""Metric of each count in the ``status`` of a thread."""

Consumption = dict[str, float]
"""What all processes of a server have consumed since it started, by metric.

A parent that waits for a child accounts for what the child used. Only the switches are those of the
present threads. ``user_s`` and ``sys_s`` are in ticks of the kernel, mostly of 10 ms. ``pss_bytes``
counts once what processes share, and is missing where the kernel hides it; ``max_rss_bytes`` is the
peak of the largest process.
"""


def consumption(processes: tuple[int, ...]) -> Consumption:
    """Add up what processes have consumed; one that ends meanwhile counts nothing."""
    stats = [fields for process in processes if (fields := _stat(process))]
    total: Consumption = {
        name: sum(stat[index] for stat in stats for index in indices)
        for name, indices in _OF_STAT.items()
    }
    for name in ("user_s", "sys_s"):
        total[name] /= _TICKS_PER_S
    total |= dict.fromkeys(_SWITCHES.values(), 0)
    for process in processes:
        for line in _lines_of_threads(process):
            key, _, value = line.partition(":")
            if key in _SWITCHES:
                total[_SWITCHES[key]] += int(value)
    pss = [_kilobytes(process, "smaps_rollup", "Pss") for process in processes]
    known = [size for size in pss if size is not None]
    if known:
        total["pss_bytes"] = sum(known)
    peaks = (_kilobytes(process, "status", "VmHWM") for process in processes)
    total["max_rss_bytes"] = max((peak or 0 for peak in peaks), default=0)
    return total


def samples_of(before: Consumption, after: Consumption, life: Report | None) -> tuple[Sample, ...]:
    """Return what a server consumed between two readings.

    ``life`` is the launcher's report of the server's whole life, if it has ended. It alone knows
    the switches of the processes that ended meanwhile, and the peak of all.
    """
    values: dict[str, float | None] = {name: after[name] - before[name] for name in _OF_STAT}
    values |= {name: after.get(name) for name in ("pss_bytes", "max_rss_bytes")}
    if life is not None:
        values["max_rss_bytes"] = life.max_rss_bytes
        for name in _SWITCHES.values():
            whole: int | None = getattr(life, name)
            values[name] = None if whole is None else whole - before[name]
    # A process that nobody waited for takes its counts with it: below zero is unknown.
    return tuple(
        Sample(_PREFIX + name, float(value))
        for name, value in values.items()
        if value is not None and value >= 0
    )


def any_listens(processes: tuple[int, ...], port: int) -> bool:
    """Return whether one of the processes listens on a TCP port."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            for line in psutil.Process(process).net_connections("tcp"):
                if line.status == psutil.CONN_LISTEN and line.laddr and line.laddr.port == port:
                    return True
    return False


def check_effect(name: str, server: Server, user: User | None, processes: tuple[int, ...]) -> None:
    """Refuse a server with a process in which a setting did not take effect.

    ``name`` is the condition's; ``user`` should run the server, ``None`` is our own user. The first
    of the processes was started first. Raise `ConditionFailed`, which names the process and the
    setting.
    """
    for pid in processes:
        for problem in _problems(pid, server, user, is_first=pid == processes[0]):
            raise ConditionFailed(
                f"the server of {name} did not take effect: its process {pid} {problem}",
                hint="start the program itself, without a wrapper that changes its environment",
            )


def _problems(pid: int, server: Server, user: User | None, *, is_first: bool) -> Iterator[str]:
    environment, process = server.environment, server.process
    mapped = {line.split(maxsplit=5)[5] for line in _lines(pid, "maps") if line.count("/")}
    if not mapped:
        # It has ended meanwhile.
        return
    for library in environment.get("LD_PRELOAD", "").replace(":", " ").split():
        if "/" in library and os.path.realpath(library) not in mapped:
            yield f"does not map {library}"
    # What the server starts may well have other variables of its own.
    tunables = environment.get(TUNABLES_VARIABLE) if is_first else None
    if tunables is not None and _has_lost(pid, f"{TUNABLES_VARIABLE}={tunables}"):
        yield f"does not have {TUNABLES_VARIABLE}={tunables}"
    cpus = _status(pid, "Cpus_allowed_list")
    if process.cpus is not None and cpus and not set(cpu_list(cpus)) <= set(process.cpus):
        yield f"may use the CPUs {cpu_list(cpus)}, not only {list(process.cpus)}"
    if process.huge_pages is False and _status(pid, "THP_enabled") == "1":
        yield "gets transparent huge pages"
    if user is not None and _status(pid, "Uid") not in (None, "\t".join([str(user.uid)] * 4)):
        yield f"does not run as user {user.uid}"


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


def _lines_of_threads(process: int) -> Iterator[str]:
    """Yield the lines of the ``status`` of every present thread."""
    try:
        threads = os.listdir(_PROC / str(process) / "task")
    except (FileNotFoundError, ProcessLookupError):
        return
    for thread in threads:
        yield from _lines(process, f"task/{thread}/status")
