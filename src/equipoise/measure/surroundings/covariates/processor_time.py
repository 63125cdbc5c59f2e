"""What the processors did during a trial (proc_stat(5))."""

from __future__ import annotations

import os

from equipoise.measure.surroundings.covariates.source import OpenFile
from equipoise.measure.surroundings.host import Host

_USER, _NICE, _SYSTEM, _IDLE, _IOWAIT, _IRQ, _SOFTIRQ, _STEAL = range(1, 9)


class ProcessorTime:
    """CPU seconds that the hypervisor took away, and that all processes together used.

    The kernel counts ticks, of 10 ms as a rule: a short trial shows 0 or one tick.
    """

    names = ("steal_s", "busy_s")

    def __init__(self, host: Host) -> None:
        self._file = OpenFile(host, "/proc/stat")
        self._tick_s = 1.0 / os.sysconf("SC_CLK_TCK")
        self._steal = self._busy = 0

    def before(self) -> None:
        """Read the counters."""
        self._steal, self._busy = self._read()

    def after(self, cpu: int | None) -> tuple[float, ...]:
        """How far the counters went, in CPU seconds; of all processes, the trial's too."""
        steal, busy = self._read()
        return (steal - self._steal) * self._tick_s, (busy - self._busy) * self._tick_s

    def close(self) -> None:
        """Close its file."""
        self._file.close()

    def _read(self) -> tuple[int, int]:
        fields = self._file.read(256).partition(b"\n")[0].split()
        try:
            return int(fields[_STEAL]), sum(
                int(fields[field]) for field in (_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ)
            )
        except (ValueError, IndexError):
            raise self._file.nonsense() from None
