"""Write the sentences of a match: its effect, balance, method and warnings.

The naive difference compares all rows, without matching. ``sdiff`` is a standardized difference: a
difference of means in percent of a standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from equipoise_matching.matching.match import MANY_WITHOUT_NEIGHBORS, MatchResult
from equipoise_matching.matching.stratified import MatchByResult
from equipoise_matching.matching.units import power_of_two
from equipoise_matching.matching.univariate import Moments, welch_interval
from equipoise_matching.shared.numbers import amount, listed, signed_amount
from equipoise_matching.shared.spelling import option
from equipoise_matching.warning import AnalysisWarning

if TYPE_CHECKING:
    from equipoise_matching.matching.balance import Balance, SmallestP
    from equipoise_matching.matching.univariate import UnivariateBalance

LARGE_DIFFERENCE_PERCENT = 10.0
"""Common threshold of a large difference, in percent of a standard deviation (Austin 2009)."""
_UNITS = {"ATT": "treated", "ATC": "untreated", "ATE": "units"}
_ALL_UNITS = {"ATT": "the treated units", "ATC": "the untreated units", "ATE": "all units"}
_ONE_UNIT = {"ATT": "treated unit", "ATC": "control", "ATE": "unit"}
"""Names of the units for which matches are sought: after a number, all units, and one unit."""
_METRIC_PHRASES = {
    "inverse_variance": "each scaled by its standard deviation",
    "mahalanobis": "by their Mahalanobis distance",
}
"""Phrases about the distance between two units, by the name of the metric."""
MAX_WORSENED_COVARIATES = 4
"""Largest number of covariates with a worse balance that a warning lists."""
MAX_LISTED_COVARIATES = 12
"""Largest number of covariates that the sentence about the method lists."""
LIMITS_SENTENCES = (
    "Matching makes units comparable in what was measured. It cannot balance what nobody measured. "
    "docs/methods/matching.md and docs/methods/genetic-matching.md have each formula and its "
    "source."
)
SEARCH_TESTS_SENTENCE = (
    "The Kolmogorov-Smirnov tests of the search ignore the weights of pairs "
    "(docs/methods/genetic-matching.md). The table of balance uses these weights, so its smallest "
    "p-value may differ from the p-value of the search."
)
_ORDER_PHRASES = {
    "data": "in the order of the rows",
    "largest": "from the largest score on",
    "smallest": "from the smallest score on",
}
"""Phrases about the order in which units are matched, by the option ``order``."""


class MatchQuestion(Struct, frozen=True):
    """The columns of a match or a search on a table, and the sentences on its method."""

    source: str
    treatment: str
    outcome: str | None
    method: tuple[str, ...]
    """Sentences on the method of the match."""
    notes: tuple[str, ...] = ()
    """Sentences on rows that were left out before matching."""


class Difference(Struct, frozen=True):
    """A difference in the unit of the outcome, with its 95 % interval if there is one."""

    value: float
    interval: tuple[float, float] | None

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval excludes "no difference"."""
        return self.interval is not None and not self.interval[0] <= 0.0 <= self.interval[1]


def naive_difference(
    outcome: NDArray[np.float64], treated: NDArray[np.bool_], weights: NDArray[np.float64] | None
) -> Difference:
    """Return the mean of all treated rows minus the mean of all controls, with Welch's interval."""
    # The outcome is divided by a power of two, so that no square overflows.
    scale = power_of_two(outcome)
    first, second = (
        Moments.of(outcome[arm] / scale, None if weights is None else weights[arm])
        for arm in (treated, ~treated)
    )
    interval = welch_interval(first, second)
    return Difference(
        scale * (first.mean - second.mean),
        None if interval is None else (scale * interval[0], scale * interval[1]),
    )


def matched_difference(result: MatchResult) -> Difference | None:
    """Return the effect with its interval; ``None`` without an outcome."""
    if result.estimate is None:
        return None
    return Difference(result.estimate, result.interval)


