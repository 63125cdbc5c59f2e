"""The load average before a trial (proc_loadavg(5))."""

from __future__ import annotations

from equipoise.measure.surroundings.covariates.source import OpenFile
from equipoise.measure.surroundings.host import Host


class Load:
    """Processes that wanted to run, averaged over the minute before the trial."""

    names = ("load_1_minute",)

    def __init__(self, host: Host) -> None:
        self._file = OpenFile(host, "/proc/loadavg")
        self._load = 0.0

    def before(self) -> None:
        """Read the load: after the trial it would hold the trial itself."""
        try:
            self._load = float(self._file.read(64).split(maxsplit=1)[0])
        except (ValueError, IndexError):
            raise self._file.nonsense() from None

    def after(self, cpu: int | None) -> tuple[float, ...]:
        """The load before the trial."""
        return (self._load,)

    def close(self) -> None:
        """Close its file."""
        self._file.close()
