"""Which source of chance the spread of one command comes from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from equipoise.campaign.blocks import block_costs
from equipoise.design.chance import EVERYTHING, HELD, STUDY
from equipoise.model.plan import Contrast, Plan
from equipoise.model.trial import Trial
from equipoise.model.why import Explanation, Status
from equipoise.stats.spread import KIND, SpreadChange, holm, spread_change, spread_words

LEAST_SHARE = 0.1
"""Of the variance: less is not what the spread comes from, however surely it is there."""


def sources_of_spread(
    plan: Plan, blocks: Mapping[int, tuple[Trial, ...]]
) -> tuple[Explanation, ...]:
    """What each held source takes from the spread, as entries of ``why`` (design.md §4).

    Returns
    -------
    Nothing for a campaign that did not hold sources, or has too few blocks. ``status`` is
    ``source`` (its share of the variance is at least a tenth, and its p-value, corrected by Holm
    for the number of sources, at most alpha), ``not shown``, or ``remainder`` for what is left
    with everything held.
    """
    if plan.study != STUDY or not blocks:
        return ()
    costs = block_costs(plan, blocks, plan.judgement.primary_metric)
    changes: list[tuple[str, SpreadChange]] = []
    for index in range(1, len(plan.conditions)):
        both = costs.both(Contrast(0, index)) & np.isfinite(costs.costs[:, [0, index]]).all(axis=1)
        free, held = costs.costs[both, 0], costs.costs[both, index]
        positive = (free > 0) & (held > 0)
        found = spread_change(free[positive], held[positive], seed=plan.seed + index)
        if found is not None:
            changes.append((plan.conditions[index].levels[HELD], found))
    tried = [one.p_value for name, one in changes if name != EVERYTHING]
    adjusted = iter(holm(tried))
    return tuple(
        _entry(name, one, None if name == EVERYTHING else next(adjusted), plan.judgement.alpha)
        for name, one in changes
    )


def _entry(name: str, one: SpreadChange, adjusted: float | None, alpha: float) -> Explanation:
    status: Status = "not shown"
    if adjusted is None:
        status = "remainder"
    elif adjusted <= alpha and one.share is not None and one.share >= LEAST_SHARE:
        status = "source"
    return Explanation(
        cause=name,
        kind=KIND,
        evidence={
            "spread": one.free,
            "spread_held": one.held,
            "p_value": one.p_value if adjusted is None else adjusted,
            "blocks": one.blocks,
        },
        status=status,
        share_of_gap=one.share,
        share_ci=one.share_ci,
        summary=_words(name, one, status),
    )


def _words(name: str, one: SpreadChange, status: str) -> str:
    change = f"{spread_words(one.held)} instead of {spread_words(one.free)}"
    if status == "remainder":
        return (
            f"with everything held, the middle 80 % of the runs lie within {change}: what is left "
            "is the machine's noise, or a source that cannot be held here"
        )
    low, high = one.share_ci
    interval = "" if low is None or high is None else f" ({100 * low:.0f} % to {100 * high:.0f} %)"
    if status == "source":
        return (
            f"the spread comes from: {name}; with it held, the middle 80 % of the runs lie within "
            f"{change}, which is {100 * (one.share or 0.0):.0f} %{interval} of the variance less"
        )
    return f"not shown to make the times spread: {name}; with it held, {change}"
