"""The kernel: which one, since which boot, and what it does to every program."""

from __future__ import annotations

import ctypes
import platform

from equipoise.measure.surroundings.facts import NONE, Facts
from equipoise.measure.surroundings.host import Host, Unknown

VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities"
RANDOMISATION = "/proc/sys/kernel/randomize_va_space"
_NO_RANDOMISATION = 0x0040000
"""ADDR_NO_RANDOMIZE of personality(2): children inherit it."""
_ASK = 0xFFFFFFFF
"""Changes nothing and gives the present one."""


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


def addresses_are_random(host: Host) -> bool:
    """Whether trials have their addresses drawn at random.

    What cannot be read counts as yes: holding what may not vary shows nothing, and leaving it out
    would hide what does.
    """
    try:
        return host.number(RANDOMISATION) != 0 and not randomisation_off_for_us(host)
    except Unknown:
        return True


def addresses_can_be_held() -> bool:
    """Whether a process may switch the randomisation off for itself; some containers forbid it."""
    personality = ctypes.CDLL(None).personality
    present = personality(ctypes.c_ulong(_ASK))
    if present < 0:
        return False
    held = personality(ctypes.c_ulong(present | _NO_RANDOMISATION)) >= 0
    personality(ctypes.c_ulong(present))
    return bool(held)


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
