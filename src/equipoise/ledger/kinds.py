"""The kinds of values that each column may hold, checked before a run is read.

SQLite keeps a text in a column of numbers, and a file that somebody sent need not have been written
through the checks of the schema. One pass over the rows of a run, in SQL, finds the first that is
not what Equipoise writes.
"""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Hashable, Mapping
from typing import Any, TypeVar, cast

import msgspec

from equipoise.ledger.text import from_text
from equipoise.model.plan import Plan

Decoded = TypeVar("Decoded")

_LATEST = 253402300799.0
"""The end of the year 9999, in seconds since 1970: later moments have no date."""
_TEXT = "typeof({0}) = 'text'"
_OPTIONAL_TEXT = "typeof({0}) IN ('text', 'null')"
_COUNT = "typeof({0}) = 'integer' AND {0} >= 0"
_OPTIONAL_WHOLE = "typeof({0}) IN ('integer', 'null')"
_REAL = "typeof({0}) = 'real'"
_OPTIONAL_REAL = "typeof({0}) IN ('real', 'null')"
_MOMENT = f"typeof({{0}}) = 'real' AND abs({{0}}) <= {_LATEST}"
_FLAG = "typeof({0}) = 'integer' AND {0} IN (0, 1)"
_PHASE = "{0} IN ('warmup', 'measured')"
_CONDITION = "typeof({0}) = 'integer' AND {0} >= 0 AND {0} < :conditions"

_COLUMNS: Mapping[str, Mapping[str, str]] = {
    "sitting": {"number": _COUNT, "started_at": _MOMENT},
    "sitting_end": {"ended_at": _MOMENT, "stopped_because": _TEXT},
    "draw": {
        "phase": _PHASE,
        "block": _COUNT,
        "conditions": _TEXT,
        "padding_bytes": _COUNT,
        "layout": _OPTIONAL_WHOLE,
    },
    "trial": {
        "phase": _PHASE,
        "block": _COUNT,
        "position": _COUNT,
        "condition": _CONDITION,
        "started_at": _REAL,
        **dict.fromkeys(("wall_s", "user_s", "sys_s"), _OPTIONAL_REAL),
        **dict.fromkeys(
            (
                *("max_rss_bytes", "minor_faults", "major_faults", "voluntary_switches"),
                *("involuntary_switches", "block_reads", "block_writes", "output_bytes", "exit"),
            ),
            _OPTIONAL_WHOLE,
        ),
        **dict.fromkeys(
            ("counters", "unknown", "covariates", "failure", "error_tail"), _OPTIONAL_TEXT
        ),
        "timed_out": _FLAG,
        "washout": _FLAG,
    },
    "notice": {"code": _TEXT, "words": _TEXT, "mend": _TEXT},
    "observation": {
        "source": _TEXT,
        "condition": _CONDITION,
        "repetition": _COUNT,
        "position": _COUNT,
        "observed_at": _REAL,
        "document": "typeof({0}) IN ('blob', 'null')",
        "failure": _OPTIONAL_TEXT,
    },
}
_OF_SAMPLES: Mapping[str, str] = {
    "metric": _TEXT,
    "value": _OPTIONAL_REAL,
    "iteration": _OPTIONAL_WHOLE,
    "unit": _OPTIONAL_TEXT,
    "better": "{0} IN ('lower', 'higher')",
}
_OF_RUNS: Mapping[str, str] = {
    "id": _TEXT,
    "study": _TEXT,
    "names": _TEXT,
    "plan": _TEXT,
    "started_at": _MOMENT,
}


def check_rows(connection: sqlite3.Connection, run: int, plan: Plan) -> None:
    """Check every row of a run.

    Raises
    ------
    ValueError
        A column holds what Equipoise never writes; it is named.
    """
    named = {"run": run, "conditions": len(plan.conditions)}
    for table, columns in _COLUMNS.items():
        _check(connection, table, f"{table} WHERE run = :run", columns, named)
    samples = "trial JOIN sample ON sample.trial = trial.number WHERE trial.run = :run"
    columns = {f"sample.{name}": kind for name, kind in _OF_SAMPLES.items()}
    _check(connection, "sample", samples, columns, named)


def check_run(connection: sqlite3.Connection, run: int) -> None:
    """Check the row of one run itself.

    Raises
    ------
    ValueError
        A column holds what Equipoise never writes; it is named.
    """
    _check(connection, "run", "run WHERE number = :run", _OF_RUNS, {"run": run})


def check_runs(connection: sqlite3.Connection) -> None:
    """Check what a list shows of every run.

    Raises
    ------
    ValueError
        A column holds what Equipoise never writes; it is named.
    """
    _check(connection, "run", "run WHERE TRUE", _OF_RUNS, {})
    ends = {"stopped_because": _TEXT}
    _check(connection, "sitting_end", "sitting_end WHERE TRUE", ends, {})


def check_plan(plan: Plan) -> Plan:
    """Return the plan, all of whose indices are those of conditions that it has.

    Raises
    ------
    ValueError
        There is no such condition, or none at all.
    """
    count = len(plan.conditions)
    indices = [index for one in plan.contrasts for index in (one.baseline, one.candidate)]
    if plan.control is not None:
        indices.append(plan.control)
    if not count or not all(0 <= index < count for index in indices):
        raise ValueError("a plan that compares conditions which it does not have")
    return plan


def decoded(text: str, kind: type[Decoded]) -> Decoded:
    """Decode JSON of one kind that `to_text` wrote.

    Raises
    ------
    ValueError
        It is no JSON, or of another kind.
    """
    try:
        found: Decoded = _decoder(cast(Hashable, kind)).decode(text)
        return found
    except msgspec.DecodeError:
        # What the standard library alone reads: infinities and lone surrogates.
        return msgspec.convert(from_text(text), kind)


@functools.cache
def _decoder(kind: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def _check(
    connection: sqlite3.Connection,
    table: str,
    rows: str,
    columns: Mapping[str, str],
    named: Mapping[str, Any],
) -> None:
    kinds = {name: f"({kind.format(name)})" for name, kind in columns.items()}
    sound = " AND ".join(kinds.values())
    each = ", ".join(kinds.values())
    # A comparison with NULL is NULL, which is no yes.
    query = f"SELECT {each} FROM {rows} AND NOT coalesce({sound}, 0) LIMIT 1"
    row = connection.execute(query, dict(named)).fetchone()
    if row is not None:
        wrong = next(name for name, is_sound in zip(kinds, row, strict=True) if not is_sound)
        raise ValueError(f"{table}.{wrong.rpartition('.')[2]} holds what is never written there")
