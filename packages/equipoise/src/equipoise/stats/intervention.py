"""Effect of an intervention on a gap: the fraction that it explains, and the verdict on the cause.

A block has four conditions: the baseline A, the candidate B, and both with the intervention, A_w
and B_w. The explained fraction is the part of the gap between A and B that disappears with the
intervention. Bets give two confidence sets of fractions (docs/methods/fraction.md). One set is for
the gap in logarithms, another for the gap in the unit of the metric.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise._native import FractionSequence
from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import Interval, leaves_out
from equipoise.model.why import Outcome
from equipoise.shared.spelling import option
from equipoise.stats.arrays import FloatArray, as_costs

CONFIRMED_ABOVE = 0.5
"""Minimum fraction of a confirmed cause, for its whole set in logarithms and for its estimate in
seconds (docs/methods/fraction.md)."""
MIN_PART_FROM_SLOWER = 0.5
"""Minimum part of a confirmed fraction that the slower condition adds by becoming faster."""
REFUTED_WITHIN = 0.2
"""Maximum absolute fraction of a refuted cause, for all fractions in both of its sets."""
CONFIRMED_WIDTH = 2 * REFUTED_WITHIN
"""Width of the set in logarithms at which a confirmed cause needs no more blocks."""
OPEN_WIDTH = 0.1
"""Width of the set in logarithms at which the outcome ``open`` is final."""
_GapPair = tuple[float, float]
"""Gap of a block without the intervention, and its gap with the intervention."""
_FIRST_SEARCH_BOUND = 4.0
"""The search for the remaining fraction of the gap starts between minus and plus this bound."""
_MAX_DOUBLINGS, _HALVINGS = 40, 60
"""Maximum number of doublings of both bounds of the search; then the number of bisections."""


class ExplainedFraction(Struct, frozen=True):
    """Fraction of a gap that an intervention explains, on one scale."""

    estimate: float | None
    """Fraction that predicts the gap with the intervention best. The prediction is too large in
    half of the blocks, and too small in the other half. ``None`` if there is no such fraction."""
    intervals: tuple[Interval, ...]
    """Confidence set, as one or more separate intervals. An end is ``None`` if the set goes beyond
    the fractions that the engine tests. Empty if every tested fraction is excluded."""

    @property
    def low(self) -> float | None:
        """Lower end of the set; ``None`` if the set is empty or has no lower end."""
        return self.intervals[0][0] if self.intervals else None

    @property
    def high(self) -> float | None:
        """Upper end of the set; ``None`` if the set is empty or has no upper end."""
        return self.intervals[-1][1] if self.intervals else None

    def lies_within(self, low: float, high: float) -> bool:
        """Return whether the set is not empty and lies between two fractions."""
        if self.low is None or self.high is None:
            return False
        return low <= self.low and self.high <= high


def describe_fraction(fraction: float | None, interval: Interval) -> str:
    """Return a fraction and its interval as text, such as ``97 % [94, 99]``.

    An unknown end is shown as ``…``. If the fraction is outside the interval, only the interval is
    shown: no single fraction fits all blocks.
    """
    if fraction is None:
        return "unknown"
    if leaves_out(interval, fraction):
        low, high = ("…" if end is None else str(round(100 * end)) for end in interval)
        return f"{low} to {high} % (no single fraction)"
    percent, *ends = (
        "…" if value is None else str(round(100 * value)) for value in (fraction, *interval)
    )
    return f"about {percent} %" if interval == (None, None) else f"{percent} % [{', '.join(ends)}]"


class InterventionEffect(Struct, frozen=True):
    """Effect of an intervention on the gap between two conditions."""

    outcome: Outcome
    log_fraction: ExplainedFraction
    """Fraction of the log ratio, for causes that multiply the cost by a factor."""
    seconds_fraction: ExplainedFraction
    """Fraction of the difference in the unit of the metric. If an intervention adds a cost to both
    conditions, their ratio moves towards 1, but their difference stays."""
    from_candidate: float | None
    """Part of the gap that the change of the candidate closed: ln(B / B_w) over ln(B / A)."""
    from_baseline: float | None
    """Part of the gap that the change of the baseline closed: ln(A_w / A) over ln(B / A)."""


class InterventionBlocks:
    """Blocks of one intervention, added one by one.

    ``level`` is alpha over the number of interventions. A set leaves out the true fraction in at
    most this share of campaigns. Each outcome is wrong in at most this share, too. Raise
    `UnusableInput` unless ``level`` is between 0 and 1.
    """

    def __init__(self, level: float) -> None:
        if not 0 < level < 1:
            raise UnusableInput(
                f"the level of an intervention cannot be {level}",
                hint=f"give a number between 0 and 1, such as {option('alpha', 0.05)}",
            )
        self._log_bets = FractionSequence(level)
        self._seconds_bets = FractionSequence(level)
        self._log_gap_pairs: list[_GapPair] = []
        self._seconds_gap_pairs: list[_GapPair] = []
        self._log_gaps: list[float] = []
        self._candidate_changes: list[float] = []
        self._baseline_changes: list[float] = []

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self._log_gaps)

    def append(
        self, baseline: float, candidate: float, baseline_with: float, candidate_with: float
    ) -> None:
        """Add the costs of the next block; the cost of a trial that timed out is +inf.

        Raise `UnusableInput` if a cost is negative or NaN.
        """
        costs = as_costs([baseline, candidate, baseline_with, candidate_with], "an intervention")
        with np.errstate(divide="ignore", invalid="ignore"):
            log_a, log_b, log_a_with, log_b_with = np.log(costs)
            a, b, a_with, b_with = costs
            self._log_gaps.append(float(log_b - log_a))
            self._candidate_changes.append(float(log_b - log_b_with))
            self._baseline_changes.append(float(log_a_with - log_a))
            self._log_gap_pairs.append((float(log_b - log_a), float(log_b_with - log_a_with)))
            self._seconds_gap_pairs.append((float(b - a), float(b_with - a_with)))
            self._log_bets.push(*self._log_gap_pairs[-1])
            self._seconds_bets.push(*self._seconds_gap_pairs[-1])

    def rounded_effect(self) -> InterventionEffect:
        """Return the effect with rounded ends of its sets; this is quick."""
        return self._effect_of(self._log_bets.rounded_set(), self._seconds_bets.rounded_set())

    def exact_effect(self) -> InterventionEffect:
        """Return the effect with exact ends of its sets."""
        return self._effect_of(self._log_bets.exact_set(), self._seconds_bets.exact_set())

    def _effect_of(
        self, log_set: Sequence[Interval], seconds_set: Sequence[Interval]
    ) -> InterventionEffect:
        log_fraction = ExplainedFraction(
            _best_fit(self._log_bets, self._log_gap_pairs), tuple(log_set)
        )
        seconds_fraction = ExplainedFraction(
            _best_fit(self._seconds_bets, self._seconds_gap_pairs), tuple(seconds_set)
        )
        gap = _known_median(self._log_gaps)
        from_candidate = _fraction_of_gap(self._candidate_changes, gap)
        from_baseline = _fraction_of_gap(self._baseline_changes, gap)
        from_slower = from_baseline if gap is not None and gap < 0 else from_candidate
        outcome = _outcome_of(log_fraction, seconds_fraction, from_slower)
        return InterventionEffect(
            outcome, log_fraction, seconds_fraction, from_candidate, from_baseline
        )


def is_final(effect: InterventionEffect) -> bool:
    """Return whether the intervention needs no more blocks.

    The outcome ``refuted`` is final. A confirmed cause needs blocks until its set is narrow. A set
    can only shrink, so the outcome ``open`` is final in these cases:

    - The set is empty, or at most 0.1 wide.
    - The set lies between 0.2 and 0.5, or below -0.2: the cause can no longer be confirmed or
      refuted.
    - The set in logarithms lies above 0.5 and the set in seconds below: the intervention adds the
      same cost to both conditions.
    """
    low, high = effect.log_fraction.low, effect.log_fraction.high
    if effect.outcome == "refuted" or not effect.log_fraction.intervals:
        return True
    if low is None or high is None:
        return False
    if effect.outcome == "confirmed":
        return high - low <= CONFIRMED_WIDTH
    explains_a_part = REFUTED_WITHIN <= low and high <= CONFIRMED_ABOVE
    widens_gap = high <= -REFUTED_WITHIN
    seconds_high = effect.seconds_fraction.high
    adds_a_cost = seconds_high is not None and seconds_high <= CONFIRMED_ABOVE <= low
    return explains_a_part or widens_gap or adds_a_cost or high - low <= OPEN_WIDTH


def _outcome_of(
    log_fraction: ExplainedFraction,
    seconds_fraction: ExplainedFraction,
    from_slower: float | None,
) -> Outcome:
    """Return the outcome; ``from_slower`` is the part that the slower condition's change closed."""
    refuted_range = (-REFUTED_WITHIN, REFUTED_WITHIN)
    if log_fraction.lies_within(*refuted_range) and seconds_fraction.lies_within(*refuted_range):
        return "refuted"
    low, estimate = log_fraction.low, log_fraction.estimate
    if low is None or estimate is None or seconds_fraction.estimate is None:
        return "open"
    explains_most = low >= CONFIRMED_ABOVE and seconds_fraction.estimate > CONFIRMED_ABOVE
    is_from_slower = from_slower is not None and from_slower >= MIN_PART_FROM_SLOWER * estimate
    return "confirmed" if explains_most and is_from_slower else "open"


