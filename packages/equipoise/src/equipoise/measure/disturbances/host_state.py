"""The input of checks: a host, its environment, and half a second of its activity.

A method or function raises `Unknown` if it needs a counter that could not be read.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from equipoise.measure.environment.cgroups import times_throttled
from equipoise.measure.environment.covariates import stolen_busy_and_all
from equipoise.measure.environment.system import Facts, Host, Unknown, collect

LENGTH_S = 0.5
_FLAGS, _USER_TIME, _SYSTEM_TIME, _STARTED = 6, 11, 12, 19
"""Fields of /proc/PID/stat after the name, which may itself contain blanks."""
_KERNEL_THREAD = 0x00200000
"""PF_KTHREAD of include/linux/sched.h."""


class Process(Struct, frozen=True):
    """One process at one moment."""

    name: str
    started: int
    """Ticks since boot, which distinguish the process from another with the same number."""
    ticks: int
    """CPU time used so far."""
    is_kernel_thread: bool = False
    """Whether it is a thread of the kernel."""


class Moment(Struct, frozen=True):
    """Processes and counters of a host at one moment."""

    at_s: float
    processes: Mapping[int, Process]
    counters: Mapping[str, int | None]
    """Counters of the kernel by the names of ``COUNTERS``; ``None`` for an unreadable counter."""
    unknown: Mapping[str, str]
    """Reasons for unreadable counters, by name."""


class BusyProcess(Struct, frozen=True):
    """A process that used CPU time; ``share`` of one CPU."""

    number: int
    name: str
    share: float
    is_kernel_thread: bool


class Activity(Struct, frozen=True):
    """The activity of a host between two moments."""

    first: Moment
    last: Moment
    own_process: int = field(default_factory=os.getpid)
    """Our own process, which is not a disturbance: it ends before anything is measured."""
    ticks_per_s: int = os.sysconf("SC_CLK_TCK")

    @property
    def seconds(self) -> float:
        """Length of the activity."""
        return self.last.at_s - self.first.at_s

    def change(self, counter: str) -> int:
        """Return the change of a counter of ``COUNTERS``."""
        for moment in (self.first, self.last):
            if counter in moment.unknown:
                raise Unknown(moment.unknown[counter])
        first, last = self.first.counters[counter], self.last.counters[counter]
        assert first is not None and last is not None
        return last - first

    def busy_processes(self) -> list[BusyProcess]:
        """Return the processes of others that used CPU time, the busiest first."""
        processes = (
            BusyProcess(number, process.name, self._used(number, process), process.is_kernel_thread)
            for number, process in self.last.processes.items()
            if number != self.own_process
        )
        busy = [process for process in processes if process.share > 0]
        return sorted(busy, key=lambda process: (-process.share, process.number))

    def unseen_share(self) -> float:
        """Return the CPU time, in CPUs, of processes that are not visible at the end."""
        used = sum(self._used(number, process) for number, process in self.last.processes.items())
        return max(0.0, self._share(self.change("busy_ticks")) - used)

    def steal_share(self) -> float:
        """Return the fraction of the processors' time that the hypervisor took away."""
        ticks = self.change("all_ticks")
        return self.change("steal_ticks") / ticks if ticks > 0 else 0.0

    def _used(self, number: int, process: Process) -> float:
        before = self.first.processes.get(number)
        same = before is not None and before.started == process.started
        return self._share(process.ticks - (before.ticks if before is not None and same else 0))

    def _share(self, ticks: int) -> float:
        return ticks / self.ticks_per_s / self.seconds if self.seconds > 0 else 0.0


class HostState(Struct, frozen=True):
    """The whole input of a check; tests replace its parts."""

    host: Host
    activity: Activity
    environment: Mapping[str, str]
    scratch: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    """Folder of temporary files."""
    free_space: Callable[[Path], os.statvfs_result] = os.statvfs
    we_are_root: bool = False


def watch(
    host: Host, seconds: float = LENGTH_S, sleep: Callable[[float], None] = time.sleep
) -> Activity:
    """Watch a host for a while."""
    first = read_moment(host)
    sleep(seconds)
    return Activity(first, read_moment(host))


def read_moment(host: Host, clock: Callable[[], float] = time.monotonic) -> Moment:
    """Read the counters of a host."""
    at_s, processes = clock(), dict(_processes(host))
    values, unknown = collect(COUNTERS, host)
    return Moment(at_s, processes, values, unknown)


def steal_since_boot(host: Host) -> float:
    """Return the fraction of the processors' time that the hypervisor took since the boot."""
    stolen, _, ticks = _cpu_ticks(host)
    return stolen / ticks if ticks else 0.0


def _pages_swapped(host: Host) -> int:
    """Return the number of pages moved to or from swap since the boot."""
    counts = dict(line.partition(" ")[::2] for line in host.text("/proc/vmstat").splitlines())
    try:
        return int(counts["pswpin"]) + int(counts["pswpout"])
    except (KeyError, ValueError):
        raise Unknown("/proc/vmstat does not count swapped pages") from None


def _cpu_ticks(host: Host) -> tuple[int, int, int]:
    text = host.text("/proc/stat").encode()
    try:
        return stolen_busy_and_all(text)
    except (ValueError, IndexError):
        raise Unknown("/proc/stat does not have the documented format") from None


def _processes(host: Host) -> Iterator[tuple[int, Process]]:
    for name in host.names("/proc"):
        if not name.isdigit():
            continue
        try:
            text = host.text(f"/proc/{name}/stat")
        except Unknown:
            # It ended after the folder was listed.
            continue
        before, _, after = text.rpartition(")")
        fields = after.split()
        if len(fields) > _STARTED:
            ticks = int(fields[_USER_TIME]) + int(fields[_SYSTEM_TIME])
            is_kernel_thread = bool(int(fields[_FLAGS]) & _KERNEL_THREAD)
            program = _printable(before.partition("(")[2])
            yield int(name), Process(program, int(fields[_STARTED]), ticks, is_kernel_thread)


def _printable(name: str) -> str:
    # A process chooses its own name, which must not reach a terminal as an escape sequence.
    return "".join(letter if letter.isprintable() else "?" for letter in name)


COUNTERS: Facts = {
    "steal_ticks": lambda host: _cpu_ticks(host)[0],
    "busy_ticks": lambda host: _cpu_ticks(host)[1],
    "all_ticks": lambda host: _cpu_ticks(host)[2],
    "pages_swapped": _pages_swapped,
    "times_throttled": times_throttled,
}
"""Counters whose change shows the activity."""
