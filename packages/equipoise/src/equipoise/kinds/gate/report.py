"""Show the outcome of a gate in pull requests, in job summaries and on the screen."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from equipoise.kinds.gate.counts import (
    cost_text,
    counters_sentences,
    counts_question,
    outcome_label,
)
from equipoise.kinds.gate.terms import GateDocument, GateOutcome, GateResult, GateRow
from equipoise.model.quantities import counted, duration, names_of
from equipoise.report.document import (
    BRIEF_TERMINAL,
    EVERYWHERE,
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
from equipoise.report.news import Badge, Change, Tone
from equipoise.report.renderers.markdown import text
from equipoise.report.units import (
    estimate_and_interval,
    interval_text,
    percent_change,
    percentage,
    shares_alpha,
    significant,
    waiting_time,
)
from equipoise.shared.spelling import option

OUTCOME_LABELS: dict[GateOutcome, str] = {
    "slower": "❌ slower",
    "undecided": "❔ undecided",
    "passes": "✅ passes",
}
"""Label of each outcome. Rows have this order: outcomes that need action come first."""
_EXACT = "exact"
"""Text in place of an interval if all counts of each revision are equal."""
_JOIN_NOTE = (
    "All outcomes `slower` of a benchmark hold together. Each interval is that of its line alone."
)
_TONES: dict[GateOutcome, Tone] = {
    "slower": "slower",
    "undecided": "undecided",
    "passes": "equivalent",
}
"""Colour of each outcome on a site."""
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
        if gate.counted_by:
            return counts_question(gate)
        return (
            f"Is {gate.candidate.typed_name} slower than {gate.baseline.typed_name}, by more than "
            f"{gate.min_effect:g} %?"
        )

    def title(self, document: GateDocument, statements: Sequence[Statement]) -> Title | None:
        """Return the outcome, and how many blocks an undecided gate needs."""
        gate = document.gate
        return None if gate is None else (_title(gate), shortage_sentences(gate))

    def scope_of(self, document: GateDocument) -> str | None:
        """Return the runners of a join, about which alone it claims something, or the links."""
        gate = document.gate
        if gate is not None and gate.relinking is not None:
            return "across links and processes, in this campaign on this host"
        if gate is None or not gate.runners:
            return None
        return f"across processes, on {counted(len(gate.runners), 'runner')} and no other"

    def tables(self, document: GateDocument) -> Sequence[Table]:
        """Return the table of a join; its slices have the conditions."""
        gate = document.gate
        if gate is None or not gate.runners:
            return ()
        lines = (
            line
            for row in _ordered_rows(gate.rows)
            for line in _cells_of_row(gate, row, _alpha(document))
        )
        return (_table_of(gate.rows, lines),)

    def brief_tables(self, document: GateDocument) -> Sequence[Table]:
        """Return the table of a join with one line for each benchmark."""
        gate = document.gate
        if gate is None or not gate.runners:
            return ()
        return (replace(_brief_table(gate), forms=EVERYWHERE),)

    def changes(self, document: GateDocument) -> Iterator[Change]:
        """Yield the benchmarks that got slower."""
        gate = document.gate
        if gate is None:
            return
        for row in gate.rows:
            if row.outcome == "slower":
                key = f"{document.run.id} {row.benchmark}"
                yield Change(key, f"{_revisions(gate)}: {row.summary}", "slower")

    def badges(self, document: GateDocument) -> Iterator[Badge]:
        """Yield a badge for each benchmark."""
        gate = document.gate
        if gate is None:
            return
        for row in gate.rows:
            message = f"{_revisions(gate)}: {_outcome_with_interval(row)}"
            yield Badge(row.benchmark, message, _TONES[row.outcome])


def _revisions(gate: GateResult) -> str:
    return f"{gate.baseline.typed_name} to {gate.candidate.typed_name}"


def _outcome_with_interval(row: GateRow) -> str:
    """Return the outcome, the estimate unless it passes, and half the width of the interval."""
    words = {"passes": "no slower", "slower": "slower", "undecided": "undecided"}[row.outcome]
    low, high = row.ratio_ci
    if row.ratio is None or low is None or high is None:
        return words
    estimate = "" if row.outcome == "passes" else f" {percent_change(row.ratio)}"
    return f"{words},{estimate} ±{significant(50.0 * (high - low), 2)} %"


def _title(gate: GateResult) -> str:
    outcome = "passes" if gate.passed else "fails"
    if gate.passed and (gate.undecided_count or gate.failures):
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
    alpha = _alpha(document)
    parts: list[Part] = [
        Paragraph(title, "heading"),
        Paragraph(gate.summary),
        *(Paragraph(sentence) for sentence in counters_sentences(gate)),
        *(Paragraph(sentence) for sentence in _relinking_sentences(gate)),
        *_duet_paragraphs(document),
        *(Paragraph(sentence) for sentence in _function_sentences(gate)),
        *(Paragraph(sentence) for sentence in shortage_sentences(gate)),
        *_failed_tables(gate),
        *(replace(table, forms=NOT_BRIEF) for table in _row_tables(gate, alpha)),
        _brief_table(gate),
        Command(
            document.run.command_line or "",
            f"{blocks} in random order on {_hosts_phrase(gate)}; a benchmark fails if its whole "
            f"equivalence interval is beyond {gate.min_effect:g} %. To repeat run "
            f"{document.run.id}:",
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


def _relinking_sentences(gate: GateResult) -> Iterator[str]:
    """Yield across what the outcomes hold, if each block had links of its own."""
    if gate.relinking is not None:
        count = max((row.blocks for row in gate.rows), default=0)
        yield (
            f"Across links: {gate.relinking.linker.partition(' (')[0]} linked each revision "
            f"{counted(count, 'time')}, each time by another layout, which both share."
        )


def _duet_paragraphs(document: GateDocument) -> Iterator[Paragraph]:
    """Yield on which CPUs both revisions ran at once, and what the pilot found."""
    if document.duet is not None:
        summary = document.duet.summary
        yield Paragraph(f"{summary[0].upper()}{summary[1:]}.")


def _function_sentences(gate: GateResult) -> Iterator[str]:
    """Yield how functions were measured, if both revisions shared processes."""
    if gate.functions is not None:
        layout = "" if gate.relinking is None else " in one layout"
        yield (
            f"Each block is a fresh process for each function, with {gate.functions.library} of "
            f"both revisions{layout}, called in turns."
        )


def _brief_last_line(document: GateDocument) -> str:
    """Return the last line of a brief terminal: the run, its warnings, and how to see more."""
    run, count = document.run, len(document.warnings)
    warnings = f" and {counted(count, 'warning')}" if count else ""
    blocks = counted(run.blocks, "block")
    return f"run {run.id}: {blocks} (more{warnings}: {option('verbose')})"


def _outcome_heading(gate: GateResult) -> str:
    undecided = gate.undecided_count
    if not gate.passed:
        has_slower_row = any(row.outcome == "slower" for row in gate.rows)
        return "❌ fails" if has_slower_row or not undecided else "❌ fails: undecided"
    if gate.failures:
        return f"❗ {counted(len(gate.failures), 'benchmark')} failed"
    if undecided == 0:
        return "✅ passes"
    if undecided == len(gate.rows):
        return "❔ undecided"
    return f"❔ {undecided} of {len(gate.rows)} undecided"


def shortage_sentences(gate: GateResult) -> tuple[str, ...]:
    """Return the problem of an undecided gate, and a hint; empty if the gate is decided."""
    shortage = gate.shortage
    if gate.runners and gate.undecided_count:
        return _shortage_of_join(gate)
    if shortage is None:
        return ()
    block_text = counted(shortage.blocks, "block")
    spent_time = waiting_time(shortage.blocks * shortage.block_s)
    if not shortage.blocks:
        unmeasured = sum(not row.blocks for row in gate.rows)
        problem = (
            f"Measured too little: {shortage.undecided} of {len(gate.rows)} benchmarks are "
            f"undecided, and {unmeasured} of them {'was' if unmeasured == 1 else 'were'} not "
            "measured."
        )
        action = f"Run again with a larger {option('budget')}"
    elif shortage.needed_blocks is None or shortage.needed_s is None:
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


def _alpha(document: GateDocument) -> float:
    """Return the level that all rows share; the level of one row may be smaller."""
    alphas = [comparison.alpha for comparison in document.comparisons]
    gate = document.gate
    return max(alphas, default=(gate and gate.alpha) or 0.0)


def _ordered_rows(rows: Sequence[GateRow]) -> list[GateRow]:
    outcomes = list(OUTCOME_LABELS)
    return sorted(rows, key=lambda row: outcomes.index(row.outcome))


def _table_of(rows: Sequence[GateRow], lines: Iterable[Mapping[str, str]]) -> Table:
    notes = (_JOIN_NOTE,) if any(row.hosts for row in rows) else ()
    return Table(*columns_and_rows(lines), notes=notes)


def _hosts_phrase(gate: GateResult) -> str:
    return f"{len(gate.runners)} runners" if len(gate.runners) > 1 else "one host"


def _shortage_of_join(gate: GateResult) -> tuple[str, ...]:
    count, verb = gate.undecided_count, "is" if gate.undecided_count == 1 else "are"
    fail_sentence = (
        f" With {option('fail_undecided')}, an undecided gate fails." if gate.passed else ""
    )
    return (
        f"{count} of {counted(len(gate.rows), 'benchmark')} {verb} undecided after these slices.",
        f"Run the jobs again with a larger {option('budget')}, or raise {option('min_effect')}."
        f"{fail_sentence}",
    )


def _failed_tables(gate: GateResult) -> Iterator[Table]:
    """Build the table of the benchmarks that failed, which have no row."""
    shown = itertools.islice(gate.failures.items(), _MAX_UNFOLDED_PASSES)
    lines = [{"benchmark:name": name, "failed:name": reason} for name, reason in shown]
    if lines:
        hidden_count = len(gate.failures) - len(lines)
        notes = (f"{counted(hidden_count, 'more benchmark')} failed.",) if hidden_count else ()
        yield Table(*columns_and_rows(lines), notes=notes)


def _row_tables(gate: GateResult, alpha: float) -> Iterator[Part]:
    """Build the table of the rows; many passing rows are folded."""
    rows = gate.rows
    has_forecast = any(row.forecast is not None for row in rows)
    cells = [
        tuple(_cells_of_row(gate, row, alpha, has_forecast=has_forecast))
        for row in _ordered_rows(rows)
    ]
    # The separator between two cells in Markdown has three characters.
    lengths = (
        sum(len(text(cell)) + 3 for line in lines for cell in line.values()) for lines in cells
    )
    shown_count = bisect.bisect_right(list(itertools.accumulate(lengths)), _MAX_ROW_CHARACTERS)
    pass_count = sum(row.outcome == "passes" for row in rows)
    unfolded_count = len(rows) if pass_count <= _MAX_UNFOLDED_PASSES else len(rows) - pass_count
    if unfolded_cells := cells[: min(shown_count, unfolded_count)]:
        yield _table_of(rows, itertools.chain.from_iterable(unfolded_cells))
    if folded_cells := cells[unfolded_count:shown_count]:
        title = f"{pass_count} benchmarks pass"
        table = _table_of(rows, itertools.chain.from_iterable(folded_cells))
        yield Section(title, (table,), folded=True)
    if len(rows) > shown_count:
        yield Paragraph(
            f"{len(rows) - shown_count} more are in the document that {option('json')} writes."
        )


def _brief_table(gate: GateResult) -> Table:
    """Build the table of a brief terminal; rows that need action come first."""
    shown_rows = _ordered_rows(gate.rows)[:_MAX_UNFOLDED_PASSES]
    hidden_count = len(gate.rows) - len(shown_rows)
    has_forecast = any(row.forecast is not None for row in shown_rows)
    cells = (
        _brief_cells_of_join(gate, row)
        if gate.runners
        else _brief_cells(gate, row, has_forecast=has_forecast)
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


def _brief_cells(gate: GateResult, row: GateRow, *, has_forecast: bool) -> Mapping[str, str]:
    return {
        "benchmark:name": row.benchmark,
        **_medians(row),
        "change between": _EXACT if row.exact else interval_text(row.equivalence_ci, "open"),
        **(_needed_time(row) if has_forecast else {}),
        "outcome": outcome_label(gate, row, OUTCOME_LABELS),
    }


def _brief_cells_of_join(gate: GateResult, row: GateRow) -> Mapping[str, str]:
    slower_on = [host.host for host in row.hosts if host.outcome == "slower"]
    if row.mean_outcome == "slower":
        slower_on.insert(0, "the mean")
    return {
        "benchmark:name": row.benchmark,
        "mean change between": interval_text(row.equivalence_ci, "open"),
        "slower on": names_of(slower_on) if slower_on else "",
        "outcome": outcome_label(gate, row, OUTCOME_LABELS),
    }


def _cells_of_row(
    gate: GateResult, row: GateRow, alpha: float, *, has_forecast: bool = False
) -> Iterator[Mapping[str, str]]:
    """Yield the line of a row; in a join a line for all runners, the mean and each runner."""
    if not row.hosts:
        yield _line(gate, row, alpha, has_forecast=has_forecast)
        return
    empty = dict.fromkeys(("baseline:number", "candidate:number", "change:number"), "")
    empty |= dict.fromkeys(("interval", "equivalence interval"), "")
    names = {"benchmark:name": row.benchmark, "runner:name": f"any of {len(row.hosts)}"}
    yield {**names, **empty, "outcome": outcome_label(gate, row, OUTCOME_LABELS)}
    if row.mean_outcome is not None and len(row.hosts) > 1:
        mean = _line(gate, replace(row, outcome=row.mean_outcome), alpha)
        medians = {"baseline:number": "", "candidate:number": ""}
        yield _line_of_runner(f"mean of {len(row.hosts)}", {**mean, **medians})
    for host in row.hosts:
        line = _line(
            gate,
            replace(
                row,
                ratio=host.ratio,
                ratio_ci=host.ratio_ci,
                equivalence_ci=host.equivalence_ci,
                baseline_median=host.baseline_median,
                candidate_median=host.candidate_median,
                blocks=host.blocks,
                outcome=host.outcome,
            ),
            alpha,
        )
        difference = f"; {host.differs} than the others" if host.differs else ""
        yield _line_of_runner(host.host, {**line, "outcome": line["outcome"] + difference})


def _medians(row: GateRow) -> Mapping[str, str]:
    medians = {"baseline": row.baseline_median, "candidate": row.candidate_median}
    return {
        f"{role}:number": cost_text(median, row.metric) if row.blocks else UNKNOWN
        for role, median in medians.items()
    }


def _line_of_runner(name: str, line: Mapping[str, str]) -> Mapping[str, str]:
    return {"benchmark:name": "", "runner:name": name, **dict(list(line.items())[1:])}


def _line(
    gate: GateResult, row: GateRow, alpha: float, *, has_forecast: bool = False
) -> Mapping[str, str]:
    change, interval = estimate_and_interval(
        row.ratio, row.ratio_ci, unknown=UNKNOWN, unlimited="open"
    )
    return {
        "benchmark:name": row.benchmark,
        **_medians(row),
        "change:number": change,
        "interval": _EXACT if row.exact else interval,
        "equivalence interval": _EXACT if row.exact else _equivalence_interval(row, alpha),
        **(_needed_time(row) if has_forecast else {}),
        "outcome": outcome_label(gate, row, OUTCOME_LABELS),
    }


def _equivalence_interval(row: GateRow, alpha: float) -> str:
    """Return the interval that decided the outcome, with its coverage."""
    interval, level = row.equivalence_ci, row.equivalence_level
    # The level of a row is a part of alpha, which all rows share.
    shared_level = max(alpha, row.significance_level) * level / row.significance_level
    scope = " over the benchmarks reported" if shares_alpha(level, shared_level) else ""
    return f"{interval_text(interval, 'open')} ({percentage(1.0 - shared_level)}{scope})"
