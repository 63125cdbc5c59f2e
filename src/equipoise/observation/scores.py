"""The effect over pairs, and its error where rows are not independent.

With pairs (i, j) of weight w, t_i = Σ w over the pairs of the candidate's row i, k_j = Σ w over the
pairs that the baseline's row j serves in, and m a regression of the outcome on the covariates in
the rows that serve, weighted by k (Abadie and Imbens 2011, JBES 29(1)), the effect is

    τ = Σ w [(Y_i − m(X_i)) − (Y_j − m(X_j))] / Σ w,

the sum of the scores ψ_i = t_i (Y_i − m(X_i) − τ) / Σ w of the candidate's rows and ψ_j =
−k_j (Y_j − m(X_j)) / Σ w of the baseline's. Rows of one cluster are not independent, so what counts
is the sum of a cluster's scores: V = G/(G − 1) Σ_g (Σ_{i in g} ψ_i)². That is for many clusters
(``clustered``). With few, a cluster's sum is too small, since the cluster has drawn τ and m to
itself; what leaving it out does to τ is not (``jackknife``). Intervals are Student's, with one
degree of freedom less than the fewer clusters of the two arms.

m is a regression and no mean of neighbours, since neighbours in one cluster share its error and
would hide it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.frames import require

Values = NDArray[np.float64]
Indices = NDArray[np.int64]

LEVEL = 0.95
MANY_CLUSTERS = 2000
"""With more the scores' own sums give the error: both agree."""
_CONSTANT = 1e-12
"""What varies by no more, beside its size, is rounding."""


class Pairs(Protocol):
    """The candidate's row, the baseline's row and the weight of each pair."""

    @property
    def treated_index(self) -> Indices:
        """Rows of the candidate."""

    @property
    def control_index(self) -> Indices:
        """Rows of the baseline."""

    @property
    def weights(self) -> Values:
        """What each pair counts."""


@dataclass(frozen=True, slots=True)
class SomePairs:
    """Some of the pairs of a match."""

    treated_index: Indices
    control_index: Indices
    weights: Values


@dataclass(frozen=True, slots=True)
class Estimate:
    """An effect in the unit of the outcome; ``error`` and ``interval`` where there are clusters
    enough for one."""

    effect: float
    error: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Adjusted:
    """An outcome with what the covariates explain.

    Attributes
    ----------
    left
        Shape (rows,), the outcome less what the regression expects of it.
    centred
        Shape (rows,), the outcome less the mean of its stratum.
    columns
        Shape (rows, terms), the covariates that entered, likewise; no term if none did.
    """

    left: Values
    centred: Values
    columns: Values


@dataclass(frozen=True, slots=True)
class Linearised:
    """The effect over the pairs, and of each row of the log its score."""

    effect: float
    scores: Values
    treated_rows: Indices
    serving_rows: Indices


def counted(pairs: Pairs, rows: int) -> tuple[Values, Values]:
    """Of each row, shape (rows,): what it counts as the candidate's, and as one that serves."""
    treated = np.bincount(pairs.treated_index, pairs.weights, rows).astype(np.float64)
    serving = np.bincount(pairs.control_index, pairs.weights, rows).astype(np.float64)
    return treated, serving


def adjusted(outcome: Values, matrix: Values, strata: Indices, serving: Values) -> Adjusted:
    """Regress the outcome on the covariates among the rows that serve.

    With no more of them than strata and columns only the means of the strata are taken out. Of
    rows in strata where nobody serves the result means nothing.

    Parameters
    ----------
    outcome, matrix
        Shape (rows,) and (rows, columns).
    strata
        Shape (rows,), the stratum of exact matching: each has a mean of its own.
    serving
        Shape (rows,), the weights of the regression.
    """
    used = np.flatnonzero(serving > 0.0)
    centred = within(outcome, strata, serving)
    columns = np.zeros_like(matrix)
    for place in range(matrix.shape[1]):
        column = within(matrix[:, place], strata, serving)
        spread = math.sqrt(float(np.average(column[used] ** 2, weights=serving[used])))
        largest = float(np.abs(matrix[:, place]).max())
        columns[:, place] = column / spread if spread > _CONSTANT * largest else 0.0
    columns = columns[:, columns[used].any(axis=0)]
    terms = columns.shape[1] + len(np.unique(strata[used]))
    if not columns.shape[1] or len(used) <= terms:
        return Adjusted(centred, centred, columns[:, :0])
    root = np.sqrt(serving[used])
    slopes = np.linalg.lstsq(columns[used] * root[:, None], centred[used] * root, rcond=None)[0]
    return Adjusted(centred - columns @ slopes, centred, columns)


def within(column: Values, strata: Indices, weights: Values) -> Values:
    """A column less its weighted mean in each stratum."""
    totals = np.bincount(strata, weights)
    sums = np.bincount(strata, weights * column)
    means = np.divide(sums, totals, out=np.zeros_like(sums), where=totals > 0.0)
    return np.asarray(column - means[strata], dtype=np.float64)


