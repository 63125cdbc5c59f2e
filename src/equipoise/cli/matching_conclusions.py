"""What ``match``, ``balance`` and ``genmatch`` found, with their figures, ready for a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.cli.command_line import command_line
from equipoise.cli.matched_how import matched_how

if TYPE_CHECKING:
    from equipoise.cli.conclusion_forms import Told
    from equipoise.cli.matching_options import Asked
    from equipoise.matching.balance import Balance
    from equipoise.matching.conclusion import Question
    from equipoise.matching.effect_words import Difference
    from equipoise.matching.gen_match import GenMatchResult
    from equipoise.matching.match import MatchResult


def conclude_match(
    given: dict[str, Any], asked: Asked, result: MatchResult, balance: Balance
) -> Told:
    """A match with its effect."""
    from equipoise.cli.conclusion_forms import Told
    from equipoise.matching.conclusion import match_conclusion
    from equipoise.matching.effect_words import matched_difference
    from equipoise.matching.pictures import balance_figures, effect_figures

    question, naive = _question(given, asked, None), _naive(asked)
    effect = matched_difference(result)
    return Told(
        match_conclusion(result, balance, naive, question),
        lambda: (*effect_figures(effect, naive, question), *balance_figures(balance)),
    )


def conclude_balance(
    given: dict[str, Any], asked: Asked, result: MatchResult | None, balance: Balance
) -> Told:
    """The balance of covariates."""
    from equipoise.cli.conclusion_forms import Told
    from equipoise.matching.conclusion import balance_conclusion
    from equipoise.matching.pictures import balance_figures

    question = _question(given, asked, None)
    return Told(balance_conclusion(balance, result, question), lambda: balance_figures(balance))


def conclude_search(
    given: dict[str, Any],
    asked: Asked,
    found: GenMatchResult,
    effect: MatchResult | None,
    balance: Balance,
) -> Told:
    """A search for weights, with the effect by them."""
    from equipoise.cli.conclusion_forms import Told
    from equipoise.matching.conclusion import search_conclusion
    from equipoise.matching.effect_words import matched_difference
    from equipoise.matching.pictures import balance_figures, effect_figures, search_figures

    question, naive = _question(given, asked, found.seed), _naive(asked)
    difference = None if effect is None else matched_difference(effect)
    return Told(
        search_conclusion(found, effect, balance, naive, question),
        lambda: (
            *effect_figures(difference, naive, question),
            *search_figures(found),
            *balance_figures(balance),
        ),
    )


def _question(given: dict[str, Any], asked: Asked, seed: int | None) -> Question:
    from equipoise.matching.conclusion import Question

    treatment = given["treatment"] or given["formula"].partition("~")[0].strip()
    return Question(
        source=str(given["file"]),
        treatment=treatment,
        outcome=given.get("outcome"),
        method=tuple(matched_how(given, asked.covariates.names)),
        again=command_line(seed),
    )


def _naive(asked: Asked) -> Difference | None:
    if asked.outcome is None:
        return None
    from equipoise.matching.effect_words import naive_difference

    return naive_difference(asked.outcome, asked.covariates.treated, asked.weights)
