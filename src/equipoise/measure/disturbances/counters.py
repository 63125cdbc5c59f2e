"""Performance counters: what a verdict does not need, and explanations do."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.scene import Scene
from equipoise.measure.surroundings.host import Unknown
from equipoise.model.host import Disturbance

PARANOID = "/proc/sys/kernel/perf_event_paranoid"
DEVICES = "/sys/bus/event_source/devices"
OWN_PROCESSES = 2
"""Up to this level anyone may count what happens in his own processes (perf_event_open(2))."""
_HARDWARE = ("cpu", "armv", "power_pmu")


def check(scene: Scene) -> Iterator[Disturbance]:
    """Say if counters are forbidden, or if the processor's are not there."""
    if not scene.host.has(PARANOID):
        yield Disturbance(
            "no_counters",
            "lacks",
            "the kernel has no performance counters",
            "use a kernel with CONFIG_PERF_EVENTS; verdicts need none",
        )
        return
    if scene.host.number(PARANOID) > OWN_PROCESSES and not scene.we_are_root:
        yield Disturbance(
            "counters_forbidden",
            "lacks",
            "performance counters are forbidden to all but root",
            f"sudo sysctl kernel.perf_event_paranoid={OWN_PROCESSES}",
        )
    if not any(name.startswith(_HARDWARE) for name in _devices(scene)):
        yield Disturbance(
            "no_hardware_counters",
            "lacks",
            "the processor's counters (cycles, cache misses) are not there",
            "use real hardware, or a virtual machine that hands them on; verdicts need none",
        )


def _devices(scene: Scene) -> list[str]:
    try:
        return scene.host.names(DEVICES)
    except Unknown:
        # A kernel without the list has no devices to list.
        return []
