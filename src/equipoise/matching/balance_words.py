"""How alike two groups are, and who found no match, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from equipoise.matching.match import MatchResult
from equipoise.matching.stratified import MatchByResult
from equipoise.model.record import CampaignWarning

if TYPE_CHECKING:
    from equipoise.matching.balance import Balance, SmallestP
    from equipoise.matching.univariate import UnivariateBalance

MUCH = 10.0
"""Percent of a standard deviation: a common threshold for what matters (Austin 2009)."""
_UNITS = {"ATT": "treated", "ATC": "untreated", "ATE": "units"}


def is_balanced(balance: Balance) -> bool:
    """Whether no covariate is further apart than matters, after matching if there was any."""
    worst = _worst(balance.variables, balance.before if balance.after is None else balance.after)
    return worst is not None and worst[1] <= MUCH


def balance_words(balance: Balance) -> str:
    """Which covariate is furthest apart, before and after."""
    before = _worst(balance.variables, balance.before)
    if balance.after is None:
        return f"Of treated and controls as they are {_worst_words(before)}."
    after = _worst(balance.variables, balance.after)
    was = "what was is unknown" if before is None else f"{before[0]} was, {_by(before[1])}"
    return f"After matching {_worst_words(after)}; before, {was}."


def _worst(
    variables: tuple[str, ...], side: tuple[UnivariateBalance, ...]
) -> tuple[str, float] | None:
    """The covariate furthest apart, and by how much, in percent; ``None`` if none is known."""
    known = [
        (name, abs(one.sdiff))
        for name, one in zip(variables, side, strict=True)
        if not math.isnan(one.sdiff)
    ]
    return max(known, key=lambda one: one[1]) if known else None


def _worst_words(worst: tuple[str, float] | None) -> str:
    if worst is None:
        return "how far they lie apart is unknown"
    unit = "" if math.isinf(worst[1]) else " of a standard deviation"
    return f"{worst[0]} is furthest apart, {_by(worst[1])}{unit}"


def _by(apart: float) -> str:
    """In percent; two different constants are apart without limit."""
    if math.isinf(apart):
        return "without limit"
    return f"by {apart:.1f} %" if apart < 1000.0 else f"by {apart:.3g} %"


def dropped_words(result: MatchResult) -> str:
    """How many of whom found no match."""
    whose = _UNITS[result.estimand]
    sought = {
        "ATT": result.n_treated,
        "ATC": result.n - result.n_treated,
        "ATE": result.n,
    }[result.estimand]
    outside = result.rows - result.n
    without = f" {outside:,} rows lie outside the common support." if outside else ""
    if not result.n_dropped:
        return f"All {sought:,} {whose} found a match.{without}"
    return f"{result.n_dropped:,} of {sought:,} {whose} found no match and are left out.{without}"


def smallest_words(balance: Balance) -> str:
    """The smallest p-value before and after."""
    before = _smallest(balance.smallest_before)
    if balance.smallest_after is None:
        return f"The smallest p-value of balance is {before}."
    after = _smallest(balance.smallest_after)
    return f"The smallest p-value of balance was {before} before matching and is {after} after it."


def _smallest(smallest: SmallestP) -> str:
    if not smallest.where:
        return "unknown"
    (name, test), *others = smallest.where
    more = f" and {len(others)} more" if others else ""
    return f"{smallest.value:.3g} ({name}, {test}{more})"


def warnings(result: MatchResult | None, balance: Balance) -> Iterator[CampaignWarning]:
    """What speaks against the answer."""
    if balance.after is not None:
        worst = _worst(balance.variables, balance.after)
        if worst is None or worst[1] > MUCH:
            yield CampaignWarning(
                "unbalanced",
                f"After matching {_worst_words(worst)}: that difference, not the treatment, may "
                "be what is seen.",
                "search for better weights with equipoise genmatch, or give --caliper or --exact",
            )
    if result is not None and result.n_dropped:
        yield CampaignWarning(
            "dropped",
            f"{dropped_words(result)} The answer is about the others.",
            "widen --caliper or give fewer --exact, or say whom the answer is about",
        )
    if isinstance(result, MatchByResult) and result.skipped:
        yield CampaignWarning(
            "skipped",
            f"{len(result.skipped):,} of {len(result.strata):,} strata lack treated units or "
            "controls and take no part.",
            "give --by fewer columns or wider classes",
        )


def tests_words(balance: Balance) -> str:
    """What the numbers of the balance are."""
    side = balance.before if balance.after is None else balance.after
    tests = [one.ks for one in side if one.ks is not None]
    ks = "no distribution is tested"
    if tests:
        boot = any(one.boot_p_value is not None for one in tests)
        how = "bootstrapped (Abadie 2002)" if boot else "exact or asymptotic"
        ks = f"Kolmogorov-Smirnov tests of distributions, {how}"
    paired = ", paired after matching" if balance.after is not None else ""
    return (
        "Balance: differences of means in percent of one group's standard deviation; t-tests of "
        f"means{paired}; {ks}. A p-value falls with the number of rows: none is a measure of "
        "balance on its own."
    )
