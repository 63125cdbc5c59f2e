"""CPU time that the hypervisor gives to others."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.scene import Scene
from equipoise.measure.disturbances.window import steal_since_boot
from equipoise.model.host import Disturbance

NOW_SHARE = 0.03
SINCE_BOOT_SHARE = 0.02
MEND = (
    "nothing inside this machine ends it: use a dedicated host, or measure for longer: "
    "equipoise compare --budget 600 …"
)


def check(scene: Scene) -> Iterator[Disturbance]:
    """Say if time is stolen now, or often was."""
    now = scene.window.steal_share()
    if now >= NOW_SHARE:
        yield Disturbance(
            "steal",
            "disturbs",
            f"the hypervisor takes away {100 * now:.0f} % of the CPU time for other machines",
            MEND,
        )
        return
    before = steal_since_boot(scene.host)
    if before >= SINCE_BOOT_SHARE:
        yield Disturbance(
            "steal",
            "weakens",
            f"since the boot the hypervisor took away {100 * before:.1f} % of the CPU time",
            MEND,
        )
