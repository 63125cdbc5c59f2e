"""What an intervention did to a gap: closed, or not, and by which of its two ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.model.errors import UnusableInput
from equipoise.model.why import Outcome
from equipoise.stats.arrays import FloatArray, as_costs
from equipoise.stats.share import ClosedShare, ClosingBlocks

CONFIRMED_ABOVE = 0.5
"""No share in logarithms up to this may fit, and the share in seconds must be beyond it, for a
cause to count as confirmed (verdict.md §7)."""

FROM_THE_SLOWER = 0.5
"""At least so much of the closed share must come from the slower condition's getting faster."""

REFUTED_WITHIN = 0.2
"""A share that certainly lies within plus or minus this closes nothing (verdict.md §7)."""

NARROW = 2 * REFUTED_WITHIN
"""So narrow is the set of what is refuted; blocks go on until that of what is confirmed is, too."""

WELL_KNOWN = 0.1
"""A set so narrow is answer enough, whatever it holds."""


@dataclass(frozen=True, slots=True)
class Intervened:
    """How the gap between two conditions changed by an intervention on both."""

    outcome: Outcome
    logs: ClosedShare
    """The share of the ratio: what counts for a cost that multiplies."""
    seconds: ClosedShare
    """The share of the difference in the metric's unit. An intervention that adds the same to both
    closes a part of the ratio and nothing of this."""
    from_candidate: float | None
    """ln(B / B_w) over ln(B / A): what of the gap went because the candidate changed."""
    from_baseline: float | None
    """ln(A_w / A) over ln(B / A): what of it went because the baseline changed."""


class InterventionBlocks:
    """The blocks of one intervention, as they come; see `intervened`.

    Parameters
    ----------
    level
        1 minus the coverage of each of the two sets.

    Raises
    ------
    UnusableInput
        If the level is not between 0 and 1.
    """

    def __init__(self, level: float) -> None:
        self._logs, self._seconds = ClosingBlocks(level), ClosingBlocks(level)
        self._gaps: list[float] = []
        self._faster: list[float] = []
        self._slower: list[float] = []

    def __len__(self) -> int:
        return len(self._gaps)

    def append(
        self, baseline: float, candidate: float, baseline_with: float, candidate_with: float
    ) -> None:
        """Take the next block; costs and errors as for `intervened`."""
        costs = as_costs([baseline, candidate, baseline_with, candidate_with], "an intervention")
        plain, slow, plain_with, slow_with = costs
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(costs)
            self._gaps.append(float(logs[1] - logs[0]))
            self._faster.append(float(logs[1] - logs[3]))
            self._slower.append(float(logs[2] - logs[0]))
            self._logs.append(float(logs[1] - logs[0]), float(logs[3] - logs[2]))
            self._seconds.append(float(slow - plain), float(slow_with - plain_with))

    def so_far(self) -> Intervened:
        """The outcome, with sets whose ends are rounded outwards: quick, for a look."""
        return self._judged(self._logs.so_far(), self._seconds.so_far())

    def exactly(self) -> Intervened:
        """The same outcome, with the ends of the sets as they are."""
        return self._judged(self._logs.exactly(), self._seconds.exactly())

    def _judged(self, logs: ClosedShare, seconds: ClosedShare) -> Intervened:
        gap = _median(self._gaps)
        from_candidate, from_baseline = _part(self._faster, gap), _part(self._slower, gap)
        from_the_slower = from_baseline if gap is not None and gap < 0 else from_candidate
        outcome = _outcome(logs, seconds, from_the_slower)
        return Intervened(outcome, logs, seconds, from_candidate, from_baseline)


def intervened(
    baseline: FloatArray,
    candidate: FloatArray,
    baseline_with: FloatArray,
    candidate_with: FloatArray,
    *,
    level: float,
) -> Intervened:
    """Judges an intervention by its blocks (verdict.md §7).

    Parameters
    ----------
    baseline, candidate, baseline_with, candidate_with
        Shape (n,): costs in the order of the blocks, +inf for a trial that timed out.
    level
        1 minus the coverage of each of the two sets by itself, after alpha was divided by the
        number of interventions. ``refuted`` asks both sets to agree, ``confirmed`` the set in
        logarithms and more, so neither outcome is wrong in more than this share of campaigns.

    Raises
    ------
    UnusableInput
        If a cost is no number from 0 up, the lengths differ, or the level is not between 0 and 1.
    """
    costs = (baseline, candidate, baseline_with, candidate_with)
    if len({len(values) for values in costs}) != 1:
        raise UnusableInput(
            "the four conditions of a block have not run equally often",
            hint="give the complete blocks only",
        )
    blocks = InterventionBlocks(level)
    for block in zip(*costs, strict=True):
        blocks.append(*map(float, block))
    return blocks.exactly()


def is_final(found: Intervened) -> bool:
    """Whether more blocks would tell nothing that counts.

    The set only ever shrinks, so it is final that a cause is neither confirmed nor refuted where
    no share beyond a half fits and none within ±0.2; and where the ratio shrinks, the difference in
    seconds does not. What is known to a tenth and still open closes about a half, or a fifth.
    """
    low, high = found.logs.low, found.logs.high
    if found.outcome == "refuted" or not found.logs.pieces:
        return True
    if low is None or high is None:
        return False
    if found.outcome == "confirmed":
        return high - low <= NARROW
    closes_a_part = REFUTED_WITHIN <= low and high <= CONFIRMED_ABOVE
    widens = high <= -REFUTED_WITHIN
    adds_a_cost = found.seconds.high is not None and found.seconds.high <= CONFIRMED_ABOVE <= low
    return closes_a_part or widens or adds_a_cost or high - low <= WELL_KNOWN


def _outcome(logs: ClosedShare, seconds: ClosedShare, from_the_slower: float | None) -> Outcome:
    within = (-REFUTED_WITHIN, REFUTED_WITHIN)
    if logs.lies_within(*within) and seconds.lies_within(*within):
        return "refuted"
    if logs.low is None or logs.estimate is None or seconds.estimate is None:
        return "open"
    closes = logs.low >= CONFIRMED_ABOVE and seconds.estimate > CONFIRMED_ABOVE
    by_the_slower = from_the_slower is not None and (
        from_the_slower >= FROM_THE_SLOWER * logs.estimate
    )
    return "confirmed" if closes and by_the_slower else "open"


def _median(values: Sequence[float]) -> float | None:
    known = [value for value in values if not math.isnan(value)]
    return float(np.median(known)) if known else None


def _part(values: Sequence[float], gap: float | None) -> float | None:
    """The median change as a share of the gap; ``None`` if either is no number."""
    change = _median(values)
    if change is None or gap is None or gap == 0 or not np.isfinite([change, gap]).all():
        return None
    return change / gap
