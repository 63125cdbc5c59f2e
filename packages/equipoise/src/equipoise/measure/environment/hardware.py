"""Read the hardware of a host: processor, memory, clock source, and virtual machine.

A function raises `Unknown` with the reason if the host does not have the fact.
"""

from __future__ import annotations

import os
import re
import time
from typing import Any

from equipoise.measure.environment.system import NONE, Facts, Host, Unknown

CPUS_FOLDER = "/sys/devices/system/cpu"
HUGE_PAGES_FILE = "/sys/kernel/mm/transparent_hugepage/enabled"
CLOCK_FOLDER = "/sys/devices/system/clocksource/clocksource0"
DMI_FOLDER = "/sys/class/dmi/id"
_FIRST_CPU_BYTES = 16384
"""Number of bytes of /proc/cpuinfo with the first CPU; reading the whole file may be slow."""
_CACHE_SIZE = re.compile(r"(\d+)([KMG]?)")
_UNIT_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_BRACKETED_VALUE = re.compile(r"\[(\w+)\]")
_HYPERVISOR_CLOCKS = {"kvm-clock": "KVM", "hyperv_clocksource_tsc_page": "Hyper-V", "xen": "Xen"}
"""Hypervisors by the clock source that they provide."""
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")
"""Files that Docker and Podman create in a container."""


def instructions(host: Host) -> frozenset[str] | None:
    """Return the kernel's names of the CPU's instruction sets; ``None`` if there is no list."""
    try:
        return frozenset(_cpuinfo(host, "flags").split())
    except Unknown:
        # Only x86 has this line.
        return None


def online_cpus(host: Host) -> list[int]:
    """Return the CPUs that are switched on."""
    return cpu_list(host.text(f"{CPUS_FOLDER}/online"))


def cpu_list(text: str) -> list[int]:
    """Return the numbers of a list in the kernel's format: ``0-2,8`` is 0, 1, 2, 8."""
    numbers: list[int] = []
    try:
        for cpu_range in filter(None, text.split(",")):
            first, dash, last = cpu_range.partition("-")
            numbers.extend(range(int(first), int(last if dash else first) + 1))
    except ValueError:
        raise Unknown(f"{text[:40]!r} is not a list of CPUs") from None
    return numbers


def governors(host: Host) -> list[str]:
    """Return the different frequency governors in use, sorted."""
    return _distinct_cpu_values(host, "scaling_governor")


def turbo(host: Host) -> bool:
    """Return whether the processor may exceed its nominal frequency."""
    if host.has(f"{CPUS_FOLDER}/intel_pstate/no_turbo"):
        return host.number(f"{CPUS_FOLDER}/intel_pstate/no_turbo") == 0
    if host.has(f"{CPUS_FOLDER}/cpufreq/boost"):
        return host.number(f"{CPUS_FOLDER}/cpufreq/boost") == 1
    raise Unknown("the host has neither intel_pstate/no_turbo nor cpufreq/boost")


def threads_share_cores(host: Host) -> bool:
    """Return whether two threads of one core are switched on (SMT)."""
    return host.number(f"{CPUS_FOLDER}/smt/active") == 1


def meminfo(host: Host, key: str) -> int:
    """Return the value of a key of /proc/meminfo, in bytes."""
    value = host.value("/proc/meminfo", key)
    number = value.partition(" ")[0]
    if not number.isdigit():
        raise Unknown(f"/proc/meminfo: {value[:40]!r} is not a number")
    return int(number) * 1024


def transparent_huge_pages(host: Host) -> str:
    """Return the kernel's setting for huge pages: ``always``, ``madvise`` or ``never``."""
    text = host.text(HUGE_PAGES_FILE)
    value = _BRACKETED_VALUE.search(text)
    if value is None:
        raise Unknown(f"{HUGE_PAGES_FILE}: no value of {text[:40]!r} is in brackets")
    return value[1]


def available_clock_sources(host: Host) -> list[str]:
    """Return the clock sources that the kernel could use."""
    return host.text(f"{CLOCK_FOLDER}/available_clocksource").split()


