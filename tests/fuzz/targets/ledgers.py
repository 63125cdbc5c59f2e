"""Ledgers as somebody sends them: damaged bytes, and rows with hostile content."""

from __future__ import annotations

import functools
import json
import random
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from equipoise.ledger import open_for_reading, open_for_writing
from equipoise.model.plan import Condition, Judgement, Measure, Plan, Stopping
from equipoise.model.record import (
    Accounting,
    Draw,
    Observation,
    RecordedWarning,
    RunRecord,
    Sample,
    Trial,
)
from tests.fuzz.case import Case, Target, WrongResult
from tests.fuzz.judge import command_line
from tests.fuzz.mutators import any_number, any_text, any_value, mutated_tree

READERS: dict[str, tuple[str, ...]] = {
    "list": ("list",),
    "show": ("show", "last"),
    "pool": ("show", "last", "--pool"),
    "markdown": ("report", "last", "-o", "{folder}/page.md"),
    "csv": ("export", "last", "-o", "{folder}/trials.csv"),
    "json": ("show", "last", "--json", "-"),
    "observe": ("observe", "{ledger}", "--treatment", "condition", "--outcome", "wall_s"),
    "rows": (),
}
"""Command lines, by variant; ``rows`` reads the run that was left alone."""
_JSON = {
    "environment": ("document",),
    "run": ("names", "plan"),
    "draw": ("conditions",),
    "trial": ("counters", "unknown", "covariates"),
    "certificate": ("document",),
}
"""Columns that hold JSON, by table."""
_OF_A_RUN = ("draw", "trial", "segment", "segment_end", "warning", "observation")
_STATEMENTS = (
    "DELETE FROM {table}",
    "DROP TABLE {table}",
    "ALTER TABLE {table} RENAME TO other",
    "PRAGMA user_version = {number}",
    "PRAGMA application_id = {number}",
    "INSERT INTO run SELECT number + 10, id || 'x', study, names, commands_digest, plan, "
    "started_at FROM run",
    "UPDATE trial SET position = 0",
    "UPDATE trial SET condition = condition + 1",
    "UPDATE trial SET block = 1",
    "UPDATE trial SET failure = 'timed out after 1 s', failure_kind = 'timed out'",
    "UPDATE sample SET metric = 'wall_s'",
    "CREATE TABLE more (a, b)",
    "CREATE INDEX more_of_trial ON trial (wall_s)",
)


@functools.cache
def _sound() -> tuple[bytes, RunRecord, tuple[tuple[str, tuple[str, ...]], ...]]:
    """Return the bytes of a ledger, its first run, and the columns of its tables."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ledger.db")
        with open_for_writing(path, durable=False) as ledger:
            runs = [_recorded(ledger, f"kernel {number}") for number in (1, 2)]
            first = ledger.read_run(runs[0])
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            names = [
                name
                for (name,) in connection.execute(
                    "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT NULL"
                )
            ]
            tables = tuple(
                (name, tuple(row[1] for row in connection.execute(f"PRAGMA table_info({name})")))
                for name in sorted(names)
            )
        return path.read_bytes(), first, tables


def _recorded(ledger: Any, kernel: str) -> str:
    conditions = tuple(
        Condition(name, (name, "--flag"), {"factor": name}, {"LANG": "C"})
        for name in ("old", "new")
    )
    plan = Plan("compare", conditions, Measure("/"), Stopping(), Judgement(), 7)
    run: str = ledger.begin_run(plan, {"kernel": kernel, "boot_id": kernel}, 1.7e9)
    for block in range(1, 7):
        ledger.record_draw(run, Draw("measured", block, (0, 1), 16 * block))
        for place in (0, 1):
            samples = tuple(Sample("latency_s", 0.1 * (1 + index), index) for index in range(3))
            took = Accounting(
                wall_s=0.5 + block / 100 + place / 10,
                user_s=0.4,
                sys_s=0.1,
                max_rss_bytes=4096,
                counters={"cycles": 5},
                unknown={"instructions": "not permitted"},
            )
            ledger.record_trial(
                run,
                Trial(
                    "measured", block, place, place, 1.7e9 + block, took, 0,
                    covariates={"load": 0.25}, samples=samples,
                ),
            )  # fmt: skip
    ledger.record_warning(run, RecordedWarning("drift", "it drifted", "close what else runs"))
    ledger.record_observation(run, Observation("profile", 0, 1, 0, 1.7e9, b"{}", None))
    ledger.end_segment(run, 1, 1.7e9 + 9, "verdict")
    return run


def _make(generator: random.Random) -> Case:
    content, _, _ = _sound()
    variant = generator.choice(list(READERS))
    if variant == "rows" or generator.random() < 0.65:
        changes: list[Any] = list(_statements(generator, only_second=variant == "rows"))
    else:
        changes = list(_damages(generator, len(content)))
    return Case(variant, json.dumps(changes).encode())


def _damages(generator: random.Random, size: int) -> Iterator[list[Any]]:
    """Changes of bytes: where, and what stands there then; or a length to cut it to."""
    if generator.random() < 0.15:
        yield [generator.randrange(size)]
    # The header and the first page decide about everything else.
    most = generator.choice((100, 4096, size))
    for _ in range(generator.choice((1, 1, 2, 8, 64))):
        yield [generator.randrange(most), generator.choice(("00", "ff", "7f", "80", "01", "41"))]


def _statements(generator: random.Random, *, only_second: bool) -> Iterator[str]:
    _, _, tables = _sound()
    for _ in range(generator.choice((1, 1, 2, 4))):
        table, columns = generator.choice(tables)
        if only_second and table not in _OF_A_RUN:
            continue
        if not only_second and generator.random() < 0.2:
            yield generator.choice(_STATEMENTS).format(table=table, number=any_integer(generator))
            continue
        column = generator.choice(columns)
        if only_second and column == "run":
            continue
        which = " WHERE run = 2" if only_second else ""
        if generator.random() < 0.5 and not which:
            which = " WHERE rowid % 2 = 1" if table in ("trial", "draw", "warning") else ""
        value = _value(generator, table, column)
        yield f"UPDATE OR IGNORE {table} SET {column} = {value}{which}"


def _value(generator: random.Random, table: str, column: str) -> str:
    if column in _JSON.get(table, ()) and generator.random() < 0.9:
        content, _, _ = _sound()
        text = _cell(table, column)
        try:
            tree = mutated_tree(generator, json.loads(text))
        except (ValueError, TypeError):
            tree = any_value(generator)
        return _literal(json.dumps(tree))
    if generator.random() < 0.2:
        return f"zeroblob({generator.choice((0, 1, 1000))})"
    if generator.random() < 0.5:
        return _literal(any_number(generator))
    return _literal(generator.choice((None, any_text(generator), json.dumps(any_value(generator)))))


@functools.cache
def _cell(table: str, column: str) -> str:
    """Return one sound value of a column."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ledger.db")
        path.write_bytes(_sound()[0])
        with closing(sqlite3.connect(path)) as connection:
            row = connection.execute(
                f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL"
            ).fetchone()
    return "null" if row is None else str(row[0])


