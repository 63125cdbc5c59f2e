"""The typical value of the one condition of a campaign that compares nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from equipoise.analysis.comparisons import Blocks
from equipoise.analysis.wording import typical_sentence
from equipoise.campaign.blocks import TIMED_OUT, known_values, resolution_of
from equipoise.campaign.interim import DESCRIBED
from equipoise.model.plan import Plan
from equipoise.model.record import CampaignWarning
from equipoise.model.result import TypicalValue
from equipoise.stats.arrays import FloatArray
from equipoise.stats.describe import is_visible, median_at_any_stop, rank_autocorrelation

SCOPE = (
    "across processes, in this campaign on this host, as long as nothing drifts and runs "
    "are independent of each other"
)


def typical_value(plan: Plan, blocks: Blocks) -> TypicalValue | None:
    """Return the median of the one condition, with an interval that holds at any stop.

    ``None`` for a plan that compares, and without a trial that knows the metric. A trial that timed
    out counts as worst.
    """
    if not plan.describes_one:
        return None
    metric = plan.judgement.primary_metric
    ordered = np.sort(_values(plan, blocks))
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
        other_metrics=plan.judgement.other_metrics,
    )
    return replace(value, summary=typical_sentence(value))


def warnings_of_typical(plan: Plan, blocks: Blocks) -> Iterator[CampaignWarning]:
    """Yield a warning where the runs of the one condition visibly depend on those before them."""
    if not plan.describes_one:
        return
    values = _values(plan, blocks)
    autocorrelation = rank_autocorrelation(values)
    if autocorrelation is not None and is_visible(autocorrelation, len(values)):
        yield CampaignWarning(
            "dependent_runs",
            "each run resembles the one before it (rank autocorrelation "
            f"{autocorrelation:.2f}): the interval of the median is too narrow",
            "compare it with another command, since the verdict of a comparison needs no "
            "independent runs; or measure it again at other times",
        )


def _values(plan: Plan, blocks: Blocks) -> FloatArray:
    """Return the known values of the one condition, in the order of its runs, shape (n,).

    A trial that timed out has the worst value: 0 where more is better.
    """
    metric = plan.judgement.primary_metric
    trials = [
        trial
        for trial in itertools.chain.from_iterable(blocks.values())
        if trial.condition == DESCRIBED
    ]
    values = known_values(trials, [metric])[metric]
    if resolution_of(blocks, metric).more_is_better:
        values[values == TIMED_OUT] = 0.0
    return values[~np.isnan(values)]
