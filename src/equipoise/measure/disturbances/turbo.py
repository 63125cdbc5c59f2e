"""Turbo: how fast a CPU runs depends on its temperature and on what its neighbours do."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.scene import Scene
from equipoise.measure.surroundings.processor import CPUS, turbo
from equipoise.model.host import Disturbance


def check(scene: Scene) -> Iterator[Disturbance]:
    """Say if it is on."""
    if not turbo(scene.host):
        return
    intel = f"{CPUS}/intel_pstate/no_turbo"
    switch = (
        f"1 | sudo tee {intel}" if scene.host.has(intel) else f"0 | sudo tee {CPUS}/cpufreq/boost"
    )
    yield Disturbance(
        "turbo",
        "weakens",
        "turbo is on: how fast a CPU runs depends on its temperature and its neighbours",
        f"echo {switch}",
    )
