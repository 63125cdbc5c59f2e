"""Where the programs of a server are, and which of them are missing."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from equipoise.model.study import ServerWorkload

_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Absent:
    """A program that is not installed."""

    program: str
    package: str | None
    """Of Debian; ``None`` if the study names none."""
    key: str
    """Of the server's table: the one that names it."""

    @property
    def hint(self) -> str:
        """How to get it."""
        if self.package is None:
            return "install it, or name its folder in the server's path"
        return f"apt install {self.package}"


def search_folders(server: ServerWorkload) -> tuple[str, ...]:
    """The folders of the server's own path; of several versions the newest comes first."""
    found: list[str] = []
    for pattern in server.path:
        found += sorted(filter(os.path.isdir, glob(pattern)), key=_version, reverse=True)
    return tuple(found)


def searched(server: ServerWorkload) -> str:
    """``PATH``, and behind it the folders of the server's own path."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), *search_folders(server)))


def absent_program(server: ServerWorkload, native_programs: Path) -> Absent | None:
    """The first program that the server needs and that is not there."""
    path = searched(server)
    # What it says to need comes first: it names the package.
    keys = dict.fromkeys(server.needs, "needs")
    for key, words in server.commands().items():
        keys.setdefault(words[0], key)
    for program, key in keys.items():
        is_ours = "/" not in program and (native_programs / program).is_file()
        if "{" not in program and not is_ours and shutil.which(program, path=path) is None:
            return Absent(program, server.needs.get(program), key)
    return None


def _version(path: str) -> list[str | int]:
    return [int(part) if part.isdigit() else part for part in _NUMBER.split(path)]
