"""The effect over the matched pairs, with its standard errors.

Each pair of a candidate row i and a baseline row j has a weight w. m is a regression of the outcome
Y on the covariates X and the chosen terms (``terms``), among the matched baseline rows (Abadie and
Imbens 2011, JBES 29(1)). The effect is

    τ = Σ w [(Y_i − m(X_i)) − (Y_j − m(X_j))] / Σ w.

A candidate row has the score ψ_i = t_i (Y_i − m(X_i) − τ) / Σ w. A baseline row has the score ψ_j =
−k_j (Y_j − m(X_j)) / Σ w. t_i and k_j are the total weights of the pairs of a row. With more than
``MAX_REFITS`` clusters, the scores give the variance. With fewer clusters, the changes of τ without
each cluster give the variance. More: docs/methods/effects-from-logs.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from msgspec import Struct

from equipoise_matching.matching.match import MatchResult, match
from equipoise_matching.matching.units import Floats, Indices
from equipoise_matching.matching.univariate import Moments, welch_interval
from equipoise_matching.observation.clusters import MIN_CLUSTERS, Clusters
from equipoise_matching.observation.matching import BalancedMatch, Progress, match_until_balanced
from equipoise_matching.observation.result import Bounds, Effect, ErrorEstimate, MatchedEffect
from equipoise_matching.observation.sample import Sample, Scales
from equipoise_matching.observation.terms import Term, select_terms, term_budget
from equipoise_matching.shared.extras import require

CONFIDENCE = 0.95
"""Chance with which an interval has the true effect."""
MAX_REFITS = 2000
"""Largest number of clusters with refits. With more, the sums of scores give the error."""
ABADIE_IMBENS, BY_CLUSTERS = "abadie-imbens", "clusters"
"""Names of the two methods for the standard error."""
_SINGULAR_TOLERANCE = 1e-9
"""Size below which a singular value counts as 0, relative to the largest."""
_MAX_LEVERAGE = 0.9
"""Largest leverage that the correction of a residual uses in place of a larger leverage."""
MAX_ROW_SHARE = 0.3
"""Largest share of one matched baseline row in the sum of squares of a term, after the part that
earlier terms explain was subtracted."""
ROWS_PER_OUTCOME_TERM = 4
"""Number of matched baseline rows that each term of the outcome's model needs."""
_CONSTANT_TOLERANCE = 1e-12
"""Relative spread below which a column is constant up to rounding."""


class PairSubset(Struct, frozen=True):
    """Some pairs of a match. Each has a candidate row, a baseline row and a weight."""

    treated_index: Indices
    control_index: Indices
    weights: Floats


Pairs = MatchResult | PairSubset
"""All pairs of a match, or some of them."""


class Estimate(Struct, frozen=True):
    """An effect with its standard error and its interval; ``None`` if these are unknown."""

    effect: float
    error: float | None = None
    interval: Bounds = None


class OutcomeRegression(Struct, frozen=True):
    """A regression of the outcome among the matched baseline rows.

    ``centred`` (rows,) is the outcome minus the mean of the row's stratum. ``residual`` (rows,) is
    ``centred`` minus the prediction from ``columns`` (rows, terms), which are centred too.
    ``leverage`` (rows,) is the weight of a row in its own prediction; 0 for unused rows.
    """

    residual: Floats
    centred: Floats
    columns: Floats
    leverage: Floats


class PairEffect(Struct, frozen=True):
    """The effect over the pairs; ``scores`` (rows,) has the score ψ of each row of the log."""

    effect: float
    scores: Floats
    regression: OutcomeRegression
    pairs: Pairs
    treated_rows: Indices
    control_rows: Indices

    @property
    def rows(self) -> Indices:
        """Rows of both versions that are in a pair."""
        return np.union1d(self.treated_rows, self.control_rows)

    def fewest_clusters(self, code: Indices) -> int:
        """Return the number of clusters with matched rows, of the version with fewer clusters."""
        return min(len(np.unique(code[rows])) for rows in (self.treated_rows, self.control_rows))


class EffectEstimate(Struct, frozen=True):
    """The effect on one outcome, with the standard error of each method.

    The answer uses the estimate of ``interval_method``. ``share_without_neighbors`` counts the
    matched rows without a neighbour of the same version; in the method of Abadie and Imbens, these
    rows share one variance. ``terms`` are the terms of the outcome's model, the covariates first.
    """

    pair_effect: PairEffect
    estimate_by_method: dict[str, Estimate]
    interval_method: str
    share_without_neighbors: float
    terms: tuple[Term, ...]

    @property
    def estimate(self) -> Estimate:
        """The effect with the error that the answer uses."""
        return self.estimate_by_method[self.interval_method]


