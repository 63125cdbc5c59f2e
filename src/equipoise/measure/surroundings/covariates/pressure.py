"""Pressure stall information: for how long some process waited for a resource.

Source: the kernel's Documentation/accounting/psi.rst.
"""

from __future__ import annotations

from typing import Literal

from equipoise.measure.surroundings.covariates.source import OpenFile
from equipoise.measure.surroundings.host import Host

Resource = Literal["cpu", "memory", "io"]
_MARK = b"total="


class Pressure:
    """Seconds of the trial during which at least one process of the host waited."""

    def __init__(self, host: Host, resource: Resource) -> None:
        self.names = (f"pressure_{resource}_s",)
        self._file = OpenFile(host, f"/proc/pressure/{resource}")
        self._total_us = 0

    def before(self) -> None:
        """Read the counter."""
        self._total_us = self._read()

    def after(self, cpu: int | None) -> tuple[float, ...]:
        """How far the counter went, in seconds."""
        return ((self._read() - self._total_us) / 1e6,)

    def close(self) -> None:
        """Close its file."""
        self._file.close()

    def _read(self) -> int:
        # The first line is the one of "some", and its total stands last in it.
        line = self._file.read(128).partition(b"\n")[0]
        try:
            return int(line[line.rindex(_MARK) + len(_MARK) :])
        except ValueError:
            raise self._file.nonsense() from None
