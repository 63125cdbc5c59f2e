"""The open file of a ledger: transactions and snapshots, with the errors of SQLite explained."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from equipoise.ledger.faults import damaged, sqlite_errors_explained
from equipoise.ledger.untrusted import bounded
from equipoise.model.errors import UnusableInput


class LedgerFile:
    """An open ledger as a file; a context manager that closes it."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection = connection
        self.path = path
        """The file, absolute."""
        self.file_identity = _identity(path)
        """Device and inode."""

    def __enter__(self) -> Self:
        """Return the ledger itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the ledger."""
        self.close()

    def close(self) -> None:
        """Close the file; the last one to close it folds the log into it."""
        with sqlite_errors_explained(self.path):
            self.connection.close()

    def _refuse_if_moved(self) -> None:
        """Detect that the file was removed or replaced: SQLite would write on into nowhere."""
        if not self.path.exists() or _identity(self.path) != self.file_identity:
            raise UnusableInput(
                f"the ledger {self.path} was removed or replaced while it was in use",
                hint="leave the file where it is while a campaign runs, and start it again",
            )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction: committed when the block ends, undone if it raises."""
        with sqlite_errors_explained(self.path):
            self._refuse_if_moved()
            # Ctrl-C may come while the first statement returns: it is undone like the others.
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                # SQLite has undone it by itself where the disk is full.
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One snapshot: what another process writes meanwhile is not half seen."""
        with sqlite_errors_explained(self.path), bounded(self.connection, self.path):
            try:
                self.connection.execute("BEGIN")
                yield
            except UnusableInput:
                raise
            except RecursionError as error:
                raise damaged(self.path, "a row is nested too deeply") from error
            except (ValueError, TypeError) as error:
                raise damaged(self.path, f"a row cannot be read ({error})") from error
            finally:
                # SQLite has ended it by itself where the file turned out damaged.
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")


def _identity(path: Path) -> tuple[int, int]:
    present = os.stat(path)
    return present.st_dev, present.st_ino
