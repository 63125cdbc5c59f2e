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
_ABOVE_EVERY_ID = "\uffff"


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
    if reference == LAST:
        newest = connection.execute("SELECT max(number) FROM run").fetchone()[0]
        if newest is None:
            raise _no_runs(path)
        return int(newest)
    safe = reference.encode("utf-8", "replace").decode("utf-8")
    fitting = connection.execute(
        "SELECT number, id FROM run WHERE id >= ? AND id < ? ORDER BY number",
        (safe, safe + _ABOVE_EVERY_ID),
    ).fetchall()
    exact = [number for number, identifier in fitting if identifier == reference]
    if len(fitting) == 1 or exact:
        return int(exact[0] if exact else fitting[0][0])
    if fitting:
        identifiers = [identifier for _, identifier in fitting]
        raise UnusableInput(
            f"{len(fitting)} runs in {path} begin with {reference!r}: {_some_of(identifiers)}",
            hint="give more of the id",
        )
    raise _unknown(connection, path, reference)


def find_id(connection: sqlite3.Connection, path: Path, run_id: str) -> int:
    """Give the number of the run whose whole id is ``run_id``.

    Raises
    ------
    UnusableInput
        If there is no such run; it names those that there are.
    """
    row = connection.execute("SELECT number FROM run WHERE id = ?", (run_id,)).fetchone()
    if row is None:
        raise _unknown(connection, path, run_id)
    return int(row[0])


def _unknown(connection: sqlite3.Connection, path: Path, reference: str) -> UnusableInput:
    everything = connection.execute("SELECT id FROM run ORDER BY number").fetchall()
    if not everything:
        return _no_runs(path)
    return UnusableInput(
        f"no run {reference!r} in {path}; it holds {_some_of([row[0] for row in everything])}",
        hint="give the id of a run or the beginning of one, or `last`; "
        "`equipoise list runs` shows them all",
    )


def _no_runs(path: Path) -> UnusableInput:
    return UnusableInput(
        f"the ledger {path} holds no run yet", hint="run `equipoise compare` first"
    )


def _some_of(identifiers: list[str]) -> str:
    newest = ", ".join(identifiers[-_SHOWN:])
    older = len(identifiers) - _SHOWN
    return newest if older <= 0 else f"{newest} and {older} older"
