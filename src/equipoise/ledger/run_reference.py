"""Names of runs, such as ``20261120-113005-4f2a``, and the run that a user's reference means."""

from __future__ import annotations

import secrets
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from equipoise.model.errors import UnusableInput
from equipoise.model.record import FAILED


def new_run_id(started_at: float) -> str:
    """Return a name for a run that starts at ``started_at`` (seconds since the epoch).

    Names sort by the second at which their runs started. Two may be equal by chance; the
    ledger then makes another one.
    """
    moment = datetime.fromtimestamp(started_at, UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


LAST = "last"
_MAX_LISTED = 5


def find_run(connection: sqlite3.Connection, path: Path, reference: str) -> int:
    """Return the number of the run that ``reference`` names.

    Parameters
    ----------
    reference
        An id, the beginning of one that fits no other, or ``last``: the latest run, without those
        that failed before the end of their first block if there is another one.

    Raises
    ------
    UnusableInput
        There is no run yet, or none or several fit; it names those that there are.
    """
    numbers = _numbers(connection, path)
    if reference == LAST:
        measured = set(numbers.values()) - _failed_at_once(connection)
        return max(measured or numbers.values())
    if reference in numbers:
        return numbers[reference]
    candidates = [identifier for identifier in numbers if identifier.startswith(reference)]
    if len(candidates) > 1:
        raise UnusableInput(
            f"{len(candidates)} runs in {path} begin with {reference!r}: {_listed(candidates)}",
            hint="give more of the id",
        )
    return find_id(connection, path, candidates[0] if candidates else reference)


def find_id(connection: sqlite3.Connection, path: Path, run_id: str) -> int:
    """Return the number of the run whose whole id is ``run_id``; errors as for `find_run`."""
    numbers = _numbers(connection, path)
    if run_id not in numbers:
        raise UnusableInput(
            f"no run {run_id!r} in {path}; it holds {_listed(list(numbers))}",
            hint="give the id of a run or the beginning of one, or `last`; "
            "`equipoise list runs` shows them all",
        )
    return numbers[run_id]


def _failed_at_once(connection: sqlite3.Connection) -> set[int]:
    """Return the runs in which a condition failed before the first block was complete."""
    # The second block is drawn when the first one is complete.
    rows = connection.execute(
        "SELECT run FROM sitting_end WHERE stopped_because = ? AND NOT EXISTS (SELECT * FROM draw "
        "WHERE draw.run = sitting_end.run AND phase = 'measured' AND block > 1)",
        (FAILED,),
    )
    return {int(run) for (run,) in rows}


def _numbers(connection: sqlite3.Connection, path: Path) -> dict[str, int]:
    numbers = {
        str(identifier): int(number)
        for identifier, number in connection.execute("SELECT id, number FROM run ORDER BY number")
    }
    if not numbers:
        raise UnusableInput(
            f"the ledger {path} holds no run yet", hint="run `equipoise compare` first"
        )
    return numbers


def _listed(identifiers: list[str]) -> str:
    latest = ", ".join(identifiers[-_MAX_LISTED:])
    older = len(identifiers) - _MAX_LISTED
    return latest if older <= 0 else f"{latest} and {older} older"
