"""Merging ledgers: the union of their runs by identity, in any order.

A missing run is copied, and missing rows of a run are added. A fork is refused: two copies of a run
that were continued differently. Runs are copied in parts (``parts.py``), and each part is a
transaction. So if a merge is killed, the next merge finishes it. A cursor is the number of rows in
each list of a run, such as the trials.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from equipoise.ledger.file import LedgerFile, damaged_ledger
from equipoise.ledger.parts import (
    MAX_TRIALS,
    Cursor,
    RunPart,
    RunRefused,
    add_part,
    check_part,
    cursor_of,
    insert_certificate,
    read_part,
    run_of,
)
from equipoise.ledger.rows import check_run, from_text, plan_from_text
from equipoise.ledger.run_reference import ORDER, find_mentioned_run, find_run, name_of
from equipoise.model.errors import UnusableInput
from equipoise.model.host import Certificate
from equipoise.model.plan import Plan

if TYPE_CHECKING:
    from equipoise.ledger.store import Ledger


class MergeReport(Struct, frozen=True):
    """Outcome of a merge of one ledger into another."""

    new: int
    """Number of copied runs that the target lacked."""
    extended: int
    """Number of runs to which rows were added."""
    unchanged: int
    """Number of runs without missing rows."""
    trials: int
    """Number of copied trials."""
    refused: tuple[RunRefused, ...]
    """Errors about the runs and certificates that are left out."""


def merge(
    target: LedgerFile, source: LedgerFile, identities: Collection[bytes] | None
) -> MergeReport:
    """Copy the rows of runs that ``source`` has and ``target`` lacks.

    ``identities`` selects the runs; with ``None``, all runs and the certificates are copied.

    Raise `UnusableInput` if ``target`` cannot be written, or the list of runs in ``source`` cannot
    be read.
    """
    with source.reading():
        statement = f"SELECT identity FROM run ORDER BY {ORDER}"
        identity_rows = source.connection.execute(statement).fetchall()
    counts = {"new": 0, "extended": 0, "unchanged": 0}
    trials = 0
    refused: list[RunRefused] = []
    for (identity,) in identity_rows:
        if identities is not None and identity not in identities:
            continue
        try:
            outcome, copied_trials = _merge_run(target, source, identity)
        except RunRefused as refusal:
            refused.append(refusal)
        else:
            counts[outcome] += 1
            trials += copied_trials
    if identities is None:
        refused += _merge_certificates(target, source)
    return MergeReport(**counts, trials=trials, refused=tuple(refused))


def needed_runs(ledger: Ledger, reference: str) -> frozenset[bytes]:
    """Return the identities of a run, and of the runs in this ledger that the result needs.

    A fleet needs the runs of its hosts. A history needs its earlier campaigns. A campaign with a
    gap needs the campaigns that explain the gap, and these need the campaign with the gap.

    Raise `UnusableInput` if no run or several match, or an earlier campaign of a history is
    missing.
    """
    identity_by_run: dict[int, bytes] = {}
    with ledger.reading():
        pending_runs = [find_run(ledger.connection, ledger.path, reference)]
    while pending_runs:
        run = pending_runs.pop()
        if run in identity_by_run:
            continue
        with ledger.reading():
            identity, plan_text = ledger.connection.execute(
                "SELECT identity, plan FROM run WHERE number = ?", (run,)
            ).fetchone()
            identity_by_run[run] = identity
            pending_runs += _runs_of_plan(ledger, run, plan_from_text(plan_text))
            statement = "SELECT number FROM run WHERE part_of = ?"
            member_rows = ledger.connection.execute(statement, (identity,))
            pending_runs += [number for (number,) in member_rows]
            name = name_of(ledger.connection, run)
        for explanation in ledger.runs_explaining(name):
            with ledger.reading():
                pending_runs.append(find_run(ledger.connection, ledger.path, explanation))
    return frozenset(identity_by_run.values())


def _runs_of_plan(ledger: LedgerFile, run: int, plan: Plan) -> Iterator[int]:
    """Yield the runs that the plan of a run mentions. Earlier campaigns must be in the ledger."""
    for earlier_run in plan.rules.earlier_ids:
        yield find_mentioned_run(ledger.connection, ledger.path, earlier_run, run)
    for mentioned_run in plan.rules.referenced_runs:
        with suppress(UnusableInput):
            yield find_mentioned_run(ledger.connection, ledger.path, mentioned_run, run)


def _merge_run(target: LedgerFile, source: LedgerFile, identity: bytes) -> tuple[str, int]:
    """Copy the missing rows of a run; return the field of the outcome and the number of trials."""
    with target.reading():
        run = run_of(target.connection, identity)
        target_end = Cursor() if run is None else cursor_of(target.connection, run)
    if run is not None:
        # Only rows that both ledgers have can show a fork.
        for part in _parts_after(source, identity, Cursor()):
            with target.reading():
                check_part(target.connection, target.path, run, part)
            if part.end.includes(target_end):
                break
        with _readable_run(source, identity) as number:
            source_end = cursor_of(source.connection, number)
        if target_end.includes(source_end):
            return "unchanged", 0
    with _readable_run(source, identity) as number:
        check_run(source.connection, source.path, number)
    trials = 0
    for part in _parts_after(source, identity, target_end):
        with target.writing():
            trials += add_part(target.connection, target.path, part)
    return "new" if run is None else "extended", trials


def _parts_after(source: LedgerFile, identity: bytes, start: Cursor) -> Iterator[RunPart]:
    """Yield the parts of a run after a cursor."""
    has_more = True
    while has_more:
        with _readable_run(source, identity) as run:
            part, has_more = read_part(source.connection, run, start, MAX_TRIALS)
            if has_more and part.end == start:
                raise damaged_ledger(source.path, "an index has rows that its table lacks")
        start = part.end
        yield part


@contextmanager
def _readable_run(source: LedgerFile, identity: bytes) -> Iterator[int]:
    """Yield the number of a run; raise `RunRefused` with the run's name if reading fails."""
    name = ""
    try:
        with source.reading():
            run = run_of(source.connection, identity)
            assert run is not None, "no row of a ledger is ever removed"
            name = name_of(source.connection, run)
            yield run
    except UnusableInput as error:
        raise RunRefused(f"run {name} is left out: {error.what}", hint=error.hint) from error


def _merge_certificates(target: LedgerFile, source: LedgerFile) -> Iterator[RunRefused]:
    """Copy the missing certificates; yield an error for each unreadable certificate."""
    with source.reading():
        rows = source.connection.execute("SELECT document FROM certificate").fetchall()
    for (document,) in rows:
        try:
            certificate = msgspec.convert(from_text(document), Certificate)
        except (ValueError, RecursionError, msgspec.MsgspecError) as error:
            yield RunRefused(
                f"a certificate in {source.path} cannot be read and is left out: {error}",
                hint="run `equipoise doctor --certify` again on its host",
            )
            continue
        with target.writing():
            insert_certificate(target.connection, certificate, document)
