"""Observe a host for half a second, as the input of checks for disturbances.

A counter, such as the busy ticks of all processors, only grows; its change shows the activity. A
function raises `Unknown` if a counter could not be read.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from equipoise.measure.environment.cgroups import times_throttled
from equipoise.measure.environment.covariates import CpuTicks, parse_cpu_ticks
from equipoise.measure.environment.system import Facts, Host, Unknown, read_facts

WATCH_S = 0.5
"""Seconds for which a host is observed."""
_FLAGS, _USER_TIME, _SYSTEM_TIME, _START_TIME = 6, 11, 12, 19
"""Indices in /proc/PID/stat, counted from the field after the name of the process."""
_KERNEL_THREAD_FLAG = 0x00200000
"""PF_KTHREAD of include/linux/sched.h."""


class Process(Struct, frozen=True):
    """One process at one moment."""

    name: str
    start_ticks: int
    """Ticks from boot to start; they distinguish two processes with the same number."""
    cpu_ticks: int
    """CPU time used so far, in ticks."""
    is_kernel_thread: bool = False


class Moment(Struct, frozen=True):
    """Processes and counters of a host at one moment."""

    read_at_s: float
    """Time of the reading by a monotonic clock."""
    processes: Mapping[int, Process]
    """Processes by pid."""
    counters: Mapping[str, int | None]
    """Counters of the kernel by the names of ``COUNTERS``; ``None`` for an unreadable counter."""
    unknown: Mapping[str, str]
    """Reasons for unreadable counters, by name."""


class BusyProcess(Struct, frozen=True):
    """A process that used CPU time."""

    pid: int
    name: str
    share: float
    """CPU time as a fraction of one CPU's time."""
    is_kernel_thread: bool


class Activity(Struct, frozen=True):
    """The activity of a host between two moments."""

    first: Moment
    last: Moment
    own_pid: int = field(default_factory=os.getpid)
    """Our own process, which is not a disturbance."""
    ticks_per_s: int = os.sysconf("SC_CLK_TCK")

    @property
    def seconds(self) -> float:
        """Seconds between the two moments."""
        return self.last.read_at_s - self.first.read_at_s

    def change(self, counter: str) -> int:
        """Return the change of one of the ``COUNTERS`` between the two moments."""
        for moment in (self.first, self.last):
            if counter in moment.unknown:
                raise Unknown(moment.unknown[counter])
        first, last = self.first.counters[counter], self.last.counters[counter]
        assert first is not None and last is not None
        return last - first

    def busy_processes(self) -> list[BusyProcess]:
        """Return the other processes that used CPU time, the busiest first."""
        processes = (
            BusyProcess(pid, process.name, self._share_of(pid, process), process.is_kernel_thread)
            for pid, process in self.last.processes.items()
            if pid != self.own_pid
        )
        busy_processes = [process for process in processes if process.share > 0]
        return sorted(busy_processes, key=lambda process: (-process.share, process.pid))

    def unseen_share(self) -> float:
        """Return the share of one CPU that unlisted processes used, such as ended processes."""
        processes = self.last.processes.items()
        visible_share = sum(self._share_of(pid, process) for pid, process in processes)
        return max(0.0, self._share_of_ticks(self.change("busy_ticks")) - visible_share)

    def steal_share(self) -> float:
        """Return the fraction of the processors' time that the hypervisor took away."""
        ticks = self.change("all_ticks")
        return self.change("steal_ticks") / ticks if ticks > 0 else 0.0

    def _share_of(self, pid: int, process: Process) -> float:
        earlier = self.first.processes.get(pid)
        if earlier is None or earlier.start_ticks != process.start_ticks:
            return self._share_of_ticks(process.cpu_ticks)
        return self._share_of_ticks(process.cpu_ticks - earlier.cpu_ticks)

    def _share_of_ticks(self, ticks: int) -> float:
        return ticks / self.ticks_per_s / self.seconds if self.seconds > 0 else 0.0


class HostState(Struct, frozen=True):
    """The input of all checks, as fields that tests replace."""

    host: Host
    activity: Activity
    environment: Mapping[str, str]
    scratch: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    """Folder of temporary files."""
    free_space: Callable[[Path], os.statvfs_result] = os.statvfs
    we_are_root: bool = False


def watch(
    host: Host, seconds: float = WATCH_S, sleep: Callable[[float], None] = time.sleep
) -> Activity:
    """Return the activity of a host in the next seconds."""
    first = read_moment(host)
    sleep(seconds)
    return Activity(first, read_moment(host))


def read_moment(host: Host, clock: Callable[[], float] = time.monotonic) -> Moment:
    """Read the processes and the counters of a host."""
    read_at_s, processes = clock(), dict(_processes(host))
    values, unknown = read_facts(COUNTERS, host)
    return Moment(read_at_s, processes, values, unknown)


def steal_since_boot(host: Host) -> float:
    """Return the fraction of the processors' time that the hypervisor took since the boot."""
    ticks = _cpu_ticks(host)
    return ticks.stolen / ticks.total if ticks.total else 0.0


def _pages_swapped(host: Host) -> int:
    counts = dict(line.partition(" ")[::2] for line in host.text("/proc/vmstat").splitlines())
    try:
        return int(counts["pswpin"]) + int(counts["pswpout"])
    except (KeyError, ValueError):
        raise Unknown("/proc/vmstat does not count swapped pages") from None


def _cpu_ticks(host: Host) -> CpuTicks:
    text = host.text("/proc/stat").encode()
    try:
        return parse_cpu_ticks(text)
    except (ValueError, IndexError):
        raise Unknown("/proc/stat does not have the documented format") from None


def _processes(host: Host) -> Iterator[tuple[int, Process]]:
    for name in host.names("/proc"):
        if not name.isdigit():
            continue
        try:
            text = host.text(f"/proc/{name}/stat")
        except Unknown:
            # The process ended after the folder was listed.
            continue
        name_part, _, field_part = text.rpartition(")")
        fields = field_part.split()
        if len(fields) > _START_TIME:
            ticks = int(fields[_USER_TIME]) + int(fields[_SYSTEM_TIME])
            is_kernel_thread = bool(int(fields[_FLAGS]) & _KERNEL_THREAD_FLAG)
            program = _printable(name_part.partition("(")[2])
            yield int(name), Process(program, int(fields[_START_TIME]), ticks, is_kernel_thread)


def _printable(name: str) -> str:
    # A process chooses its own name. Escape sequences in it must not reach a terminal.
    return "".join(character if character.isprintable() else "?" for character in name)


COUNTERS: Facts = {
    "steal_ticks": lambda host: _cpu_ticks(host).stolen,
    "busy_ticks": lambda host: _cpu_ticks(host).busy,
    "all_ticks": lambda host: _cpu_ticks(host).total,
    "pages_swapped": _pages_swapped,
    "times_throttled": times_throttled,
}
"""Functions that read the counters, by name."""
