"""Half a second of a host's activity: what its processes and processors did in it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from equipoise.measure.surroundings.containment import times_throttled
from equipoise.measure.surroundings.host import Host, Unknown

LENGTH_S = 0.5


@dataclass(frozen=True, slots=True)
class Process:
    """One process at one moment."""

    name: str
    started: int
    """In ticks since boot: tells it from another one with the same number."""
    ticks: int
    """CPU time that it has used."""
    of_the_kernel: bool = False
    """Whether it is a thread of the kernel."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The counters of a host at one moment; what could not be read is a reason."""

    at_s: float
    processes: Mapping[int, Process]
    busy_ticks: int | Unknown
    steal_ticks: int | Unknown
    all_ticks: int | Unknown
    pages_swapped: int | Unknown
    throttled: int | Unknown


@dataclass(frozen=True, slots=True)
class User:
    """A process that used CPU time; ``share`` of one CPU."""

    number: int
    name: str
    share: float
    of_the_kernel: bool


@dataclass(frozen=True, slots=True)
class Window:
    """What happened between two moments."""

    first: Moment
    last: Moment
    ours: int
    """Our own process, which disturbs nothing: it ends before anything is measured."""
    ticks_per_s: int

    @property
    def seconds(self) -> float:
        """How long it was."""
        return self.last.at_s - self.first.at_s

    def users(self) -> list[User]:
        """The processes of others that used CPU time, those that used most first."""
        found = [
            User(
                number,
                process.name,
                self._share(process.ticks - self._earlier(number, process)),
                process.of_the_kernel,
            )
            for number, process in self.last.processes.items()
            if number != self.ours
        ]
        return sorted(
            (user for user in found if user.share > 0), key=lambda user: (-user.share, user.number)
        )

    def unseen(self) -> float:
        """CPU time, in CPUs, that no process seen at the end accounts for.

        Raises
        ------
        Unknown
            The processors' time could not be read.
        """
        ours = self.last.processes.get(self.ours)
        own_share = (
            0.0 if ours is None else self._share(ours.ticks - self._earlier(self.ours, ours))
        )
        busy = self._share(change(self.first.busy_ticks, self.last.busy_ticks))
        return max(0.0, busy - own_share - sum(user.share for user in self.users()))

    def steal_share(self) -> float:
        """Which part of the processors' time the hypervisor took away.

        Raises
        ------
        Unknown
            The processors' time could not be read.
        """
        everything = change(self.first.all_ticks, self.last.all_ticks)
        stolen = change(self.first.steal_ticks, self.last.steal_ticks)
        return stolen / everything if everything > 0 else 0.0

    def _earlier(self, number: int, process: Process) -> int:
        before = self.first.processes.get(number)
        same = before is not None and before.started == process.started
        return before.ticks if before is not None and same else 0

    def _share(self, ticks: int) -> float:
        return ticks / self.ticks_per_s / self.seconds if self.seconds > 0 else 0.0


def change(first: int | Unknown, last: int | Unknown) -> int:
    """How far a counter went.

    Raises
    ------
    Unknown
        It could not be read.
    """
    for value in (first, last):
        if isinstance(value, Unknown):
            raise value
    assert isinstance(first, int) and isinstance(last, int)
    return last - first


def watch(
    host: Host, seconds: float = LENGTH_S, sleep: Callable[[float], None] = time.sleep
) -> Window:
    """Watch a host for a while."""
    first = moment(host)
    sleep(seconds)
    return Window(first, moment(host), os.getpid(), os.sysconf("SC_CLK_TCK"))


def moment(host: Host, clock: Callable[[], float] = time.monotonic) -> Moment:
    """Read the counters of a host."""
    return Moment(
        at_s=clock(),
        processes=dict(_processes(host)),
        busy_ticks=_or_reason(lambda: sum(_cpu_ticks(host, _BUSY))),
        steal_ticks=_or_reason(lambda: sum(_cpu_ticks(host, _STEAL))),
        all_ticks=_or_reason(lambda: sum(_cpu_ticks(host, range(1, 9)))),
        pages_swapped=_or_reason(lambda: pages_swapped(host)),
        throttled=_or_reason(lambda: times_throttled(host)),
    )


_BUSY = (1, 2, 3, 6, 7)
"""user, nice, system, irq, softirq in the first line of /proc/stat."""
_STEAL = (8,)
_NAME_ENDS = ")"
_FLAGS, _USER_TIME, _SYSTEM_TIME, _STARTED = 6, 11, 12, 19
"""Fields of /proc/PID/stat behind the name, which may hold blanks itself."""
_KERNEL_THREAD = 0x00200000
"""PF_KTHREAD of include/linux/sched.h."""


def pages_swapped(host: Host) -> int:
    """Pages that went to or came from swap since the boot.

    Raises
    ------
    Unknown
        The kernel does not count them.
    """
    counts = dict(line.partition(" ")[::2] for line in host.text("/proc/vmstat").splitlines())
    try:
        return int(counts["pswpin"]) + int(counts["pswpout"])
    except (KeyError, ValueError):
        raise Unknown("/proc/vmstat counts no swapped pages") from None


def steal_since_boot(host: Host) -> float:
    """Which part of the processors' time the hypervisor took since the boot.

    Raises
    ------
    Unknown
        The processors' time could not be read.
    """
    everything = sum(_cpu_ticks(host, range(1, 9)))
    return sum(_cpu_ticks(host, _STEAL)) / everything if everything else 0.0


def _cpu_ticks(host: Host, fields: range | tuple[int, ...]) -> list[int]:
    line = host.text("/proc/stat").partition("\n")[0].split()
    try:
        return [int(line[field]) for field in fields]
    except (ValueError, IndexError):
        raise Unknown("/proc/stat has another form than the kernel documents") from None


def _processes(host: Host) -> Iterator[tuple[int, Process]]:
    for name in host.names("/proc"):
        if not name.isdigit():
            continue
        try:
            text = host.text(f"/proc/{name}/stat")
        except Unknown:
            # It ended since the folder was listed.
            continue
        before, _, after = text.rpartition(_NAME_ENDS)
        fields = after.split()
        if len(fields) > _STARTED:
            ticks = int(fields[_USER_TIME]) + int(fields[_SYSTEM_TIME])
            program = _printable(before.partition("(")[2])
            of_the_kernel = bool(int(fields[_FLAGS]) & _KERNEL_THREAD)
            yield int(name), Process(program, int(fields[_STARTED]), ticks, of_the_kernel)


def _printable(name: str) -> str:
    # A process chooses its name itself: it must not reach a terminal as an escape sequence.
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def _or_reason(read: Callable[[], int]) -> int | Unknown:
    try:
        return read()
    except Unknown as reason:
        return reason