def effect_sentence(
    effect: Difference, outcome: str | None, treatment: str, estimand: str = "ATT"
) -> str:
    """Describe the effect and its interval."""
    average = f"on average over {_ALL_UNITS[estimand]}"
    verb = "raises" if effect.value >= 0 else "lowers"
    changes = f"{treatment} {verb} {outcome} by {amount(abs(effect.value))}"
    if effect.interval is None:
        return f"{changes}, {average}; its interval is unknown."
    if not effect.excludes_zero:
        return (
            f"No effect of {treatment} on {outcome} can be shown (95 % interval "
            f"{signed_interval(effect.interval)}), {average}."
        )
    smaller, larger = sorted(abs(end) for end in effect.interval)
    return f"{changes} (95 % interval {amount(smaller)} to {amount(larger)}), {average}."


def naive_sentence(naive: Difference) -> str:
    """Describe the difference between all rows, without matching."""
    size = f"{amount(abs(naive.value))} {'higher' if naive.value >= 0 else 'lower'}"
    interval = "" if naive.interval is None else f" [{signed_interval(naive.interval)}]"
    return f"Without matching, the treated rows are {size}{interval}."


def balance_sentence(balance: Balance) -> str:
    """Name the covariate that differs most between the groups, before and after matching."""
    before = most_different(balance.variables, balance.before)
    if balance.after is None:
        return f"Without matching, {_worst_phrase(before)}."
    after = most_different(balance.variables, balance.after)
    earlier = "this is unknown"
    if before is not None:
        earlier = f"{before.covariate} did, {_size_phrase(before.percent)}"
    return f"After matching {_worst_phrase(after)}; before, {earlier}."


def dropped_sentence(result: MatchResult) -> str:
    """Describe the number of units without a match."""
    units = _UNITS[result.estimand]
    untreated = result.n - result.n_treated
    counts = {"ATT": result.n_treated, "ATC": untreated, "ATE": result.n}
    total = counts[result.estimand]
    outside = result.rows - result.n
    support = f" {outside:,} rows lie outside the common support." if outside else ""
    if not result.n_dropped:
        return f"All {total:,} {units} found a match.{support}"
    return f"{result.n_dropped:,} of {total:,} {units} found no match and are left out.{support}"


def effective_sentence(result: MatchResult) -> str:
    """Describe the effective sample size."""
    treated, controls = (f"{size:,.4g}" for size in result.effective_sizes)
    treated_count = len(np.unique(result.treated_index))
    control_count = len(np.unique(result.control_index))
    return (
        f"The pairs use {treated_count:,} treated units and {control_count:,} controls; by their "
        f"weights they are worth {treated} and {controls} (effective sample size)."
    )


def smallest_p_sentence(balance: Balance) -> str:
    """Describe the smallest p-value before and after matching."""
    before = _smallest_p_phrase(balance.smallest_before)
    if balance.smallest_after is None:
        return f"The smallest p-value of balance is {before}."
    after = _smallest_p_phrase(balance.smallest_after)
    return f"The smallest p-value of balance was {before} before matching and is {after} after it."


def signed_interval(interval: tuple[float, float] | None) -> str:
    """Return both ends of an interval with their signs."""
    return "unknown" if interval is None else " to ".join(map(signed_amount, interval))


class LargestDifference(NamedTuple):
    """The covariate that differs most, and its standardized difference without a sign."""

    covariate: str
    percent: float


def most_different(
    variables: tuple[str, ...], balances: tuple[UnivariateBalance, ...]
) -> LargestDifference | None:
    """Return the covariate that differs most; ``None`` if no difference is known."""
    known = [
        LargestDifference(name, abs(variable.sdiff))
        for name, variable in zip(variables, balances, strict=True)
        if not math.isnan(variable.sdiff)
    ]
    return max(known, key=lambda difference: difference.percent) if known else None


