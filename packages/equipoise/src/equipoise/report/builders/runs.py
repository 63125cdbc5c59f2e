"""Campaigns of a ledger, a line each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from equipoise.model.quantities import counted
from equipoise.model.record import RunSummary
from equipoise.report.document import (
    BRIEF,
    SCREEN,
    UNKNOWN,
    VERBOSE,
    Bullets,
    Cell,
    Document,
    Paragraph,
    Part,
    Table,
    columns_and_rows,
    whole_and_brief,
)
from equipoise.shared.spelling import option

_EARLIER_SHOWN = 5
MAX_BRIEF_RUNS = 15
"""Number of campaigns that a terminal lists without ``--verbose``."""


def earlier_parts(earlier: Sequence[RunSummary]) -> Iterator[Part]:
    """Build the terminal's list of other campaigns of the same commands."""
    if not earlier:
        return
    yield Paragraph(
        f"Other campaigns of the same commands in this ledger: {len(earlier)}. "
        "Choosing the run you like best is not evidence.",
        "dim",
        forms=SCREEN,
    )
    lines = (
        f"  {other.id}  {local_time(other.started_at)}  {other.trials} trials  "
        f"{other.stopped_because or 'not ended'}"
        for other in earlier[-_EARLIER_SHOWN:]
    )
    yield Bullets(tuple(lines), "dim", forms=VERBOSE)


def runs_document(runs: Sequence[RunSummary]) -> Document:
    """Build the list of campaigns: how many there are, and a line for each.

    A brief screen has the latest campaigns alone.
    """
    if not runs:
        return Document("runs", "Campaigns", (Paragraph("no campaigns yet"),))
    table = runs_table(runs)
    shown = table.rows[-MAX_BRIEF_RUNS:]
    last = ", the latest last" if len(runs) > 1 else ""
    how = "equipoise show RUN shows one again"
    title = f"{counted(len(runs), 'campaign')} in this ledger{last}; {how}."
    parts: list[Part] = [Paragraph(title), *whole_and_brief(table, replace(table, rows=shown))]
    if left_out := len(table.rows) - len(shown):
        more = f"{left_out} earlier: {option('verbose')}"
        parts.append(Paragraph(more, "dim", forms=BRIEF))
    return Document("runs", title, tuple(parts))


def runs_table(runs: Sequence[RunSummary]) -> Table:
    """Build the table of campaigns, a line each; the parts of one are below its line."""
    of_wholes: dict[str, list[RunSummary]] = defaultdict(list)
    for run in runs:
        if run.whole is not None:
            of_wholes[run.whole].append(run)
    names_hosts = len({run.host for run in runs}) > 1 or any(run.hosts is not None for run in runs)
    rows: list[Mapping[str, Cell]] = []
    wholes = [run for run in runs if run.whole is None]
    for run in wholes:
        rows.append(_run_row(run, names_hosts=names_hosts))
        rows += (_run_row(part, names_hosts=names_hosts) for part in of_wholes[run.id])
    return Table(*columns_and_rows(rows))


def _run_row(run: RunSummary, *, names_hosts: bool) -> Mapping[str, Cell]:
    host = run.host or UNKNOWN
    if run.hosts is not None:
        host = counted(run.hosts, "host")
    return {
        "run:id": run.id if run.whole is None else f"  {run.id}",
        "started:id": local_time(run.started_at)[: len("2026-03-01 10:15")],
        **({"host:name": host} if names_hosts else {}),
        "trials:number": str(run.trials),
        "stopped": run.stopped_because or "not ended",
        "conditions:name": " | ".join(run.commands),
    }


def local_time(seconds: float) -> str:
    """Return a time since the epoch as the host's clock shows it."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")
