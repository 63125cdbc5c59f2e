"""The kernel: which one, since which boot, and what it does to every program."""

from __future__ import annotations

import platform

from equipoise.measure.surroundings.facts import NONE, Facts
from equipoise.measure.surroundings.host import Host, Unknown

VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities"
RANDOMISATION = "/proc/sys/kernel/randomize_va_space"
_NO_RANDOMISATION = 0x0040000
"""ADDR_NO_RANDOMIZE of personality(2): children inherit it."""


def randomisation_off_for_us(host: Host) -> bool:
    """Whether our own personality, which every trial inherits, keeps addresses fixed.

    Raises
    ------
    Unknown
        It cannot be read.
    """
    text = host.text("/proc/self/personality")
    try:
        return bool(int(text, 16) & _NO_RANDOMISATION)
    except ValueError:
        raise Unknown(f"/proc/self/personality: {text[:40]!r} is no number") from None


def _mitigations(host: Host) -> dict[str, str]:
    return {name: host.text(f"{VULNERABILITIES}/{name}") for name in host.names(VULNERABILITIES)}


FACTS: Facts = {
    "system": lambda _: platform.system(),
    "machine": lambda _: platform.machine(),
    "kernel": lambda host: host.text("/proc/sys/kernel/osrelease"),
    "kernel_build": lambda host: host.text("/proc/sys/kernel/version"),
    "boot_id": lambda host: host.text("/proc/sys/kernel/random/boot_id"),
    "address_space_randomised": lambda host: host.number(RANDOMISATION),
    "randomisation_off_by_personality": randomisation_off_for_us,
    "isolated_cpus": lambda host: host.text("/sys/devices/system/cpu/isolated") or NONE,
    "mitigations": _mitigations,
}
