"""A CPU quota of the control group: whoever has used it up is stopped until the next period."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.scene import Scene
from equipoise.measure.disturbances.window import change
from equipoise.measure.surroundings.containment import cpu_quota
from equipoise.measure.surroundings.host import Unknown
from equipoise.measure.surroundings.processor import online
from equipoise.model.host import Disturbance


def check(scene: Scene) -> Iterator[Disturbance]:
    """Say if a quota is smaller than the CPUs; ``disturbs`` if one busy thread exceeds it."""
    quota = cpu_quota(scene.host)
    if quota is None or quota.value >= len(online(scene.host)):
        return
    halted = _halted(scene)
    everything = "-1" if quota.file.endswith("cfs_quota_us") else "max"
    yield Disturbance(
        "cpu_quota",
        "disturbs" if quota.value < 1 or halted else "weakens",
        f"a CPU quota lets us use {quota.value:g} CPUs, then stops us until its next period"
        + (f"; it did so {halted} times just now" if halted else ""),
        f"echo {everything} | sudo tee {quota.file}; for a container: "
        "docker update --cpu-quota -1 CONTAINER",
    )


def _halted(scene: Scene) -> int:
    try:
        return change(scene.window.first.throttled, scene.window.last.throttled)
    except Unknown:
        # The quota is known all the same.
        return 0
