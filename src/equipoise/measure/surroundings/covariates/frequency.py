"""The frequency of the CPU that a trial ran on (the kernel's admin-guide/pm/cpufreq.rst)."""

from __future__ import annotations

from equipoise.measure.surroundings.covariates.source import OpenFile
from equipoise.measure.surroundings.host import Host, Unknown
from equipoise.measure.surroundings.processor import CPUS, online


class Frequency:
    """Hertz, just after the trial: before it the CPU has only this process to run."""

    names = ("frequency_hz",)

    def __init__(self, host: Host) -> None:
        self._host = host
        self._files: dict[int, OpenFile] = {}
        self._file_of(online(host)[0])

    def before(self) -> None:
        """Read nothing."""

    def after(self, cpu: int | None) -> tuple[float, ...]:
        """The frequency of the CPU on which the trial ran last."""
        if cpu is None:
            raise Unknown("it is not known on which CPU the trial ran")
        file = self._file_of(cpu)
        try:
            return (int(file.read(32)) * 1e3,)
        except ValueError:
            raise file.nonsense() from None

    def close(self) -> None:
        """Close its files."""
        for file in self._files.values():
            file.close()

    def _file_of(self, cpu: int) -> OpenFile:
        if cpu not in self._files:
            self._files[cpu] = OpenFile(self._host, f"{CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq")
        return self._files[cpu]