def _worst_phrase(worst: LargestDifference | None) -> str:
    if worst is None:
        return "it is unknown how much the covariates differ"
    of_unit = "" if math.isinf(worst.percent) else " of a standard deviation"
    return f"{worst.covariate} differs most, {_size_phrase(worst.percent)}{of_unit}"


def _size_phrase(percent: float) -> str:
    """Describe a difference in percent; it is infinite between two different constants."""
    if math.isinf(percent):
        return "without limit"
    return f"by {percent:.1f} %" if percent < 1000.0 else f"by {percent:.3g} %"


def _signed_percent(sdiff: float) -> str:
    return "unlimited" if math.isinf(sdiff) else f"{sdiff:+.1f} %"


def _smallest_p_phrase(smallest: SmallestP) -> str:
    if not smallest.tests:
        return "unknown"
    (name, test), *other_tests = smallest.tests
    more = f" and {len(other_tests)} more" if other_tests else ""
    return f"{smallest.value:.3g} ({name}, {test}{more})"


def method_sentences(options: Mapping[str, Any], names: Sequence[str]) -> Iterator[str]:
    """Describe the method of the match: covariates, distance, limits and adjustment."""
    if options.get("unmatched"):
        yield "Nothing was matched: all rows are compared as they are."
        return
    nearest = "its nearest" if options["m"] == 1 else f"its {options['m']} nearest"
    covariates = ", ".join(names)
    if len(names) > MAX_LISTED_COVARIATES:
        covariates = f"{len(names)} covariates ({', '.join(names[:MAX_LISTED_COVARIATES])}, …)"
    yield (
        f"Each {_ONE_UNIT[options['estimand']]} is matched with {nearest} of the other arm in "
        f"{covariates}, {_distance_phrase(options)}. The search is exact, {_ties_phrase(options)}."
    )
    limits = list(_limit_phrases(options))
    if limits:
        yield f"Pairs are limited: {'; '.join(limits)}."
    if "population" in options:
        yield (
            "A genetic search found the weights of the covariates, with "
            f"{options['population']:,} candidates a generation, judged by "
            f"{options['fitness']} (Diamond and Sekhon 2013)."
        )
    if options["weights"]:
        yield f"Rows are weighted by {options['weights']}."
    if options.get("bias_adjust"):
        yield (
            "A regression within each arm removes the imbalance that matching left (Abadie and "
            "Imbens 2011)."
        )
    if options["r_compatible"]:
        yield "The quirks of R's package Matching are reproduced (docs/methods/matching.md)."


def _distance_phrase(options: Mapping[str, Any]) -> str:
    if "population" in options:
        return "weighted by the result of the search"
    if options["propensity"]:
        return "all of them through a propensity score (a logistic regression)"
    metric = options["metric"]
    return _METRIC_PHRASES[metric] if isinstance(metric, str) else "weighted by the given metric"


def _ties_phrase(options: Mapping[str, Any]) -> str:
    if not options["replace"]:
        return f"each match is used once, {_ORDER_PHRASES[options['order']]}"
    if not options["ties"]:
        return "with replacement, ties are broken at random"
    return "with replacement and all ties"


def _limit_phrases(options: Mapping[str, Any]) -> Iterator[str]:
    if options["exact"]:
        yield f"equal in {', '.join(options['exact'])}"
    if options["caliper"]:
        widths = ", ".join(f"{width:g}" for width in options["caliper"])
        yield f"within {widths} standard deviations in each covariate"
    if options.get("by"):
        yield f"only among rows that agree in {', '.join(options['by'])}"
    if options["common_support"]:
        yield "rows outside the overlap of both groups are left out"


def error_sentences(result: MatchResult | None) -> Iterator[str]:
    """Describe how the effect, its error and its interval are computed."""
    if result is None or result.estimate is None:
        return
    effect = "The effect is the weighted mean of the differences in pairs."
    if result.se is not None:
        yield f"{effect} Its error is by Abadie and Imbens (2006), its interval is ±1.96 errors."
        yield _variance_sentence(result)
    elif result.se_standard is not None:
        yield f"{effect} Its error takes the pairs as independent, its interval is ±1.96 errors."


