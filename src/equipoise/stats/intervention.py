"""What an intervention did to a gap: closed, or not, and by which of its two ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.model.errors import UnusableInput
from equipoise.model.why import Outcome
from equipoise.stats.arrays import FloatArray, as_costs
from equipoise.stats.share import ClosedShare, closed_share

CONFIRMED_ABOVE = 0.5
"""The lower limit of the share in logarithms, and the share in seconds, beyond which a cause counts
as confirmed (verdict.md §7)."""

FROM_THE_CANDIDATE = 0.5
"""At least so much of the closed share must come from the candidate's getting faster."""

REFUTED_WITHIN = 0.2
"""A share that certainly lies within plus or minus this closes nothing (verdict.md §7)."""


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
    """ln(B / B_w) over ln(B / A): what of the gap went because the candidate got faster."""
    from_baseline: float | None
    """ln(A_w / A) over ln(B / A): what of it went because the baseline got slower."""


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
    costs = (
        as_costs(baseline, "the baseline"),
        as_costs(candidate, "the candidate"),
        as_costs(baseline_with, "the baseline with the intervention"),
        as_costs(candidate_with, "the candidate with the intervention"),
    )
    if len({len(values) for values in costs}) != 1:
        raise UnusableInput(
            "the four conditions of a block have not run equally often",
            mend="give the complete blocks only",
        )
    plain, slow, plain_with, slow_with = costs
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps, gaps_with = np.log(slow) - np.log(plain), np.log(slow_with) - np.log(plain_with)
        seconds, seconds_with = slow - plain, slow_with - plain_with
        faster, slower = np.log(slow) - np.log(slow_with), np.log(plain_with) - np.log(plain)
    logs = closed_share(gaps, gaps_with, level=level)
    linear = closed_share(seconds, seconds_with, level=level)
    gap = _median(gaps)
    from_candidate, from_baseline = _part(faster, gap), _part(slower, gap)
    return Intervened(
        _outcome(logs, linear, from_candidate), logs, linear, from_candidate, from_baseline
    )


def _outcome(logs: ClosedShare, linear: ClosedShare, from_candidate: float | None) -> Outcome:
    within = (-REFUTED_WITHIN, REFUTED_WITHIN)
    if logs.lies_within(*within) and linear.lies_within(*within):
        return "refuted"
    if logs.low is None or logs.estimate is None or linear.estimate is None:
        return "open"
    closes = logs.low > CONFIRMED_ABOVE and linear.estimate > CONFIRMED_ABOVE
    by_candidate = from_candidate is not None and (
        from_candidate >= FROM_THE_CANDIDATE * logs.estimate
    )
    return "confirmed" if closes and by_candidate else "open"


def _median(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else None


def _part(values: FloatArray, gap: float | None) -> float | None:
    """The median change as a share of the gap; ``None`` if either is no number."""
    change = _median(values)
    if change is None or gap is None or gap == 0 or not np.isfinite([change, gap]).all():
        return None
    return change / gap
