"""The effect by stretches of time, from the same pairs."""

from __future__ import annotations

import numpy as np

from equipoise.matching.frames import require
from equipoise.matching.stratified import plain
from equipoise.model.observed import Period
from equipoise.observation.arms import text_of
from equipoise.observation.clusters import LEAST, Clusters, time_of
from equipoise.observation.covariates import Covariates
from equipoise.observation.effects import effect_of, strata_of
from equipoise.observation.matching import Comparable
from equipoise.observation.question import Log
from equipoise.observation.scores import (
    Estimate,
    Indices,
    SomePairs,
    Values,
    adjusted,
    counted,
    estimate_by,
)

STRETCHES = 4
LEAST_ROWS = 20
"""Of the candidate in each stretch."""


def stretches_of(log: Log, pairs: SomePairs) -> list[tuple[str, str, SomePairs]]:
    """The pairs by equal parts of the candidate's rows in time, each with its first and last time.

    Empty where no column says when, or there are too few rows.
    """
    timed = time_of(log)
    rows = np.unique(pairs.treated_index)
    count = min(STRETCHES, len(rows) // LEAST_ROWS)
    if timed is None or count < 2:
        return []
    name, time = timed
    borders = np.unique(np.quantile(time[rows], np.linspace(0.0, 1.0, count + 1)))
    if len(borders) < 3:
        return []
    of_pair = np.clip(
        np.searchsorted(borders, time[pairs.treated_index], side="right") - 1, 0, len(borders) - 2
    )
    found = []
    for place in range(len(borders) - 1):
        inside = of_pair == place
        part = SomePairs(
            pairs.treated_index[inside], pairs.control_index[inside], pairs.weights[inside]
        )
        own = np.unique(part.treated_index)
        if not len(own):
            return []
        order = own[np.argsort(time[own], kind="stable")]
        found.append((_told(log, name, order[0]), _told(log, name, order[-1]), part))
    return found


def periods_of(
    log: Log,
    comparable: Comparable,
    covariates: Covariates,
    logs: Values | None,
    outcome: Values,
    clusters: Clusters | None,
) -> tuple[tuple[Period, ...], float | None]:
    """The effect in each stretch, from the pairs of its candidate's rows.

    Parameters
    ----------
    logs, outcome
        Shape (rows,): the outcome and its logarithm, where it has one.

    Returns
    -------
    tuple
        The stretches, and the p-value of Cochran's Q: that effects so unlike come of one effect.
        ``None`` where a stretch has no error.
    """
    matched = comparable.pairs
    pairs = SomePairs(matched.treated_index, matched.control_index, matched.weights)
    rows = len(outcome)
    code: Indices = np.arange(rows) if clusters is None else clusters.code
    strata = strata_of(covariates)

    def estimate(values: Values, part: SomePairs) -> Estimate:
        _, serving = counted(part, rows)
        return estimate_by(adjusted(values, covariates.matrix, strata, serving), part, code, LEAST)

    told: list[Period] = []
    estimates: list[Estimate] = []
    for begins, ends, part in stretches_of(log, pairs):
        difference = estimate(outcome, part)
        ratio = None if logs is None else estimate(logs, part)
        effect = effect_of(ratio, difference)
        estimates.append(ratio or difference)
        told.append(
            Period(
                begins,
                ends,
                len(np.unique(part.treated_index)),
                effect.ratio,
                effect.ratio_ci,
                effect.difference,
                effect.difference_ci,
            )
        )
    return tuple(told), chance_of_unequal(estimates)


def chance_of_unequal(estimates: list[Estimate]) -> float | None:
    """The p-value of Cochran's Q: that effects so unlike come of one; ``None`` without errors."""
    known = [one for one in estimates if one.error]
    if len(known) < 2 or len(known) < len(estimates):
        return None
    effects = np.array([one.effect for one in known])
    weights = np.array([1.0 / (one.error or 1.0) ** 2 for one in known])
    centre = float(np.average(effects, weights=weights))
    heterogeneity = float((weights * (effects - centre) ** 2).sum())
    return float(require("scipy.stats", "tests").chi2.sf(heterogeneity, len(known) - 1))


def _told(log: Log, name: str, row: int) -> str:
    value = log[name][row]
    return str(value) if log[name].dtype.kind == "M" else text_of(plain(value))
