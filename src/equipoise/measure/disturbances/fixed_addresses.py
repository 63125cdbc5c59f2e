"""Addresses that are not randomised: every trial has the same memory layout."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.scene import Scene
from equipoise.measure.surroundings.kernel import RANDOMISATION, randomisation_off_for_us
from equipoise.model.host import Disturbance

WORDS = (
    "addresses are not randomised{where}: all trials share one memory layout, "
    "and a verdict may hold for that layout only"
)


def check(scene: Scene) -> Iterator[Disturbance]:
    """Look at the whole host, then at what we inherited."""
    if scene.host.number(RANDOMISATION) == 0:
        yield Disturbance(
            "fixed_addresses",
            "weakens",
            WORDS.format(where=""),
            "sudo sysctl kernel.randomize_va_space=2",
        )
    elif randomisation_off_for_us(scene.host):
        yield Disturbance(
            "fixed_addresses",
            "weakens",
            WORDS.format(where=" for what we start"),
            "start Equipoise without setarch -R and outside of a debugger",
        )
