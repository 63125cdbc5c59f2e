"""Survival outcomes: the marginal hazard ratio, and the chance of survival at a time.

statsmodels' ``PHReg`` takes no weights, so the weighted Cox model of one indicator is here. Ties
have Efron's approximation, and the error is that of Lin and Wei (1989, JASA 84(408)) and Binder
(1992, Biometrika 79(1)), as R's ``survival::coxph(weights=, robust=TRUE, cluster=)`` has them. The
chance of survival is the weighted Kaplan-Meier estimate; its error is the infinitesimal jackknife,
as in R's ``survfit``.

A hazard ratio conditions on survival, so it is not the effect on a person even after a perfect
design (Hernán 2010, Epidemiology 21(1)). The difference of the chances of survival is.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from equipoise_matching.effects.arm_means import ArmMeans, Contrast
from equipoise_matching.effects.sample import EffectSample
from equipoise_matching.matching.units import Floats, Indices, Truths
from equipoise_matching.shared.errors import UnusableInput

MAX_NEWTON_STEPS = 50
_CONVERGED = 1e-14
"""Size of a Newton step, in logarithms of the hazard ratio, that ends the iteration."""
MAX_LOG_RATIO = 30.0
"""Largest logarithm of a hazard ratio; a larger one means that one arm has no events at risk."""


class _DeathTable(Struct, frozen=True):
    """An entry for each death: of d tied deaths, death k sees k/d of them removed (Efron)."""

    time_index: Indices
    """Index of the entry's time among the distinct times of deaths."""
    removed: Floats
    """The share k/d."""
    weight: Floats
    """Mean weight of the deaths at this time."""
    at_risk: tuple[Floats, Floats]
    """Weight at risk of each arm: controls, treated."""


def log_hazard_ratio(
    time: Floats, event: Truths, weights: Floats, treated: Truths, names: tuple[str, str]
) -> Contrast:
    """Return the logarithm of the hazard ratio of treated and control, with its influence.

    Raise `UnusableInput` if an arm has no event.
    """
    for is_in_arm, name in ((~treated, names[1]), (treated, names[0])):
        if not (event & is_in_arm).any():
            raise UnusableInput(
                f"{name} has no event, so there is no hazard ratio",
                hint='give scale="survival difference" and a time in at=',
            )
    weights = weights / float(weights.mean())
    times = np.unique(time[event])
    table = _death_table(time, event, weights, treated, times)
    controls, risk = table.at_risk
    deaths = float(weights[event & treated].sum())
    value = 0.0
    for _ in range(MAX_NEWTON_STEPS):
        ratio = math.exp(value)
        share = risk * ratio / (controls + risk * ratio)
        score = deaths - float((table.weight * share).sum())
        information = float((table.weight * share * (1.0 - share)).sum())
        if not information > 0.0:
            break
        step = max(-1.0, min(1.0, score / information))
        value += step
        if abs(step) <= _CONVERGED * max(1.0, abs(value)):
            break
    if abs(value) > MAX_LOG_RATIO or not information > 0.0:
        raise UnusableInput(
            "the rows at risk have one arm at the time of each event, so there is no hazard ratio",
            hint='give scale="survival difference" and a time in at=',
        )
    residual = _score_residuals(time, event, treated, times, table, value)
    return Contrast(value, weights * residual / information)


def _death_table(
    time: Floats, event: Truths, weights: Floats, treated: Truths, times: Floats
) -> _DeathTable:
    position = np.searchsorted(times, time[event])
    counts = np.bincount(position, minlength=len(times))
    time_index = np.repeat(np.arange(len(times)), counts)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    removed = (np.arange(len(time_index)) - starts[time_index]) / counts[time_index]
    totals = np.bincount(position, weights[event], len(times))
    at_risk = []
    for is_in_arm in (~treated, treated):
        order = np.argsort(time[is_in_arm], kind="stable")
        sorted_times = time[is_in_arm][order]
        sums = np.concatenate([[0.0], np.cumsum(weights[is_in_arm][order][::-1])])
        remaining = len(sorted_times) - np.searchsorted(sorted_times, times, side="left")
        dying = event & is_in_arm
        died = np.bincount(np.searchsorted(times, time[dying]), weights[dying], len(times))
        at_risk.append(sums[remaining][time_index] - removed * died[time_index])
    return _DeathTable(time_index, removed, (totals / counts)[time_index], (at_risk[0], at_risk[1]))


