"""The outcome of a gate as Markdown: for pull requests, job summaries and the screen."""

from __future__ import annotations

import re

from equipoise.model.gate import GateOutcome, GateRow
from equipoise.model.result import ResultDocument
from equipoise.report.safe_text import visible
from equipoise.report.units import interval_words, metric_value, percent_change

OUTCOMES: dict[GateOutcome, str] = {
    "slower": "❌ slower",
    "passes": "✅ passes",
    "undecided": "❔ undecided",
}
_MARKS = re.compile(r"[\\`*_{}\[\]<>#|~!&]|:(?=//)|(?<=www)\.", re.IGNORECASE)
"""What would be mark-up, an entity or a link."""


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
        text(gate.words),
        "",
        "| benchmark | baseline | candidate | change | interval | outcome |",
        "|:---|---:|---:|---:|:---|:---|",
        *(_row(row) for row in gate.rows),
        "",
        f"{blocks} in random order on one host; a benchmark fails where its whole interval lies "
        f"beyond {gate.min_effect:g} %. Run {code(document.run.id)}; again: {code(gate.again)}.",
    ]
    if document.warnings:
        lines += ["", *(f"- {text(one.words)}; {text(one.mend)}" for one in document.warnings)]
    return "\n".join(lines) + "\n"


def text(words: str) -> str:
    """Words as they are, whatever marks of Markdown or HTML are in them."""
    shown = _MARKS.sub(r"\\\g<0>", visible(words))
    # A word joiner, which nobody sees: GitHub tells whoever is named behind an @.
    return shown.replace("@", "@\u2060")


def code(name: str) -> str:
    """A name in code, fit for the cell of a table."""
    line = visible(name)
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    ticks = "`" * (1 + longest)
    edge = " " if line.startswith("`") or line.endswith("`") or not line.strip() else ""
    return f"{ticks}{edge}{line}{edge}{ticks}".replace("|", "\\|")


def _row(row: GateRow) -> str:
    cells = (
        code(row.benchmark),
        _median(row.baseline_median, row.metric),
        _median(row.candidate_median, row.metric),
        "–" if row.ratio is None else percent_change(row.ratio),
        "open" if row.ratio_ci == (None, None) else interval_words(*row.ratio_ci),
        OUTCOMES[row.outcome],
    )
    return f"| {' | '.join(cells)} |"


def _median(value: float | None, metric: str) -> str:
    return "timed out" if value is None else metric_value(value, metric)
