"""Pages of a match, of the balance of its covariates, and of a search for weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from equipoise.report.builders.analysis import answer_of, method_parts, table_of
from equipoise.report.document import (
    SCREEN,
    WRITTEN,
    Document,
    Facts,
    Figures,
    NumberRow,
    Origin,
    Part,
    Section,
    Warnings,
)
from equipoise_matching.matching.report import balance_report, match_report, search_report
from equipoise_matching.matching.wording import (
    MATTERS_PERCENT,
    Difference,
    MatchQuestion,
    matched_difference,
    most_different,
)
from equipoise_matching.report import Report

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure
    from equipoise_matching.matching.balance import Balance
    from equipoise_matching.matching.gen_match import GenMatchResult
    from equipoise_matching.matching.match import MatchResult
    from equipoise_matching.tables.matching import TableMatch

MOST_FIGURES = 3
"""Number of covariates with figures of their own: those least alike in distribution."""
_COMPARABLE = "comparable units"
_ALL_ROWS = "all rows as they are"


def table_document(match: TableMatch, command: str) -> Document:
    """Build the document of a match of a table, or of a search for weights and the match by them.

    ``command`` matches again.
    """
    question, balance, naive = match.question(), match.balance, match.naive
    if match.search is None:
        return match_document(match.among, balance, naive, question, command)
    effect = None if match.table.outcome is None else match.among
    return search_document(match.search, effect, balance, naive, question, command)


def match_document(
    result: MatchResult,
    balance: Balance,
    naive: Difference | None,
    question: MatchQuestion,
    command: str,
) -> Document:
    """Build the document of a match: its effect, or without an outcome how alike its pairs are."""
    report = match_report(result, balance, naive, question)
    return _document(report, question, balance, matched_difference(result), naive, None, command)


def balance_document(
    balance: Balance, result: MatchResult | None, question: MatchQuestion, command: str
) -> Document:
    """Build the document of the balance of covariates."""
    effect = None if result is None else matched_difference(result)
    report = balance_report(balance, result, question)
    return _document(report, question, balance, effect, None, None, command)


def search_document(
    search: GenMatchResult,
    result: MatchResult | None,
    balance: Balance,
    naive: Difference | None,
    question: MatchQuestion,
    command: str,
) -> Document:
    """Build the document of a search for weights, with the effect by them if there is an outcome.

    ``result`` is the match by the weights; ``None`` without an outcome.
    """
    effect = None if result is None else matched_difference(result)
    report = search_report(search, result, balance, naive, question)
    return _document(report, question, balance, effect, naive, search, command)


def _document(
    report: Report,
    question: MatchQuestion,
    balance: Balance,
    effect: Difference | None,
    naive: Difference | None,
    search: GenMatchResult | None,
    command: str,
) -> Document:
    """Put the parts of every document on matching in their order."""

    def figures() -> Iterator[Figure]:
        yield from _effect_figures(effect, naive, question)
        yield from _balance_figures(balance, search)

    rests_on = Facts(report.facts)
    tables = map(table_of, report.tables)
    parts: tuple[Part, ...] = (
        answer_of(report, _tone(balance, effect)),
        Figures(figures),
        replace(rests_on, forms=SCREEN),
        *(replace(table, forms=WRITTEN) if table.title == "Strata" else table for table in tables),
        *([Warnings(report.warnings)] if report.warnings else []),
        Section("What it rests on", (rests_on,), forms=WRITTEN),
        *method_parts(report, command),
    )
    return Document(
        name=report.badge,
        title=f"{question.treatment} in {question.source}",
        parts=parts,
        numbers=(
            *_effect_numbers(effect, naive, question),
            *_balance_numbers(balance),
            *_weight_numbers(search),
        ),
        origin=Origin(f"{_asked(question, search)} From {question.source}", command),
    )


def _asked(question: MatchQuestion, search: GenMatchResult | None) -> str:
    if question.outcome is not None:
        return f"What is the effect of {question.treatment} on {question.outcome}?"
    if search is not None:
        return f"Which weights match the groups of {question.treatment} best?"
    return f"How alike are the groups of {question.treatment}?"


def _tone(balance: Balance, effect: Difference | None) -> str:
    """Return whether the effect is shown, or without one whether the covariates are balanced."""
    if effect is not None:
        return "equivalent" if effect.excludes_zero else "undecided"
    worst = most_different(
        balance.variables, balance.before if balance.after is None else balance.after
    )
    return "equivalent" if worst is not None and worst[1] <= MATTERS_PERCENT else "undecided"


def _effect_figures(
    effect: Difference | None, naive: Difference | None, question: MatchQuestion
) -> Iterator[Figure]:
    """Draw the difference of all rows and that among comparable units."""
    from equipoise.figures.gallery import Figure
    from equipoise_matching.charts.estimates import Estimate, estimates

    rows = [
        Estimate(kind, kind, difference.value, difference.interval)
        for kind, difference in ((_ALL_ROWS, naive), (_COMPARABLE, effect))
        if difference is not None
    ]
    if rows:
        title = f"Effect of {question.treatment} on {question.outcome}"
        yield Figure(
            "effect",
            "Each row is one estimate with its 95 % interval; the line stands at no difference. "
            "The answer is the estimate among comparable units.",
            estimates(
                rows,
                (_COMPARABLE, _ALL_ROWS),
                unit=f"difference in {question.outcome}",
                title=title,
                notes=[],
                description=f"{title}: " + "; ".join(f"{row.label} {row.at:.4g}" for row in rows),
            ),
        )


def _balance_figures(balance: Balance, search: GenMatchResult | None) -> Iterator[Figure]:
    """Draw the course of a search, all covariates, the shares, and what differs most."""
    from equipoise.figures.gallery import Figure
    from equipoise_matching.charts import balance as charts

    if search is not None:
        yield Figure("course", charts.HOW_TO_READ_COURSE, search.plot())
        yield Figure("search", charts.HOW_TO_READ_VALUES, search.search_plot())
    yield Figure("balance", charts.HOW_TO_READ_LOVE_PLOT, balance.love_plot())
    of_two_values = balance.shares_plot()
    if of_two_values is not None:
        yield Figure("shares", charts.HOW_TO_READ_SHARES, of_two_values)
    for name in balance.most_different(MOST_FIGURES):
        densities = balance.density_plot(name)
        if densities is not None:
            yield Figure("distribution", charts.HOW_TO_READ_DENSITY, densities)
        yield Figure("quantiles", charts.HOW_TO_READ_QQ_PLOT, balance.qq_plot(name))


def _effect_numbers(
    effect: Difference | None, naive: Difference | None, question: MatchQuestion
) -> Iterator[NumberRow]:
    for when, difference in (("before", naive), ("after", effect)):
        if difference is not None:
            low, high = difference.interval or (None, None)
            row: NumberRow = {"kind": "effect", "name": question.outcome, "when": when}
            yield {**row, "estimate": difference.value, "low": low, "high": high}


def _balance_numbers(balance: Balance) -> Iterator[NumberRow]:
    for row in balance.rows():
        name, when, *values = row.items()
        yield {"kind": "covariate", "name": name[1], "when": when[1], **dict(values)}


def _weight_numbers(search: GenMatchResult | None) -> Iterator[NumberRow]:
    if search is not None:
        for name, weight in zip(search.names, search.weights.tolist(), strict=True):
            yield {"kind": "weight", "name": name, "weight": weight}
