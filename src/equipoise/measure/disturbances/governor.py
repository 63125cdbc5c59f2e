"""A frequency governor that lets the CPU run slowly until there is something to do."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.scene import Scene
from equipoise.measure.surroundings.processor import CPUS, governors
from equipoise.model.host import Disturbance


def check(scene: Scene) -> Iterator[Disturbance]:
    """Name each governor that is not ``performance``."""
    others = [name for name in governors(scene.host) if name != "performance"]
    if others:
        yield Disturbance(
            "governor",
            "weakens",
            f"the frequency governor is {', '.join(others)}: "
            "how fast a CPU runs depends on what ran before",
            f"echo performance | sudo tee {CPUS}/cpu*/cpufreq/scaling_governor",
        )
