"""Names of runs, such as ``20261120-113005-4f2a``, and the run that a user's reference means."""

from __future__ import annotations

import secrets
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from equipoise.model.errors import UnusableInput


def new_run_id(started_at: float) -> str:
    """Make the name of a run that starts at ``started_at`` (seconds since the epoch).

    Names sort by the second at which their runs started. Two may be equal by chance; the
    ledger then asks for another one.
    """
    moment = datetime.fromtimestamp(started_at, UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


LAST = "last"
_SHOWN = 5


def find_run(connection: sqlite3.Connection, path: Path, reference: str) -> int:
    """Give the number of the run that ``reference`` names.

    Parameters
    ----------
    reference
        An id, the beginning of one that fits no other, or ``last``.

    Raises
    ------
    UnusableInput
        If there is no run yet, or if none or several fit; it names those that there are.
    """
    numbers = _numbers(connection, path)
    if reference == LAST:
        return max(numbers.values())
    fitting = [one for one in numbers if one.startswith(reference)]
    if reference in numbers or len(fitting) == 1:
        return numbers[reference if reference in numbers else fitting[0]]
    if fitting:
        raise UnusableInput(
            f"{len(fitting)} runs in {path} begin with {reference!r}: {_some_of(fitting)}",
            hint="give more of the id",
        )
    raise _unknown(path, reference, numbers)


def find_id(connection: sqlite3.Connection, path: Path, run_id: str) -> int:
    """Give the number of the run whose whole id is ``run_id``; errors as for `find_run`."""
    numbers = _numbers(connection, path)
    if run_id not in numbers:
        raise _unknown(path, run_id, numbers)
    return numbers[run_id]


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


def _unknown(path: Path, reference: str, numbers: dict[str, int]) -> UnusableInput:
    return UnusableInput(
        f"no run {reference!r} in {path}; it holds {_some_of(list(numbers))}",
        hint="give the id of a run or the beginning of one, or `last`; "
        "`equipoise list runs` shows them all",
    )


def _some_of(identifiers: list[str]) -> str:
    newest = ", ".join(identifiers[-_SHOWN:])
    older = len(identifiers) - _SHOWN
    return newest if older <= 0 else f"{newest} and {older} older"
