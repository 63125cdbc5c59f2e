"""What a workload reports itself: why it is not there, and why it spreads widely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from equipoise.campaign.shape import TIME, observed_covariates
from equipoise.model.result import MetricSummary
from equipoise.model.trial import UNAVAILABLE, Trial
from equipoise.stats.arrays import FloatArray
from equipoise.stats.companions import Association, goes_with
from equipoise.stats.levels import variance_by_level

WIDE = 0.10
"""Half the distance from the 5th to the 95th percentile over the median, from which on it is."""


def is_unavailable(trial: Trial) -> bool:
    """Whether the machine could not do what the trial asked for."""
    return trial.failure is not None and trial.failure.startswith(UNAVAILABLE)


def why_unknown(trials: Sequence[Trial]) -> str:
    """Why none of these trials reported a metric: what most of them failed of."""
    failures = Counter(_failure(one) for one in trials if one.failure is not None)
    if failures:
        return failures.most_common(1)[0][0]
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
    parts = [_levels_words(metric, trials, seed)]
    found = goes_with(values, observed_covariates(trials))
    if found is None:
        parts.append("nothing that was observed goes with it for certain")
    else:
        parts.append(f"{_much(metric, found)} {_with(found)}")
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
    return f"processes differ by {process:.2g} %, batches in one by {batch:.2g} %"


def _much(metric: str, found: Association) -> str:
    name = "latency" if metric.endswith("_s") and not metric.endswith("_per_s") else "value"
    return f"the {'higher' if found.value is not None or found.correlation > 0 else 'lower'} {name}"


def _with(found: Association) -> str:
    if found.covariate == TIME:
        return "came later: it drifted"
    if found.value is not None:
        return f"goes with {found.covariate} {found.value:g}"
    return f"goes with more {found.covariate}"
