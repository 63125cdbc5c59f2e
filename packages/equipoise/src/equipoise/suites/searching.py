"""Searches a folder for files with a text, without the folders of builds and of installed code."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from equipoise.model.revisions import SourcePlace

_SKIPPED_FOLDERS = frozenset({"build", "node_modules", "site-packages", "target", "vendor", "venv"})
"""Folders with code that is built or installed, and so is not the user's."""
_MAX_FILES = 20_000
"""Maximum number of files that are looked at."""
_MAX_BYTES = 1 << 20
"""Maximum number of bytes that are read from a file."""


def files_named(folder: Path, pattern: str) -> Iterator[Path]:
    """Yield the files whose names match a regular expression, sorted in each folder."""
    count = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if name not in _SKIPPED_FOLDERS and not name.startswith(".")
        )
        for name in sorted(names):
            count += 1
            if count > _MAX_FILES:
                return
            if re.fullmatch(pattern, name):
                yield Path(parent, name)


def text_in(path: Path) -> str:
    """Return the text of a regular file; empty if there is no such file, or it cannot be read."""
    if not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def first_file_with(folder: Path, name_pattern: str, text_pattern: str) -> Path | None:
    """Return the first file, relative to the folder, whose name and text match two patterns."""
    for path in files_named(folder, name_pattern):
        if re.search(text_pattern, text_in(path), re.MULTILINE):
            return path.relative_to(folder)
    return None


def folders_up_to(tree: Path, folder: Path) -> Iterator[Path]:
    """Yield a folder and its parents, up to the root of the working tree."""
    yield folder
    while folder != tree and folder.parent != folder:
        folder = folder.parent
        yield folder


def place_in(tree: Path, path: Path, line_numbers: Sequence[int]) -> SourcePlace | None:
    """Return the place of a definition; ``None`` if a file has several such lines, or none.

    A file outside of the working tree, also behind a symbolic link, has no place.
    """
    real_path, real_tree = path.resolve(), tree.resolve()
    if len(line_numbers) != 1 or not real_path.is_relative_to(real_tree):
        return None
    return SourcePlace(real_path.relative_to(real_tree).as_posix(), line_numbers[0])
