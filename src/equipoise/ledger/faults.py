"""Errors of SQLite and of the disk as messages: what, where and the hint."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from equipoise.model.errors import UnusableInput

OTHER_LEDGER = "name another ledger with --ledger FILE"
_TRIALS_ARE_SAFE = "the trials recorded so far are in it"
_NO_ROOM_BYTES = 64 * 1024


@contextmanager
def sqlite_errors_explained(path: Path) -> Iterator[None]:
    """Turn what goes wrong with the file inside the block into `UnusableInput`.

    A `sqlite3.ProgrammingError` or `sqlite3.InterfaceError` is ours, not the file's, and
    passes through.
    """
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.InterfaceError):
        raise
    except sqlite3.Error as error:
        raise explanation(path, error) from error
    except UnicodeDecodeError as error:
        # The complaint itself quotes damaged text.
        raise damaged(path, "it holds text that is none") from error
    except OSError as error:
        raise UnusableInput(
            f"the ledger {path} cannot be used: "
            f"{error.filename or path}: {(error.strerror or str(error)).lower()}",
            hint=OTHER_LEDGER,
        ) from error


def explanation(path: Path, error: sqlite3.Error) -> UnusableInput:
    """Return what an error of SQLite means for the ledger at ``path``."""
    code = primary_code(error)
    if code == sqlite3.SQLITE_IOERR and _has_no_room(path):
        code = sqlite3.SQLITE_FULL
    if code == sqlite3.SQLITE_NOTADB:
        return not_a_ledger(path, "it is not an SQLite database")
    if code in _DAMAGES:
        return damaged(path, _DAMAGES[code] or str(error))
    trouble, hint = _TROUBLES.get(code, ("cannot be used: {error}", OTHER_LEDGER))
    what = trouble.format(error=error, why=_why_not_opened(path))
    return UnusableInput(f"the ledger {path} {what}", hint=hint)


_DAMAGES = {
    sqlite3.SQLITE_CORRUPT: "",
    sqlite3.SQLITE_INTERRUPT: "to read it takes more steps than a file of its size needs",
    sqlite3.SQLITE_TOOBIG: "a row is larger than any that Equipoise records",
}


_TROUBLES: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: (
        "cannot grow: no space is left on its disk",
        f"make room there, or {OTHER_LEDGER}; {_TRIALS_ARE_SAFE}",
    ),
    sqlite3.SQLITE_IOERR: (
        "cannot be used: the disk or a limit on the size of files stopped it ({error})",
        f"check the disk and `ulimit -f`, or {OTHER_LEDGER}; {_TRIALS_ARE_SAFE}",
    ),
    sqlite3.SQLITE_READONLY: (
        "cannot be written: the file, its folder or its disk is read-only",
        f"make the file and its folder writable, or {OTHER_LEDGER}",
    ),
    **dict.fromkeys(
        (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
        (
            "is locked by another process",
            f"wait until that process ends, end it, or {OTHER_LEDGER}",
        ),
    ),
    **dict.fromkeys(
        (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH),
        ("cannot be opened: {why}", OTHER_LEDGER),
    ),
    sqlite3.SQLITE_CONSTRAINT: (
        "refuses what was to be recorded: {error}",
        "this is a defect of Equipoise: please report it with this line",
    ),
}


def not_a_ledger(path: Path, why: str) -> UnusableInput:
    """Return the error for a file that is not a ledger."""
    return UnusableInput(f"{path} is not a ledger of Equipoise: {why}", hint=OTHER_LEDGER)


def damaged(path: Path, why: str) -> UnusableInput:
    """Return the error for a damaged ledger."""
    return UnusableInput(
        f"the ledger {path} is damaged: {why}",
        hint=f"restore it from a copy, save what is left with `sqlite3 {path} .recover`, "
        f"or {OTHER_LEDGER}",
    )


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code, the extended one's low byte; -1 if there is none."""
    extended: int = getattr(error, "sqlite_errorcode", -1)
    return extended if extended < 0 else extended & 0xFF


def _has_no_room(path: Path) -> bool:
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _NO_ROOM_BYTES


def _why_not_opened(path: Path) -> str:
    if path.exists() and not os.access(path, os.R_OK):
        return "permission denied"
    if not os.access(path.parent, os.W_OK):
        return f"its folder {path.parent} is not writable"
    return "the system refused"
