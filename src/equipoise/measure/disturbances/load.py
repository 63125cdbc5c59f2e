"""A high load average: something was busy within the last minute and may be so again."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.scene import Scene
from equipoise.measure.surroundings.host import Unknown
from equipoise.measure.surroundings.processor import online
from equipoise.model.host import Disturbance

HIGH_SHARE = 0.5
"""Of the CPUs: from here on a trial often shares one, a cache or a frequency limit."""
LEAST_LOAD = 0.75


def check(scene: Scene) -> Iterator[Disturbance]:
    """Compare the load with the number of CPUs."""
    text = scene.host.text("/proc/loadavg")
    try:
        load = float(text.split()[0])
    except (ValueError, IndexError):
        raise Unknown(f"/proc/loadavg: {text[:40]!r} is no load") from None
    cpus = len(online(scene.host))
    if load < max(LEAST_LOAD, HIGH_SHARE * cpus):
        return
    yield Disturbance(
        "high_load",
        "disturbs" if load >= cpus else "weakens",
        f"over the last minute {load:g} processes on average wanted one of {cpus} CPUs",
        "wait until it has gone down; see: uptime",
    )
