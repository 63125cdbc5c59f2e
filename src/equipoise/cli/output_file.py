"""Files that a command was asked to write: checked before the work, replaced as a whole."""

from __future__ import annotations

from pathlib import Path

from equipoise.files.writing import write_whole
from equipoise.model.errors import UnusableInput


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
