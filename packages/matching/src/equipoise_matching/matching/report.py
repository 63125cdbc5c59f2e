"""Build the reports of a match, of a balance and of a genetic search.

``naive`` is the difference between all treated rows and all controls, without matching.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from equipoise_matching.matching import wording
from equipoise_matching.matching.stratified import MatchByResult
from equipoise_matching.matching.wording import Difference, MatchQuestion
from equipoise_matching.report import UNKNOWN, Report, TextTable
from equipoise_matching.shared.numbers import amount, signed_amount
from equipoise_matching.shared.spelling import option

if TYPE_CHECKING:
    from equipoise_matching.matching.balance import Balance
    from equipoise_matching.matching.gen_match import GenMatchResult
    from equipoise_matching.matching.match import MatchResult

MAX_STRATA = 50
"""Largest number of strata in a report, which limits the size of the page."""
_BALANCE_COLUMNS = (
    ("treated", "mean_treated"),
    ("control", "mean_control"),
    ("sdiff %", "sdiff"),
    ("var ratio", "variance_ratio"),
    ("t p", "t_p_value"),
    ("KS p", "ks_p"),
    ("eCDF max", "ecdf_max"),
    ("QQ mean", "qq_mean"),
)
"""Heading and key (``Balance.rows``) of each column of numbers in the table of balance."""


def match_report(
    result: MatchResult, balance: Balance, naive: Difference | None, question: MatchQuestion
) -> Report:
    """Build the report of a match. Without an outcome, the answer is the balance."""
    smallest_p = wording.smallest_p_sentence(balance)
    return _report(
        "matched",
        question,
        balance,
        result,
        naive,
        sentences=(wording.balance_sentence(balance), smallest_p),
        facts=result.facts(),
        tables=(*_strata_table(result), replace(balance_table(balance), notes=(smallest_p,))),
    )


def balance_report(balance: Balance, result: MatchResult | None, question: MatchQuestion) -> Report:
    """Build the report of the balance of covariates."""
    sentences = (wording.balance_sentence(balance), wording.smallest_p_sentence(balance))
    return _report(
        "balance",
        question,
        balance,
        result,
        sentences=sentences,
        facts=() if result is None else result.facts(),
        tables=(balance_table(balance),),
    )


def search_report(
    search: GenMatchResult,
    result: MatchResult | None,
    balance: Balance,
    naive: Difference | None,
    question: MatchQuestion,
) -> Report:
    """Build the report of a search for weights.

    ``result`` is the match with the best weights, for the outcome; ``None`` without an outcome.
    """
    facts = [] if result is None else result.facts()
    report = _report(
        "genetic search",
        question,
        balance,
        search.matches if result is None else result,
        naive,
        sentences=(wording.smallest_p_sentence(balance), wording.balance_sentence(balance)),
        facts=(*facts, *(fact for fact in search.facts() if fact not in facts)),
        tables=(weights_table(search), balance_table(balance)),
    )
    *method, limits_sentences = report.method
    return replace(report, method=(*method, wording.SEARCH_TESTS_SENTENCE, limits_sentences))


def _report(
    badge: str,
    question: MatchQuestion,
    balance: Balance,
    matches: MatchResult | None,
    naive: Difference | None = None,
    *,
    sentences: tuple[str, str],
    facts: Sequence[tuple[str, str]],
    tables: Sequence[TextTable],
) -> Report:
    """Build a report; the first of the ``sentences`` is the answer if there is no effect.

    ``sentences`` describe the balance, and ``badge`` is the kind of the report.
    """
    effect = None if matches is None else wording.matched_difference(matches)
    answer, *remarks = sentences
    estimate, interval = "", ""
    if effect is not None and matches is not None:
        estimate = signed_amount(effect.value)
        interval = f"95 % interval {wording.signed_interval(effect.interval)}"
        answer = wording.effect_sentence(
            effect, question.outcome, question.treatment, matches.estimand
        )
        remarks = list(sentences)
    if naive is not None:
        remarks.insert(0, wording.naive_sentence(naive))
    if matches is not None:
        remarks += [wording.dropped_sentence(matches), wording.effective_sentence(matches)]
    return Report(
        badge=badge,
        text=answer,
        estimate=estimate,
        interval=interval,
        remarks=(*remarks, *question.notes),
        tables=tuple(tables),
        facts=(("Table", question.source), *facts),
        warnings=tuple(wording.match_warnings(matches, balance)),
        method=(
            *question.method,
            *wording.error_sentences(matches),
            wording.tests_sentence(balance),
            wording.LIMITS_SENTENCES,
        ),
    )


def weights_table(search: GenMatchResult) -> TextTable:
    """Build the table of the weights that a search found."""
    weights = zip(search.names, search.weights.tolist(), strict=True)
    rows = tuple((name, f"{weight:.6g}") for name, weight in weights)
    title = "Weights of the standardised covariates"
    return TextTable(("covariate", "weight"), rows, title)


def balance_table(balance: Balance) -> TextTable:
    """Build the table of balance, with a row for each variable before and after matching."""
    rows = []
    for row in balance.rows():
        bootstrap_p = row["ks_boot_p_value"]
        row["ks_p"] = row["ks_p_value"] if bootstrap_p is None else bootstrap_p
        values = (_number_text(row[key]) for _, key in _BALANCE_COLUMNS)
        rows.append((str(row["variable"]), str(row["when"]), *values))
    headings = ("covariate", "matching", *(heading for heading, _ in _BALANCE_COLUMNS))
    return TextTable(headings, tuple(rows), "Balance", label_columns=2)


def _strata_table(result: MatchResult) -> Iterator[TextTable]:
    if not isinstance(result, MatchByResult):
        return
    largest = sorted(result.strata, key=lambda stratum: -stratum.n)[:MAX_STRATA]
    omitted = len(result.strata) - len(largest)
    rows = tuple(
        (
            "/".join(str(value) for value in stratum.values),
            f"{stratum.n:,}",
            f"{stratum.n_treated:,}",
            "skipped" if stratum.skipped else f"{stratum.n_weighted:.6g}",
            f"{stratum.n_dropped:,}",
            UNKNOWN if stratum.estimate is None else amount(stratum.estimate),
        )
        for stratum in largest
    )
    headings = ("rows", "treated", "matched", "dropped", "estimate")
    note = f"The table has the largest strata; {option('json')} has the other {omitted:,} too."
    notes = (note,) if omitted else ()
    yield TextTable((", ".join(result.by), *headings), rows, "Strata", notes)


def _number_text(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"
