"""Names of runs, such as ``20261120-113005-4f2a``, and the run that a user's reference means.

Two runs of two hosts may have one id: then each is named with the first digits of its identity
behind it, ``20261120-113005-4f2a-81c0``. Runs stand in the order of their start, those of one
moment in the order of their identities, which is the same in every ledger.
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
from equipoise.model.record import FAILED
from equipoise.shared.safe_text import as_unicode


def new_run_id(started_at: float) -> str:
    """Return a name for a run that starts at ``started_at`` (seconds since the epoch).

    Names sort by the second at which their runs started. Two may be equal by chance; the
    ledger then makes another one.
    """
    moment = datetime.fromtimestamp(started_at, UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


LAST = "last"
ORDER = "run.started_at, run.identity"
_MAX_LISTED = 5
_MIN_DIGITS = 4


class _Run(NamedTuple):
    number: int
    id: str
    identity: str
    host: int | None

    @property
    def longest(self) -> str:
        """Return the name that fits no other run."""
        return f"{self.id}-{self.identity}"


def _select(connection: sqlite3.Connection, where: str = "", *values: str) -> list[_Run]:
    """Return runs in their order."""
    statement = f"SELECT number, id, lower(hex(identity)), host FROM run {where} ORDER BY {ORDER}"
    return list(map(_Run._make, connection.execute(statement, values)))


def find_run(connection: sqlite3.Connection, path: Path, reference: str) -> int:
    """Return the number of the run that ``reference`` names.

    Raise `UnusableInput` if there is no run yet, or none or several fit; it names those that there
    are.

    Parameters
    ----------
    reference
        An id, the beginning of one that fits no other, an id and first digits of the identity, a
        whole identity, or ``last``: the latest run. If there is another one, ``last`` is none that
        starts in the future, failed before the end of its first block, or is a host's of a fleet
        that is here.
    """
    if reference == LAST:
        return _latest(connection, path)
    return find_named(connection, path, reference)


def find_named(connection: sqlite3.Connection, path: Path, reference: str) -> int:
    """Return the number of the run of this name, which may be short; errors as for `find_run`."""
    candidates = _fitting(connection, reference)
    if len(candidates) == 1:
        return candidates[0].number
    everything = _runs(connection, path)
    if not candidates:
        raise UnusableInput(
            f"no run {reference!r} in {path}; it holds {_listed(everything)}",
            hint="give the id of a run or the beginning of one, or `last`; "
            "`equipoise list runs` shows them all",
        )
    names = _names(everything)
    if {run.id for run in candidates} == {reference}:
        listed = ", ".join(names[run.number] for run in candidates)
        raise UnusableInput(
            f"{len(candidates)} runs in {path} are called {reference}: {listed}",
            hint="give one of these names",
        )
    raise UnusableInput(
        f"{len(candidates)} runs in {path} begin with {reference!r}: {_listed(candidates, names)}",
        hint="give more of the id",
    )


def find_mentioned(connection: sqlite3.Connection, path: Path, reference: str, run: int) -> int:
    """Return the number of the run that the plan of another run names; errors as for `find_run`.

    Where several fit, it is the one of the same host: a plan was made in a ledger of that host.
    """
    candidates = _fitting(connection, reference)
    (host,) = connection.execute("SELECT host FROM run WHERE number = ?", (run,)).fetchone()
    near = [candidate for candidate in candidates if candidate.host == host]
    if len(candidates) > 1 and len(near) == 1:
        return near[0].number
    return find_named(connection, path, reference)


def name_of(connection: sqlite3.Connection, run: int) -> str:
    """Return the shortest name of a run that means no other run of this ledger."""
    (identifier,) = connection.execute("SELECT id FROM run WHERE number = ?", (run,)).fetchone()
    # The sign keeps SQLite from its index, which a damaged file may have without the run.
    return _names(_select(connection, "WHERE +id = ?", identifier))[run]


def names_of(connection: sqlite3.Connection) -> dict[int, str]:
    """Return the name of each run by its number, in the order of the runs."""
    return _names(_select(connection))


def _names(runs: Sequence[_Run]) -> dict[int, str]:
    """Return the shortest names of runs, among which are all of the same ids."""
    same: dict[str, list[_Run]] = {}
    for run in runs:
        same.setdefault(run.id, []).append(run)
    return {
        run.number: run.id if len(same[run.id]) == 1 else _longer(run, same[run.id]) for run in runs
    }


def _longer(run: _Run, same: Sequence[_Run]) -> str:
    digits = _MIN_DIGITS
    while len({run.identity[:digits] for run in same}) < len(same):
        digits += 1
    return f"{run.id}-{run.identity[:digits]}"


def _fitting(connection: sqlite3.Connection, reference: str) -> list[_Run]:
    """Return the runs with this id, or else those that the beginning of a name fits."""
    return _select(connection, "WHERE id = ?", as_unicode(reference)) or [
        run
        for run in _select(connection)
        if run.longest.startswith(reference) or run.identity == reference
    ]


def _latest(connection: sqlite3.Connection, path: Path) -> int:
    failed, members = _failed_at_once(connection), _parts_of_runs_here(connection)
    future = _starting_after(connection, time.time())
    numbers = [run.number for run in _runs(connection, path)]
    numbers = [number for number in numbers if number not in future] or numbers
    candidates = [number for number in numbers if number not in members] or numbers
    return ([number for number in candidates if number not in failed] or candidates)[-1]


def _failed_at_once(connection: sqlite3.Connection) -> set[int]:
    """Return the runs in which a condition failed before the first block was complete."""
    # The second block is drawn when the first one is complete.
    rows = connection.execute(
        "SELECT run FROM sitting_end WHERE stopped_because = ? AND NOT EXISTS (SELECT * FROM draw "
        "WHERE draw.run = sitting_end.run AND phase = 'measured' AND block > 1)",
        (FAILED,),
    )
    return {int(run) for (run,) in rows}


def _starting_after(connection: sqlite3.Connection, moment: float) -> set[int]:
    rows = connection.execute("SELECT number FROM run WHERE started_at > ?", (moment,))
    return {int(run) for (run,) in rows}


def _parts_of_runs_here(connection: sqlite3.Connection) -> set[int]:
    rows = connection.execute(
        "SELECT number FROM run WHERE whole IN (SELECT identity FROM run AS other)"
    )
    return {int(run) for (run,) in rows}


def _runs(connection: sqlite3.Connection, path: Path) -> list[_Run]:
    runs = _select(connection)
    if not runs:
        raise UnusableInput(
            f"the ledger {path} holds no run yet", hint="run `equipoise compare` first"
        )
    return runs


def _listed(runs: Sequence[_Run], names: dict[int, str] | None = None) -> str:
    known = _names(runs) if names is None else names
    latest = ", ".join(known[run.number] for run in runs[-_MAX_LISTED:])
    older = len(runs) - _MAX_LISTED
    return latest if older <= 0 else f"{latest} and {older} older"