def _variance_sentence(result: MatchResult) -> str:
    neighbors, count_without = result.variance_neighbors, result.n_without_neighbors
    if not neighbors:
        return (
            "All units share one variance: the interval is too narrow where the controls are "
            "noisier than the treated units."
        )
    nearest = "nearest unit" if neighbors == 1 else f"{neighbors} nearest units"
    sentence = f"The variance of each unit comes from its {nearest} in its own arm."
    if not count_without:
        return sentence
    return (
        f"{sentence} {count_without:,} of {_units_in_pairs(result):,} matched units have no such "
        "unit near enough and share one variance."
    )


def _units_in_pairs(result: MatchResult) -> int:
    return len(np.unique(result.treated_index)) + len(np.unique(result.control_index))


def tests_sentence(balance: Balance) -> str:
    """Describe how the numbers and the p-values of the balance are computed."""
    balances = balance.before if balance.after is None else balance.after
    tests = [variable.ks for variable in balances if variable.ks is not None]
    distributions = "no distribution is tested"
    if tests:
        has_bootstrap = any(test.boot_p_value is not None for test in tests)
        method = "bootstrapped (Abadie 2002)" if has_bootstrap else "exact or asymptotic"
        distributions = f"Kolmogorov-Smirnov tests of distributions, {method}"
    paired = ", paired after matching" if balance.after is not None else ""
    return (
        "Balance: differences of means in percent of one group's standard deviation; t-tests of "
        f"means{paired}; {distributions}. A p-value falls with the number of rows: it alone does "
        "not measure balance."
    )


def match_warnings(result: MatchResult | None, balance: Balance) -> Iterator[AnalysisWarning]:
    """Yield the warnings about the balance, and about dropped units, strata and variances."""
    if balance.after is not None:
        worsened = balance.worsened()
        if worsened:
            changes = [
                f"{row.variable} from {_signed_percent(row.before)} to {_signed_percent(row.after)}"
                for row in worsened
            ]
            listed_changes = listed(changes, MAX_WORSENED_COVARIATES, "; ")
            yield AnalysisWarning(
                "worse-balance",
                f"Matching made the groups less alike in {len(worsened)} of "
                f"{len(balance.variables)} covariates, in standard deviations: {listed_changes}.",
                "search for better weights with equipoise genmatch, or match on fewer covariates",
            )
        worst = most_different(balance.variables, balance.after)
        if worst is None or worst.percent > LARGE_DIFFERENCE_PERCENT:
            yield AnalysisWarning(
                "unbalanced",
                f"After matching {_worst_phrase(worst)}: that difference, not the treatment, may "
                "explain the effect.",
                f"search for better weights with equipoise genmatch, or give {option('caliper')} "
                f"or {option('exact')}",
            )
    if result is not None and result.n_dropped:
        yield AnalysisWarning(
            "dropped",
            f"{dropped_sentence(result)} The answer is about the remaining units.",
            f"widen {option('caliper')}, or name fewer columns with {option('exact')}",
        )
    if isinstance(result, MatchByResult) and result.skipped:
        yield AnalysisWarning(
            "skipped",
            f"{len(result.skipped):,} of {len(result.strata):,} strata lack treated units or "
            "controls and are left out.",
            f"name fewer columns with {option('by')}, or columns with fewer values",
        )
    if result is not None and result.n_without_neighbors:
        units = _units_in_pairs(result)
        if result.n_without_neighbors > MANY_WITHOUT_NEIGHBORS * units:
            yield AnalysisWarning(
                "few-neighbours",
                f"{result.n_without_neighbors:,} of {units:,} matched units have no comparable "
                "unit in their own arm. They share one variance, and the interval is too narrow "
                "where the controls are noisier.",
                f"widen {option('caliper')}, or name fewer columns with {option('exact')} or "
                f"{option('by')}",
            )
