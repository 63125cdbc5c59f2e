"""The shape of one condition's times: what its modes go with, and the states it went through."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from equipoise.campaign.blocks import QUANTA
from equipoise.model.plan import Plan
from equipoise.model.result import MetricSummary, State
from equipoise.model.trial import Trial
from equipoise.stats.arrays import FloatArray
from equipoise.stats.changes import states
from equipoise.stats.companions import LEAST_TRIALS, Covariate, companions
from equipoise.stats.describe import describe
from equipoise.stats.modes import find_modes

NAMED = frozenset({"cpu"})
"""Covariates whose numbers are names."""
POSITION, PADDING, TIME = "position", "environment_bytes", "time"


def shape_of(
    plan: Plan,
    metric: str,
    values: FloatArray,
    trials: Sequence[Trial],
    paddings: Mapping[int, int],
) -> MetricSummary:
    """Describe one metric of one condition, with what its modes go with.

    Parameters
    ----------
    values
        Shape (n,): the known, finite values, in the order in which the trials ran.
    trials
        The n trials they are of.
    paddings
        For each measured block, by how many bytes its environments were enlarged.
    """
    resolution = QUANTA.get(metric, 0.0)
    summary = describe(values, seed=plan.seed, resolution=resolution)
    if len(summary.modes) > 1 and len(values) >= LEAST_TRIALS:
        modes = find_modes(values, resolution=resolution).of(values)
        beside = _covariates(trials, paddings)
        summary = dataclasses.replace(summary, companions=companions(modes, beside))
    if metric != plan.judgement.primary_metric:
        return summary
    return dataclasses.replace(summary, states=_states(values))


def _states(values: FloatArray) -> tuple[State, ...] | None:
    """Null for too few trials."""
    if len(values) < LEAST_TRIALS:
        return None
    return states(values)


def observed_covariates(trials: Sequence[Trial]) -> list[Covariate]:
    """What was observed beside each trial, and the order in which they ran."""
    names = dict.fromkeys(name for trial in trials for name in trial.covariates)
    observed = [
        Covariate(
            name,
            _column([trial.covariates.get(name) for trial in trials]),
            named=name in NAMED,
            drawn=False,
        )
        for name in names
    ]
    order = np.arange(len(trials), dtype=np.float64)
    return [*observed, Covariate(TIME, order, named=False, drawn=True)]


def _covariates(trials: Sequence[Trial], paddings: Mapping[int, int]) -> list[Covariate]:
    positions = _column([trial.position for trial in trials])
    sizes = _column([paddings.get(trial.block) for trial in trials])
    drawn = [
        Covariate(POSITION, positions, named=True, drawn=True),
        Covariate(PADDING, sizes, named=False, drawn=True),
    ]
    return [*observed_covariates(trials), *drawn]


def _column(values: Sequence[float | None]) -> FloatArray:
    return np.array([math.nan if one is None else one for one in values], dtype=np.float64)
