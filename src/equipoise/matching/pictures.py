"""The figures of a match, its balance and a search, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from equipoise.matching.conclusion import Question
from equipoise.matching.effect_words import Difference

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure
    from equipoise.matching.balance import Balance
    from equipoise.matching.gen_match import GenMatchResult

WORST = 3
"""So many covariates get figures of their own: those least alike in distribution."""
_COMPARABLE = "comparable units"
_ALL_ROWS = "all rows as they are"


def effect_figures(
    effect: Difference | None, naive: Difference | None, question: Question
) -> Iterator[Figure]:
    """The difference of all rows and that among comparable units; nothing without an outcome.

    Raises
    ------
    UnusableInput
        altair is not installed.
    """
    from equipoise.figures.estimates import Estimate, estimates
    from equipoise.figures.gallery import Figure

    rows = [
        Estimate(kind, kind, one.value, one.interval)
        for kind, one in ((_ALL_ROWS, naive), (_COMPARABLE, effect))
        if one is not None
    ]
    if rows:
        yield Figure(
            "effect",
            "Each row is one estimate with its 95 % interval; the line stands at no difference. "
            "The answer is the one among comparable units.",
            estimates(
                rows,
                (_COMPARABLE, _ALL_ROWS),
                unit=f"difference in {question.outcome}",
                title=f"Effect of {question.treatment} on {question.outcome}",
                notes=[],
                description=f"Effect of {question.treatment} on {question.outcome}: "
                + "; ".join(f"{row.label} {row.at:.4g}" for row in rows),
            ),
        )


def search_figures(found: GenMatchResult) -> Iterator[Figure]:
    """The balance along the search, and what it was judged by.

    Raises
    ------
    UnusableInput
        altair is not installed.
    """
    from equipoise.figures import search
    from equipoise.figures.gallery import Figure

    yield Figure("course", search.HOW_TO_READ_BALANCE, found.plot())
    yield Figure("search", search.HOW_TO_READ_VALUES, found.search_plot())


def balance_figures(balance: Balance) -> Iterator[Figure]:
    """All covariates, then the shares, then those least alike one by one.

    Raises
    ------
    UnusableInput
        altair is not installed.
    """
    from equipoise.figures import balance as charts
    from equipoise.figures.gallery import Figure

    yield Figure("balance", charts.HOW_TO_READ_LOVE_PLOT, balance.love_plot())
    of_two_values = balance.shares_plot()
    if of_two_values is not None:
        yield Figure("shares", charts.HOW_TO_READ_SHARES, of_two_values)
    for name in balance.most_different(WORST):
        hills = balance.density_plot(name)
        if hills is not None:
            yield Figure("distribution", charts.HOW_TO_READ_DENSITY, hills)
        yield Figure("quantiles", charts.HOW_TO_READ_QQ_PLOT, balance.qq_plot(name))
