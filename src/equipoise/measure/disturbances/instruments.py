"""Instruments of measurement: the clock, performance counters, and covariates."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.host_state import HostState
from equipoise.measure.environment.covariates import CovariateReader
from equipoise.measure.environment.hardware import CLOCK, available_clock_sources
from equipoise.measure.environment.host import Unknown
from equipoise.model.host import Disturbance

FAST_CLOCKS = frozenset(
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
"""Clock sources of x86, ARM, RISC-V, POWER and s390 that a program reads without the kernel."""
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
DEVICES = "/sys/bus/event_source/devices"
OWN_PROCESSES = 2
"""Highest level at which every user may count in his own processes (perf_event_open(2))."""
_HARDWARE = ("cpu", "armv", "power_pmu")
_COVARIATE_HINTS = {
    "load_1_minute": "mount /proc",
    **dict.fromkeys(
        (
            f"pressure_{resource}_{when}"
            for resource in ("cpu", "memory", "io")
            for when in ("s", "before")
        ),
        "start the kernel with psi=1",
    ),
    **dict.fromkeys(("steal_s", "busy_s", "steal_before"), "mount /proc"),
    **dict.fromkeys(
        ("frequency_hz", "frequency_before_hz"), "use real hardware: few virtual machines show it"
    ),
    "temperature_c": "sudo modprobe coretemp; virtual machines do not show it",
}


def coarse_clock(state: HostState) -> Iterator[Disturbance]:
    """Report a clock source that a program can read only through the kernel."""
    source = state.host.text(f"{CLOCK}/current_clocksource")
    if source in FAST_CLOCKS:
        return
    better = [name for name in available_clock_sources(state.host) if name in FAST_CLOCKS]
    yield Disturbance(
        "coarse_clock",
        "disturbs",
        f"the clock source is {source}: each look at the clock takes a microsecond or more",
        f"echo {better[0]} | sudo tee {CLOCK}/current_clocksource"
        if better
        else "the kernel trusts no better one here; why: sudo dmesg | grep -i clocksource",
    )


def counters(state: HostState) -> Iterator[Disturbance]:
    """Report counters that are forbidden or missing; only explanations need them."""
    if not state.host.has(PARANOID):
        what = "the kernel has no performance counters"
        hint = "use a kernel with CONFIG_PERF_EVENTS; verdicts need none"
        yield Disturbance("no_counters", "lacks", what, hint)
        return
    if state.host.number(PARANOID) > OWN_PROCESSES and not state.we_are_root:
        what = "performance counters are forbidden to all but root"
        hint = f"sudo sysctl kernel.perf_event_paranoid={OWN_PROCESSES}"
        yield Disturbance("counters_forbidden", "lacks", what, hint)
    try:
        devices = state.host.names(DEVICES)
    except Unknown:
        # A kernel without the list has no devices to list.
        devices = []
    if not any(name.startswith(_HARDWARE) for name in devices):
        what = "the processor's counters (cycles, cache misses) are not there"
        hint = "use real hardware, or a virtual machine that hands them on; verdicts need none"
        yield Disturbance("no_hardware_counters", "lacks", what, hint)


def unread_covariates(state: HostState) -> Iterator[Disturbance]:
    """Name the covariates that will be null beside every trial, those of one reason together."""
    with CovariateReader(state.host) as reader:
        missing = dict(reader.reasons)
    for reason in dict.fromkeys(missing.values()):
        names = [name for name in missing if missing[name] == reason]
        what = f"{' and '.join(names)} will be unknown: {reason}"
        hint = _COVARIATE_HINTS.get(names[0], "use a host that shows it; verdicts need none")
        yield Disturbance("no_covariate", "lacks", what, hint)
