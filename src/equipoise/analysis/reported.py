"""What a workload reports itself: why it is not there, and why it spreads widely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from equipoise.analysis.shape import TIME, observed_covariates
from equipoise.campaign.blocks import is_unavailable
from equipoise.model.result import MetricSummary
from equipoise.model.trial import UNAVAILABLE, Trial
from equipoise.stats.arrays import FloatArray
from equipoise.stats.companions import Association, goes_with
from equipoise.stats.levels import variance_by_level

WIDE = 0.10
"""Half the distance from the 5th to the 95th percentile over the median, from which on it is."""


def why_unknown(trials: Sequence[Trial], metric: str) -> str:
    """Why none of these trials reported a metric: the reason of most of them."""
    failures = Counter(_failure(one) for one in trials if one.failure is not None)
    if failures:
        return failures.most_common(1)[0][0]
    unknown = (one.accounting.unknown for one in trials)
    reasons = Counter(one[metric] for one in unknown if metric in one)
    if reasons:
        return reasons.most_common(1)[0][0]
    return "its trials did not report it" if trials else "no trial of it is analysed"


def is_wide(summary: MetricSummary) -> bool:
    """Whether a metric spreads so much that the reader should be told why."""
    return summary.median > 0 and summary.p95 - summary.p05 > 2.0 * WIDE * summary.median


def why_wide(metric: str, values: FloatArray, trials: Sequence[Trial], *, seed: int) -> str:
    """Say where the spread of a metric lies, and what goes with it.

    Parameters
    ----------
    values
        Shape (n,): the metric of the trials, in the order in which they ran.
    trials
        The n trials.
    seed
        Of the resampling of the variance by level.
    """
    found = goes_with(values, observed_covariates(trials))
    parts = (_levels_words(metric, trials, seed), _with(found))
    return "; ".join(part for part in parts if part)


def _failure(trial: Trial) -> str:
    words = (trial.failure or "").removeprefix(UNAVAILABLE)
    if is_unavailable(trial):
        return words
    lines = trial.error_tail.strip().splitlines()
    return f"{words}: {lines[-1]}" if lines else words


def _levels_words(metric: str, trials: Sequence[Trial], seed: int) -> str:
    """How processes and the batches of one process differ; empty where either has no two."""
    logs: list[float] = []
    units: list[int] = []
    for place, trial in enumerate(trials):
        batches = [
            one.value for one in trial.samples if one.metric == metric and one.iteration is not None
        ]
        if len(batches) > 1 and min(batches) > 0:
            logs.extend(np.log(batches))
            units.extend([place] * len(batches))
    if len(set(units)) < 2:
        return ""
    found = variance_by_level(
        np.array(logs), [np.array(units)], ("process", "batch"), seed=seed % 2**32
    )
    process, batch = (100.0 * np.sqrt(max(0.0, one.variance)) for one in found.components)
    return f"{_percent(process)} between processes, {_percent(batch)} between batches of one"


def _percent(value: float) -> str:
    return f"{value:.0f} %" if value >= 10 else f"{value:.2g} %"


def _with(found: Association | None) -> str:
    """What the value goes with."""
    if found is None:
        return "nothing observed goes with it for certain"
    how = "higher" if found.value is not None or found.correlation > 0 else "lower"
    if found.covariate == TIME:
        return f"{how} later: it drifted"
    if found.value is not None:
        return f"{how} on {found.covariate} {found.value:g}"
    return f"{how} with more {found.covariate}"
