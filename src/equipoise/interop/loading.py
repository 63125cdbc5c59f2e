"""Reading files of other tools within bounds of size, and telling what they are."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from equipoise.interop.reading import Format, Reading, SourceFile
from equipoise.model.errors import UnusableInput

MOST_BYTES = 64 * 2**20
"""Of one file."""
MOST_SEPARATORS = 1_000_000
"""Commas and tabs, or lines, in one file: it bounds what is decoded at once."""
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
"""By how a file of each begins."""


def read_within_bounds(name: str, path: Path) -> SourceFile:
    """Read a file whole if it is not too large; a folder is not read.

    A mark of byte order is left out, and UTF-16 behind one becomes UTF-8: PowerShell writes so.

    Raises
    ------
    UnusableInput
        There is no such file, it is empty, too large, compressed, no regular file, or cannot be
        read.
    """
    try:
        # An empty name would be the current folder.
        found = os.stat(name and path)
        if stat.S_ISDIR(found.st_mode):
            return SourceFile(name, path, is_folder=True)
        if not stat.S_ISREG(found.st_mode):
            raise UnusableInput(f"{name} is no regular file", hint="write it to a file first")
        if found.st_size > MOST_BYTES:
            raise _larger(name)
        with path.open("rb") as file:
            # What the system makes up as it is read, as in /proc, has no size beforehand.
            content = file.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnusableInput(
            f"{name or repr(name)}: there is no such file", hint="check the name"
        ) from error
    except OSError as error:
        raise UnusableInput(
            f"{name}: {(error.strerror or str(error)).lower()}",
            hint="name a file that you may read",
        ) from error
    if len(content) > MOST_BYTES:
        raise _larger(name)
    if not content.strip():
        raise UnusableInput(f"{name} is empty", hint="run the tool again; it wrote nothing")
    content = _plain(name, content)
    if max(content.count(b",") + content.count(b"\t"), content.count(b"\n")) > MOST_SEPARATORS:
        raise _too_large(name, f"it holds more than {MOST_SEPARATORS} values or lines")
    return SourceFile(name, path, content)


def _plain(name: str, content: bytes) -> bytes:
    """The same in UTF-8 without a mark of byte order, as far as it is text at all."""
    for begins, kind in _COMPRESSED.items():
        if content.startswith(begins):
            raise UnusableInput(f"{name} is compressed ({kind})", hint="unpack it first")
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return content.decode("utf-16").encode()
        except UnicodeError as error:
            raise UnusableInput(
                f"{name} is no whole file of UTF-16: {error}", hint="save it as UTF-8"
            ) from error
    return content.removeprefix(codecs.BOM_UTF8)


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


def _larger(name: str) -> UnusableInput:
    return _too_large(name, f"it is larger than {MOST_BYTES // 2**20} MiB")


def _too_large(name: str, what: str) -> UnusableInput:
    return UnusableInput(
        f"{name}: {what}", hint="split it, or export it with fewer values for each benchmark"
    )