def linearised(left: Values, pairs: Pairs) -> Linearised:
    """The effect over the pairs and the scores that it is the sum of.

    Parameters
    ----------
    left
        Shape (rows,), as ``adjusted`` gives it.
    """
    treated, serving = counted(pairs, len(left))
    total = float(treated.sum())
    middle = float((serving * left).sum()) / total
    effect = float((treated * left).sum()) / total - middle
    scores = (treated * (left - middle - effect) - serving * (left - middle)) / total
    return Linearised(effect, scores, np.flatnonzero(treated > 0.0), np.flatnonzero(serving > 0.0))


def clustered(found: Linearised, code: Indices) -> tuple[float, int]:
    """The error with scores added up by cluster, and the degrees of freedom of its interval."""
    rows = np.union1d(found.treated_rows, found.serving_rows)
    present, place = np.unique(code[rows], return_inverse=True)
    sums = np.bincount(place, found.scores[rows])
    count = len(present)
    fewest = min(len(np.unique(code[found.treated_rows])), len(np.unique(code[found.serving_rows])))
    if count < 2 or fewest < 2:
        return math.nan, 0
    return math.sqrt(count / (count - 1) * float((sums**2).sum())), fewest - 1


def jackknife(found: Adjusted, pairs: Pairs, code: Indices) -> tuple[float, int]:
    """The error by leaving out one cluster at a time, and the degrees of freedom.

    V = (G − 1)/G Σ_g (τ₍₋g₎ − τ)², the regression fitted anew each time; the pairs' weights and
    the means of the strata stay (MacKinnon, Nielsen and Webb 2023, J. Econometrics 232(2), CV3).
    """
    linear = linearised(found.left, pairs)
    fewest = min(
        len(np.unique(code[linear.treated_rows])), len(np.unique(code[linear.serving_rows]))
    )
    if fewest < 2:
        return math.nan, 0
    _, effects = effects_without(found, pairs, code)
    count = len(effects)
    spread = float(((effects - linear.effect) ** 2).sum())
    return math.sqrt((count - 1) / count * spread), fewest - 1


def effects_without(found: Adjusted, pairs: Pairs, code: Indices) -> tuple[Indices, Values]:
    """The clusters, shape (clusters,), and the effect with each left out, as ``jackknife`` does.

    Of the rows that count; each version must lie in two clusters at least.
    """
    treated, serving = counted(pairs, len(found.left))
    rows = np.flatnonzero((treated > 0.0) | (serving > 0.0))
    present, place = np.unique(code[rows], return_inverse=True)
    count = len(present)
    outcome, columns = found.centred[rows], found.columns[rows]

    def others(values: Values) -> Values:
        """The sum of all other clusters, for each cluster."""
        sums = np.bincount(place, values, count)
        return np.asarray(sums.sum() - sums, dtype=np.float64)

    terms = range(columns.shape[1])
    means = []
    for weights in (treated[rows], serving[rows]):
        total = others(weights)
        of_columns = [others(weights * columns[:, term]) / total for term in terms]
        means.append((others(weights * outcome) / total, np.array(of_columns)))
    slopes = np.zeros((count, len(terms)))
    if len(terms):
        weights, (of_outcome, of_columns_served) = serving[rows], means[1]
        total = others(weights)
        cross = np.empty((count, len(terms), len(terms)))
        against = np.empty((count, len(terms), 1))
        for one in terms:
            weighted = weights * columns[:, one]
            own = of_columns_served[one]
            against[:, one, 0] = others(weighted * outcome) / total - own * of_outcome
            for other in terms:
                products = others(weighted * columns[:, other]) / total
                cross[:, one, other] = products - own * of_columns_served[other]
        slopes = (np.linalg.pinv(cross, hermitian=True) @ against)[:, :, 0]
    (treated_outcome, treated_columns), (served_outcome, served_columns) = means
    moved = np.zeros(count)
    if len(terms):
        moved = ((treated_columns - served_columns).T * slopes).sum(axis=1)
    effects = treated_outcome - served_outcome - moved
    return present, effects


def estimate_by(
    found: Adjusted, pairs: Pairs, code: Indices, least: int, *, among: int = 1
) -> Estimate:
    """The effect with the interval that clusters give; none with fewer than ``least`` in an arm.

    Parameters
    ----------
    among
        So many intervals are to hold together (Bonferroni).
    """
    linear = linearised(found.left, pairs)
    taking = code[np.union1d(linear.treated_rows, linear.serving_rows)]
    if len(np.unique(taking)) > MANY_CLUSTERS:
        error, freedom = clustered(linear, code)
    else:
        error, freedom = jackknife(found, pairs, code)
    if freedom + 1 < least or not math.isfinite(error):
        return Estimate(linear.effect, None, None)
    return with_error(linear.effect, error, student(freedom, among=among))


def with_error(effect: float, error: float, quantile: float) -> Estimate:
    """An effect with its error and the interval that reaches so many errors."""
    reach = quantile * error
    return Estimate(effect, error, (effect - reach, effect + reach))


def student(freedom: float, *, among: int = 1) -> float:
    """The quantile of Student's t for two-sided intervals that hold together at 95 %.

    With unlimited ``freedom`` that of the normal distribution.
    """
    stats: Any = require("scipy.stats", "intervals")
    return float(stats.t.ppf(1.0 - (1.0 - LEVEL) / (2.0 * among), freedom))
