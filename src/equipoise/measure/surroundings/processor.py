"""The processor: what it is, how it is divided, and how its frequency is governed."""

from __future__ import annotations

import os
import re
from typing import Any

from equipoise.measure.surroundings.facts import Facts
from equipoise.measure.surroundings.host import Host, Unknown

CPUS = "/sys/devices/system/cpu"
_FIRST_CPU_BYTES = 16384
"""More than one CPU's part of /proc/cpuinfo; with hundreds the whole is slow to make."""
_SIZE = re.compile(r"(\d+)([KMG]?)")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def about(host: Host, key: str) -> str:
    """One line of /proc/cpuinfo about the first CPU.

    Raises
    ------
    Unknown
        There is no such line; other processors than x86 have few.
    """
    return host.value("/proc/cpuinfo", key, _FIRST_CPU_BYTES)


def instructions(host: Host) -> frozenset[str] | None:
    """What the CPUs are able to, by the kernel's names of flags; ``None`` if it does not say."""
    try:
        return frozenset(about(host, "flags").split())
    except Unknown:
        # Other processors than x86 call them otherwise.
        return None


def online(host: Host) -> list[int]:
    """The CPUs that are switched on."""
    return cpu_list(host.text(f"{CPUS}/online"))


def cpu_list(text: str) -> list[int]:
    """The numbers in the kernel's list format: ``0-2,8`` is 0, 1, 2, 8.

    Raises
    ------
    Unknown
        It is no such list.
    """
    numbers: list[int] = []
    try:
        for part in filter(None, text.split(",")):
            first, dash, last = part.partition("-")
            numbers.extend(range(int(first), int(last if dash else first) + 1))
    except ValueError:
        raise Unknown(f"{text[:40]!r} is no list of CPUs") from None
    return numbers


def allowed(_: Host) -> list[int]:
    """The CPUs that this process, and so its trials, may run on."""
    return sorted(os.sched_getaffinity(0))


def governors(host: Host) -> list[str]:
    """The frequency governors in use, each once.

    Raises
    ------
    Unknown
        The host shows no frequency control, as most virtual machines.
    """
    return _of_each_cpu(host, "scaling_governor")


def turbo(host: Host) -> bool:
    """Whether the processor may exceed its nominal frequency.

    Raises
    ------
    Unknown
        The host shows no switch for it.
    """
    if host.has(f"{CPUS}/intel_pstate/no_turbo"):
        return host.number(f"{CPUS}/intel_pstate/no_turbo") == 0
    if host.has(f"{CPUS}/cpufreq/boost"):
        return host.number(f"{CPUS}/cpufreq/boost") == 1
    raise Unknown("the host shows neither intel_pstate/no_turbo nor cpufreq/boost")


def threads_share_cores(host: Host) -> bool:
    """Whether two threads of one core are switched on (SMT)."""
    return host.number(f"{CPUS}/smt/active") == 1


def _of_each_cpu(host: Host, name: str) -> list[str]:
    return sorted({host.text(f"{CPUS}/cpu{cpu}/cpufreq/{name}") for cpu in online(host)})


def _cores(host: Host) -> list[tuple[int, int]]:
    """Package and core of each CPU that is switched on."""
    return [
        (
            host.number(f"{CPUS}/cpu{cpu}/topology/physical_package_id"),
            host.number(f"{CPUS}/cpu{cpu}/topology/core_id"),
        )
        for cpu in online(host)
    ]


def _caches(host: Host) -> list[dict[str, Any]]:
    first = f"{CPUS}/cpu{online(host)[0]}/cache"
    folders = [f"{first}/{name}" for name in host.names(first) if name.startswith("index")]
    if not folders:
        raise Unknown(f"{first} names no cache")
    return [
        {
            "level": host.number(f"{folder}/level"),
            "type": host.text(f"{folder}/type"),
            "bytes": _bytes(host.text(f"{folder}/size")),
            "shared_by_cpus": host.text(f"{folder}/shared_cpu_list"),
        }
        for folder in folders
    ]


def _bytes(size: str) -> int:
    found = _SIZE.fullmatch(size)
    if found is None:
        raise Unknown(f"{size[:40]!r} is no size of a cache")
    return int(found[1]) * _UNITS[found[2]]


FACTS: Facts = {
    "cpu_vendor": lambda host: about(host, "vendor_id"),
    "cpu_model": lambda host: about(host, "model name"),
    "cpu_family": lambda host: about(host, "cpu family"),
    "cpu_model_number": lambda host: about(host, "model"),
    "cpu_stepping": lambda host: about(host, "stepping"),
    "microcode": lambda host: about(host, "microcode"),
    "cpus": lambda host: len(online(host)),
    "cpus_online": lambda host: host.text(f"{CPUS}/online"),
    "cpus_allowed": allowed,
    "cores": lambda host: len(set(_cores(host))),
    "sockets": lambda host: len({package for package, _ in _cores(host)}),
    "threads_share_cores": threads_share_cores,
    "caches": _caches,
    "governor": lambda host: ", ".join(governors(host)),
    "frequency_driver": lambda host: ", ".join(_of_each_cpu(host, "scaling_driver")),
    "turbo": turbo,
}