def _best_fit(bets: FractionSequence, gaps: Sequence[_GapPair]) -> float | None:
    """Return the fraction that predicts the gap with the intervention best; ``None`` if none does.

    At this fraction, the prediction errors of the blocks have the median 0. The bets are on the
    signs of these errors, so the estimate agrees with its set.
    """
    if bets.estimate() is None:
        return None
    gaps_without, gaps_with = np.array(gaps, dtype=np.float64).T
    is_known = ~(np.isnan(gaps_without) | np.isnan(gaps_with))
    gaps_without, gaps_with = gaps_without[is_known], gaps_with[is_known]
    if not np.median(gaps_without) > 0:
        gaps_without, gaps_with = -gaps_without, -gaps_with

    def is_too_small(remaining_fraction: float) -> bool:
        return _has_positive_median(gaps_with - remaining_fraction * gaps_without)

    low_fraction, high_fraction = -_FIRST_SEARCH_BOUND, _FIRST_SEARCH_BOUND
    with np.errstate(invalid="ignore"):
        for _ in range(_MAX_DOUBLINGS):
            if is_too_small(low_fraction) and not is_too_small(high_fraction):
                break
            low_fraction, high_fraction = 2.0 * low_fraction, 2.0 * high_fraction
        for _ in range(_HALVINGS):
            middle_fraction = 0.5 * (low_fraction + high_fraction)
            if is_too_small(middle_fraction):
                low_fraction = middle_fraction
            else:
                high_fraction = middle_fraction
    return 1.0 - 0.5 * (low_fraction + high_fraction)


def _has_positive_median(values: FloatArray) -> bool:
    """Return whether the median of the values that are not NaN is positive.

    To count the signs is faster than to compute the median.
    """
    is_positive, is_other = values > 0.0, values <= 0.0
    positive_count, other_count = np.count_nonzero(is_positive), np.count_nonzero(is_other)
    if positive_count != other_count or not positive_count:
        return bool(positive_count > other_count)
    return bool(np.max(values[is_other]) + np.min(values[is_positive]) > 0.0)


def _known_median(values: Sequence[float]) -> float | None:
    known_values = [value for value in values if not math.isnan(value)]
    return float(np.median(known_values)) if known_values else None


def _fraction_of_gap(changes: Sequence[float], gap: float | None) -> float | None:
    """Return the median change as a fraction of the gap; ``None`` if it is not a finite number."""
    change = _known_median(changes)
    if change is None or gap is None or gap == 0 or not np.isfinite([change, gap]).all():
        return None
    return change / gap
