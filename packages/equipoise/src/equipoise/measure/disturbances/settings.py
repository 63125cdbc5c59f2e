"""Check the settings of a host, its clock, its performance counters, and its covariates."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.measure.disturbances.host_state import HostState
from equipoise.measure.environment import hardware
from equipoise.measure.environment.covariates import CovariateReader
from equipoise.measure.environment.hardware import CLOCK_FOLDER, CPUS_FOLDER, HUGE_PAGES_FILE
from equipoise.measure.environment.system import (
    RANDOMISATION_FILE,
    Unknown,
    randomisation_off_for_us,
    readable,
)
from equipoise.model.host import Disturbance
from equipoise.shared.spelling import option

SUPPLIES_FOLDER = "/sys/class/power_supply"
SLOWING_VARIABLES = {
    "MALLOC_CHECK_": "glibc's malloc may check its heap",
    "MALLOC_PERTURB_": "glibc's malloc fills all memory that it hands out or takes back",
    "MALLOC_TRACE": "glibc's malloc may log every call",
    "LD_DEBUG": "the dynamic loader logs its work",
    "LD_PROFILE": "the dynamic loader profiles a library",
    "LD_AUDIT": "the dynamic loader runs an audit library",
    "LD_PRELOAD": "every trial loads a library that replaces functions",
    "PYTHONDEVMODE": "Python checks at run time",
    "PYTHONMALLOC": "Python uses a different allocator",
    "PYTHONTRACEMALLOC": "Python traces every allocation",
    "PYTHONASYNCIODEBUG": "asyncio checks every call",
    "PYTHONPROFILEIMPORTTIME": "Python times every import",
    "G_SLICE": "GLib uses a different allocator",
    "VALGRIND_OPTS": "programs that run under valgrind run differently",
}
"""Effects of environment variables that slow programs down."""
SANITIZERS = ("ASAN_OPTIONS", "LSAN_OPTIONS", "MSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")
"""Variables that set options of sanitizers."""
HARMLESS_VALUES = {"MALLOC_CHECK_": {"", "0"}, "PYTHONMALLOC": {"", "pymalloc", "default"}}
"""Values with which a variable slows nothing down; for other variables only the empty value."""
SHOWN_VARIABLES = frozenset(
    {"MALLOC_CHECK_", "MALLOC_PERTURB_", "LD_DEBUG", "LD_PRELOAD", "PYTHONMALLOC"}
)
"""Variables whose values are shown, because they are helpful and not secret."""
FAST_CLOCKS = frozenset(
    "tsc kvm-clock hyperv_clocksource_tsc_page xen arch_sys_counter riscv_clocksource timebase "
    "tod".split()
)
"""Clock sources that a program reads without the kernel (x86, ARM, RISC-V, POWER, s390)."""
PARANOID_LEVEL_FILE = "/proc/sys/kernel/perf_event_paranoid"
DEVICES_FOLDER = "/sys/bus/event_source/devices"
MAX_PARANOID_LEVEL = 2
"""Highest ``perf_event_paranoid`` at which users may count events (perf_event_open(2))."""
_PROCESSOR_DEVICES = ("cpu", "armv", "power_pmu")
"""Beginnings of the names of devices with the processor's counters."""
_COVARIATE_HINTS = {
    "load": "mount /proc",
    "pressure": "start the kernel with psi=1",
    "steal": "mount /proc",
    "busy": "mount /proc",
    "frequency": "use real hardware: few virtual machines show the frequency",
    "temperature": "sudo modprobe coretemp; virtual machines do not show the temperature",
}
"""Hints by the first word of a covariate's name."""


def battery(state: HostState) -> Iterator[Disturbance]:
    """Report a discharging battery of the machine, but not of a device such as a mouse."""
    host = state.host
    for name in host.names(SUPPLIES_FOLDER) if host.has(SUPPLIES_FOLDER) else ():
        folder = f"{SUPPLIES_FOLDER}/{name}"
        scope = f"{folder}/scope"
        is_of_device = host.has(scope) and host.text(scope) == "Device"
        if host.text(f"{folder}/type") != "Battery" or is_of_device:
            continue
        if host.text(f"{folder}/status") == "Discharging":
            summary = f"the machine runs on its battery ({name})"
            hint = f"plug it in; then cat {folder}/status prints Charging or Full"
            yield Disturbance("battery", "disturbs", summary, hint)


def governor(state: HostState) -> Iterator[Disturbance]:
    """Report frequency governors other than ``performance``."""
    other_governors = [name for name in hardware.governors(state.host) if name != "performance"]
    if other_governors:
        yield Disturbance(
            "governor",
            "weakens",
            f"the frequency governor is {', '.join(other_governors)}: "
            "how fast a CPU runs depends on what ran before",
            f"echo performance | sudo tee {CPUS_FOLDER}/cpu*/cpufreq/scaling_governor",
        )