def _score_residuals(
    time: Floats, event: Truths, treated: Truths, times: Floats, table: _DeathTable, value: float
) -> Floats:
    """Return the part of each row, per unit of its weight, in the score at the estimate."""
    ratio, count = math.exp(value), len(times)
    controls, risk = table.at_risk
    total = controls + risk * ratio
    share, hazard = risk * ratio / total, table.weight / total

    def by_time(entries: Floats) -> Floats:
        return np.asarray(np.bincount(table.time_index, entries, count))

    deaths = np.bincount(table.time_index, minlength=count)
    mean_share = by_time(share) / deaths
    cumulative = np.concatenate([[0.0], np.cumsum(by_time(hazard))])
    cumulative_share = np.concatenate([[0.0], np.cumsum(by_time(hazard * share))])
    spared = by_time(table.removed * hazard)
    spared_share = by_time(table.removed * hazard * share)
    indicator = treated.astype(np.float64)
    reached = np.searchsorted(times, time, side="right")
    own = np.minimum(np.searchsorted(times, time), count - 1)
    expected = indicator * cumulative[reached] - cumulative_share[reached]
    expected -= np.where(event, indicator * spared[own] - spared_share[own], 0.0)
    observed = np.where(event, indicator - mean_share[own], 0.0)
    return np.asarray(observed - np.where(treated, ratio, 1.0) * expected)


def survival_means(sample: EffectSample, at: float) -> ArmMeans:
    """Return the chance of survival beyond the time ``at`` under each arm.

    Raise `UnusableInput` if nobody of an arm is followed until this time.
    """
    if sample.event is None:
        raise UnusableInput("survival needs event=", hint="give 1 for events, 0 for censoring")
    arms = len(sample.arm_names)
    values, influence = np.zeros(arms), np.zeros((len(sample), arms))
    for index, name in enumerate(sample.arm_names):
        rows = np.flatnonzero(sample.arm == index)
        time, event = sample.outcome[rows], sample.event[rows]
        if float(time.max()) < at:
            raise UnusableInput(
                f"the longest time of {name} is {time.max():g}, before at={at:g}",
                hint="give an earlier time",
            )
        values[index], influence[rows, index] = _survival_chance(
            time, event, sample.weights[rows], at
        )
    return ArmMeans(values, influence, arms, f"the weighted Kaplan-Meier estimate at {at:g}")


def _survival_chance(
    time: Floats, event: Truths, weights: Floats, at: float
) -> tuple[float, Floats]:
    """Return the Kaplan-Meier estimate at a time, and the influence of each row."""
    times = np.unique(time[event & (time <= at)])
    if not len(times):
        return 1.0, np.zeros(len(time))
    weights = weights / float(weights.mean())
    order = np.argsort(time, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(weights[order][::-1])])
    at_risk = sums[len(time) - np.searchsorted(time[order], times, side="left")]
    counted = event & (time <= at)
    died = np.bincount(np.searchsorted(times, time[counted]), weights[counted], len(times))
    remaining = at_risk - died
    is_last = remaining <= 1e-12 * at_risk
    if is_last.any():
        return 0.0, np.zeros(len(time))
    chance = float(np.exp(np.log(remaining / at_risk).sum()))
    # Derivative of the logarithm with respect to a row's weight: −(dN − Y dN/Y)/(Y − dN).
    exposure = np.concatenate([[0.0], np.cumsum(died / at_risk / remaining)])
    reached = np.searchsorted(times, time, side="right")
    own = np.minimum(np.searchsorted(times, time), len(times) - 1)
    change = exposure[reached] - np.where(counted, 1.0 / remaining[own], 0.0)
    return chance, chance * weights * change