def hypervisor(host: Host) -> str:
    """Return the name of the hypervisor, ``unnamed`` or ``none``."""
    if host.has("/sys/hypervisor/type"):
        return host.text("/sys/hypervisor/type")
    if "hypervisor" not in _cpuinfo(host, "flags").split():
        return NONE
    try:
        sources = available_clock_sources(host)
    except Unknown:
        # Without clock sources, the name of the hypervisor is unknown.
        sources = []
    names = (_HYPERVISOR_CLOCKS[source] for source in sources if source in _HYPERVISOR_CLOCKS)
    return next(names, "unnamed")


def _cpuinfo(host: Host, key: str) -> str:
    return host.value("/proc/cpuinfo", key, _FIRST_CPU_BYTES)


def _distinct_cpu_values(host: Host, name: str) -> list[str]:
    return sorted(
        {host.text(f"{CPUS_FOLDER}/cpu{cpu}/cpufreq/{name}") for cpu in online_cpus(host)}
    )


def _cores(host: Host) -> list[tuple[int, int]]:
    """Return the numbers of the package (socket) and of the core of each CPU."""
    folders = [f"{CPUS_FOLDER}/cpu{cpu}/topology" for cpu in online_cpus(host)]
    return [
        (host.number(f"{folder}/physical_package_id"), host.number(f"{folder}/core_id"))
        for folder in folders
    ]


def _caches(host: Host) -> list[dict[str, Any]]:
    parent = f"{CPUS_FOLDER}/cpu{online_cpus(host)[0]}/cache"
    folders = [f"{parent}/{name}" for name in host.names(parent) if name.startswith("index")]
    if not folders:
        raise Unknown(f"{parent} names no cache")
    return [
        {
            "level": host.number(f"{folder}/level"),
            "type": host.text(f"{folder}/type"),
            "bytes": _size_bytes(host.text(f"{folder}/size")),
            "shared_by_cpus": host.text(f"{folder}/shared_cpu_list"),
        }
        for folder in folders
    ]


def _size_bytes(size: str) -> int:
    match = _CACHE_SIZE.fullmatch(size)
    if match is None:
        raise Unknown(f"{size[:40]!r} is not the size of a cache")
    return int(match[1]) * _UNIT_BYTES[match[2]]


def _container(host: Host) -> str:
    # Other container engines leave no mark, so a missing mark proves nothing.
    for mark in _CONTAINER_MARKS:
        if host.has(mark):
            return f"marked by {mark}"
    raise Unknown(f"neither {' nor '.join(_CONTAINER_MARKS)} exists")


FACTS: Facts = {
    "cpu_vendor": lambda host: _cpuinfo(host, "vendor_id"),
    "cpu_model": lambda host: _cpuinfo(host, "model name"),
    "cpu_family": lambda host: _cpuinfo(host, "cpu family"),
    "cpu_model_number": lambda host: _cpuinfo(host, "model"),
    "cpu_stepping": lambda host: _cpuinfo(host, "stepping"),
    "microcode": lambda host: _cpuinfo(host, "microcode"),
    "cpus": lambda host: len(online_cpus(host)),
    "cpus_online": lambda host: host.text(f"{CPUS_FOLDER}/online"),
    "cpus_allowed": lambda _: sorted(os.sched_getaffinity(0)),
    "cores": lambda host: len(set(_cores(host))),
    "sockets": lambda host: len({package for package, _ in _cores(host)}),
    "threads_share_cores": threads_share_cores,
    "caches": _caches,
    "governor": lambda host: ", ".join(governors(host)),
    "frequency_driver": lambda host: ", ".join(_distinct_cpu_values(host, "scaling_driver")),
    "turbo": turbo,
    "memory_bytes": lambda host: meminfo(host, "MemTotal"),
    "swap_bytes": lambda host: meminfo(host, "SwapTotal"),
    "page_bytes": lambda _: os.sysconf("SC_PAGE_SIZE"),
    "transparent_huge_pages": transparent_huge_pages,
    "clock_source": lambda host: host.text(f"{CLOCK_FOLDER}/current_clocksource"),
    "clock_sources_available": available_clock_sources,
    "clock_resolution_s": lambda _: time.clock_getres(time.CLOCK_MONOTONIC),
    "hypervisor": hypervisor,
    "machine_vendor": lambda host: host.text(f"{DMI_FOLDER}/sys_vendor"),
    "machine_product": lambda host: host.text(f"{DMI_FOLDER}/product_name"),
    "container": _container,
}
