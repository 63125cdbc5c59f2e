"""The outcome of a gate as Markdown: for pull requests, job summaries and the screen."""

from __future__ import annotations

from equipoise.model.gate import GateOutcome, GateRow
from equipoise.model.result import ResultDocument
from equipoise.report.markdown import code_block, line, text
from equipoise.report.units import interval_words, metric_value, percent_change

OUTCOMES: dict[GateOutcome, str] = {
    "slower": "❌ slower",
    "passes": "✅ passes",
    "undecided": "❔ undecided",
}


def to_markdown(document: ResultDocument) -> str:
    """The verdict in one sentence, a row for each benchmark, and what to know about them.

    Every name is text: no mark-up, no mention and no link comes out of one.
    """
    gate = document.gate
    if gate is None:
        return "## Equipoise: no gate was judged\n"
    passed = "✅ passes" if gate.passed else "❌ fails"
    blocks = "1 block" if document.run.blocks == 1 else f"{document.run.blocks} blocks"
    lines = [
        f"## Equipoise gate: {passed}",
        "",
        line(gate.words),
        "",
        "| benchmark | baseline | candidate | change | interval | outcome |",
        "|:---|---:|---:|---:|:---|:---|",
        *(_row(row) for row in gate.rows),
        "",
        f"{blocks} in random order on one host; a benchmark fails where its whole interval lies "
        f"beyond {gate.min_effect:g} %. Run {text(document.run.id)}; again:",
        "",
        code_block(gate.again),
    ]
    if document.warnings:
        lines += ["", *(f"- {line(one.words)}; {text(one.mend)}" for one in document.warnings)]
    return "\n".join(lines) + "\n"


def _row(row: GateRow) -> str:
    cells = (
        text(row.benchmark),
        _median(row.baseline_median, row.metric),
        _median(row.candidate_median, row.metric),
        "–" if row.ratio is None else percent_change(row.ratio),
        "open" if row.ratio_ci == (None, None) else interval_words(*row.ratio_ci),
        OUTCOMES[row.outcome],
    )
    return f"| {' | '.join(cells)} |"


def _median(value: float | None, metric: str) -> str:
    return "timed out" if value is None else metric_value(value, metric)
