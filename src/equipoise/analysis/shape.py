"""The shape of one condition's times: what its modes go with, and the states it went through."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from equipoise.campaign.blocks import QUANTA
from equipoise.model.plan import Plan
from equipoise.model.result import MetricSummary, State
from equipoise.model.trial import Draw, Trial
from equipoise.stats.arrays import FloatArray
from equipoise.stats.changes import states
from equipoise.stats.companions import LEAST_TRIALS, Covariate, companions
from equipoise.stats.describe import describe
from equipoise.stats.modes import find_modes

NAMED = frozenset({"cpu", "host"})
"""Covariates whose numbers are names."""
POSITION, PADDING, TIME = "position", "environment_bytes", "time"
LAYOUT, PATH, ADDRESSES = "layout", "argument_bytes", "random_addresses"


def shape_of(
    plan: Plan,
    metric: str,
    values: FloatArray,
    trials: Sequence[Trial],
    draws: Mapping[int, Draw],
) -> MetricSummary:
    """Describe one metric of one condition, with what its modes go with.

    Parameters
    ----------
    values
        Shape (n,): the known, finite values, in the order in which the trials ran.
    trials
        The n trials they are of.
    draws
        Of each measured block, by its number.
    """
    resolution = QUANTA.get(metric, 0.0)
    summary = describe(values, seed=plan.seed, resolution=resolution)
    if len(summary.modes) > 1 and len(values) >= LEAST_TRIALS:
        modes = find_modes(values, resolution=resolution).of(values)
        beside = observed_covariates(trials)
        if plan.imported is None:
            beside = [*_observed(trials), *_drawn(plan, trials, draws)]
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
    return [*_observed(trials), _time(trials)]


def _observed(trials: Sequence[Trial]) -> Iterator[Covariate]:
    for name in dict.fromkeys(name for trial in trials for name in trial.covariates):
        column = _column([trial.covariates.get(name) for trial in trials])
        yield Covariate(name, column, named=name in NAMED, drawn=False)


def _drawn(plan: Plan, trials: Sequence[Trial], draws: Mapping[int, Draw]) -> Iterator[Covariate]:
    positions = _column([trial.position for trial in trials])
    yield Covariate(POSITION, positions, named=True, drawn=True)
    yield _time(trials)
    of_trials = [draws.get(trial.block) for trial in trials]
    sizes = _column([None if draw is None else draw.padding_bytes for draw in of_trials])
    if not plan.layouts:
        yield Covariate(PADDING, sizes, named=False, drawn=True)
        return
    numbers = [None if draw is None else draw.layout for draw in of_trials]
    yield Covariate(LAYOUT, _column(numbers), named=True, drawn=True)
    layouts = [None if number is None else plan.layouts[number - 1] for number in numbers]
    paths = _column([None if one is None else one.argument_bytes for one in layouts])
    coins = _column([None if one is None else one.random_addresses for one in layouts])
    # Drawn once for each layout: so many draws there are to go by, not one for each trial.
    units = len(set(numbers))
    yield Covariate(PADDING, sizes, named=False, drawn=True, units=units)
    yield Covariate(PATH, paths, named=False, drawn=True, units=units)
    yield Covariate(ADDRESSES, coins, named=True, drawn=True, units=units)


def _time(trials: Sequence[Trial]) -> Covariate:
    return Covariate(TIME, np.arange(len(trials), dtype=np.float64), named=False, drawn=True)


def _column(values: Sequence[float | None]) -> FloatArray:
    return np.array([math.nan if one is None else one for one in values], dtype=np.float64)