class MatchedSample(Struct, frozen=True):
    """A sample with its match, and the effect over the pairs on each scale."""

    sample: Sample
    balanced_match: BalancedMatch
    effects: Scales[EffectEstimate]


def match_sample(sample: Sample, progress: Progress) -> MatchedSample:
    """Match the rows, and estimate the effect over the pairs on each scale."""
    matched = match_until_balanced(sample.covariates, sample.treated, sample.question, progress)
    progress("estimating the effect and its errors")
    effects = sample.outcomes.map(
        lambda outcome: estimate_effect(outcome, matched, sample.clusters)
    )
    return MatchedSample(sample, matched, effects)


def estimate_effect(
    outcome: Floats, balanced_match: BalancedMatch, clusters: Clusters | None, *, intervals: int = 1
) -> EffectEstimate:
    """Estimate the effect on one outcome (rows,) over the pairs.

    ``intervals`` is the number of intervals that hold together at 95 %.
    """
    pairs, model = balanced_match.pairs, balanced_match.model
    strata = balanced_match.covariates.exact_strata()
    terms = outcome_terms(outcome, balanced_match)
    pair_effect = effect_over_pairs(outcome, model.dictionary.values(terms), strata, pairs)
    # The regression makes the residuals too small. Dividing by ``free_share`` corrects this. In
    # theory, the variance stays the same (Abadie and Imbens 2011, theorem 2).
    regression = pair_effect.regression
    free_share = 1.0 - np.minimum(regression.leverage, _MAX_LEVERAGE)
    residual_match = match(
        regression.residual / free_share,
        balanced_match.treated,
        balanced_match.points,
        reuse=pairs,
        **balanced_match.options,
    )
    share_without_neighbors = residual_match.n_without_neighbors / len(pair_effect.rows)
    quantile = t_quantile(math.inf, intervals=intervals)
    estimates = {ABADIE_IMBENS: with_error(pair_effect.effect, residual_match.se, quantile)}
    interval_method = ABADIE_IMBENS
    if clusters is not None:
        interval_method, code = BY_CLUSTERS, clusters.code
        estimates[BY_CLUSTERS] = estimate_by_clusters(pair_effect, code, intervals=intervals)
    return EffectEstimate(pair_effect, estimates, interval_method, share_without_neighbors, terms)


def outcome_terms(outcome: Floats, balanced_match: BalancedMatch) -> tuple[Term, ...]:
    """Return the terms of the regression of an outcome (rows,) by double selection.

    These are the covariates, the terms that predict which rows have the candidate, and the terms
    that predict the outcome of the baseline's rows. The matched baseline rows limit their number.
    """
    model = balanced_match.model
    control = np.flatnonzero(~balanced_match.treated)
    max_terms = term_budget(balanced_match.treated)
    selected_terms = select_terms(model.dictionary, outcome, control, max_terms)
    terms = tuple(dict.fromkeys((*model.terms, *selected_terms)))
    return _supported_terms(terms, balanced_match)


