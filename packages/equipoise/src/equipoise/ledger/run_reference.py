"""Names of runs, such as ``20261120-113005-4f2a``, and the search for a run by a reference.

Each run has an identity: 16 bytes, the same in every ledger that has the run, on every host. The
name of a run is usually its id. If two runs have the same id, their names also have the first
digits of the identities: ``20261120-113005-4f2a-81c0``. Runs are sorted by start, then by identity.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from equipoise.model.errors import UnusableInput
from equipoise.model.record import ENDED_BY_FAILURE
from equipoise.shared.safe_text import as_unicode


def new_run_id(started_at: float) -> str:
    """Return an id for a run that starts at ``started_at``; ids sort by the second of the start."""
    moment = datetime.fromtimestamp(started_at, UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


LAST = "last"
"""Reference to the latest run."""
ORDER = "run.started_at, run.identity"
"""Order of runs in SQL."""
_MAX_LISTED_NAMES = 5
"""Maximum number of names in an error message."""
_MIN_IDENTITY_DIGITS = 4
"""Minimum number of digits of the identity in a name."""


class _Run(NamedTuple):
    number: int
    id: str
    identity: str
    """The identity, as 32 hexadecimal digits."""
    host: int | None
    """Number of the host in the ledger; ``None`` for an imported run."""

    @property
    def full_name(self) -> str:
        """The id with all digits of the identity, which is unique."""
        return f"{self.id}-{self.identity}"


def _select_runs(connection: sqlite3.Connection, where: str = "", *values: str) -> list[_Run]:
    statement = f"SELECT number, id, lower(hex(identity)), host FROM run {where} ORDER BY {ORDER}"
    return list(map(_Run._make, connection.execute(statement, values)))


def find_run(connection: sqlite3.Connection, path: Path, reference: str) -> int:
    """Return the number of the run that ``reference`` names.

    Raise `UnusableInput` if there is no run yet, or if no run or several runs match; the error
    lists the runs.

    Parameters
    ----------
    reference
        The name of a run, the unique beginning of a name, an identity, or ``last``: the latest run.
        Runs that start in the future, failed in the first block, or belong to a host of a fleet are
        skipped, unless the ledger has no other runs.
    """
    if reference == LAST:
        return _latest_run(connection, path)
    return find_run_by_name(connection, path, reference)


def find_run_by_name(connection: sqlite3.Connection, path: Path, reference: str) -> int:
    """Return the number of a run by the beginning of its name; errors as in `find_run`."""
    candidates = _matching_runs(connection, reference)
    if len(candidates) == 1:
        return candidates[0].number
    all_runs = _existing_runs(connection, path)
    if not candidates:
        raise UnusableInput(
            f"the ledger {path} has no run {reference!r}; its runs are {_list_names(all_runs)}",
            hint="give the id of a run, the beginning of an id, or `last`; "
            "`equipoise list runs` shows all runs",
        )
    names = _unique_names(all_runs)
    if {run.id for run in candidates} == {reference}:
        candidate_names = ", ".join(names[run.number] for run in candidates)
        raise UnusableInput(
            f"{len(candidates)} runs in {path} are called {reference}: {candidate_names}",
            hint="give one of these names",
        )
    raise UnusableInput(
        f"{len(candidates)} runs in {path} begin with {reference!r}: "
        f"{_list_names(candidates, names)}",
        hint="give more characters of the id",
    )


def find_mentioned_run(connection: sqlite3.Connection, path: Path, reference: str, run: int) -> int:
    """Return the number of a run that the plan of ``run`` mentions; errors as in `find_run`.

    If several runs match, the result is the run of the same host as ``run``.
    """
    candidates = _matching_runs(connection, reference)
    (host,) = connection.execute("SELECT host FROM run WHERE number = ?", (run,)).fetchone()
    candidates_on_host = [candidate for candidate in candidates if candidate.host == host]
    if len(candidates) > 1 and len(candidates_on_host) == 1:
        return candidates_on_host[0].number
    return find_run_by_name(connection, path, reference)


def name_of(connection: sqlite3.Connection, run: int) -> str:
    """Return the shortest unique name of a run in this ledger."""
    (identifier,) = connection.execute("SELECT id FROM run WHERE number = ?", (run,)).fetchone()
    # With the plus sign, SQLite does not use an index, which may lack the run in a damaged file.
    return _unique_names(_select_runs(connection, "WHERE +id = ?", identifier))[run]


def names_of(connection: sqlite3.Connection) -> dict[int, str]:
    """Return the name of each run by its number, in the order of the runs."""
    return _unique_names(_select_runs(connection))


def _unique_names(runs: Sequence[_Run]) -> dict[int, str]:
    """Return the shortest unique names of runs, by number.

    If two runs have the same id, ``runs`` must contain both.
    """
    runs_by_id: dict[str, list[_Run]] = {}
    for run in runs:
        runs_by_id.setdefault(run.id, []).append(run)
    return {
        run.number: run.id
        if len(runs_by_id[run.id]) == 1
        else _name_with_identity(run, runs_by_id[run.id])
        for run in runs
    }


def _name_with_identity(run: _Run, runs_of_id: Sequence[_Run]) -> str:
    """Return the id with enough digits of the identity to be unique among ``runs_of_id``."""
    digit_count = _MIN_IDENTITY_DIGITS
    while len({run_of_id.identity[:digit_count] for run_of_id in runs_of_id}) < len(runs_of_id):
        digit_count += 1
    return f"{run.id}-{run.identity[:digit_count]}"


def _matching_runs(connection: sqlite3.Connection, reference: str) -> list[_Run]:
    """Return the runs with this id, or else the runs whose name begins with the reference."""
    return _select_runs(connection, "WHERE id = ?", as_unicode(reference)) or [
        run
        for run in _select_runs(connection)
        if run.full_name.startswith(reference) or run.identity == reference
    ]


def _latest_run(connection: sqlite3.Connection, path: Path) -> int:
    """Return the number of the latest run that `find_run` does not skip."""
    failed_runs = _runs_failed_in_first_block(connection)
    fleet_members = _runs_of_fleet_hosts(connection)
    future_runs = _runs_starting_after(connection, time.time())
    numbers = [run.number for run in _existing_runs(connection, path)]
    started_runs = [number for number in numbers if number not in future_runs] or numbers
    candidates = [number for number in started_runs if number not in fleet_members] or started_runs
    return ([number for number in candidates if number not in failed_runs] or candidates)[-1]


def _runs_failed_in_first_block(connection: sqlite3.Connection) -> set[int]:
    """Return the runs in which a condition failed before the first block was complete."""
    # A draw of the second block shows that the first block is complete.
    rows = connection.execute(
        "SELECT run FROM segment_end WHERE stopped_because = ? AND NOT EXISTS (SELECT * FROM draw "
        "WHERE draw.run = segment_end.run AND phase = 'measured' AND block > 1)",
        (ENDED_BY_FAILURE,),
    )
    return {int(run) for (run,) in rows}


def _runs_starting_after(connection: sqlite3.Connection, moment: float) -> set[int]:
    rows = connection.execute("SELECT number FROM run WHERE started_at > ?", (moment,))
    return {int(run) for (run,) in rows}


def _runs_of_fleet_hosts(connection: sqlite3.Connection) -> set[int]:
    rows = connection.execute(
        "SELECT number FROM run WHERE part_of IN (SELECT identity FROM run AS other)"
    )
    return {int(run) for (run,) in rows}


def _existing_runs(connection: sqlite3.Connection, path: Path) -> list[_Run]:
    runs = _select_runs(connection)
    if not runs:
        raise no_run_yet(path)
    return runs


def no_run_yet(path: Path) -> UnusableInput:
    """Return the error for a ledger without runs, or for a file that is still empty."""
    return UnusableInput(f"the ledger {path} has no run yet", hint="run `equipoise compare` first")


def _list_names(runs: Sequence[_Run], names: dict[int, str] | None = None) -> str:
    known_names = _unique_names(runs) if names is None else names
    latest_names = ", ".join(known_names[run.number] for run in runs[-_MAX_LISTED_NAMES:])
    older_count = len(runs) - _MAX_LISTED_NAMES
    return latest_names if older_count <= 0 else f"{latest_names} and {older_count} older"
