"""Covariates that this host does not offer: they will be null beside every trial."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.scene import Scene
from equipoise.measure.surroundings.covariates.reader import CovariateReader
from equipoise.model.host import Disturbance

MENDS = {
    "load_1_minute": "mount /proc",
    "pressure_cpu_s": "start the kernel with psi=1",
    "pressure_memory_s": "start the kernel with psi=1",
    "pressure_io_s": "start the kernel with psi=1",
    "steal_s": "mount /proc",
    "busy_s": "mount /proc",
    "frequency_hz": "use real hardware: few virtual machines show it",
    "temperature_c": "sudo modprobe coretemp; virtual machines do not show it",
}


def check(scene: Scene) -> Iterator[Disturbance]:
    """Name each with its reason."""
    with CovariateReader(scene.host) as reader:
        missing = dict(reader.reasons)
    for name, reason in missing.items():
        yield Disturbance(
            "no_covariate",
            "lacks",
            f"{name} will be unknown: {reason}",
            MENDS.get(name, "use a host that shows it; verdicts need none"),
        )
