"""A clock that is slow to read or goes in large steps."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.scene import Scene
from equipoise.measure.surroundings.clocks import FOLDER
from equipoise.model.host import Disturbance

READ_WITHOUT_THE_KERNEL = frozenset(
    {
        "tsc",
        "kvm-clock",
        "hyperv_clocksource_tsc_page",
        "xen",
        "arch_sys_counter",
        "riscv_clocksource",
        "timebase",
        "tod",
    }
)
"""On x86, ARM, RISC-V, POWER and s390."""


def check(scene: Scene) -> Iterator[Disturbance]:
    """Compare the clock source with those that a program reads by itself."""
    source = scene.host.text(f"{FOLDER}/current_clocksource")
    if source in READ_WITHOUT_THE_KERNEL:
        return
    others = scene.host.text(f"{FOLDER}/available_clocksource").split()
    better = [name for name in others if name in READ_WITHOUT_THE_KERNEL]
    hint = (
        f"echo {better[0]} | sudo tee {FOLDER}/current_clocksource"
        if better
        else "the kernel trusts no better one here; why: sudo dmesg | grep -i clocksource"
    )
    yield Disturbance(
        "coarse_clock",
        "disturbs",
        f"the clock source is {source}: each look at the clock takes a microsecond or more",
        hint,
    )
