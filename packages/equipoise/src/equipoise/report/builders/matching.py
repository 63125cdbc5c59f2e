"""Builds the documents of `equipoise_matching`: match, balance, search for weights, log.

- A match compares each treated row with control rows that have similar covariates. A search finds
  the weights of the covariates that give the best balance.
- The naive difference compares all treated rows with all control rows.
- A log has the runs of two versions, the baseline and the candidate, in no random order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from equipoise.model.quantities import counted
from equipoise.report.document import (
    BRIEF_TERMINAL,
    NOT_BRIEF,
    NOT_TERMINAL,
    UNKNOWN,
    VERBOSE_TERMINAL,
    Answer,
    Cell,
    Column,
    CsvRow,
    Document,
    Facts,
    Figures,
    Origin,
    Paragraph,
    Part,
    Section,
    Statement,
    Table,
    Warnings,
    columns_and_rows,
    computation_parts,
    full_and_brief,
    interval_cells,
)
from equipoise.shared.spelling import option
from equipoise_matching.matching.report import (
    balance_report,
    match_report,
    search_report,
    weights_table,
)
from equipoise_matching.matching.wording import (
    LARGE_DIFFERENCE_PERCENT,
    Difference,
    MatchQuestion,
    dropped_sentence,
    matched_difference,
    most_different,
    naive_sentence,
)
from equipoise_matching.observation.report import ROWS, STRATUM, observation_report
from equipoise_matching.observation.result import ObservationResult
from equipoise_matching.report import Report, TextTable
from equipoise_matching.warning import AnalysisWarning

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure
    from equipoise_matching.matching.balance import Balance
    from equipoise_matching.matching.gen_match import GenMatchResult
    from equipoise_matching.matching.match import MatchResult
    from equipoise_matching.tables.matching import TableMatch


def answer_with_color(report: Report, verdict: str) -> Answer:
    """Build the answer of a report in the colour of a verdict."""
    statement = Statement(
        badge=report.badge,
        color_verdict=verdict,
        text=report.text,
        estimate=report.estimate,
        interval=report.interval,
        remarks=report.remarks,
    )
    return Answer("", statements=(statement,), warning_count=len(report.warnings))


def answers_by_form(
    report: Report, verdict: str, brief_remarks: tuple[str, ...]
) -> tuple[Answer, Answer]:
    """Build the full answer, and an answer with ``brief_remarks`` for a brief terminal."""
    answer = answer_with_color(report, verdict)
    (statement,) = answer.statements
    # The sentence of the statement already has the estimate and its interval.
    brief_statement = replace(statement, remarks=brief_remarks, estimate="", interval="")
    return full_and_brief(answer, replace(answer, statements=(brief_statement,)))


def table_of(table: TextTable) -> Table:
    """Build a table: its first column has names, the next columns labels, the others numbers."""
    name_heading, *other_headings = table.headings
    columns = [Column(name_heading, "name")]
    for index, heading in enumerate(other_headings, start=1):
        columns.append(Column(heading, "label" if index < table.label_columns else "number"))
    return Table(tuple(columns), table.rows, title=table.title, notes=table.notes)


_MAX_BRIEF_ROWS = 10
"""Maximum number of covariates that a terminal shows without ``--verbose``."""
MAX_COVARIATES_WITH_FIGURES = 3
"""Maximum number of covariates with separate figures: the covariates that differ most."""
_MATCHED_LABEL = "comparable units"
"""Label of the estimate from matched rows in the figure of the effect."""
_ALL_ROWS_LABEL = "all rows as they are"
"""Label of the naive difference in this figure."""


def table_document(match: TableMatch, command: str) -> Document:
    """Build the document of a match, or of a search for weights with the best match.

    ``command`` is the command line that computes the result again.
    """
    question, balance, naive = match.question(), match.balance, match.naive
    if match.search is None:
        return match_document(match.array_match, balance, naive, question, command)
    result = None if match.table.outcome is None else match.array_match
    return search_document(match.search, result, balance, naive, question, command)


def match_document(
    result: MatchResult,
    balance: Balance,
    naive: Difference | None,
    question: MatchQuestion,
    command: str,
) -> Document:
    """Build the document of a match; without an outcome, the answer is about the balance."""
    report = match_report(result, balance, naive, question)
    effect = matched_difference(result)
    return _document(report, question, balance, command, result, effect=effect, naive=naive)


def balance_document(
    balance: Balance, result: MatchResult | None, question: MatchQuestion, command: str
) -> Document:
    """Build the document on the balance of covariates; ``result`` is the match, if any."""
    effect = None if result is None else matched_difference(result)
    report = balance_report(balance, result, question)
    return _document(report, question, balance, command, result, effect=effect)


def search_document(
    search: GenMatchResult,
    result: MatchResult | None,
    balance: Balance,
    naive: Difference | None,
    question: MatchQuestion,
    command: str,
) -> Document:
    """Build the document of a search for weights.

    ``result`` is the match with the best weights if there is an outcome, else ``None``.
    """
    effect = None if result is None else matched_difference(result)
    report = search_report(search, result, balance, naive, question)
    best_match = search.matches if result is None else result
    return _document(
        report, question, balance, command, best_match, effect=effect, naive=naive, search=search
    )


def _document(
    report: Report,
    question: MatchQuestion,
    balance: Balance,
    command: str,
    result: MatchResult | None,
    *,
    effect: Difference | None,
    naive: Difference | None = None,
    search: GenMatchResult | None = None,
) -> Document:
    """Build a document from a report; ``result`` is the match, if any."""

    def draw_figures() -> Iterator[Figure]:
        yield from _effect_figures(effect, naive, question)
        yield from _balance_figures(balance, search)

    facts = Facts(report.facts)
    tables = map(table_of, report.tables)
    remarks = (*_brief_remarks(naive, result), *question.notes)
    parts: tuple[Part, ...] = (
        *answers_by_form(report, _verdict_color_of_match(balance, effect), remarks),
        Figures(draw_figures),
        replace(facts, forms=VERBOSE_TERMINAL),
        *(
            replace(table, forms=NOT_TERMINAL if table.title == "Strata" else NOT_BRIEF)
            for table in tables
        ),
        *_brief_weights_table(search),
        _brief_balance_table(balance),
        *warning_parts(report.warnings),
        Section("What it rests on", (facts,), forms=NOT_TERMINAL),
        *computation_parts(report.method, command),
        _options_line(),
    )
    return Document(
        name=report.badge,
        title=f"{question.treatment} in {question.source}",
        parts=parts,
        csv_rows=(
            *_effect_rows(effect, naive, question),
            *_balance_rows(balance),
            *_weight_rows(search),
        ),
        origin=Origin(f"{_question_sentence(question, search)} From {question.source}", command),
    )


def _brief_remarks(naive: Difference | None, result: MatchResult | None) -> tuple[str, ...]:
    naive_remark = () if naive is None else (naive_sentence(naive),)
    dropped_remark = () if result is None else (dropped_sentence(result),)
    return (*naive_remark, *dropped_remark)


def _brief_weights_table(search: GenMatchResult | None) -> Iterator[Table]:
    if search is not None:
        weights = table_of(weights_table(search))
        yield replace(weights, max_rows=_MAX_BRIEF_ROWS, forms=BRIEF_TERMINAL)


def _brief_balance_table(balance: Balance) -> Table:
    rows: list[Mapping[str, Cell]] = []
    for index, name in enumerate(balance.variables):
        difference_before = _percent(abs(balance.before[index].sdiff))
        row: dict[str, Cell] = {"covariate:name": name, "differs before:number": difference_before}
        if balance.after is not None:
            row["after matching:number"] = _percent(abs(balance.after[index].sdiff))
        rows.append(row)
    note = "differs: the means of both groups, in percent of a standard deviation."
    return Table(
        *columns_and_rows(rows), notes=(note,), max_rows=_MAX_BRIEF_ROWS, forms=BRIEF_TERMINAL
    )


def _percent(value: float) -> str:
    return UNKNOWN if math.isnan(value) else f"{value:.1f} %"


def warning_parts(warnings: Sequence[AnalysisWarning]) -> Iterator[Part]:
    """Build the warnings of an analysis; a brief terminal has only the first warning."""
    if warnings:
        yield from full_and_brief(Warnings(tuple(warnings)), Warnings(tuple(warnings[:1])))
        if hidden_count := len(warnings) - 1:
            text = f"  {counted(hidden_count, 'more warning')}: {option('verbose')}"
            yield Paragraph(text, "dim", forms=BRIEF_TERMINAL)


def _options_line() -> Paragraph:
    text = f"more: {option('verbose')}, or the page of {option('report')}"
    return Paragraph(text, "dim", forms=BRIEF_TERMINAL)


def _question_sentence(question: MatchQuestion, search: GenMatchResult | None) -> str:
    if question.outcome is not None:
        return f"What is the effect of {question.treatment} on {question.outcome}?"
    if search is not None:
        return f"Which weights match the groups of {question.treatment} best?"
    return f"How alike are the groups of {question.treatment}?"


def _verdict_color_of_match(balance: Balance, effect: Difference | None) -> str:
    if effect is not None:
        return "equivalent" if effect.excludes_zero else "undecided"
    worst = most_different(
        balance.variables, balance.before if balance.after is None else balance.after
    )
    if worst is None:
        return "undecided"
    _, percent = worst
    return "equivalent" if percent <= LARGE_DIFFERENCE_PERCENT else "undecided"


def _effect_figures(
    effect: Difference | None, naive: Difference | None, question: MatchQuestion
) -> Iterator[Figure]:
    from equipoise.figures.gallery import Figure
    from equipoise_matching.charts.estimates import Mark, estimates

    rows = [
        Mark(kind, kind, difference.value, difference.interval)
        for kind, difference in ((_ALL_ROWS_LABEL, naive), (_MATCHED_LABEL, effect))
        if difference is not None
    ]
    if rows:
        title = f"Effect of {question.treatment} on {question.outcome}"
        yield Figure(
            "effect",
            "Each row is one estimate with its 95 % interval; the line marks no difference. "
            "The answer is the estimate among comparable units.",
            estimates(
                rows,
                (_MATCHED_LABEL, _ALL_ROWS_LABEL),
                unit=f"difference in {question.outcome}",
                title=title,
                notes=[],
                description=f"{title}: "
                + "; ".join(f"{row.label} {row.estimate:.4g}" for row in rows),
            ),
        )


def _balance_figures(balance: Balance, search: GenMatchResult | None) -> Iterator[Figure]:
    from equipoise.figures.gallery import Figure
    from equipoise_matching.charts import balance as charts

    if search is not None:
        yield Figure("course", charts.HOW_TO_READ_COURSE, search.plot())
        yield Figure("search", charts.HOW_TO_READ_VALUES, search.search_plot())
    yield Figure("balance", charts.HOW_TO_READ_LOVE_PLOT, balance.love_plot())
    # This chart has the covariates with two values, such as yes and no.
    shares_chart = balance.shares_plot()
    if shares_chart is not None:
        yield Figure("shares", charts.HOW_TO_READ_SHARES, shares_chart)
    for name in balance.most_different(MAX_COVARIATES_WITH_FIGURES):
        density_chart = balance.density_plot(name)
        if density_chart is not None:
            yield Figure("distribution", charts.HOW_TO_READ_DENSITY, density_chart)
        yield Figure("quantiles", charts.HOW_TO_READ_QQ_PLOT, balance.qq_plot(name))


def _effect_rows(
    effect: Difference | None, naive: Difference | None, question: MatchQuestion
) -> Iterator[CsvRow]:
    for when, difference in (("before", naive), ("after", effect)):
        if difference is not None:
            low, high = difference.interval or (None, None)
            row: CsvRow = {"kind": "effect", "name": question.outcome, "when": when}
            yield {**row, "estimate": difference.value, "low": low, "high": high}


def _balance_rows(balance: Balance) -> Iterator[CsvRow]:
    for row in balance.rows():
        (_, name), (_, when), *values = row.items()
        yield {"kind": "covariate", "name": name, "when": when, **dict(values)}


def _weight_rows(search: GenMatchResult | None) -> Iterator[CsvRow]:
    if search is not None:
        for name, weight in zip(search.names, search.weights.tolist(), strict=True):
            yield {"kind": "weight", "name": name, "weight": weight}


def observation_document(result: ObservationResult, command: str) -> Document:
    """Build the document on the effect of a change from a log; ``command`` may be empty."""
    report, question = observation_report(result), result.question
    facts = Section("What it rests on", (Facts(report.facts),), forms=NOT_BRIEF)
    parts: tuple[Part, ...] = (
        *answers_by_form(report, _verdict_color_of_log(result), report.remarks),
        Figures(lambda: _observed_figures(result)),
        *(replace(table_of(table), forms=NOT_BRIEF) for table in report.tables),
        *_brief_observation_parts(result, report),
        facts,
        *warning_parts(report.warnings),
        *computation_parts(report.method, command),
        _options_line(),
    )
    return Document(
        name="observed",
        title=f"{question.candidate} against {question.baseline}",
        parts=parts,
        csv_rows=(*_observed_effect_rows(result), *_observed_balance_rows(result)),
        origin=Origin(
            f"What does {question.candidate} change of {question.outcome}, against "
            f"{question.baseline}? From {question.source}",
            command,
        ),
    )


def _brief_observation_parts(result: ObservationResult, report: Report) -> Iterator[Part]:
    rows = (
        {
            "covariate:name": covariate.column,
            "differs before:number": _deviations_text(covariate.difference_before),
            "after matching:number": _deviations_text(covariate.difference_after),
        }
        for covariate in result.balance
    )
    if result.balance:
        note = "differs: the means of both versions, in standard deviations (sd)."
        yield Table(
            *columns_and_rows(rows), notes=(note,), max_rows=_MAX_BRIEF_ROWS, forms=BRIEF_TERMINAL
        )
    if result.strata is not None:
        (strata,) = (table_of(table) for table in report.tables if table.title == STRATUM)
        yield replace(strata, max_rows=_MAX_BRIEF_ROWS, forms=BRIEF_TERMINAL)
    placebos = tuple((f"placebo {placebo.kind}", placebo.summary) for placebo in result.placebos)
    row_counts = tuple((name, text) for name, text in report.facts if name == ROWS)
    yield Facts((*row_counts, ("about", result.scope), *placebos), forms=BRIEF_TERMINAL)


def _deviations_text(difference: float | None) -> str:
    return "unlimited" if difference is None else f"{difference:+.2f} sd"


def _observed_figures(result: ObservationResult) -> Iterator[Figure]:
    from equipoise.figures.gallery import Figure
    from equipoise_matching.charts.balance import HOW_TO_READ_LOVE_PLOT
    from equipoise_matching.charts.estimates import HOW_TO_READ_EFFECTS
    from equipoise_matching.observation.drawing import balance_chart, effects_chart

    how_to_read = HOW_TO_READ_EFFECTS.replace("{unit}", result.question.unit)
    yield Figure("effects", how_to_read, effects_chart(result))
    yield Figure("balance", HOW_TO_READ_LOVE_PLOT, balance_chart(result))


def _verdict_color_of_log(result: ObservationResult) -> str:
    if result.matched is None:
        return "undecided"
    effect = result.matched.effect
    if effect.interval is None or not effect.excludes_zero:
        return "undecided"
    if result.question.unit not in ("rows", "runs"):
        # Of other outcomes, such as an income, more is not worse.
        return "equivalent"
    return "slower" if effect.interval[0] > (0.0 if effect.ratio is None else 1.0) else "faster"


def _observed_effect_rows(result: ObservationResult) -> Iterator[CsvRow]:
    for name, _, effect in result.effects:
        yield {
            "kind": "effect",
            "name": name,
            **interval_cells("ratio", effect.ratio, effect.ratio_ci),
            **interval_cells("difference", effect.difference, effect.difference_ci),
        }


def _observed_balance_rows(result: ObservationResult) -> Iterator[CsvRow]:
    for covariate in result.balance:
        yield {
            "kind": "covariate",
            "name": covariate.column,
            "candidate_before": covariate.candidate_before,
            "baseline_before": covariate.baseline_before,
            "apart_before_sd": covariate.difference_before,
            "candidate_after": covariate.candidate_after,
            "baseline_after": covariate.baseline_after,
            "apart_after_sd": covariate.difference_after,
            "ks_before": covariate.ks_before,
            "ks_after": covariate.ks_after,
            "term": covariate.term,
            "term_apart_after_sd": covariate.term_after,
        }
