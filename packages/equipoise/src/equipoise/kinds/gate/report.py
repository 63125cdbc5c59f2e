"""Show the outcome of a gate in pull requests, in job summaries and on the screen."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from equipoise.kinds.gate.terms import GateDocument, GateOutcome, GateResult, GateRow
from equipoise.model.quantities import counted, duration, names_of
from equipoise.report.document import (
    BRIEF_TERMINAL,
    MAX_SIMILAR_LINES,
    NOT_BRIEF,
    TEXT_AND_NOTEBOOK,
    UNKNOWN,
    VERBOSE_TERMINAL,
    Bullets,
    Command,
    Document,
    Paragraph,
    Part,
    Section,
    Statement,
    Table,
    Warnings,
    columns_and_rows,
)
from equipoise.report.kind import KindReport, Title
from equipoise.report.renderers.markdown import text
from equipoise.report.units import (
    estimate_and_interval,
    interval_text,
    metric_value,
    percentage,
    shares_alpha,
    waiting_time,
)
from equipoise.shared.spelling import option

OUTCOME_LABELS: dict[GateOutcome, str] = {
    "slower": "❌ slower",
    "undecided": "❔ undecided",
    "passes": "✅ passes",
}
"""Label of each outcome. Rows have this order: outcomes that need action come first."""
_MAX_UNFOLDED_PASSES = 10
"""Maximum number of passing benchmarks that are shown without a fold."""
_BUDGET_FACTOR = 1.2
"""Suggested budget over the forecast seconds. The forecast is a median, without warm-up."""
_MAX_ROW_CHARACTERS = 40_000
"""Maximum characters of all rows in Markdown. A comment on GitHub holds 65,536 characters."""


class GateReport(KindReport):
    """The report of a gate."""

    def question(self, document: GateDocument) -> str | None:
        """Return the question of the gate; ``None`` if no block is complete."""
        gate = document.gate
        if gate is None:
            return None
        return (
            f"Is {gate.candidate.typed_name} slower than {gate.baseline.typed_name}, by more than "
            f"{gate.min_effect:g} %?"
        )

    def title(self, document: GateDocument, statements: Sequence[Statement]) -> Title | None:
        """Return the outcome, and how many blocks an undecided gate needs."""
        gate = document.gate
        return None if gate is None else (_title(gate), shortage_sentences(gate))


def _title(gate: GateResult) -> str:
    outcome = "passes" if gate.passed else "fails"
    if gate.passed and gate.shortage is not None:
        outcome = "is undecided"
    return f"The gate {outcome}: {gate.summary}"


def gate_document(document: GateDocument) -> Document:
    """Build the summary: the outcome, a row for each benchmark, bisect lines and warnings."""
    gate = document.gate
    if gate is None:
        title = "Equipoise: no gate was judged"
        return Document(document.run.id, title, (Paragraph(title, "heading"),))
    title = f"Equipoise gate: {_outcome_heading(gate)}"
    blocks = counted(document.run.blocks, "block")
    # All rows share alpha, so the level of one row may be smaller than alpha.
    alpha = max((comparison.alpha for comparison in document.comparisons), default=0.0)
    parts: list[Part] = [
        Paragraph(title, "heading"),
        Paragraph(gate.summary),
        *(Paragraph(sentence) for sentence in shortage_sentences(gate)),
        *(replace(table, forms=NOT_BRIEF) for table in _row_tables(gate.rows, alpha)),
        _brief_table(gate),
        Command(
            document.run.command_line or "",
            f"{blocks} in random order on one host; a benchmark fails if its whole equivalence "
            f"interval is beyond {gate.min_effect:g} %. To repeat run {document.run.id}:",
            forms=NOT_BRIEF,
        ),
    ]
    names_by_line: dict[str, list[str]] = {}
    for name, line in gate.bisect_lines.items():
        names_by_line.setdefault(line, []).append(name)
    for line, names in itertools.islice(names_by_line.items(), MAX_SIMILAR_LINES):
        noun = "commit" if len(names) == 1 else "commits"
        parts.append(Command(line, f"Which {noun} made {names_of(names)} slower?"))
    if document.warnings:
        sentences = tuple(f"{warning.summary}; {warning.hint}" for warning in document.warnings)
        parts += [
            Bullets(sentences, forms=TEXT_AND_NOTEBOOK),
            Warnings(document.warnings, forms=VERBOSE_TERMINAL),
        ]
    parts.append(Paragraph(_brief_last_line(document), "dim", forms=BRIEF_TERMINAL))
    return Document(document.run.id, title, tuple(parts))


def _brief_last_line(document: GateDocument) -> str:
    """Return the last line of a brief terminal: the run, its warnings, and how to see more."""
    run, count = document.run, len(document.warnings)
    warnings = f" and {counted(count, 'warning')}" if count else ""
    blocks = counted(run.blocks, "block")
    return f"run {run.id}: {blocks} (more{warnings}: {option('verbose')})"


def _outcome_heading(gate: GateResult) -> str:
    undecided = 0 if gate.shortage is None else gate.shortage.undecided
    if not gate.passed:
        has_slower_row = any(row.outcome == "slower" for row in gate.rows)
        return "❌ fails" if has_slower_row or not undecided else "❌ fails: undecided"
    if undecided == 0:
        return "✅ passes"
    if undecided == len(gate.rows):
        return "❔ undecided"
    return f"❔ {undecided} of {len(gate.rows)} undecided"


def shortage_sentences(gate: GateResult) -> tuple[str, ...]:
    """Return the problem of an undecided gate, and a hint; empty if the gate is decided."""
    shortage = gate.shortage
    if shortage is None:
        return ()
    block_text = counted(shortage.blocks, "block")
    spent_time = waiting_time(shortage.blocks * shortage.block_s)
    if shortage.needed_blocks is None or shortage.needed_s is None:
        problem = (
            f"Not decided after {block_text} ({spent_time}), and no forecast: the change is close "
            f"to {option('min_effect')} {gate.min_effect:g}, or trials vary too much."
        )
        action = f"Raise {option('min_effect')}, or run again with a larger {option('budget')}"
    elif len(gate.rows) > 1:
        problem = (
            f"Measured too little: {shortage.undecided} of {len(gate.rows)} benchmarks are "
            f"undecided; a gate that decides all takes about {waiting_time(shortage.needed_s)}."
        )
        action = f"Run again with {option('budget', math.ceil(_BUDGET_FACTOR * shortage.needed_s))}"
    else:
        qualifier = "at least " if shortage.is_lower_bound else "about "
        problem = (
            f"Measured too little: {block_text} ({spent_time}); needs "
            f"{qualifier}{shortage.needed_blocks} "
            f"blocks, {'' if shortage.is_lower_bound else 'about '}"
            f"{waiting_time(shortage.needed_s)}."
        )
        budget_s = math.ceil(_BUDGET_FACTOR * shortage.needed_s)
        action = f"Run again with {option('budget', budget_s)}"
    fail_sentence = (
        f" With {option('fail_undecided')}, an undecided gate fails." if gate.passed else ""
    )
    return problem, f"{action} (a block takes {duration(shortage.block_s)}).{fail_sentence}"


def _row_tables(rows: Sequence[GateRow], alpha: float) -> Iterator[Part]:
    """Build the table of the rows; many passing rows are folded."""
    outcomes = list(OUTCOME_LABELS)
    ordered_rows = sorted(rows, key=lambda row: outcomes.index(row.outcome))
    has_forecast = any(row.forecast is not None for row in rows)
    cells = [_cells_of_row(row, alpha, has_forecast=has_forecast) for row in ordered_rows]
    # The separator between two cells in Markdown has three characters.
    lengths = (sum(len(text(cell)) + 3 for cell in row.values()) for row in cells)
    shown_count = bisect.bisect_right(list(itertools.accumulate(lengths)), _MAX_ROW_CHARACTERS)
    pass_count = sum(row.outcome == "passes" for row in rows)
    unfolded_count = len(rows) if pass_count <= _MAX_UNFOLDED_PASSES else len(rows) - pass_count
    if unfolded_cells := cells[: min(shown_count, unfolded_count)]:
        yield Table(*columns_and_rows(unfolded_cells))
    if folded_cells := cells[unfolded_count:shown_count]:
        title = f"{pass_count} benchmarks pass"
        yield Section(title, (Table(*columns_and_rows(folded_cells)),), folded=True)
    if len(rows) > shown_count:
        yield Paragraph(
            f"{len(rows) - shown_count} more are in the document that {option('json')} writes."
        )


def _brief_table(gate: GateResult) -> Table:
    """Build the table of a brief terminal; rows that need action come first."""
    rows, outcomes = gate.rows, list(OUTCOME_LABELS)
    shown_rows = sorted(rows, key=lambda row: outcomes.index(row.outcome))[:_MAX_UNFOLDED_PASSES]
    hidden_count = len(rows) - len(shown_rows)
    has_forecast = any(row.forecast is not None for row in shown_rows)
    cells = (
        {
            "benchmark:name": row.benchmark,
            "baseline:number": _median_text(row.baseline_median, row.metric),
            "candidate:number": _median_text(row.candidate_median, row.metric),
            "change between": interval_text(row.equivalence_ci, "open"),
            **(_needed_time(row) if has_forecast else {}),
            "outcome": OUTCOME_LABELS[row.outcome],
        }
        for row in shown_rows
    )
    notes = [f"A benchmark fails if its whole change is above {gate.min_effect:g} %."]
    if hidden_count:
        notes.append(f"{counted(hidden_count, 'more benchmark')}: {option('verbose')}")
    return Table(*columns_and_rows(cells), notes=tuple(notes), forms=BRIEF_TERMINAL)


def _needed_time(row: GateRow) -> Mapping[str, str]:
    """Return the cell about the time that an undecided row needs."""
    forecast = row.forecast
    if forecast is None:
        return {"needs": UNKNOWN if row.outcome == "undecided" else ""}
    if forecast.min_effect is None or forecast.min_effect_s is None:
        return {"needs": waiting_time(forecast.seconds)}
    sooner = f"{waiting_time(forecast.min_effect_s)} for {forecast.min_effect:g} %"
    return {"needs": f"{waiting_time(forecast.seconds)} ({sooner})"}


def _cells_of_row(row: GateRow, alpha: float, *, has_forecast: bool) -> Mapping[str, str]:
    change, interval = estimate_and_interval(
        row.ratio, row.ratio_ci, unknown=UNKNOWN, unlimited="open"
    )
    return {
        "benchmark:name": row.benchmark,
        "baseline:number": _median_text(row.baseline_median, row.metric),
        "candidate:number": _median_text(row.candidate_median, row.metric),
        "change:number": change,
        "interval": interval,
        "equivalence interval": _equivalence_interval(row, alpha),
        **(_needed_time(row) if has_forecast else {}),
        "outcome": OUTCOME_LABELS[row.outcome],
    }


def _equivalence_interval(row: GateRow, alpha: float) -> str:
    """Return the interval that decided the outcome, with its coverage."""
    interval, level = row.equivalence_ci, row.equivalence_level
    # The level of a row is a part of alpha, which all rows share.
    shared_level = max(alpha, row.significance_level) * level / row.significance_level
    scope = " over the benchmarks reported" if shares_alpha(level, shared_level) else ""
    return f"{interval_text(interval, 'open')} ({percentage(1.0 - shared_level)}{scope})"


def _median_text(value: float | None, metric: str) -> str:
    return "timed out" if value is None else metric_value(value, metric)
