"""The typical value of the one condition of a campaign that compares nothing."""

from __future__ import annotations

import itertools

import numpy as np
from msgspec.structs import replace

from equipoise.analysis.comparisons import Blocks
from equipoise.analysis.wording import typical_sentence
from equipoise.campaign.blocks import known_values
from equipoise.campaign.describing import DESCRIBED
from equipoise.model.plan import Plan
from equipoise.model.result import TypicalValue
from equipoise.stats.describe import median_at_any_stop

SCOPE = "across processes, in this campaign on this host, as long as nothing drifts"


def typical_value(plan: Plan, blocks: Blocks) -> TypicalValue | None:
    """Return the median of the one condition, with an interval that holds at any stop.

    ``None`` for a plan that compares, and without a trial that knows the metric. A trial that timed
    out counts as slowest.
    """
    if not plan.describes_one:
        return None
    metric = plan.judgement.primary_metric
    trials = [
        trial
        for trial in itertools.chain.from_iterable(blocks.values())
        if trial.condition == DESCRIBED
    ]
    values = known_values(trials, [metric])[metric]
    ordered = np.sort(values[~np.isnan(values)])
    if not len(ordered):
        return None
    value = TypicalValue(
        condition=plan.conditions[DESCRIBED].name,
        metric=metric,
        median=float(np.median(ordered)),
        median_ci=median_at_any_stop(ordered, plan.judgement.alpha),
        level=plan.judgement.alpha,
        trials=len(ordered),
        scope=SCOPE,
        summary="",
    )
    return replace(value, summary=typical_sentence(value))
