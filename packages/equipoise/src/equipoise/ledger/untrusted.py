"""Checks of the content of a ledger's file, which may come from somebody else.

A database can contain code: views, triggers and generated columns run expressions of the file's
author. So before the first query, the definition of every table, index and trigger is compared with
`schema.py`. `file.py` limits the steps of each query. A constant such as `_IS_COUNT` is an SQL
condition on one column, ``{0}``.
"""

from __future__ import annotations

import functools
import re
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import get_args

from equipoise.ledger.file import damaged_ledger
from equipoise.ledger.schema import IDENTITY_BYTES, Statements, scripts_up_to
from equipoise.model.quantities import MAX_MEASURED_VALUE
from equipoise.model.record import FailureKind

MAX_ROW_BYTES = 256 * 1024 * 1024
_MAX_SQL_BYTES = 100_000
"""Maximum length of an SQL statement."""

_MAX_COUNT = 2**53
"""Largest count; a float represents all whole numbers up to it exactly."""
_MAX_MOMENT_S = 253402300799.0
"""End of the year 9999, in seconds since 1970; later moments have no date."""
_IS_MOMENT = f"typeof({{0}}) = 'real' AND abs({{0}}) <= {_MAX_MOMENT_S}"
_IS_FLAG = "typeof({0}) = 'integer' AND {0} IN (0, 1)"
_IS_OPTIONAL_FAILURE_KIND = (
    f"({{0}} IS NULL OR {{0}} IN ({', '.join(map(repr, get_args(FailureKind)))}))"
)
_IS_TEXT = "typeof({0}) = 'text'"
_IS_OPTIONAL_TEXT = "typeof({0}) IN ('text', 'null')"
_IS_REAL = f"typeof({{0}}) = 'real' AND abs({{0}}) <= {MAX_MEASURED_VALUE}"
_IS_OPTIONAL_REAL = f"({{0}} IS NULL OR {_IS_REAL})"
_IS_COUNT = f"typeof({{0}}) = 'integer' AND {{0}} BETWEEN 0 AND {_MAX_COUNT}"
_IS_OPTIONAL_COUNT = f"({{0}} IS NULL OR {_IS_COUNT})"
_IS_OPTIONAL_INTEGER = "typeof({0}) IN ('integer', 'null')"
_IS_DIGEST = f"typeof({{0}}) = 'blob' AND length({{0}}) = {IDENTITY_BYTES}"
_IS_OPTIONAL_DIGEST = f"({{0}} IS NULL OR {_IS_DIGEST})"
_IS_RUN_ID = f"typeof({{0}}) = 'text' AND {{0}} GLOB '{'[0-9]' * 8}-{'[0-9]' * 6}-{'[0-9a-f]' * 4}'"
_VIRTUAL_TABLE_PATTERN = re.compile(r"\s*CREATE\s+VIRTUAL\b", re.IGNORECASE)
_IS_PHASE = "{0} IN ('warmup', 'measured')"

WHOLE_NUMBERS = (
    "max_rss_bytes",
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
    "block_reads",
    "block_writes",
    "output_bytes",
)
"""Columns of a trial with whole numbers, and fields of `Accounting`."""

_SMALL_TABLES: dict[str, dict[str, str]] = {
    "host": {"number": _IS_COUNT, "identity": _IS_DIGEST, "name": _IS_TEXT},
    "run": {
        "number": _IS_COUNT,
        "identity": _IS_DIGEST,
        "host": _IS_OPTIONAL_COUNT,
        "part_of": _IS_OPTIONAL_DIGEST,
        "host_index": _IS_OPTIONAL_COUNT,
        "started_at": _IS_MOMENT,
        "commands_digest": _IS_DIGEST,
        "id": _IS_RUN_ID,
        **dict.fromkeys(("study", "names", "plan"), _IS_TEXT),
    },
    "segment": {"number": _IS_COUNT, "started_at": _IS_MOMENT},
    "segment_end": {"segment": _IS_COUNT, "ended_at": _IS_MOMENT, "stopped_because": _IS_TEXT},
    "environment": {"document": _IS_TEXT},
    "warning": {
        "ordinal": _IS_COUNT,
        **dict.fromkeys(("code", "summary", "hint"), _IS_TEXT),
        **dict.fromkeys(("condition", "absent_from"), _IS_OPTIONAL_COUNT),
    },
    "certificate": {
        "digest": _IS_DIGEST,
        "kernel": _IS_OPTIONAL_TEXT,
        "cpu_model": _IS_OPTIONAL_TEXT,
        "document": _IS_TEXT,
    },
}
"""Conditions on the columns of tables with few rows for each run."""

