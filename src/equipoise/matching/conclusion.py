"""What a match, its balance and a search came to, as a conclusion for every form of a report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from equipoise.matching.balance_table import HEADINGS, cells
from equipoise.matching.balance_words import (
    balance_words,
    dropped_words,
    is_balanced,
    smallest_words,
    tests_words,
    warnings,
)
from equipoise.matching.effect_words import (
    Difference,
    effect_words,
    error_words,
    estimate_cells,
    matched_difference,
    naively,
)
from equipoise.matching.match import MatchResult
from equipoise.matching.stratified import MatchByResult
from equipoise.model.conclusion import Cell, Conclusion
from equipoise.model.findings import FindingTable
from equipoise.model.quantities import amount

if TYPE_CHECKING:
    from equipoise.matching.balance import Balance
    from equipoise.matching.gen_match import GenMatchResult

MOST_STRATA = 50
"""So many rows are read; a page of all may be too large to send."""
_HIDDEN = (
    "Matching makes units comparable in what was measured; what nobody measured it cannot "
    "balance. docs/matching.md, docs/matching.md and docs/genmatch.md have each formula and its "
    "source."
)
_OF_THE_SEARCH = (
    "The search itself counts each row in its Kolmogorov-Smirnov tests as often as it is in a "
    "pair, whatever the pair weighs (docs/genmatch.md): its smallest p-value may be another than "
    "that of the balance, which weighs them."
)


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked of a table."""

    source: str
    treatment: str
    outcome: str | None
    method: tuple[str, ...]
    """How units were matched, a sentence each."""
    again: str
    """The command that asks it again."""


def match_conclusion(
    result: MatchResult, balance: Balance, naive: Difference | None, question: Question
) -> Conclusion:
    """Put a match into words: the effect if there is an outcome, else how alike its pairs are."""
    effect = matched_difference(result)
    beside = [naively(naive)] if naive is not None else []
    if effect is not None:
        beside.append(balance_words(balance))
    return Conclusion(
        title=_title(question),
        badge="matched",
        tone=_tone(balance, effect),
        words=balance_words(balance)
        if effect is None
        else effect_words(effect, question.outcome, question.treatment),
        estimate=estimate_cells(effect),
        beside=(*beside, dropped_words(result)),
        facts=(("Table", question.source), *result.facts()),
        tables=(*_strata_table(result), _balance_table(balance)),
        method=(*question.method, *error_words(result), tests_words(balance), _HIDDEN),
        warnings=tuple(warnings(result, balance)),
        again=question.again,
        numbers=(*_effect_numbers(effect, naive, question), *_balance_numbers(balance)),
    )


def balance_conclusion(
    balance: Balance, result: MatchResult | None, question: Question
) -> Conclusion:
    """Put the balance of covariates into words."""
    matched = () if result is None else (dropped_words(result),)
    return Conclusion(
        title=_title(question),
        badge="balance",
        tone=_tone(balance, None),
        words=balance_words(balance),
        estimate=None,
        beside=(smallest_words(balance), *matched),
        facts=(("Table", question.source), *(() if result is None else result.facts())),
        tables=(_balance_table(balance),),
        method=(*question.method, tests_words(balance), _HIDDEN),
        warnings=tuple(warnings(result, balance)),
        again=question.again,
        numbers=tuple(_balance_numbers(balance)),
    )


def search_conclusion(
    found: GenMatchResult,
    effect: MatchResult | None,
    balance: Balance,
    naive: Difference | None,
    question: Question,
) -> Conclusion:
    """Put a search for weights into words: the effect by them if there is an outcome."""
    difference = None if effect is None else matched_difference(effect)
    smallest, worst = smallest_words(balance), balance_words(balance)
    headline = (
        smallest
        if difference is None
        else effect_words(difference, question.outcome, question.treatment)
    )
    beside = [] if difference is None else [smallest]
    if naive is not None:
        beside.insert(0, naively(naive))
    matches = found.matches if effect is None else effect
    weights = FindingTable(
        "Weights of the standardised covariates",
        ("covariate", "weight"),
        tuple(
            (name, f"{weight:.6g}") for name, weight in zip(found.names, found.weights, strict=True)
        ),
    )
    return Conclusion(
        title=_title(question),
        badge="genetic search",
        tone=_tone(balance, difference),
        words=headline,
        estimate=estimate_cells(difference),
        beside=(*beside, worst, dropped_words(matches)),
        facts=(
            ("Table", question.source),
            *(effect.facts() if effect is not None else ()),
            *(one for one in found.facts() if effect is None or one not in effect.facts()),
        ),
        tables=(_balance_table(balance), weights),
        method=(
            *question.method,
            *(() if effect is None else error_words(effect)),
            tests_words(balance),
            _OF_THE_SEARCH,
            _HIDDEN,
        ),
        warnings=tuple(warnings(matches, balance)),
        again=question.again,
        numbers=(
            *_effect_numbers(difference, naive, question),
            *_balance_numbers(balance),
            *_weight_numbers(found),
        ),
    )


def _title(question: Question) -> str:
    return f"{question.treatment} in {question.source}"


def _tone(balance: Balance, effect: Difference | None) -> str:
    """Of an effect, whether it is shown; else whether the covariates are balanced."""
    good = is_balanced(balance) if effect is None else effect.is_shown
    return "equivalent" if good else "undecided"


def _balance_table(balance: Balance) -> FindingTable:
    rows, name = [], ""
    for row in cells(balance):
        name = row[0] or name
        rows.append((name, *row[1:]))
    return FindingTable("Balance", ("covariate", "matching", *HEADINGS[2:]), tuple(rows))


def _strata_table(result: MatchResult) -> Iterator[FindingTable]:
    if not isinstance(result, MatchByResult):
        return
    shown = sorted(result.strata, key=lambda one: -one.n)[:MOST_STRATA]
    more = len(result.strata) - len(shown)
    yield FindingTable(
        "Strata",
        (", ".join(result.by), "rows", "treated", "matched", "dropped", "estimate"),
        tuple(
            (
                "/".join(str(value) for value in one.values),
                f"{one.n:,}",
                f"{one.n_treated:,}",
                "skipped" if one.skipped else f"{one.n_weighted:.6g}",
                f"{one.n_dropped:,}",
                "–" if one.estimate is None else amount(one.estimate),
            )
            for one in shown
        ),
        (f"The largest of them; --json has the {more:,} others too.",) if more else (),
    )


def _effect_numbers(
    effect: Difference | None, naive: Difference | None, question: Question
) -> Iterator[dict[str, Cell]]:
    for when, one in (("before", naive), ("after", effect)):
        if one is not None:
            low, high = one.interval or (None, None)
            yield {
                "kind": "effect",
                "name": question.outcome,
                "when": when,
                "estimate": one.value,
                "low": low,
                "high": high,
            }


def _balance_numbers(balance: Balance) -> Iterator[dict[str, Cell]]:
    for row in balance.rows():
        name, when, *values = row.items()
        yield {"kind": "covariate", "name": name[1], "when": when[1], **dict(values)}


def _weight_numbers(found: GenMatchResult) -> Iterator[dict[str, Cell]]:
    for name, weight in zip(found.names, found.weights, strict=True):
        yield {"kind": "weight", "name": name, "weight": float(weight)}
