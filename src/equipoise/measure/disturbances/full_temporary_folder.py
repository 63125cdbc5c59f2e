"""A temporary folder that is tiny or nearly full: trials that write to it fail or slow down."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.scene import Scene
from equipoise.measure.surroundings.host import Unknown
from equipoise.measure.surroundings.variables import readable
from equipoise.model.host import Disturbance

LEAST_BYTES = 256 << 20
NEARLY_FULL_BYTES = 1 << 30
FREE_SHARE = 0.05
LEAST_FILES = 1000
MEND = "make room, or use another folder: export TMPDIR=/var/tmp"


def check(scene: Scene) -> Iterator[Disturbance]:
    """Look at the room for bytes, then for files."""
    try:
        space = scene.free_space(scene.scratch)
    except OSError as error:
        raise Unknown(f"{scene.scratch}: {error.strerror}") from None
    # What only root may use (f_bfree) is no room for a trial.
    free, total = space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize
    name = readable(str(scene.scratch))
    if free < LEAST_BYTES or (free < NEARLY_FULL_BYTES and free < FREE_SHARE * total):
        yield Disturbance(
            "small_temporary_folder",
            "disturbs",
            f"{name} has {free / 1e6:.0f} MB left of {total / 1e6:.0f} MB",
            MEND,
        )
    elif 0 < space.f_files and space.f_favail < LEAST_FILES:
        yield Disturbance(
            "few_temporary_files",
            "disturbs",
            f"{name} can take only {space.f_favail} more files",
            MEND,
        )
