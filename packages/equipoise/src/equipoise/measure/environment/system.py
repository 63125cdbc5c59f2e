"""Read the software of a host: kernel, C library, size of the environment.

For a variable in ``WITHHELD_VARIABLES`` only the name is recorded, because the value may contain
folders, tokens or hosts.

`Host` reads /proc and /sys, or the folders of a test. A fact that cannot be read raises `Unknown`
with the reason; it never becomes a zero (rule 7).
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from equipoise._native import VERSION

_MAX_READ_BYTES = 1 << 20


class Unknown(Exception):
    """A fact that cannot be read on this host; the text is the reason."""


class Host(Struct, frozen=True):
    """Reader of the files of a host. A method raises `Unknown` if it cannot read the file."""

    root: Path = Path("/")
    """Folder that is the host's ``/``; tests use another folder."""

    def path(self, name: str) -> Path:
        """Return the path of the host's file ``name``."""
        return self.root / name.lstrip("/")

    def has(self, name: str) -> bool:
        """Return whether the file or folder exists."""
        return self.path(name).exists()

    def text(self, name: str, max_bytes: int = _MAX_READ_BYTES) -> str:
        """Return the content of a file without white space at its ends."""
        try:
            # The kernel returns a file of /proc page by page; `read` continues to the end.
            with open(os.path.join(self.root, name.lstrip("/")), "rb") as file:
                return file.read(max_bytes).decode("utf-8", "replace").strip()
        except OSError as error:
            raise Unknown(f"{name}: {error.strerror}") from None

    def number(self, name: str) -> int:
        """Return the whole number in a file."""
        text = self.text(name)
        try:
            return int(text)
        except ValueError:
            raise Unknown(f"{name}: {text[:40]!r} is not a whole number") from None

    def value(self, name: str, key: str, max_bytes: int = _MAX_READ_BYTES) -> str:
        """Return the text after ``key:`` in the first line that has this key."""
        for line in self.text(name, max_bytes).splitlines():
            line_key, colon, value = line.partition(":")
            if colon and line_key.strip() == key:
                return value.strip()
        raise Unknown(f"{name} has no line '{key}'")

    def names(self, folder: str) -> list[str]:
        """Return the sorted names of the files in a folder."""
        try:
            return sorted(os.listdir(self.path(folder)))
        except OSError as error:
            raise Unknown(f"{folder}: {error.strerror}") from None


Fact = Callable[[Host], Any]
"""Function that returns a fact for JSON, never ``None``, or raises ``Unknown``."""
Facts = Mapping[str, Fact]

UNLIMITED, NONE = "unlimited", "none"
"""Values of a fact if a limit, or another thing, does not exist. ``None`` is an unknown fact."""


def read_facts(facts: Facts, host: Host) -> tuple[dict[str, Any], dict[str, str]]:
    """Return all facts and the reasons for unknown facts, whose values are ``None``."""
    values: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    for name, read in facts.items():
        try:
            values[name] = read(host)
        except Unknown as reason:
            values[name] = None
            unknown[name] = str(reason)
    return values, unknown


def readable(text: str) -> str:
    r"""Return text that any encoder accepts; bytes that are not UTF-8 become ``\xNN``."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities"
RANDOMISATION_FILE = "/proc/sys/kernel/randomize_va_space"
WITHHELD_VARIABLES = frozenset(
    "PATH PYTHONPATH TMPDIR JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS NODE_OPTIONS RUBYOPT "
    "PERL5OPT RUSTFLAGS".split()
)
"""Variables of which only the name is recorded."""
_NO_RANDOMISATION = 0x0040000
"""ADDR_NO_RANDOMIZE of personality(2); children inherit it."""
_QUERY_PERSONALITY = 0xFFFFFFFF
"""Argument of personality(2) that changes nothing and returns the current value."""


def environment_bytes(environment: Mapping[str, str]) -> int:
    """Return the number of bytes that an environment takes on the stack of a program.

    The size shifts the stack, and with it alignment (Mytkowicz et al., "Producing Wrong Data
    Without Doing Anything Obviously Wrong!", ASPLOS 2009, section 4).
    """
    return sum(len(os.fsencode(f"{name}={value}\0")) for name, value in environment.items())


def randomisation_off_for_us(host: Host) -> bool:
    """Return whether our personality(2), which trials inherit, switches off random addresses."""
    text = host.text("/proc/self/personality")
    try:
        return bool(int(text, 16) & _NO_RANDOMISATION)
    except ValueError:
        raise Unknown(f"/proc/self/personality: {text[:40]!r} is not a number") from None


def addresses_are_random(host: Host) -> bool:
    """Return whether the addresses of trials are drawn at random.

    If the setting cannot be read, the result is True: a wrong False would hide the effect of random
    addresses.
    """
    try:
        return host.number(RANDOMISATION_FILE) != 0 and not randomisation_off_for_us(host)
    except Unknown:
        return True


def addresses_can_be_held() -> bool:
    """Return whether a process on this host may switch off its own random addresses."""
    personality = ctypes.CDLL(None).personality
    current_flags = personality(ctypes.c_ulong(_QUERY_PERSONALITY))
    if current_flags < 0:
        return False
    can_switch_off = personality(ctypes.c_ulong(current_flags | _NO_RANDOMISATION)) >= 0
    personality(ctypes.c_ulong(current_flags))
    return bool(can_switch_off)


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
    "address_space_randomised": lambda host: host.number(RANDOMISATION_FILE),
    "randomisation_off_by_personality": randomisation_off_for_us,
    "isolated_cpus": lambda host: host.text("/sys/devices/system/cpu/isolated") or NONE,
    "mitigations": _mitigations,
}
