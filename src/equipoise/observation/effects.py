"""The effect on one outcome over the pairs, with each error that there is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.match import match
from equipoise.model.observation_result import Bounds, Effect, ErrorEstimate, MatchedEffect
from equipoise.observation.clusters import LEAST, Clusters
from equipoise.observation.covariates import Covariates
from equipoise.observation.matching import Comparable
from equipoise.observation.scores import (
    Adjusted,
    Estimate,
    Indices,
    Linearised,
    Values,
    adjusted,
    counted,
    estimate_by,
    linearised,
    student,
    with_error,
)

ABADIE_IMBENS, BY_CLUSTERS = "abadie-imbens", "clusters"


@dataclass(frozen=True, slots=True)
class Found:
    """The effect on one outcome.

    Attributes
    ----------
    adjusted
        The outcome and what the covariates explain of it.
    by
        The estimate with each error, by its name.
    main
        The name of the error that counts.
    """

    adjusted: Adjusted
    linear: Linearised
    by: dict[str, Estimate]
    main: str

    @property
    def estimate(self) -> Estimate:
        """The estimate with the error that counts."""
        return self.by[self.main]


def found(
    outcome: Values,
    covariates: Covariates,
    treated: NDArray[np.bool_],
    comparable: Comparable,
    clusters: Clusters | None,
    *,
    among: int = 1,
) -> Found:
    """Estimate the effect on one outcome over the pairs.

    Parameters
    ----------
    outcome
        Shape (rows,).
    among
        So many such intervals are to hold together.
    """
    pairs = comparable.pairs
    _, serving = counted(pairs, len(outcome))
    outcome_left = adjusted(outcome, covariates.matrix, strata_of(covariates), serving)
    linear = linearised(outcome_left.left, pairs)
    # The variance of Abadie and Imbens, of outcomes from which the regression is taken out
    # (2011, theorem 2: adjusting leaves it as it is).
    error = match(outcome_left.left, treated, comparable.points, reuse=pairs).se
    by = {ABADIE_IMBENS: Estimate(linear.effect, None, None)}
    if error is not None:
        quantile = student(math.inf, among=among)
        by[ABADIE_IMBENS] = with_error(linear.effect, error, quantile)
    main = ABADIE_IMBENS
    if clusters is not None:
        by[BY_CLUSTERS] = estimate_by(outcome_left, pairs, clusters.code, LEAST, among=among)
        main = BY_CLUSTERS
    return Found(outcome_left, linear, by, main)


def strata_of(covariates: Covariates) -> Indices:
    """Shape (rows,): the stratum in which a row is matched exactly; 0 without such columns."""
    if not covariates.exact_names:
        return np.zeros(len(covariates.matrix), dtype=np.int64)
    together = np.unique(covariates.exact, axis=0, return_inverse=True)[1]
    return np.asarray(together, dtype=np.int64).reshape(-1)


def effect_of(log: Estimate | None, plain: Estimate) -> Effect:
    """The effect as a ratio, where there is a logarithm, and as a difference."""
    return Effect(
        None if log is None else math.exp(log.effect),
        None if log is None else ratio_bounds(log.interval),
        plain.effect,
        plain.interval,
    )


def ratio_bounds(interval: tuple[float, float] | None) -> Bounds:
    """The ends of a log interval as ratios."""
    return None if interval is None else (math.exp(interval[0]), math.exp(interval[1]))


def matched_of(log: Found | None, plain: Found) -> MatchedEffect:
    """The effect on both scales with all its errors."""
    return MatchedEffect(
        effect_of(None if log is None else log.estimate, plain.estimate),
        plain.main,
        errors_of(None if log is None else log.by, plain.by),
    )


def errors_of(
    log: dict[str, Estimate] | None, plain: dict[str, Estimate]
) -> tuple[ErrorEstimate, ...]:
    """Every error by its name, on the log scale, where there is one, and as a difference."""
    return tuple(
        ErrorEstimate(
            name,
            None if log is None else log[name].error,
            None if log is None else ratio_bounds(log[name].interval),
            one.error,
            one.interval,
        )
        for name, one in plain.items()
    )
