"""The outcome of a gate: for pull requests, job summaries and the screen."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from equipoise.kinds.gate.terms import GateDocument, GateOutcome, GateResult, GateRow
from equipoise.model.quantities import counted, duration, names_of
from equipoise.report.document import (
    BRIEF,
    EVERYWHERE,
    MAX_ALIKE,
    TEXT,
    UNKNOWN,
    VERBOSE,
    Bullets,
    Claim,
    Command,
    Document,
    Paragraph,
    Part,
    Section,
    Table,
    Warnings,
    columns_and_rows,
)
from equipoise.report.kind import ReportKind, Title
from equipoise.report.renderers.markdown import text
from equipoise.report.units import (
    estimate_and_interval,
    interval_text,
    is_shared,
    metric_value,
    percentage,
    waiting_time,
)
from equipoise.shared.spelling import option

OUTCOME_LABELS: dict[GateOutcome, str] = {
    "slower": "❌ slower",
    "undecided": "❔ undecided",
    "passes": "✅ passes",
}
"""Label of each outcome, in the order of the rows: first those that need action."""
_MAX_UNFOLDED_PASSES = 10
"""Number of passing benchmarks from which on they are folded."""
_BUDGET_FACTOR = 1.2
"""Suggested budget over the forecast seconds, which are a median without warm-up."""
_MAX_CHARACTERS = 40_000
"""Characters of all rows in Markdown; a comment on GitHub holds 65,536."""


class GateReport(ReportKind):
    """The report of a gate."""

    def question(self, document: GateDocument) -> str | None:
        """Return the question of the gate; ``None`` if no block ended."""
        gate = document.gate
        if gate is None:
            return None
        return (
            f"Is {gate.candidate.asked} slower than {gate.baseline.asked}, by more than "
            f"{gate.min_effect:g} %?"
        )

    def title(self, document: GateDocument, claims: Sequence[Claim]) -> Title | None:
        """Return the outcome, and the blocks that an undecided gate needs."""
        gate = document.gate
        return None if gate is None else (_title(gate), shortage_sentences(gate))


def _title(gate: GateResult) -> str:
    outcome = "passes" if gate.passed else "fails"
    if gate.passed and gate.shortage is not None:
        outcome = "is undecided"
    return f"The gate {outcome}: {gate.summary}"


def gate_document(document: GateDocument) -> Document:
    """Build the outcome in one sentence, a row for each benchmark, and the warnings."""
    gate = document.gate
    if gate is None:
        title = "Equipoise: no gate was judged"
        return Document(document.run.id, title, (Paragraph(title, "heading"),))
    title = f"Equipoise gate: {_heading(gate)}"
    blocks = counted(document.run.blocks, "block")
    # The rows share alpha, so each row may have less.
    alpha = max((comparison.alpha for comparison in document.comparisons), default=0.0)
    parts: list[Part] = [
        Paragraph(title, "heading"),
        Paragraph(gate.summary),
        *(Paragraph(sentence) for sentence in shortage_sentences(gate)),
        *(replace(table, forms=EVERYWHERE - BRIEF) for table in _tables(gate.rows, alpha)),
        _brief_table(gate),
        Command(
            document.run.command_line or "",
            f"{blocks} in random order on one host; a benchmark fails if its whole equivalence "
            f"interval is beyond {gate.min_effect:g} %. To repeat run {document.run.id}:",
            forms=EVERYWHERE - BRIEF,
        ),
    ]
    slower: dict[str, list[str]] = {}
    for name, line in gate.bisect.items():
        slower.setdefault(line, []).append(name)
    parts += (
        Command(line, f"Which {_commits(names)} made {names_of(names)} slower?")
        for line, names in itertools.islice(slower.items(), MAX_ALIKE)
    )
    if document.warnings:
        lines = tuple(f"{warning.summary}; {warning.hint}" for warning in document.warnings)
        parts += [Bullets(lines, forms=TEXT), Warnings(document.warnings, forms=VERBOSE)]
    parts.append(Paragraph(_last_line(document), "dim", forms=BRIEF))
    return Document(document.run.id, title, tuple(parts))


def _last_line(document: GateDocument) -> str:
    """Return the last line of a brief screen: the run, its warnings, and how to see more."""
    run, count = document.run, len(document.warnings)
    warnings = f" and {counted(count, 'warning')}" if count else ""
    blocks = counted(run.blocks, "block")
    return f"run {run.id}: {blocks} (more{warnings}: {option('verbose')})"


def _heading(gate: GateResult) -> str:
    """Return the outcome in a few words: green only if every benchmark passes."""
    undecided = 0 if gate.shortage is None else gate.shortage.undecided
    if not gate.passed:
        slower = any(row.outcome == "slower" for row in gate.rows)
        return "❌ fails" if slower or not undecided else "❌ fails: undecided"
    if undecided == 0:
        return "✅ passes"
    if undecided == len(gate.rows):
        return "❔ undecided"
    return f"❔ {undecided} of {len(gate.rows)} undecided"


def shortage_sentences(gate: GateResult) -> tuple[str, ...]:
    """Return the problem of an undecided gate and a hint; nothing if it is decided."""
    shortage = gate.shortage
    if shortage is None:
        return ()
    measured = counted(shortage.blocks, "block")
    took = waiting_time(shortage.blocks * shortage.block_s)
    if shortage.needed_blocks is None or shortage.needed_s is None:
        problem = (
            f"Not decided after {measured} ({took}), and no forecast: the change is close to "
            f"{option('min_effect')} {gate.min_effect:g}, or trials vary too much."
        )
        budget = f"a larger {option('budget')}"
    else:
        least = "at least " if shortage.is_lower_bound else "about "
        problem = (
            f"Measured too little: {measured} ({took}); needs {least}{shortage.needed_blocks} "
            f"blocks, {'' if shortage.is_lower_bound else 'about '}"
            f"{waiting_time(shortage.needed_s)}."
        )
        budget = f"{option('budget')} {math.ceil(_BUDGET_FACTOR * shortage.needed_s)}"
    fails = f" {option('fail_undecided')} fails such a gate." if gate.passed else ""
    return (
        problem,
        f"Run again with {budget}, make the benchmark shorter (a block takes "
        f"{duration(shortage.block_s)}), or raise {option('min_effect')}.{fails}",
    )


def _commits(benchmarks: Sequence[str]) -> str:
    return "commit" if len(benchmarks) == 1 else "commits"


def _tables(rows: Sequence[GateRow], alpha: float) -> Iterator[Part]:
    order = list(OUTCOME_LABELS)
    cells = [_row(row, alpha) for row in sorted(rows, key=lambda row: order.index(row.outcome))]
    lengths = (sum(len(text(cell)) + 3 for cell in row.values()) for row in cells)
    fitting = bisect.bisect_right(list(itertools.accumulate(lengths)), _MAX_CHARACTERS)
    passing = sum(row.outcome == "passes" for row in rows)
    unfolded = len(rows) if passing <= _MAX_UNFOLDED_PASSES else len(rows) - passing
    if first := cells[: min(fitting, unfolded)]:
        yield Table(*columns_and_rows(first))
    if folded := cells[unfolded:fitting]:
        title = f"{passing} benchmarks pass"
        yield Section(title, (Table(*columns_and_rows(folded)),), folded=True)
    if len(rows) > fitting:
        yield Paragraph(
            f"{len(rows) - fitting} more are in the document that {option('json')} writes."
        )


def _brief_table(gate: GateResult) -> Table:
    """Build the table of a brief screen: what must be acted on, and the interval that decided."""
    rows, order = gate.rows, list(OUTCOME_LABELS)
    first = sorted(rows, key=lambda row: order.index(row.outcome))[:_MAX_UNFOLDED_PASSES]
    more = len(rows) - len(first)
    cells = (
        {
            "benchmark:name": row.benchmark,
            "baseline:number": _median(row.baseline_median, row.metric),
            "candidate:number": _median(row.candidate_median, row.metric),
            "change between": interval_text(row.equivalence_ci, "open"),
            "outcome": OUTCOME_LABELS[row.outcome],
        }
        for row in first
    )
    notes = [f"A benchmark fails if its whole change is above {gate.min_effect:g} %."]
    if more:
        notes.append(f"{counted(more, 'more benchmark')}: {option('verbose')}")
    return Table(*columns_and_rows(cells), notes=tuple(notes), forms=BRIEF)


def _row(row: GateRow, alpha: float) -> Mapping[str, str]:
    change, interval = estimate_and_interval(
        row.ratio, row.ratio_ci, unknown=UNKNOWN, unlimited="open"
    )
    return {
        "benchmark:name": row.benchmark,
        "baseline:number": _median(row.baseline_median, row.metric),
        "candidate:number": _median(row.candidate_median, row.metric),
        "change:number": change,
        "interval": interval,
        "equivalence interval": _equivalence(row, alpha),
        "outcome": OUTCOME_LABELS[row.outcome],
    }


def _equivalence(row: GateRow, alpha: float) -> str:
    """Return the interval that decided the outcome, with its coverage."""
    interval, level = row.equivalence_ci, row.equivalence_level
    shared_level = max(alpha, row.level) * level / row.level
    scope = " over the benchmarks reported" if is_shared(level, shared_level) else ""
    return f"{interval_text(interval, 'open')} ({percentage(1.0 - shared_level)}{scope})"


def _median(value: float | None, metric: str) -> str:
    return "timed out" if value is None else metric_value(value, metric)
