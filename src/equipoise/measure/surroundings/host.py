"""Where the facts of a host are read: its /proc and /sys, or folders that a test planted."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_READ_BYTES = 1 << 20


class Unknown(Exception):
    """A fact that cannot be read here; its words are the named reason (rule 7)."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host as its files show it.

    Parameters
    ----------
    root
        The folder that stands for ``/``.
    """

    root: Path = Path("/")

    def path(self, name: str) -> Path:
        """Where the file that the host calls ``name`` lies."""
        return self.root / name.lstrip("/")

    def text(self, name: str, at_most: int = _READ_BYTES) -> str:
        """What stands in a file, without white space around it.

        Raises
        ------
        Unknown
            It cannot be read.
        """
        try:
            with open(self.path(name), "rb", buffering=0) as file:
                return _first_bytes(file.fileno(), at_most).decode("utf-8", "replace").strip()
        except OSError as error:
            raise Unknown(f"{name}: {error.strerror}") from None

    def number(self, name: str) -> int:
        """The whole number that stands in a file.

        Raises
        ------
        Unknown
            It cannot be read, or it is no number.
        """
        text = self.text(name)
        try:
            return int(text)
        except ValueError:
            raise Unknown(f"{name}: {text[:40]!r} is no whole number") from None

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted.

        Raises
        ------
        Unknown
            It cannot be listed.
        """
        try:
            return sorted(os.listdir(self.path(folder)))
        except OSError as error:
            raise Unknown(f"{folder}: {error.strerror}") from None

    def has(self, name: str) -> bool:
        """Whether there is a file or folder of that name."""
        return self.path(name).exists()

    def value(self, name: str, key: str, at_most: int = _READ_BYTES) -> str:
        """What stands behind ``key:`` in the first line of a file that has it.

        Raises
        ------
        Unknown
            The file cannot be read or has no such line.
        """
        for line in self.text(name, at_most).splitlines():
            found, colon, value = line.partition(":")
            if colon and found.strip() == key:
                return value.strip()
        raise Unknown(f"{name} has no line '{key}'")


def _first_bytes(descriptor: int, at_most: int) -> bytes:
    # Files of /proc come a page at a time: one read is not the whole.
    parts = []
    while at_most > 0 and (part := os.read(descriptor, at_most)):
        parts.append(part)
        at_most -= len(part)
    return b"".join(parts)
