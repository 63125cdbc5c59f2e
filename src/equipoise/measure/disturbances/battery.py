"""A machine that runs on its battery saves power by running slower."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.scene import Scene
from equipoise.model.host import Disturbance

SUPPLIES = "/sys/class/power_supply"


def check(scene: Scene) -> Iterator[Disturbance]:
    """Say if a battery of the machine itself is being discharged."""
    if not scene.host.has(SUPPLIES):
        return
    for name in scene.host.names(SUPPLIES):
        folder = f"{SUPPLIES}/{name}"
        if scene.host.text(f"{folder}/type") != "Battery" or _of_a_device(scene, folder):
            continue
        if scene.host.text(f"{folder}/status") == "Discharging":
            yield Disturbance(
                "battery",
                "disturbs",
                f"the machine runs on its battery ({name})",
                f"plug it in; then cat {folder}/status says Charging or Full",
            )


def _of_a_device(scene: Scene, folder: str) -> bool:
    """Whether it is the battery of a mouse or the like."""
    scope = f"{folder}/scope"
    return scene.host.has(scope) and scene.host.text(scope) == "Device"
