"""The open file of a ledger: transactions, snapshots and errors.

Errors of SQLite and of the disk become messages with the file and a hint. The number of steps of
each query is limited.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from equipoise.model.errors import UnusableInput
from equipoise.shared.spelling import option

_TRIALS_ARE_KEPT = "the recorded trials are kept"
_FULL_DISK_BYTES = 64 * 1024
"""Free space below which the disk counts as full."""
_STEPS_FOR_ANY_FILE, _STEPS_PER_BYTE = 20_000_000, 16
"""Maximum number of steps of a query in SQLite: a constant, and a number for each byte of the
file."""
_STEPS_BETWEEN_CHECKS = 100_000
"""Number of steps between two checks of the limit."""


class LedgerFile:
    """An open ledger as a file; a context manager that closes it."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection = connection
        self.path = path
        """Absolute path of the file."""
        self.file_identity = _file_identity(path)
        """Device and inode of the file."""

    def __enter__(self) -> Self:
        """Return the ledger itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the ledger."""
        self.close()

    def close(self) -> None:
        """Close the file. The last process merges the write-ahead log into the file."""
        with explain_sqlite_errors(self.path):
            self.connection.close()

    def _refuse_if_moved(self) -> None:
        """Refuse a removed or replaced file, because SQLite would write to the removed file."""
        if not self.path.exists() or _file_identity(self.path) != self.file_identity:
            raise UnusableInput(
                f"the ledger {self.path} was removed or replaced while it was in use",
                hint="leave the file in its place while a campaign runs, and start again",
            )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run the block as a transaction, which an exception undoes."""
        with explain_sqlite_errors(self.path):
            self._refuse_if_moved()
            # BEGIN is inside the `try`, so that Ctrl-C after BEGIN always undoes the transaction.
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                # If the disk is full, SQLite has already undone the transaction.
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Run the block on a snapshot, without later changes by other processes."""
        with explain_sqlite_errors(self.path), query_step_limit(self.connection, self.path):
            try:
                self.connection.execute("BEGIN")
                yield
            except UnusableInput:
                raise
            except RecursionError as error:
                raise damaged_ledger(self.path, "a row is nested too deeply") from error
            except (ValueError, TypeError) as error:
                raise damaged_ledger(self.path, f"a row cannot be read ({error})") from error
            finally:
                # If the file is damaged, SQLite has already ended the transaction.
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")


def _file_identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


@contextmanager
def query_step_limit(connection: sqlite3.Connection, file: Path) -> Iterator[None]:
    """Stop queries in the block that take too many steps for the size of the file.

    A stopped query raises `sqlite3.OperationalError` with ``SQLITE_INTERRUPT``. For example, a
    damaged file may have a cycle of pages.
    """
    files = (file, file.with_name(f"{file.name}-wal"))
    size = sum(os.stat(path).st_size for path in files if path.is_file())
    steps = _STEPS_FOR_ANY_FILE + _STEPS_PER_BYTE * size
    checks = iter(range(steps // _STEPS_BETWEEN_CHECKS))
    connection.set_progress_handler(lambda: next(checks, None) is None, _STEPS_BETWEEN_CHECKS)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


@contextmanager
def explain_sqlite_errors(path: Path) -> Iterator[None]:
    """Turn errors of the file inside the block into `UnusableInput`.

    `sqlite3.ProgrammingError` and `sqlite3.InterfaceError` pass, because they are defects of
    Equipoise.
    """
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.InterfaceError):
        raise
    except sqlite3.Error as error:
        raise unusable_ledger(path, error) from error
    except UnicodeDecodeError as error:
        # The error itself quotes damaged text.
        raise damaged_ledger(path, "it contains invalid text") from error
    except OSError as error:
        raise UnusableInput(
            f"the ledger {path} cannot be used: "
            f"{error.filename or path}: {(error.strerror or str(error)).lower()}",
            hint=ledger_hint(),
        ) from error


def ledger_hint() -> str:
    """Return the hint to use another ledger."""
    return f"name another ledger with {option('ledger', 'FILE')}"


def unusable_ledger(path: Path, error: sqlite3.Error) -> UnusableInput:
    """Return the user's error for an error of SQLite with the ledger at ``path``."""
    code = primary_code(error)
    if code == sqlite3.SQLITE_IOERR and _is_disk_full(path):
        code = sqlite3.SQLITE_FULL
    if code == sqlite3.SQLITE_NOTADB:
        return not_a_ledger(path, "it is not an SQLite database")
    if code in _DAMAGE_REASONS:
        return damaged_ledger(path, _DAMAGE_REASONS[code] or str(error))
    problem, hint = _problems_by_code().get(code, ("cannot be used: {error}", ledger_hint()))
    problem = problem.format(error=error, why=_why_not_opened(path))
    return UnusableInput(f"the ledger {path} {problem}", hint=hint)


_DAMAGE_REASONS = {
    sqlite3.SQLITE_CORRUPT: "",
    sqlite3.SQLITE_INTERRUPT: "reading it takes more steps than a file of its size needs",
    sqlite3.SQLITE_TOOBIG: "a row is larger than any that Equipoise records",
}
"""Reasons by result code of SQLite; an empty reason stands for SQLite's own text."""


def _problems_by_code() -> dict[int, tuple[str, str]]:
    """Return the problem (with placeholders) and the hint by result code of SQLite."""
    hint = ledger_hint()
    return {
        sqlite3.SQLITE_FULL: (
            "cannot grow: no space is left on its disk",
            f"free space there, or {hint}; {_TRIALS_ARE_KEPT}",
        ),
        sqlite3.SQLITE_IOERR: (
            "cannot be used: the disk or a limit on the size of files prevents it ({error})",
            f"check the disk and `ulimit -f`, or {hint}; {_TRIALS_ARE_KEPT}",
        ),
        sqlite3.SQLITE_READONLY: (
            "cannot be written: the file, its folder or its disk is read-only",
            f"make the file and its folder writable, or {hint}",
        ),
        **dict.fromkeys(
            (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
            (
                "is locked by another process",
                f"wait until that process ends, end it, or {hint}",
            ),
        ),
        **dict.fromkeys(
            (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH),
            ("cannot be opened: {why}", hint),
        ),
        sqlite3.SQLITE_CONSTRAINT: (
            "does not accept a new row: {error}",
            "this is a defect of Equipoise: please report it with this line",
        ),
    }


def not_a_ledger(path: Path, reason: str) -> UnusableInput:
    """Return the error for a file that is not a ledger."""
    return UnusableInput(f"{path} is not a ledger of Equipoise: {reason}", hint=ledger_hint())


def damaged_ledger(path: Path, reason: str) -> UnusableInput:
    """Return the error for a damaged ledger."""
    return UnusableInput(
        f"the ledger {path} is damaged: {reason}",
        hint=f"restore it from a copy, save what is left with `sqlite3 {path} .recover`, "
        f"or {ledger_hint()}",
    )


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code, the low byte of the extended code; -1 if unknown."""
    extended: int = getattr(error, "sqlite_errorcode", -1)
    return extended if extended < 0 else extended & 0xFF


def _is_disk_full(path: Path) -> bool:
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _FULL_DISK_BYTES


def _why_not_opened(path: Path) -> str:
    if path.exists() and not os.access(path, os.R_OK):
        return "permission denied"
    if not os.access(path.parent, os.W_OK):
        return f"its folder {path.parent} is not writable"
    return "the system refused"
