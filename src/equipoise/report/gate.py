"""The outcome of a gate as Markdown: for pull requests, job summaries and the screen."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Sequence

from equipoise.model.result import GateOutcome, GateRow, ResultDocument
from equipoise.report.renderers.markdown import code_block, line, text
from equipoise.report.units import interval_text, metric_value, percent_change

OUTCOMES: dict[GateOutcome, str] = {
    "slower": "❌ slower",
    "passes": "✅ passes",
    "undecided": "❔ undecided",
}
_ORDER: tuple[GateOutcome, ...] = ("slower", "undecided", "passes")

MARK = "<!-- equipoise gate -->"
"""Ends what becomes a comment, unseen: by it the next run finds the comment and replaces it."""

_SHOWN_PASSES = 10
"""More of them are folded away: what passes need not be read."""
_ROOM = 40_000
"""Characters of all rows; GitHub takes 65,536 of a comment."""


def to_comment(document: ResultDocument) -> str:
    """Write the outcome as a comment that a later run replaces."""
    return f"{to_markdown(document)}\n{MARK}\n"


def to_markdown(document: ResultDocument) -> str:
    """Write the verdict in one sentence, a row for each benchmark, and what to know about them.

    What does not pass comes first. Every name is text: no mark-up, no mention and no link comes
    out of one.
    """
    gate = document.gate
    if gate is None:
        return "## Equipoise: no gate was judged\n"
    passed = "✅ passes" if gate.passed else "❌ fails"
    blocks = "1 block" if document.run.blocks == 1 else f"{document.run.blocks} blocks"
    lines = [
        f"## Equipoise gate: {passed}",
        "",
        line(gate.summary),
        "",
        *_tables(gate.rows),
        f"{blocks} in random order on one host; a benchmark fails where its whole interval lies "
        f"beyond {gate.min_effect:g} %. Run {text(document.run.id)}; again:",
        "",
        code_block(gate.again),
    ]
    if document.warnings:
        lines += ["", *(f"- {line(one.summary)}; {text(one.hint)}" for one in document.warnings)]
    return "\n".join(lines) + "\n"


def _tables(rows: Sequence[GateRow]) -> Iterator[str]:
    ordered = sorted(rows, key=lambda row: _ORDER.index(row.outcome))
    written = [_row(row) for row in ordered]
    room = bisect.bisect_right(list(itertools.accumulate(map(len, written))), _ROOM)
    passing = sum(row.outcome == "passes" for row in rows)
    unfolded = len(rows) if passing <= _SHOWN_PASSES else len(rows) - passing
    yield from _table(written[: min(room, unfolded)])
    if written[unfolded:room]:
        yield from ("<details>", f"<summary>{passing} benchmarks pass</summary>", "")
        yield from _table(written[unfolded:room])
        yield from ("</details>", "")
    if len(rows) > room:
        yield from (f"{len(rows) - room} more are in the document that --json writes.", "")


def _table(rows: Sequence[str]) -> Iterator[str]:
    if rows:
        yield "| benchmark | baseline | candidate | change | interval | outcome |"
        yield "|:---|---:|---:|---:|:---|:---|"
        yield from rows
        yield ""


def _row(row: GateRow) -> str:
    cells = (
        text(row.benchmark),
        _median(row.baseline_median, row.metric),
        _median(row.candidate_median, row.metric),
        "–" if row.ratio is None else percent_change(row.ratio),
        "open" if row.ratio_ci == (None, None) else interval_text(*row.ratio_ci),
        OUTCOMES[row.outcome],
    )
    return f"| {' | '.join(cells)} |"


def _median(value: float | None, metric: str) -> str:
    return "timed out" if value is None else metric_value(value, metric)
