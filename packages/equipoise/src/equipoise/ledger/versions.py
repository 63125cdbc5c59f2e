"""Lists the runs of a ledger with the number of their rows, without reading any trial.

Rows are only added, so two copies of a run with equal numbers of rows have equal content. A reader
who keeps the numbers sees which runs changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from equipoise.ledger.rows import plan_from_text
from equipoise.ledger.run_reference import ORDER, find_mentioned_run, names_of
from equipoise.model.errors import UnusableInput

_COUNTED_TABLES = ("segment", "segment_end", "draw", "trial", "warning", "observation")
"""Tables whose rows are counted for each run, in the order of `RunVersion.row_counts`."""
_TRIALS = _COUNTED_TABLES.index("trial")
_SELECT_RUNS = f"""
    SELECT run.number, lower(hex(run.identity)), run.id, study, started_at,
        (SELECT name FROM host WHERE host.number = run.host), lower(hex(part_of))
    FROM run ORDER BY {ORDER}
"""


class RunVersion(Struct, frozen=True):
    """A run as it is now in one ledger."""

    number: int
    """Number of the run in this ledger."""
    identity: str
    """32 hexadecimal digits, equal in all ledgers that have the run."""
    id: str
    """Id from the start of the run: ``20261120-113005-4f2a``."""
    name: str
    """Shortest unique name of the run in this ledger; usually the id."""
    study: str
    started_at: float
    """Start in seconds since the epoch."""
    host: str | None
    part_of: str | None
    """Identity of the fleet's run if a host of the fleet recorded this run."""
    row_counts: tuple[int, ...]

    @property
    def trials(self) -> int:
        """Number of trials."""
        return self.row_counts[_TRIALS]


def versions_of(connection: sqlite3.Connection) -> list[RunVersion]:
    """Return every run of a ledger, in the order of their start."""
    names = names_of(connection)
    counts = [
        dict(connection.execute(f"SELECT run, count(*) FROM {table} GROUP BY run"))
        for table in _COUNTED_TABLES
    ]
    return [
        RunVersion(
            number=number,
            identity=identity,
            id=run_id,
            name=names[number],
            study=study,
            started_at=started_at,
            host=host,
            part_of=part_of or None,
            row_counts=tuple(count.get(number, 0) for count in counts),
        )
        for number, identity, run_id, study, started_at, host, part_of in (
            connection.execute(_SELECT_RUNS)
        )
    ]


def mentions_of(
    connection: sqlite3.Connection, path: Path, run: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the identities of earlier campaigns in the series, and of other runs in the plan.

    Raise `ValueError` if the plan cannot be read.
    """
    (plan_text,) = connection.execute("SELECT plan FROM run WHERE number = ?", (run,)).fetchone()
    rules = plan_from_text(plan_text).rules

    def identities(references: Iterable[str]) -> Iterator[str]:
        for reference in references:
            with suppress(UnusableInput):
                number = find_mentioned_run(connection, path, reference, run)
                statement = "SELECT identity FROM run WHERE number = ?"
                yield connection.execute(statement, (number,)).fetchone()[0].hex()

    return tuple(identities(rules.earlier_ids)), tuple(identities(rules.referenced_runs))