def any_integer(generator: random.Random) -> int:
    """Return a number for a pragma."""
    return generator.choice((0, 1, 2, 4, 5, 6, 99, -1, 2**31 - 1))


def _literal(value: float | str | None) -> str:
    """Write a value as SQL."""
    match value:
        case None:
            return "NULL"
        case str():
            return f"CAST(X'{value.encode('utf-8', 'surrogatepass').hex()}' AS TEXT)"
        case float() if value != value:
            return "NULL"
        case float():
            return repr(value).replace("inf", "9e999")
        case _:
            return str(value)


def _changed(path: Path, changes: list[Any]) -> None:
    """Apply the changes of a case to a sound ledger."""
    content = bytearray(_sound()[0])
    for change in changes:
        match change:
            case [place, value]:
                content[place : place + 1] = bytes.fromhex(value)
            case [length]:
                del content[length:]
    path.write_bytes(content)
    statements = [one for one in changes if isinstance(one, str)]
    if not statements:
        return
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("PRAGMA foreign_keys = OFF")
        triggers = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        for (name,) in triggers.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            # What SQLite itself refuses is no hostile ledger.
            with suppress(sqlite3.Error):
                connection.execute(statement)


def _run(case: Case, folder: Path) -> None:
    try:
        changes = json.loads(case.content)
    except ValueError:
        return  # while a find is made shorter
    own = folder / "own"
    own.mkdir()
    path = own / "ledger.db"
    _changed(path, changes)
    before = path.read_bytes()
    try:
        if case.variant == "rows":
            _check_first_run(path)
        else:
            names = {"folder": str(folder), "ledger": str(path)}
            words = [word.format(**names) for word in READERS[case.variant]]
            if case.variant != "observe":
                words += ["--ledger", str(path)]
            command_line(*words)
    finally:
        if path.read_bytes() != before:
            raise WrongResult("reading changed the ledger")
        if [one.name for one in own.iterdir()] != ["ledger.db"]:
            raise WrongResult("reading left a file beside the ledger")


def _check_first_run(path: Path) -> None:
    """Read the run that no statement touched: whatever is wrong with others, it is as it was."""
    _, first, _ = _sound()
    with open_for_reading(path) as ledger:
        found = ledger.read_run(first.id)
    if found != first:
        raise WrongResult("hostile rows of another run changed this one")


TARGET = Target(
    "ledgers", "ledgers (`list`, `show`, `report`, `export`, `observe`)", 10, _make, _run
)
