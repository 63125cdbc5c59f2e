"""Huge pages for everybody: whether a trial gets them depends on what memory is left."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.scene import Scene
from equipoise.measure.surroundings.memory import HUGE_PAGES, transparent_huge_pages
from equipoise.model.host import Disturbance


def check(scene: Scene) -> Iterator[Disturbance]:
    """Say if they are handed out unasked."""
    if transparent_huge_pages(scene.host) == "always":
        yield Disturbance(
            "huge_pages",
            "weakens",
            "transparent huge pages are handed out unasked: whether a trial gets them, and "
            "so its time and memory, depends on how fragmented memory is",
            f"echo madvise | sudo tee {HUGE_PAGES}",
        )
