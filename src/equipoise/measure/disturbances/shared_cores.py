"""Two CPUs on one core (SMT): what runs on one slows the other."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.scene import Scene
from equipoise.measure.surroundings.processor import CPUS, threads_share_cores
from equipoise.model.host import Disturbance


def check(scene: Scene) -> Iterator[Disturbance]:
    """Say if threads share cores."""
    if threads_share_cores(scene.host):
        yield Disturbance(
            "shared_cores",
            "weakens",
            "two CPUs share a core (SMT): a trial slows down when its twin has work",
            f"echo off | sudo tee {CPUS}/smt/control",
        )
