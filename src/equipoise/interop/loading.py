"""Reading files of other tools within bounds of size, and telling what they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from equipoise.interop.reading import Format, Reading, SourceFile
from equipoise.model.errors import UnusableInput

MOST_BYTES = 64 * 2**20
"""Of one file."""
MOST_SEPARATORS = 1_000_000
"""Commas and tabs, or lines, in one file: it bounds what is decoded at once."""


def read_within_bounds(name: str, path: Path) -> SourceFile:
    """Read a file whole if it is not too large; a folder is not read.

    Raises
    ------
    UnusableInput
        There is no such file, it is empty, too large, no regular file, or cannot be read.
    """
    if path.is_dir():
        return SourceFile(name, path, is_folder=True)
    if not path.exists():
        raise UnusableInput(f"{name}: there is no such file", mend="check the name")
    if not path.is_file():
        raise UnusableInput(f"{name} is no regular file", mend="write it to a file first")
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UnusableInput(
            f"{name}: {(error.strerror or str(error)).lower()}", mend="make the file readable"
        ) from error
    if len(content) > MOST_BYTES:
        raise _too_large(name, f"it is larger than {MOST_BYTES // 2**20} MiB")
    if not content.strip():
        raise UnusableInput(f"{name} is empty", mend="run the tool again; it wrote nothing")
    if max(content.count(b",") + content.count(b"\t"), content.count(b"\n")) > MOST_SEPARATORS:
        raise _too_large(name, f"it holds more than {MOST_SEPARATORS} values or lines")
    return SourceFile(name, path, content)


def read_source(
    file: SourceFile, chosen: str | None, formats: Mapping[str, Format]
) -> tuple[str, Reading]:
    """Read what a file says.

    Parameters
    ----------
    chosen
        The name of its format; told by its content if ``None``.

    Returns
    -------
    The name of its format, and what it says.

    Raises
    ------
    UnusableInput
        It is of no known format, or not what its format asks for.
    """
    if chosen is not None:
        form = formats[chosen]
        if file.is_folder != form.reads_folders:
            kind = "folder" if file.is_folder else "file"
            raise file.unusable(f"it is a {kind}", f"give what this writes: {form.written_by}")
    else:
        recognised = next((one for one in formats.values() if one.recognises(file)), None)
        if recognised is None:
            raise file.unusable(
                "it is of no format that is known here, or it is cut off",
                f"say which with --format: {', '.join(formats)}",
            )
        form = recognised
    reading = form.read(file)
    if not reading.processes:
        raise file.unusable(
            f"no measurement is in this file of {form.name}",
            f"give what this writes: {form.written_by}",
        )
    return form.name, reading


def _too_large(name: str, what: str) -> UnusableInput:
    return UnusableInput(
        f"{name}: {what}", mend="split it, or export it with fewer values for each benchmark"
    )
