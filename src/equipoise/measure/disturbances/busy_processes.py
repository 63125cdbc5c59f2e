"""Other processes that use the CPUs now."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.scene import Scene
from equipoise.measure.disturbances.window import User
from equipoise.model.host import Disturbance

NAMED_SHARE = 0.05
"""Of one CPU: from here on a process is named."""
TOGETHER_SHARE = 0.10
"""What all those that are not named may use together."""
UNSEEN_SHARE = 0.25
"""The kernel counts the processors' time by sampling: less than this may be its error."""
MOST_NAMED = 5


def check(scene: Scene) -> Iterator[Disturbance]:
    """Name each process that takes CPU time, and say what the others take together."""
    users = scene.window.users()
    named = [user for user in users if user.share >= NAMED_SHARE][:MOST_NAMED]
    for user in named:
        yield Disturbance(
            "busy_process",
            "disturbs",
            f"process {user.number} ({user.name}) uses {100 * user.share:.0f} % of a CPU",
            _mend(user),
        )
    rest = sum(user.share for user in users) - sum(user.share for user in named)
    if rest >= TOGETHER_SHARE:
        yield Disturbance(
            "busy_processes",
            "disturbs",
            f"{len(users) - len(named)} other processes together use {100 * rest:.0f} % of a CPU",
            "end what is not needed; see: top -b -n 1 | head -30",
        )
    unseen = scene.window.unseen()
    if unseen >= UNSEEN_SHARE:
        yield Disturbance(
            "unseen_processes",
            "disturbs",
            f"processes that ended meanwhile, or that cannot be seen from here, "
            f"use {100 * unseen:.0f} % of a CPU",
            "wait for the build, or look from outside of the container: sudo top",
        )


def _mend(user: User) -> str:
    if user.of_the_kernel:
        return "a thread of the kernel: wait until it is done; see: top -b -n 1 | head -30"
    return (
        f"end it, or halt it meanwhile: kill -STOP {user.number}, "
        f"afterwards kill -CONT {user.number}"
    )
