"""Memory that is nearly full: the kernel reclaims pages, or ends a trial."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.scene import Scene
from equipoise.measure.surroundings.containment import Limit, memory_in_use, memory_limit
from equipoise.measure.surroundings.host import Unknown
from equipoise.measure.surroundings.memory import meminfo
from equipoise.model.host import Disturbance

FREE_SHARE = 0.10


def check(scene: Scene) -> Iterator[Disturbance]:
    """Look at the host's memory, then at our control group's limit."""
    available = meminfo(scene.host, "MemAvailable")
    total = meminfo(scene.host, "MemTotal")
    if available < FREE_SHARE * total:
        yield Disturbance(
            "full_memory",
            "disturbs",
            f"memory is nearly full: {available / 1e6:.0f} of {total / 1e6:.0f} MB are available",
            "end what is not needed; the largest: ps -e -o pid,rss,comm --sort=-rss | head",
        )
    limit = _limit(scene)
    if limit is None:
        return
    used = memory_in_use(scene.host, limit)
    if used > (1 - FREE_SHARE) * limit.value:
        yield Disturbance(
            "full_memory_limit",
            "disturbs",
            f"{used / 1e6:.0f} MB are in use of the {limit.value / 1e6:.0f} MB "
            "that our control group may have",
            f"raise {limit.file}; for a container: docker update --memory SIZE CONTAINER",
        )


def _limit(scene: Scene) -> Limit | None:
    try:
        return memory_limit(scene.host)
    except Unknown:
        # Without control groups there is no limit of theirs.
        return None
