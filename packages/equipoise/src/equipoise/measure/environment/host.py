"""Reading a host: its /proc and /sys, or folders that a test made in their place.

A fact that cannot be read is `Unknown` with its reason, never a zero (rule 7).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

_READ_BYTES = 1 << 20


class Unknown(Exception):
    """A fact that cannot be read on this host; the text is the reason."""


class Host(Struct, frozen=True):
    """A host as its files show it; a method raises `Unknown` for what cannot be read."""

    root: Path = Path("/")
    """Folder that stands for ``/``."""

    def path(self, name: str) -> Path:
        """Return the path of the file that the host calls ``name``."""
        return self.root / name.lstrip("/")

    def has(self, name: str) -> bool:
        """Return whether there is a file or folder of that name."""
        return self.path(name).exists()

    def text(self, name: str, at_most: int = _READ_BYTES) -> str:
        """Return the content of a file, stripped of white space."""
        try:
            # The kernel returns a file of /proc page by page; `read` goes on until the end.
            with open(os.path.join(self.root, name.lstrip("/")), "rb") as file:
                return file.read(at_most).decode("utf-8", "replace").strip()
        except OSError as error:
            raise Unknown(f"{name}: {error.strerror}") from None

    def number(self, name: str) -> int:
        """Return the whole number that a file holds."""
        text = self.text(name)
        try:
            return int(text)
        except ValueError:
            raise Unknown(f"{name}: {text[:40]!r} is no whole number") from None

    def value(self, name: str, key: str, at_most: int = _READ_BYTES) -> str:
        """Return the text behind ``key:`` in the first line of a file that has it."""
        for line in self.text(name, at_most).splitlines():
            before, colon, value = line.partition(":")
            if colon and before.strip() == key:
                return value.strip()
        raise Unknown(f"{name} has no line '{key}'")

    def names(self, folder: str) -> list[str]:
        """Return the sorted names in a folder."""
        try:
            return sorted(os.listdir(self.path(folder)))
        except OSError as error:
            raise Unknown(f"{folder}: {error.strerror}") from None


Fact = Callable[[Host], Any]
"""Function that returns what JSON can hold, never ``None``; raises ``Unknown``."""
Facts = Mapping[str, Fact]

UNLIMITED = "unlimited"
NONE = "none"
"""Value of what is known to be absent; ``None`` stands for what is not known."""


def collect(facts: Facts, host: Host) -> tuple[dict[str, Any], dict[str, str]]:
    """Return every fact, ``None`` where it is unknown, and the reasons of the unknown ones."""
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
