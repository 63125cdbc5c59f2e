"""The effect by periods of time, from the same pairs."""

from __future__ import annotations

from functools import partial

import numpy as np
from msgspec.structs import astuple

from equipoise.matching.categories import text_of
from equipoise.matching.stratified import plain
from equipoise.model.extras import require
from equipoise.model.observation_result import Period
from equipoise.observation.clusters import time_of
from equipoise.observation.effects import (
    Estimate,
    PairSubset,
    effect_over_pairs,
    estimate_by_clusters,
    to_effect,
)
from equipoise.observation.matching import BalancedMatch
from equipoise.observation.question import Indices, Log, Values
from equipoise.observation.sample import Sample

MAX_PERIODS = 4
MIN_ROWS = 20
"""Candidate rows that each period needs."""


def periods_of(sample: Sample, matched: BalancedMatch) -> tuple[tuple[Period, ...], float | None]:
    """Estimate the effect in each period, from the pairs of its candidate rows.

    The periods come with the p-value of Cochran's Q for one common effect, which is ``None`` where
    a period has no error.
    """
    matrix, strata = sample.covariates.matrix, sample.covariates.exact_strata()
    code: Indices = np.arange(len(matrix)) if sample.clusters is None else sample.clusters.code

    def estimate(pairs: PairSubset, outcome: Values) -> Estimate:
        return estimate_by_clusters(effect_over_pairs(outcome, matrix, strata, pairs), code)

    periods: list[Period] = []
    estimates: list[Estimate] = []
    for begins, ends, pairs in _split(sample.log, matched):
        scales = sample.outcomes.map(partial(estimate, pairs))
        estimates.append(scales.main)
        rows = len(np.unique(pairs.treated_index))
        periods.append(Period(begins, ends, rows, *astuple(to_effect(scales))))
    return tuple(periods), _chance_of_equality(estimates)


def _split(log: Log, matched: BalancedMatch) -> list[tuple[str, str, PairSubset]]:
    """Split the pairs at equal shares of the candidate's rows in time.

    A period has its first time, its last time and its pairs. There is none without times or with
    too few rows.
    """
    pairs, timed = matched.pairs, time_of(log)
    rows = np.unique(pairs.treated_index)
    count = min(MAX_PERIODS, len(rows) // MIN_ROWS)
    if timed is None or count < 2:
        return []
    name, time = timed
    borders = np.unique(np.quantile(time[rows], np.linspace(0.0, 1.0, count + 1)))
    if len(borders) < 3:
        return []
    pair_time = time[pairs.treated_index]
    period = np.clip(np.searchsorted(borders, pair_time, side="right") - 1, 0, len(borders) - 2)
    periods = []
    for place in range(len(borders) - 1):
        inside = period == place
        if not inside.any():
            return []
        part = PairSubset(
            pairs.treated_index[inside], pairs.control_index[inside], pairs.weights[inside]
        )
        rows = np.unique(part.treated_index)
        order = rows[np.argsort(time[rows], kind="stable")]
        periods.append((_time_text(log, name, order[0]), _time_text(log, name, order[-1]), part))
    return periods


def _chance_of_equality(estimates: list[Estimate]) -> float | None:
    """Return the p-value of Cochran's Q for one common effect; ``None`` without errors."""
    errors = np.array([estimate.error for estimate in estimates if estimate.error])
    if len(errors) < 2 or len(errors) < len(estimates):
        return None
    effects = np.array([estimate.effect for estimate in estimates])
    weights = 1.0 / errors**2
    centre = float(np.average(effects, weights=weights))
    heterogeneity = float((weights * (effects - centre) ** 2).sum())
    return float(require("scipy.stats", "tests").chi2.sf(heterogeneity, len(effects) - 1))


def _time_text(log: Log, name: str, row: int) -> str:
    value = log[name][row]
    return str(value) if log[name].dtype.kind == "M" else text_of(plain(value))
