"""Reading one campaign whole out of its rows."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from equipoise.ledger import rows
from equipoise.ledger.text import read_as
from equipoise.ledger.untrusted import check_rows_of_run
from equipoise.model.record import CampaignWarning, RunRecord, Segment

_ENVIRONMENT = msgspec.json.Decoder(dict[str, Any])
_SELECT_SITTINGS = """
    SELECT sitting.started_at, document, ended_at, stopped_because
    FROM sitting JOIN environment ON environment.digest = sitting.environment
        LEFT JOIN sitting_end
            ON sitting_end.run = sitting.run AND sitting_end.sitting = sitting.number
    WHERE sitting.run = ? ORDER BY sitting.number
"""


def recorded_run(connection: sqlite3.Connection, path: Path, run: int) -> RunRecord:
    """Read the run of a number, of which each row is checked.

    Raises
    ------
    UnusableInput
        A row holds a value of a kind that no campaign records.
    ValueError
        A row cannot be decoded, or contradicts another one.
    """
    check_rows_of_run(connection, path, run)
    select = connection.execute
    identifier, plan, started_at = select(
        "SELECT id, plan, started_at FROM run WHERE number = ?", (run,)
    ).fetchone()
    samples = rows.samples_from(select(rows.SELECT_SAMPLES, (run,)))
    record = RunRecord(
        id=identifier,
        plan=rows.plan_from(plan),
        started_at=started_at,
        segments=tuple(
            Segment(begun, read_as(document, _ENVIRONMENT), ended, because)
            for begun, document, ended, because in select(_SELECT_SITTINGS, (run,))
        ),
        draws=rows.draws_from(select(rows.SELECT_DRAWS, (run,))),
        trials=rows.trials_from(select(rows.SELECT_TRIALS, (run,)), samples),
        notices=tuple(
            CampaignWarning(*row)
            for row in select(
                "SELECT code, words, mend FROM notice WHERE run = ? ORDER BY number", (run,)
            )
        ),
        observations=rows.observations_from(select(rows.SELECT_OBSERVATIONS, (run,))),
    )
    rows.refuse_inconsistent(record)
    return record
