"""What ``match``, ``balance`` and ``genmatch`` found, as documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.cli.command_line import command_line
from equipoise.cli.matched_how import matched_how

if TYPE_CHECKING:
    from equipoise.cli.matching_options import Asked
    from equipoise.matching.balance import Balance
    from equipoise.matching.gen_match import GenMatchResult
    from equipoise.matching.match import MatchResult
    from equipoise.report.builders.matching import Difference, MatchQuestion
    from equipoise.report.document import Document


def conclude_match(
    given: dict[str, Any], asked: Asked, result: MatchResult, balance: Balance
) -> Document:
    """Build the document of a match with its effect."""
    from equipoise.report.builders.matching import match_document

    return match_document(result, balance, _naive(asked), _question(given, asked, None))


def conclude_balance(
    given: dict[str, Any], asked: Asked, result: MatchResult | None, balance: Balance
) -> Document:
    """Build the document of the balance of covariates."""
    from equipoise.report.builders.matching import balance_document

    return balance_document(balance, result, _question(given, asked, None))


def conclude_search(
    given: dict[str, Any],
    asked: Asked,
    search: GenMatchResult,
    result: MatchResult | None,
    balance: Balance,
) -> Document:
    """Build the document of a search for weights, with the effect by them."""
    from equipoise.report.builders.matching import search_document

    question = _question(given, asked, search.seed)
    return search_document(search, result, balance, _naive(asked), question)


def _question(given: dict[str, Any], asked: Asked, seed: int | None) -> MatchQuestion:
    from equipoise.report.builders.matching import MatchQuestion

    treatment = given["treatment"] or given["formula"].partition("~")[0].strip()
    return MatchQuestion(
        source=str(given["file"]),
        treatment=treatment,
        outcome=given.get("outcome"),
        method=tuple(matched_how(given, asked.covariates.names)),
        command=command_line(seed),
    )


def _naive(asked: Asked) -> Difference | None:
    if asked.outcome is None:
        return None
    from equipoise.report.builders.matching import naive_difference

    return naive_difference(asked.outcome, asked.covariates.treated, asked.weights)
