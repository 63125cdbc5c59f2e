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
    ALIKE_SHOWN,
    BRIEF,
    EVERYWHERE,
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
    headed,
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

OUTCOMES: dict[GateOutcome, str] = {
    "slower": "❌ slower",
    "undecided": "❔ undecided",
    "passes": "✅ passes",
}
"""What a reader must act on comes first."""
_SHOWN_PASSES = 10
"""More of them are folded away: what passes need not be read."""
_SPARE_TIME = 1.2
"""Budget to suggest, over the forecast: a forecast is a median, and warm-up counts."""
_ROOM = 40_000
"""Characters of all rows in Markdown; GitHub takes 65,536 of a comment."""


class GateReport(ReportKind):
    """How the document of a gate is shown."""

    def question(self, document: GateDocument) -> str | None:
        """Return what the gate asks; ``None`` where no block ended."""
        gate = document.gate
        if gate is None:
            return None
        return (
            f"Is {gate.candidate.asked} slower than {gate.baseline.asked}, by more than "
            f"{gate.min_effect:g} %?"
        )

    def title(self, document: GateDocument, claims: Sequence[Claim]) -> Title | None:
        """Return the outcome, and what an undecided gate needs."""
        gate = document.gate
        return None if gate is None else (_title(gate), shortage_sentences(gate))


def _title(gate: GateResult) -> str:
    outcome = "passes" if gate.passed else "fails"
    if gate.passed and gate.shortage is not None:
        outcome = "is undecided"
    return f"The gate {outcome}: {gate.summary}"


def gate_document(document: GateDocument) -> Document:
    """Build the verdict in one sentence, a row for each benchmark, and what to know about them."""
    gate = document.gate
    if gate is None:
        title = "Equipoise: no gate was judged"
        return Document(document.run.id, title, (Paragraph(title, "heading"),))
    title = f"Equipoise gate: {_heading(gate)}"
    blocks = counted(document.run.blocks, "block")
    # The rows share alpha: each may have less of it alone.
    alpha = max((one.alpha for one in document.comparisons), default=0.0)
    parts: list[Part] = [
        Paragraph(title, "heading"),
        Paragraph(gate.summary),
        *(Paragraph(sentence) for sentence in shortage_sentences(gate)),
        *(replace(table, forms=EVERYWHERE - BRIEF) for table in _tables(gate.rows, alpha)),
        _brief_table(gate),
        Command(
            document.run.command_line or "",
            f"{blocks} in random order on one host; a benchmark fails where its whole equivalence "
            f"interval lies beyond {gate.min_effect:g} %. Run {document.run.id}; again:",
            forms=EVERYWHERE - BRIEF,
        ),
    ]
    slower: dict[str, list[str]] = {}
    for name, line in gate.bisect.items():
        slower.setdefault(line, []).append(name)
    parts += (
        Command(line, f"Which {_commits(names)} made {names_of(names)} slower?")
        for line, names in itertools.islice(slower.items(), ALIKE_SHOWN)
    )
    if document.warnings:
        lines = tuple(f"{one.summary}; {one.hint}" for one in document.warnings)
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
    """Return how much an undecided gate measured and needs, and what to do; nothing if decided."""
    shortage = gate.shortage
    if shortage is None:
        return ()
    measured = counted(shortage.blocks, "block")
    took = waiting_time(shortage.blocks * shortage.block_s)
    if shortage.needed_blocks is None or shortage.needed_s is None:
        what = (
            f"Not decided after {measured} ({took}), and no forecast: the change is close to "
            f"{option('min_effect')} {gate.min_effect:g}, or trials vary too much."
        )
        more = f"a larger {option('budget')}"
    else:
        least = "at least " if shortage.is_lower_bound else "about "
        what = (
            f"Measured too little: {measured} ({took}); needs {least}{shortage.needed_blocks} "
            f"blocks, {'' if shortage.is_lower_bound else 'about '}"
            f"{waiting_time(shortage.needed_s)}."
        )
        more = f"{option('budget')} {math.ceil(_SPARE_TIME * shortage.needed_s)}"
    fails = f" {option('fail_undecided')} fails such a gate." if gate.passed else ""
    return (
        what,
        f"Run again with {more}, make the benchmark shorter (a block takes "
        f"{duration(shortage.block_s)}), or raise {option('min_effect')}.{fails}",
    )


def _commits(benchmarks: Sequence[str]) -> str:
    return "commit" if len(benchmarks) == 1 else "commits"


def _tables(rows: Sequence[GateRow], alpha: float) -> Iterator[Part]:
    order = list(OUTCOMES)
    cells = [_row(row, alpha) for row in sorted(rows, key=lambda row: order.index(row.outcome))]
    lengths = (sum(len(text(cell)) + 3 for cell in row.values()) for row in cells)
    room = bisect.bisect_right(list(itertools.accumulate(lengths)), _ROOM)
    passing = sum(row.outcome == "passes" for row in rows)
    unfolded = len(rows) if passing <= _SHOWN_PASSES else len(rows) - passing
    if first := cells[: min(room, unfolded)]:
        yield Table(*headed(first))
    if folded := cells[unfolded:room]:
        title = f"{passing} benchmarks pass"
        yield Section(title, (Table(*headed(folded)),), folded=True)
    if len(rows) > room:
        yield Paragraph(
            f"{len(rows) - room} more are in the document that {option('json')} writes."
        )


def _brief_table(gate: GateResult) -> Table:
    """Build the table of a brief screen: what must be acted on, and the interval that decided."""
    rows, order = gate.rows, list(OUTCOMES)
    first = sorted(rows, key=lambda row: order.index(row.outcome))[:_SHOWN_PASSES]
    more = len(rows) - len(first)
    cells = (
        {
            "benchmark:name": row.benchmark,
            "baseline:number": _median(row.baseline_median, row.metric),
            "candidate:number": _median(row.candidate_median, row.metric),
            "change between": interval_text(row.equivalence_ci, "open"),
            "outcome": OUTCOMES[row.outcome],
        }
        for row in first
    )
    notes = [f"A benchmark fails where its whole change lies above {gate.min_effect:g} %."]
    if more:
        notes.append(f"{counted(more, 'more benchmark')}: {option('verbose')}")
    return Table(*headed(cells), notes=tuple(notes), forms=BRIEF)


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
        "outcome": OUTCOMES[row.outcome],
    }


def _equivalence(row: GateRow, alpha: float) -> str:
    """Return the interval that decided, with its coverage."""
    interval, level = row.equivalence_ci, row.equivalence_level
    shared = max(alpha, row.level) * level / row.level
    over = " over the benchmarks reported" if is_shared(level, shared) else ""
    return f"{interval_text(interval, 'open')} ({percentage(1.0 - shared)}{over})"


def _median(value: float | None, metric: str) -> str:
    return "timed out" if value is None else metric_value(value, metric)