def _supported_terms(terms: tuple[Term, ...], balanced_match: BalancedMatch) -> tuple[Term, ...]:
    """Return the covariates, and the terms that no single matched baseline row decides."""
    dictionary = balanced_match.model.dictionary
    _, control = row_weights(balanced_match.pairs, len(balanced_match.treated))
    used_rows = np.flatnonzero(control > 0.0)
    terms = terms[: max(dictionary.covariate_count, len(used_rows) // ROWS_PER_OUTCOME_TERM)]
    if len(terms) == dictionary.covariate_count:
        return terms
    columns = dictionary.values(terms)[used_rows]
    columns -= np.average(columns, axis=0, weights=control[used_rows])
    columns *= np.sqrt(control[used_rows])[:, None]
    directions = np.linalg.qr(columns)[0]
    max_row_shares = (directions**2).max(axis=0)
    return tuple(
        term
        for index, term in enumerate(terms)
        if index < dictionary.covariate_count or max_row_shares[index] <= MAX_ROW_SHARE
    )


def naive_estimate(candidate: Moments, baseline: Moments) -> Estimate:
    """Return the difference of the means of all rows, with Welch's interval."""
    return Estimate(candidate.mean - baseline.mean, None, welch_interval(candidate, baseline))


def to_effect(scales: Scales[Estimate]) -> Effect:
    """Return the effect as a difference, and as a ratio if there is a log scale."""
    log_ratio, difference = scales.log_scale, scales.raw_scale
    if log_ratio is None:
        return Effect(None, None, difference.effect, difference.interval)
    ratio, ratio_ci = math.exp(log_ratio.effect), _exp_interval(log_ratio.interval)
    return Effect(ratio, ratio_ci, difference.effect, difference.interval)


def to_matched_effect(scales: Scales[dict[str, Estimate]], interval_method: str) -> MatchedEffect:
    """Return the effect by ``interval_method`` on both scales, with the errors of all methods."""
    log_estimates, raw_estimates = scales.log_scale, scales.raw_scale
    errors = tuple(
        ErrorEstimate(
            name,
            None if log_estimates is None else log_estimates[name].error,
            None if log_estimates is None else _exp_interval(log_estimates[name].interval),
            estimate.error,
            estimate.interval,
        )
        for name, estimate in raw_estimates.items()
    )
    effect = to_effect(scales.map(lambda estimates: estimates[interval_method]))
    return MatchedEffect(effect, interval_method, errors)


def _exp_interval(interval: Bounds) -> Bounds:
    return None if interval is None else (math.exp(interval[0]), math.exp(interval[1]))


def effect_over_pairs(outcome: Floats, matrix: Floats, strata: Indices, pairs: Pairs) -> PairEffect:
    """Return the effect over the pairs after the regression on the columns of the matrix.

    The outcome has shape (rows,), the matrix has shape (rows, columns), and ``strata`` (rows,) has
    the stratum of exact matching of each row.
    """
    treated, control = row_weights(pairs, len(outcome))
    regression = regress(outcome, matrix, strata, control)
    residual, total = regression.residual, float(treated.sum())
    control_mean = float((control * residual).sum()) / total
    effect = float((treated * residual).sum()) / total - control_mean
    scores = (
        treated * (residual - control_mean - effect) - control * (residual - control_mean)
    ) / total
    rows = np.flatnonzero(treated > 0.0), np.flatnonzero(control > 0.0)
    return PairEffect(effect, scores, regression, pairs, *rows)


def row_weights(pairs: Pairs, rows: int) -> tuple[Floats, Floats]:
    """Return each row's weight as a candidate row and as a baseline row, shape (rows,) each."""
    treated = np.bincount(pairs.treated_index, pairs.weights, rows).astype(np.float64)
    control = np.bincount(pairs.control_index, pairs.weights, rows).astype(np.float64)
    return treated, control


def regress(outcome: Floats, matrix: Floats, strata: Indices, weights: Floats) -> OutcomeRegression:
    """Regress the outcome on the columns of the matrix among the matched baseline rows.

    The outcome, the strata and the weights have shape (rows,). If the matched baseline rows do not
    outnumber the strata and columns together, only the means of the strata are subtracted. In a
    stratum without a matched baseline row, the result has no meaning.
    """
    used_rows = np.flatnonzero(weights > 0.0)
    centred = _centre(outcome, strata, weights)
    columns, leverage = np.zeros_like(matrix), np.zeros(len(outcome))
    for index in range(matrix.shape[1]):
        column = _centre(matrix[:, index], strata, weights)
        spread = math.sqrt(float(np.average(column[used_rows] ** 2, weights=weights[used_rows])))
        largest_value = float(np.abs(matrix[:, index]).max())
        columns[:, index] = column / spread if spread > _CONSTANT_TOLERANCE * largest_value else 0.0
    columns = columns[:, columns[used_rows].any(axis=0)]
    coefficient_count = columns.shape[1] + len(np.unique(strata[used_rows]))
    if not columns.shape[1] or len(used_rows) <= coefficient_count:
        return OutcomeRegression(centred, centred, columns[:, :0], leverage)
    root_weights = np.sqrt(weights[used_rows])
    # Singular values give the slopes and leverages, even if a column depends on other columns.
    weighted = columns[used_rows] * root_weights[:, None]
    left, singular, right = np.linalg.svd(weighted, full_matrices=False)
    is_regular = singular > _SINGULAR_TOLERANCE * singular[0]
    left, right = left[:, is_regular], right[is_regular] / singular[is_regular, None]
    slopes = right.T @ (left.T @ (centred[used_rows] * root_weights))
    leverage[used_rows] = (left**2).sum(axis=1)
    return OutcomeRegression(centred - columns @ slopes, centred, columns, leverage)


def _centre(column: Floats, strata: Indices, weights: Floats) -> Floats:
    """Subtract from each value the weighted mean of its stratum."""
    totals = np.bincount(strata, weights)
    sums = np.bincount(strata, weights * column)
    means = np.divide(sums, totals, out=np.zeros_like(sums), where=totals > 0.0)
    return np.asarray(column - means[strata], dtype=np.float64)


def estimate_by_clusters(pair_effect: PairEffect, code: Indices, *, intervals: int = 1) -> Estimate:
    """Return the effect, with an interval by the clusters ``code`` (rows,) if there are enough."""
    cluster_count = pair_effect.fewest_clusters(code)
    if cluster_count < MIN_CLUSTERS:
        return Estimate(pair_effect.effect)
    error = cluster_error(changes_without_each_cluster(pair_effect, code))
    quantile = t_quantile(cluster_count - 1, intervals=intervals)
    return with_error(pair_effect.effect, error if math.isfinite(error) else None, quantile)


def changes_without_each_cluster(pair_effect: PairEffect, code: Indices) -> Floats:
    """Return the changes of the effect when each cluster is left out, in the order of the codes.

    If the number of clusters G is more than ``MAX_REFITS``, the change is −G/(G − 1) Σ_i ψ_i over
    the scores ψ_i of the rows of the cluster.
    """
    rows = pair_effect.rows
    clusters, index = np.unique(code[rows], return_inverse=True)
    count = len(clusters)
    if count > MAX_REFITS:
        return np.asarray(-np.bincount(index, pair_effect.scores[rows]) * count / (count - 1))
    return effects_without_each_cluster(pair_effect, code) - pair_effect.effect


def cluster_error(changes: Floats) -> float:
    """Return the standard error from the changes of the effect without each cluster.

    V = (G − 1)/G Σ_g (τ₍₋g₎ − τ)². τ is the effect, G the number of clusters, and τ₍₋g₎ the effect
    without cluster g (CV3 of MacKinnon, Nielsen and Webb 2023, J. Econometrics 232(2)).
    """
    return math.sqrt((len(changes) - 1) / len(changes) * float((changes**2).sum()))


def effects_without_each_cluster(pair_effect: PairEffect, code: Indices) -> Floats:
    """Return the effects without each cluster of the pairs, in the order of the codes.

    Each version must have rows in at least two clusters. The slopes without a cluster come from the
    cross products over all other clusters.
    """
    regression, rows = pair_effect.regression, pair_effect.rows
    treated, control = row_weights(pair_effect.pairs, len(regression.residual))
    clusters, index = np.unique(code[rows], return_inverse=True)
    count = len(clusters)
    outcome, columns = regression.centred[rows], regression.columns[rows]

    def sum_without_each(values: Floats) -> Floats:
        """Return for each cluster the sum over all other clusters."""
        sums = np.bincount(index, values, count)
        return np.asarray(sums.sum() - sums, dtype=np.float64)

    terms = range(columns.shape[1])
    means = []
    for weights in (treated[rows], control[rows]):
        total = sum_without_each(weights)
        column_means = [sum_without_each(weights * columns[:, term]) / total for term in terms]
        means.append((sum_without_each(weights * outcome) / total, np.array(column_means)))
    (treated_outcome, treated_columns), (control_outcome, control_columns) = means
    if not len(terms):
        return np.asarray(treated_outcome - control_outcome)
    weights, total = control[rows], sum_without_each(control[rows])
    cross = np.empty((count, len(terms), len(terms)))
    products = np.empty((count, len(terms), 1))
    for term in terms:
        weighted, mean = weights * columns[:, term], control_columns[term]
        products[:, term, 0] = sum_without_each(weighted * outcome) / total - mean * control_outcome
        for second_term in terms:
            product = sum_without_each(weighted * columns[:, second_term]) / total
            cross[:, term, second_term] = product - mean * control_columns[second_term]
    slopes = (np.linalg.pinv(cross, hermitian=True) @ products)[:, :, 0]
    adjustment = ((treated_columns - control_columns).T * slopes).sum(axis=1)
    return np.asarray(treated_outcome - control_outcome - adjustment)


def with_error(effect: float, error: float | None, quantile: float) -> Estimate:
    """Return an effect with its error and its interval: the effect ± ``quantile`` errors."""
    if error is None:
        return Estimate(effect)
    half_width = quantile * error
    return Estimate(effect, error, (effect - half_width, effect + half_width))


def t_quantile(degrees_of_freedom: float, *, intervals: int = 1) -> float:
    """Return the quantile of Student's t for two-sided intervals that hold together at 95 %."""
    special: Any = require("scipy.special", "intervals")
    chance = 1.0 - (1.0 - CONFIDENCE) / (2.0 * intervals)
    return float(special.stdtrit(degrees_of_freedom, chance))
