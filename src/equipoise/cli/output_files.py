"""Files that a command writes: checked before the work, replaced as a whole."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.files.writing import write_whole
from equipoise.model.errors import UnusableInput

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure


def check_folder(path: Path) -> None:
    """Check that a file can stand there at all, before the work for it is done.

    Raises
    ------
    UnusableInput
        There is no such folder, or the path is one itself.
    """
    if not path.resolve().parent.is_dir():
        raise UnusableInput(
            f"{path}: there is no folder {path.resolve().parent}", hint="make it first"
        )
    if path.is_dir():
        raise UnusableInput(f"{path} is a folder", hint="name a file in it")


def write_file(path: Path, content: bytes) -> None:
    """Replace a file by new content; where that fails, the old file is kept.

    Raises
    ------
    UnusableInput
        The file cannot be written.
    """
    try:
        write_whole(path, content)
    except OSError as error:
        raise UnusableInput(
            f"cannot write {path}: {error.strerror}",
            hint="nothing is lost: the campaign is in the ledger; name another file",
        ) from error


ENDINGS = ("html", "svg", "png")
MOST_LETTERS = 80


def folder_name(number: int, run_id: str) -> str:
    """Return the folder of one run among several; the run's id may hold any text."""
    return f"{number}-{re.sub(r'[^A-Za-z0-9-]+', '_', run_id)[:MOST_LETTERS]}"


def save_figures(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Write figures into a folder, which is made; of one name, the second has a 2 behind it.

    Raises
    ------
    UnusableInput
        The folder cannot be made or written to.
    """
    from equipoise.figures.save import save

    _make(folder)
    written: list[Path] = []
    seen: Counter[str] = Counter()
    for figure in figures:
        seen[figure.name] += 1
        name = figure.name if seen[figure.name] == 1 else f"{figure.name}_{seen[figure.name]}"
        for ending in ENDINGS:
            path = folder / f"{name}.{ending}"
            save(figure.chart, path)
            written.append(path)
    return written


def save_flame_graph(picture: bytes, folder: Path) -> None:
    """Write a flame graph, an SVG, into a folder, which is made, and the same as PNG.

    Raises
    ------
    UnusableInput
        The folder cannot be made or written to.
    """
    from equipoise.figures.save import pixels_of

    _make(folder)
    write_file(folder / "flame_graph.svg", picture)
    write_file(folder / "flame_graph.png", pixels_of(picture))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnusableInput(
            f"cannot make the folder {folder}: {error.strerror}",
            hint="name another one with --figures",
        ) from None
