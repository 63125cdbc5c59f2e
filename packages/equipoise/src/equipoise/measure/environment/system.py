"""The software of a host: kernel, C library, and the size of the environment.

Of the variables in ``WITHHELD`` only the names are recorded: they matter, but may hold folders,
tokens or hosts.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Mapping
from datetime import datetime

from equipoise._native import VERSION
from equipoise.measure.environment.host import NONE, Facts, Host, Unknown

VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities"
RANDOMISATION = "/proc/sys/kernel/randomize_va_space"
WITHHELD = frozenset(
    {
        "PATH",
        "PYTHONPATH",
        "TMPDIR",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "NODE_OPTIONS",
        "RUBYOPT",
        "PERL5OPT",
        "RUSTFLAGS",
    }
)
_NO_RANDOMISATION = 0x0040000
"""ADDR_NO_RANDOMIZE of personality(2); children inherit it."""
_QUERY = 0xFFFFFFFF
"""Argument of personality(2) that changes nothing and returns the present value."""


def size_bytes(environment: Mapping[str, str]) -> int:
    """Return how many bytes the environment takes on the stack of every program.

    The size shifts the stack, and with it alignment (Mytkowicz et al., "Producing Wrong Data
    Without Doing Anything Obviously Wrong!", ASPLOS 2009, section 4).
    """
    return sum(len(os.fsencode(f"{name}={value}\0")) for name, value in environment.items())


def randomisation_off_for_us(host: Host) -> bool:
    """Return whether our own personality, which every trial inherits, keeps addresses fixed."""
    text = host.text("/proc/self/personality")
    try:
        return bool(int(text, 16) & _NO_RANDOMISATION)
    except ValueError:
        raise Unknown(f"/proc/self/personality: {text[:40]!r} is no number") from None


def addresses_are_random(host: Host) -> bool:
    """Return whether trials have their addresses drawn at random.

    What cannot be read counts as yes. To hold fixed addresses fixed shows nothing; to leave
    random addresses out would hide their effect.
    """
    try:
        return host.number(RANDOMISATION) != 0 and not randomisation_off_for_us(host)
    except Unknown:
        return True


def addresses_can_be_held() -> bool:
    """Return whether a process may switch its randomisation off; some containers forbid it."""
    personality = ctypes.CDLL(None).personality
    present = personality(ctypes.c_ulong(_QUERY))
    if present < 0:
        return False
    held = personality(ctypes.c_ulong(present | _NO_RANDOMISATION)) >= 0
    personality(ctypes.c_ulong(present))
    return bool(held)


def _libc(_: Host) -> str:
    try:
        name = os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError):
        name = None
    if not name:
        raise Unknown("the C library is not the GNU one and does not name its version")
    return name


def _time_zone(_: Host) -> str:
    name = datetime.now().astimezone().tzname()
    if name is None:
        raise Unknown("the system names no time zone")
    return name


def _mitigations(host: Host) -> dict[str, str]:
    return {name: host.text(f"{VULNERABILITIES}/{name}") for name in host.names(VULNERABILITIES)}


FACTS: Facts = {
    "equipoise": lambda _: VERSION,
    "python": lambda _: platform.python_version(),
    "libc": _libc,
    "time_zone": _time_zone,
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
