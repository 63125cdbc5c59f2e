"""Effect of an intervention on a gap: the fraction that it explains, and the verdict on the cause.

A block holds four conditions: A, B, and both with the intervention. The fraction of the gap
explained is what the intervention removes of the gap between A and B. The betting engine keeps its
confidence set, in logarithms and in the unit of the metric (docs/methods/fraction.md;
crates/verdict).
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
from equipoise.stats.arrays import as_costs

CONFIRMED_ABOVE = 0.5
"""A confirmed cause excludes all fractions in logarithms up to this, and its fraction in seconds
lies beyond it (docs/methods/fraction.md)."""

MIN_PART_FROM_SLOWER = 0.5
"""Minimum part of the fraction that must come from the slower condition becoming faster."""

REFUTED_WITHIN = 0.2
"""A fraction that certainly lies within plus or minus this explains nothing."""

NARROW_WIDTH = 2 * REFUTED_WITHIN
"""Width of the set of a refuted cause; a confirmed cause gets blocks until its set is as narrow."""

SUFFICIENT_WIDTH = 0.1
"""Width of a set that is narrow enough to stop, whatever it contains."""


_Gaps = tuple[float, float]
"""Gap of a block without the intervention, and with it."""
_FIRST_REACH = 4.0
"""Bound, of either sign, of the first search for the part of the gap that is left."""
_WIDENINGS = 40
_HALVINGS = 60


class ExplainedFraction(Struct, frozen=True):
    """Fraction of a gap that an intervention explains, on one scale."""

    estimate: float | None
    """Fraction for which the predicted remainder of the gap is as often above as below the gap with
    the intervention: what the bets of the set test, block by block. ``None`` if not a number."""
    pieces: tuple[Interval, ...]
    """Whole confidence set, as separate intervals; an end beyond the fractions tried is ``None``.
    Empty if no fraction agrees with the blocks."""

    @property
    def low(self) -> float | None:
        """Lower end of the set; ``None`` if it is empty or open."""
        return self.pieces[0][0] if self.pieces else None

    @property
    def high(self) -> float | None:
        """Upper end of the set; ``None`` if it is empty or open."""
        return self.pieces[-1][1] if self.pieces else None

    def lies_within(self, low: float, high: float) -> bool:
        """Return whether the set is not empty and lies between two fractions."""
        if self.low is None or self.high is None:
            return False
        return low <= self.low and self.high <= high


def describe_fraction(fraction: float | None, interval: Interval) -> str:
    """Return, for example, ``97 % [94, 99]``; an unknown end is ``…``.

    If the estimate is outside its interval, only the interval is shown: no single fraction fits all
    blocks.
    """
    if fraction is None:
        return "unknown"
    if leaves_out(interval, fraction):
        low, high = ("…" if end is None else str(round(100 * end)) for end in interval)
        return f"{low} to {high} % (no single fraction)"
    percent, *ends = (
        "…" if part is None else str(round(100 * part)) for part in (fraction, *interval)
    )
    return f"about {percent} %" if interval == (None, None) else f"{percent} % [{', '.join(ends)}]"


class InterventionEffect(Struct, frozen=True):
    """Effect of an intervention on the gap between two conditions."""

    outcome: Outcome
    logs: ExplainedFraction
    """Fraction of the log ratio: the right scale for a cost that multiplies."""
    seconds: ExplainedFraction
    """Fraction of the difference in the metric's unit. An intervention that adds the same cost to
    both conditions explains part of the ratio, but nothing of the difference."""
    from_candidate: float | None
    """Part of the gap that closed because the candidate changed: ln(B / B_w) over ln(B / A)."""
    from_baseline: float | None
    """Part of the gap that closed because the baseline changed: ln(A_w / A) over ln(B / A)."""


class InterventionBlocks:
    """Blocks of one intervention, added one by one.

    Raise `UnusableInput` if the level is not between 0 and 1.

    Parameters
    ----------
    level
        1 minus the coverage of each of the two confidence sequences, after alpha was divided by the
        number of interventions. In all but this share of campaigns, the set contains the true
        fraction after *every* number of blocks. ``refuted`` needs both sets to agree, ``confirmed``
        the set in logarithms and more, so neither outcome is wrong in more than this share of
        campaigns.
    """

    def __init__(self, level: float) -> None:
        if not 0 < level < 1:
            raise UnusableInput(
                f"the level is {level}", hint="give a number between 0 and 1, such as 0.05"
            )
        self._logs = FractionSequence(level)
        self._seconds = FractionSequence(level)
        self._log_gaps: list[_Gaps] = []
        self._second_gaps: list[_Gaps] = []
        self._gaps: list[float] = []
        self._candidate_changes: list[float] = []
        self._baseline_changes: list[float] = []

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self._gaps)

    def append(
        self, baseline: float, candidate: float, baseline_with: float, candidate_with: float
    ) -> None:
        """Add the next block: costs from 0 up, +inf for a trial that timed out.

        Raise `UnusableInput` if a cost is not a number from 0 up.
        """
        costs = as_costs([baseline, candidate, baseline_with, candidate_with], "an intervention")
        with np.errstate(divide="ignore", invalid="ignore"):
            a, b, a_with, b_with = np.log(costs)
            self._gaps.append(float(b - a))
            self._candidate_changes.append(float(b - b_with))
            self._baseline_changes.append(float(a_with - a))
            self._log_gaps.append((float(b - a), float(b_with - a_with)))
            self._second_gaps.append((float(costs[1] - costs[0]), float(costs[3] - costs[2])))
            self._logs.push(*self._log_gaps[-1])
            self._seconds.push(*self._second_gaps[-1])

    def rounded_effect(self) -> InterventionEffect:
        """Return the effect with the ends of the sets rounded outwards, which is quick."""
        return self._effect(self._logs.rounded_set(), self._seconds.rounded_set())

    def exact_effect(self) -> InterventionEffect:
        """Return the effect with exact ends of the sets."""
        return self._effect(self._logs.exact_set(), self._seconds.exact_set())

    def _effect(
        self, log_set: Sequence[Interval], seconds_set: Sequence[Interval]
    ) -> InterventionEffect:
        logs = ExplainedFraction(_estimate(self._logs, self._log_gaps), tuple(log_set))
        seconds = ExplainedFraction(_estimate(self._seconds, self._second_gaps), tuple(seconds_set))
        gap = _median(self._gaps)
        from_candidate = _part(self._candidate_changes, gap)
        from_baseline = _part(self._baseline_changes, gap)
        from_the_slower = from_baseline if gap is not None and gap < 0 else from_candidate
        outcome = _outcome(logs, seconds, from_the_slower)
        return InterventionEffect(outcome, logs, seconds, from_candidate, from_baseline)


def is_final(effect: InterventionEffect) -> bool:
    """Return whether more blocks would change nothing that matters.

    The set can only shrink. So the outcome ``open`` is final if no fraction above a half and none
    within ±0.2 fits, and if the intervention closes the ratio but not the difference in seconds. It
    is also final if the set is only a tenth wide: the set then lies around a half or a fifth.
    """
    low, high = effect.logs.low, effect.logs.high
    if effect.outcome == "refuted" or not effect.logs.pieces:
        return True
    if low is None or high is None:
        return False
    if effect.outcome == "confirmed":
        return high - low <= NARROW_WIDTH
    explains_a_part = REFUTED_WITHIN <= low and high <= CONFIRMED_ABOVE
    widens = high <= -REFUTED_WITHIN
    adds_a_cost = effect.seconds.high is not None and effect.seconds.high <= CONFIRMED_ABOVE <= low
    return explains_a_part or widens or adds_a_cost or high - low <= SUFFICIENT_WIDTH


def _outcome(
    logs: ExplainedFraction, seconds: ExplainedFraction, from_the_slower: float | None
) -> Outcome:
    within = (-REFUTED_WITHIN, REFUTED_WITHIN)
    if logs.lies_within(*within) and seconds.lies_within(*within):
        return "refuted"
    if logs.low is None or logs.estimate is None or seconds.estimate is None:
        return "open"
    explains = logs.low >= CONFIRMED_ABOVE and seconds.estimate > CONFIRMED_ABOVE
    by_the_slower = from_the_slower is not None and (
        from_the_slower >= MIN_PART_FROM_SLOWER * logs.estimate
    )
    return "confirmed" if explains and by_the_slower else "open"


def _estimate(fractions: FractionSequence, gaps: Sequence[_Gaps]) -> float | None:
    """Return the fraction at which the median of what remains of a gap is 0; ``None`` if none is.

    The bets of the set are on the sign of the remainder, so the estimate belongs to its set.
    Separate medians of the two gaps could come from different blocks.
    """
    if fractions.estimate() is None:
        return None
    without, with_it = np.array(gaps, dtype=np.float64).T
    known = ~(np.isnan(without) | np.isnan(with_it))
    without, with_it = without[known], with_it[known]
    side = 1.0 if np.median(without) > 0 else -1.0

    def remains(kept: float) -> bool:
        with np.errstate(invalid="ignore"):
            remainders = side * (with_it - kept * without)
        return bool(np.nanmedian(remainders) > 0.0)

    low, high = -_FIRST_REACH, _FIRST_REACH
    for _ in range(_WIDENINGS):
        if remains(low) and not remains(high):
            break
        low, high = 2.0 * low, 2.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if remains(middle):
            low = middle
        else:
            high = middle
    return 1.0 - 0.5 * (low + high)


def _median(values: Sequence[float]) -> float | None:
    known = [value for value in values if not math.isnan(value)]
    return float(np.median(known)) if known else None


def _part(changes: Sequence[float], gap: float | None) -> float | None:
    """Return the median change as a fraction of the gap; ``None`` if either is not a number."""
    change = _median(changes)
    if change is None or gap is None or gap == 0 or not np.isfinite([change, gap]).all():
        return None
    return change / gap
