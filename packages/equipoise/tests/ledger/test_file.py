"""The open file of a ledger is usable after whatever cut a transaction short."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from equipoise.ledger.file import LedgerFile


class Interrupted(sqlite3.Connection):
    """A connection on which Ctrl-C comes as a transaction begins."""

    def execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
        cursor = super().execute(statement, *parameters)
        if statement.startswith("BEGIN"):
            raise KeyboardInterrupt
        return cursor


@pytest.mark.parametrize("transaction", ["writing", "reading"])
def test_ctrl_c_as_a_transaction_begins_leaves_none_open(transaction: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path, isolation_level=None, factory=Interrupted)) as connection:
        connection.execute("CREATE TABLE run (number INTEGER)")
        ledger = LedgerFile(connection, path)
        with pytest.raises(KeyboardInterrupt), getattr(ledger, transaction)():
            raise AssertionError("the transaction has begun")
        assert not connection.in_transaction
