"""A match, the balance of its covariates, and a search for weights as documents."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from equipoise_matching.matching.match import MANY_WITHOUT_NEIGHBORS, MatchResult
from equipoise_matching.matching.stratified import MatchByResult
from equipoise_matching.matching.units import power_of_two
from equipoise_matching.matching.univariate import Moments, welch_interval
from equipoise.model.quantities import amount, listed
from equipoise.model.record import CampaignWarning
from equipoise.report.document import (
    SCREEN,
    UNKNOWN,
    WRITTEN,
    Answer,
    Claim,
    Column,
    Document,
    Facts,
    Figures,
    NumberRow,
    Origin,
    Part,
    Section,
    Table,
    Warnings,
    computation_parts,
    headed,
)
from equipoise.shared.numbers import signed_amount

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure
    from equipoise_matching.matching.balance import Balance, SmallestP
    from equipoise_matching.matching.gen_match import GenMatchResult
    from equipoise_matching.matching.univariate import UnivariateBalance

MOST_FIGURES = 3
"""Number of covariates with figures of their own: those least alike in distribution."""
_COMPARABLE = "comparable units"
_ALL_ROWS = "all rows as they are"






def match_document(
    result: MatchResult, balance: Balance, naive: Difference | None, question: MatchQuestion
) -> Document:
    """Build the document of a match: its effect, or without an outcome how alike its pairs are."""
    smallest = smallest_p_sentence(balance)
    return _document(
        "matched",
        question,
        balance,
        result,
        naive,
        sentences=(balance_sentence(balance), smallest),
        facts=result.facts(),
        tables=(*_strata_table(result), replace(balance_table(balance), notes=(smallest,))),
    )


def balance_document(
    balance: Balance, result: MatchResult | None, question: MatchQuestion
) -> Document:
    """Build the document of the balance of covariates."""
    return _document(
        "balance",
        question,
        balance,
        result,
        sentences=(balance_sentence(balance), smallest_p_sentence(balance)),
        facts=() if result is None else result.facts(),
        tables=(balance_table(balance),),
    )


def search_document(
    search: GenMatchResult,
    result: MatchResult | None,
    balance: Balance,
    naive: Difference | None,
    question: MatchQuestion,
) -> Document:
    """Build the document of a search for weights, with the effect by them if there is an outcome.

    ``result`` is the match by the weights; ``None`` without an outcome.
    """
    facts = [] if result is None else result.facts()
    weights = zip(search.names, search.weights.tolist(), strict=True)
    rows = ({"covariate:name": name, "weight:number": f"{weight:.6g}"} for name, weight in weights)
    weights_table = Table(*headed(rows), title="Weights of the standardised covariates")
    return _document(
        "genetic search",
        question,
        balance,
        search.matches if result is None else result,
        naive,
        sentences=(smallest_p_sentence(balance), balance_sentence(balance)),
        facts=(*facts, *(fact for fact in search.facts() if fact not in facts)),
        tables=(weights_table, balance_table(balance)),
        search=search,
    )


def _document(
    badge: str,
    question: MatchQuestion,
    balance: Balance,
    matches: MatchResult | None,
    naive: Difference | None = None,
    *,
    sentences: tuple[str, str],
    facts: Sequence[tuple[str, str]],
    tables: Sequence[Table],
    search: GenMatchResult | None = None,
) -> Document:
    """Put the parts of every document on matching in their order.

    ``sentences`` are on the balance; without an effect the first of them is the answer.
    """
    effect = None if matches is None else matched_difference(matches)
    text, *remarks = sentences
    estimate, interval = "", ""
    if effect is not None and matches is not None:
        estimate = signed_amount(effect.value)
        interval = f"95 % interval {_signed_interval(effect.interval)}"
        text = effect_sentence(effect, question.outcome, question.treatment, matches.estimand)
        remarks = list(sentences)
    if naive is not None:
        remarks.insert(0, naive_sentence(naive))
    if matches is not None:
        remarks += [dropped_sentence(matches), effective_sentence(matches)]
    remarks += question.notes
    claim = Claim(
        badge=badge,
        tone=_tone(balance, effect),
        text=text,
        estimate=estimate,
        interval=interval,
        remarks=tuple(remarks),
    )

    def figures() -> Iterator[Figure]:
        yield from _effect_figures(effect, naive, question)
        yield from _balance_figures(balance, search)

    method = (
        *question.method,
        *_error_sentences(matches),
        _tests_sentence(balance),
        *([] if search is None else [_SEARCH_WEIGHTS]),
        _LIMITS,
    )
    warnings = tuple(match_warnings(matches, balance))
    rests_on = Facts((("Table", question.source), *facts))
    parts: tuple[Part, ...] = (
        Answer("", claims=(claim,), warnings=len(warnings)),
        Figures(figures),
        replace(rests_on, forms=SCREEN),
        *tables,
        *([Warnings(warnings)] if warnings else []),
        Section("What it rests on", (rests_on,), forms=WRITTEN),
        *computation_parts(method, question.command),
    )
    return Document(
        name=badge,
        title=f"{question.treatment} in {question.source}",
        parts=parts,
        numbers=(
            *_effect_numbers(effect, naive, question),
            *_balance_numbers(balance),
            *_weight_numbers(search),
        ),
        origin=Origin(f"{_asked(question, search)} From {question.source}", question.command),
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
    worst = _worst(balance.variables, balance.before if balance.after is None else balance.after)
    return "equivalent" if worst is not None and worst[1] <= MATTERS_PERCENT else "undecided"
























def _effect_figures(
    effect: Difference | None, naive: Difference | None, question: MatchQuestion
) -> Iterator[Figure]:
    """Draw the difference of all rows and that among comparable units."""
    from equipoise_matching.charts.estimates import Estimate, estimates
    from equipoise.figures.gallery import Figure

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
    from equipoise.figures import balance as charts
    from equipoise.figures.gallery import Figure

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


