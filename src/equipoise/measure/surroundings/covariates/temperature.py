"""The temperature of the processor before a trial.

Source: the kernel's driver-api/thermal/sysfs-api.rst and hwmon/sysfs-interface.rst.
"""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.surroundings.covariates.source import OpenFile
from equipoise.measure.surroundings.host import Host, Unknown

ZONES = "/sys/class/thermal"
MONITORS = "/sys/class/hwmon"
_OF_A_PROCESSOR = ("x86_pkg_temp", "cpu", "soc")
"""Other zones (battery, disk, mainboard) say little, and some take milliseconds to read."""
_PROCESSOR_MONITORS = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal"})


class Temperature:
    """Degrees Celsius of the hottest sensor of the processor.

    Read before the trial, so that it is no effect of it.
    """

    names = ("temperature_c",)

    def __init__(self, host: Host) -> None:
        names = list(_zones(host)) or list(_monitors(host))
        if not names:
            raise Unknown(f"neither {ZONES} nor {MONITORS} shows a sensor of the processor")
        self._files: list[OpenFile] = []
        self._hottest = 0.0
        try:
            for name in names:
                self._files.append(OpenFile(host, name))
        except Unknown:
            self.close()
            raise

    def before(self) -> None:
        """Read every sensor of the processor."""
        self._hottest = max(self._degrees(file) for file in self._files)

    def after(self, cpu: int | None) -> tuple[float, ...]:
        """The temperature before the trial."""
        return (self._hottest,)

    def close(self) -> None:
        """Close its files."""
        for file in self._files:
            file.close()

    @staticmethod
    def _degrees(file: OpenFile) -> float:
        try:
            return int(file.read(32)) / 1e3
        except ValueError:
            raise file.nonsense() from None


def _zones(host: Host) -> Iterator[str]:
    for zone in _listed(host, ZONES):
        if zone.startswith("thermal_zone"):
            kind = host.text(f"{ZONES}/{zone}/type").lower()
            if kind.startswith(_OF_A_PROCESSOR):
                yield f"{ZONES}/{zone}/temp"


def _monitors(host: Host) -> Iterator[str]:
    for monitor in _listed(host, MONITORS):
        folder = f"{MONITORS}/{monitor}"
        if host.has(f"{folder}/name") and host.text(f"{folder}/name") in _PROCESSOR_MONITORS:
            for name in host.names(folder):
                # The first is the whole package; one sensor a core costs a read a core.
                if name == "temp1_input":
                    yield f"{folder}/{name}"


def _listed(host: Host, folder: str) -> list[str]:
    return host.names(folder) if host.has(folder) else []