def turbo(state: HostState) -> Iterator[Disturbance]:
    """Report that turbo is on."""
    if not hardware.turbo(state.host):
        return
    no_turbo = f"{CPUS_FOLDER}/intel_pstate/no_turbo"
    boost = f"{CPUS_FOLDER}/cpufreq/boost"
    switch, value = (no_turbo, 1) if state.host.has(no_turbo) else (boost, 0)
    summary = "turbo is on: how fast a CPU runs depends on its temperature and its neighbours"
    hint = f"echo {value} | sudo tee {switch}"
    yield Disturbance("turbo", "weakens", summary, hint)


def debug_variables(state: HostState) -> Iterator[Disturbance]:
    """Report each environment variable that slows programs down."""
    for name, effect in SLOWING_VARIABLES.items():
        value = state.environment.get(name, "")
        if value in HARMLESS_VALUES.get(name, {""}):
            continue
        setting = f"{name}={readable(value)[:80]}" if name in SHOWN_VARIABLES else name
        summary = f"{setting} is set: {effect}"
        hint = f"unset {name}; to give it to one condition: {option('env')} 'WHICH:{name}=VALUE'"
        yield Disturbance("debug_variable", "disturbs", summary, hint)
    for name in SANITIZERS:
        if state.environment.get(name):
            summary = f"{name} is set: it slows programs built with that sanitizer"
            hint = f"unset {name}"
            yield Disturbance("debug_variable", "weakens", summary, hint)


def fixed_addresses(state: HostState) -> Iterator[Disturbance]:
    """Report addresses that are not randomised, on the whole host or for our processes."""
    if state.host.number(RANDOMISATION_FILE) == 0:
        scope_phrase, hint = "", "sudo sysctl kernel.randomize_va_space=2"
    elif randomisation_off_for_us(state.host):
        scope_phrase = " for processes that Equipoise starts"
        hint = "start Equipoise without setarch -R and outside a debugger"
    else:
        return
    summary = (
        f"addresses are not randomised{scope_phrase}: all trials share one memory layout, "
        "and a verdict may hold for that layout only"
    )
    yield Disturbance("fixed_addresses", "weakens", summary, hint)


def huge_pages(state: HostState) -> Iterator[Disturbance]:
    """Report that every process may get huge pages, which depends on free memory."""
    if hardware.transparent_huge_pages(state.host) == "always":
        yield Disturbance(
            "huge_pages",
            "weakens",
            "every process may get transparent huge pages: whether a trial gets them, and "
            "so its time and memory, depends on how fragmented memory is",
            f"echo madvise | sudo tee {HUGE_PAGES_FILE}",
        )


def coarse_clock(state: HostState) -> Iterator[Disturbance]:
    """Report a clock source that a program can read only through the kernel."""
    source = state.host.text(f"{CLOCK_FOLDER}/current_clocksource")
    if source in FAST_CLOCKS:
        return
    sources = hardware.available_clock_sources(state.host)
    faster_sources = [name for name in sources if name in FAST_CLOCKS]
    yield Disturbance(
        "coarse_clock",
        "disturbs",
        f"the clock source is {source}: each reading of the clock takes a microsecond or more",
        f"echo {faster_sources[0]} | sudo tee {CLOCK_FOLDER}/current_clocksource"
        if faster_sources
        else "look for the reason why the kernel trusts no faster source: "
        "sudo dmesg | grep -i clocksource",
    )


def counters(state: HostState) -> Iterator[Disturbance]:
    """Report performance counters that are forbidden or missing; only explanations need them."""
    if not state.host.has(PARANOID_LEVEL_FILE):
        summary = "the kernel has no performance counters"
        hint = "use a kernel with CONFIG_PERF_EVENTS; verdicts need no counter"
        yield Disturbance("no_counters", "lacks", summary, hint)
        return
    if state.host.number(PARANOID_LEVEL_FILE) > MAX_PARANOID_LEVEL and not state.we_are_root:
        summary = "performance counters are forbidden to all but root"
        hint = f"sudo sysctl kernel.perf_event_paranoid={MAX_PARANOID_LEVEL}"
        yield Disturbance("counters_forbidden", "lacks", summary, hint)
    try:
        devices = state.host.names(DEVICES_FOLDER)
    except Unknown:
        # A kernel without this folder has no devices.
        devices = []
    if not any(name.startswith(_PROCESSOR_DEVICES) for name in devices):
        summary = "the processor's counters (cycles, cache misses) are missing"
        hint = "use real hardware, or a virtual machine that has counters; verdicts need none"
        yield Disturbance("no_hardware_counters", "lacks", summary, hint)


def unread_covariates(state: HostState) -> Iterator[Disturbance]:
    """Report the covariates that will be null in every trial, grouped by reason."""
    with CovariateReader(state.host) as reader:
        missing = dict(reader.reasons)
    for reason in dict.fromkeys(missing.values()):
        names = [name for name in missing if missing[name] == reason]
        summary = f"{' and '.join(names)} will be unknown: {reason}"
        first_word = names[0].partition("_")[0]
        hint = _COVARIATE_HINTS.get(first_word, "use another host; verdicts need no covariate")
        yield Disturbance("no_covariate", "lacks", summary, hint)