_LARGE_TABLES: dict[str, dict[str, str]] = {
    "draw": {
        "phase": _IS_PHASE,
        "block": _IS_COUNT,
        "conditions": _IS_TEXT,
        "padding_bytes": _IS_COUNT,
        "layout": _IS_OPTIONAL_COUNT,
    },
    "trial": {
        "phase": _IS_PHASE,
        "started_at": _IS_MOMENT,
        "exit": _IS_OPTIONAL_INTEGER,
        **dict.fromkeys(("block", "position", "condition"), _IS_COUNT),
        "failure_kind": _IS_OPTIONAL_FAILURE_KIND,
        "washout": _IS_FLAG,
        **dict.fromkeys(("wall_s", "user_s", "sys_s"), _IS_OPTIONAL_REAL),
        **dict.fromkeys(WHOLE_NUMBERS, _IS_OPTIONAL_INTEGER),
        **dict.fromkeys(
            ("counters", "unknown", "failure", "error_tail", "covariates"), _IS_OPTIONAL_TEXT
        ),
    },
    "observation": {
        "source": _IS_TEXT,
        "observed_at": _IS_MOMENT,
        "document": "typeof({0}) IN ('blob', 'null')",
        "failure": _IS_OPTIONAL_TEXT,
        **dict.fromkeys(("ordinal", "condition", "repetition", "position"), _IS_COUNT),
    },
}
"""Conditions on the columns of tables with many rows for each run."""

# 9e999 is infinity in SQL.
_SAMPLE_COLUMNS: dict[str, str] = {
    "metric": _IS_TEXT,
    "value": _IS_OPTIONAL_REAL,
    "iteration": _IS_OPTIONAL_INTEGER,
    "unit": _IS_OPTIONAL_TEXT,
    "better": "{0} IN ('lower', 'higher')",
    "resolution": "({0} IS NULL OR typeof({0}) = 'real' AND {0} > 0 AND {0} < 9e999)",
}


def distrust_file(connection: sqlite3.Connection) -> None:
    """Make SQLite distrust the file, and bound the size of rows."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _MAX_SQL_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_TRUSTED_SCHEMA, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)


def refuse_foreign_objects(connection: sqlite3.Connection, file: Path, version: int) -> None:
    """Refuse a file with a missing table or index, or a different table, index or trigger.

    Added tables and indexes are allowed, because they are never used. Added views, triggers and
    virtual tables are refused, because they contain code. Missing triggers are allowed.

    Raise `UnusableInput`; the error names the object.
    """
    expected_statements = _statements_of_objects(scripts_up_to(version))
    tables = {name for type_name, name in expected_statements if type_name == "table"}
    missing = {
        (type_name, name) for type_name, name in expected_statements if type_name != "trigger"
    }
    for type_name, name, table, statement in connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema"
    ):
        if (
            str(name).lower() not in tables
            and str(table).lower() not in tables
            and type_name in ("table", "index")
            and not _VIRTUAL_TABLE_PATTERN.match(statement or "")
        ):
            continue
        # SQLite itself creates an index without a statement, for a primary key or UNIQUE.
        if type_name == "index" and statement is None:
            continue
        if expected_statements.get((str(type_name), str(name))) != _with_single_blanks(statement):
            raise damaged_ledger(file, f"its {type_name} {name!r} was not created by Equipoise")
        missing.discard((str(type_name), str(name)))
    for type_name, name in sorted(missing, reverse=True):
        raise damaged_ledger(file, f"its {type_name} {name!r} is missing")


def check_small_tables(connection: sqlite3.Connection, file: Path) -> None:
    """Check the rows of the tables with few rows for each run.

    Raise `UnusableInput` with the column if a value is one that Equipoise never writes.
    """
    for table, columns in _SMALL_TABLES.items():
        _refuse_rows(connection, file, table, f"FROM {table} WHERE", columns)


def check_rows_of_run(connection: sqlite3.Connection, file: Path, run: int) -> None:
    """Check one run's rows in the large tables; errors as in `check_small_tables`."""
    for table, columns in _LARGE_TABLES.items():
        _refuse_rows(connection, file, table, f"FROM {table} WHERE run = ? AND", columns, run)
    _refuse_rows(
        connection,
        file,
        "sample",
        "FROM trial JOIN sample ON sample.trial = trial.number WHERE trial.run = ? AND",
        {f"sample.{name}": check for name, check in _SAMPLE_COLUMNS.items()},
        run,
    )


def _refuse_rows(
    connection: sqlite3.Connection,
    file: Path,
    table: str,
    from_clause: str,
    columns: dict[str, str],
    *parameters: int,
) -> None:
    """Refuse a table if a row does not meet the SQL conditions on the columns."""
    checks = {name: f"({check.format(name)})" for name, check in columns.items()}
    # A condition on NULL may give NULL, which counts as not met.
    query = (
        f"SELECT {', '.join(checks.values())} {from_clause} "
        f"NOT coalesce({' AND '.join(checks.values())}, 0) LIMIT 1"
    )
    results = connection.execute(query, parameters).fetchone()
    if results is not None:
        column = next(name for name, is_met in zip(checks, results, strict=True) if not is_met)
        name = f"{table}.{column.rpartition('.')[2]}"
        raise damaged_ledger(file, f"{name} has a value that no campaign records")


@functools.cache
def _statements_of_objects(scripts: tuple[Statements, ...]) -> Mapping[tuple[str, str], str]:
    """Return the statements of the objects that scripts create, by type and name.

    The statements are in the form in which SQLite stores them.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        for statement in chain.from_iterable(scripts):
            database.execute(statement)
        return {
            (type_name, name): _with_single_blanks(statement)
            for type_name, name, statement in database.execute(
                "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
            )
        }


def _with_single_blanks(statement: object) -> str:
    line = re.sub(r"\s+", " ", str(statement)).strip()
    return re.sub(r" ?([(),]) ?", r"\1", line)
