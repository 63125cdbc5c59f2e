"""Builds lists of the campaigns in a ledger: all, or the campaigns of the same commands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from equipoise.model.quantities import counted
from equipoise.model.record import RunSummary
from equipoise.report.document import (
    BRIEF_TERMINAL,
    TERMINAL,
    UNKNOWN,
    VERBOSE_TERMINAL,
    Bullets,
    Cell,
    Document,
    Paragraph,
    Part,
    Table,
    columns_and_rows,
    full_and_brief,
)
from equipoise.shared.spelling import option

_MAX_OTHER_CAMPAIGNS = 5
MAX_BRIEF_RUNS = 15


def other_campaigns_parts(campaigns: Sequence[RunSummary]) -> Iterator[Part]:
    """Build the terminal's list of other campaigns of the same commands."""
    if not campaigns:
        return
    yield Paragraph(
        f"Other campaigns of the same commands in this ledger: {len(campaigns)}. "
        "Choosing the run you like best is not evidence.",
        "dim",
        forms=TERMINAL,
    )
    lines = (
        f"  {campaign.id}  {local_time(campaign.started_at)}  {campaign.trials} trials  "
        f"{campaign.stopped_because or 'not ended'}"
        for campaign in campaigns[-_MAX_OTHER_CAMPAIGNS:]
    )
    yield Bullets(tuple(lines), "dim", forms=VERBOSE_TERMINAL)


def runs_document(runs: Sequence[RunSummary]) -> Document:
    """Build the document with all campaigns; a brief terminal lists only the latest campaigns."""
    if not runs:
        return Document("runs", "Campaigns", (Paragraph("no campaigns yet"),))
    table = runs_table(runs)
    latest_rows = table.rows[-MAX_BRIEF_RUNS:]
    order_phrase = ", the latest last" if len(runs) > 1 else ""
    hint = "equipoise show RUN shows one again"
    title = f"{counted(len(runs), 'campaign')} in this ledger{order_phrase}; {hint}."
    parts: list[Part] = [
        Paragraph(title),
        *full_and_brief(table, replace(table, rows=latest_rows)),
    ]
    if hidden_count := len(table.rows) - len(latest_rows):
        text = f"{hidden_count} earlier: {option('verbose')}"
        parts.append(Paragraph(text, "dim", forms=BRIEF_TERMINAL))
    return Document("runs", title, tuple(parts))


def runs_table(runs: Sequence[RunSummary]) -> Table:
    """Build a table with a row for each campaign.

    Below the row of a fleet's campaign, each host has a row for its part. The field ``whole`` of
    such a part is the id of the fleet's campaign.
    """
    host_parts: dict[str, list[RunSummary]] = defaultdict(list)
    for run in runs:
        if run.part_of is not None:
            host_parts[run.part_of].append(run)
    has_hosts = len({run.host for run in runs}) > 1 or any(run.hosts is not None for run in runs)
    rows: list[Mapping[str, Cell]] = []
    for run in (run for run in runs if run.part_of is None):
        rows.append(_run_cells(run, has_hosts=has_hosts))
        rows += (_run_cells(part, has_hosts=has_hosts) for part in host_parts[run.id])
    return Table(*columns_and_rows(rows))


def _run_cells(run: RunSummary, *, has_hosts: bool) -> Mapping[str, Cell]:
    host = run.host or UNKNOWN
    if run.hosts is not None:
        host = counted(run.hosts, "host")
    return {
        "run:id": run.id if run.part_of is None else f"  {run.id}",
        "started:id": local_time(run.started_at)[: len("2026-03-01 10:15")],
        **({"host:name": host} if has_hosts else {}),
        "trials:number": str(run.trials),
        "stopped": run.stopped_because or "not ended",
        "conditions:name": " | ".join(run.commands),
    }


def local_time(seconds: float) -> str:
    """Return seconds since the epoch as the local time of this host."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")
