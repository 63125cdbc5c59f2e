"""The effect over the matched pairs, with its errors.

With pairs (i, j) of weight w, t_i = Σ w over the pairs of candidate row i, k_j = Σ w over the
pairs of baseline row j, and m a regression of the outcome on the covariates and on the terms that
the rows chose (``terms``) among the matched baseline rows, weighted by k (Abadie and Imbens 2011,
JBES 29(1)), the effect is

    τ = Σ w [(Y_i − m(X_i)) − (Y_j − m(X_j))] / Σ w,

the sum of the scores ψ_i = t_i (Y_i − m(X_i) − τ) / Σ w of the candidate's rows and ψ_j =
−k_j (Y_j − m(X_j)) / Σ w of the baseline's.

Rows of one cluster are not independent, so the variance is that of the clusters' sums of scores:
V = G/(G − 1) Σ_g (Σ_{i in g} ψ_i)². With few clusters that is too small, since each cluster has
pulled τ and m towards itself; the change of τ when a cluster is left out is not
(``cluster_moves``). Intervals are Student's, with one degree of freedom less than the
number of clusters of the version that has fewer.

m is a regression, not a mean of neighbours: neighbours in one cluster share its error and would
hide it.
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
MANY_CLUSTERS = 2000
"""Number of clusters above which the sums of scores give the error: both methods then agree."""
ABADIE_IMBENS, BY_CLUSTERS = "abadie-imbens", "clusters"
_SINGULAR = 1e-9
_MAX_LEVERAGE = 0.9
MAX_ROW_SHARE = 0.3
"""Largest share that one matched baseline row may have in the part of a term that the terms
before it do not explain."""
TERM_ROWS = 4
"""Matched baseline rows that each term of the outcome's model needs."""
_CONSTANT = 1e-12
"""Relative spread below which a column is constant up to rounding."""


class PairSubset(Struct, frozen=True):
    """Some of the pairs of a match: the candidate's row, the baseline's row, the weight."""

    treated_index: Indices
    control_index: Indices
    weights: Floats


Pairs = MatchResult | PairSubset


class Estimate(Struct, frozen=True):
    """An effect with its standard error and interval; ``None`` where no error can be given."""

    effect: float
    error: float | None = None
    interval: Bounds = None


class OutcomeRegression(Struct, frozen=True):
    """An outcome (rows,) minus its prediction, and minus the mean of its stratum.

    ``columns`` (rows, terms) are the centred terms in the regression. ``leverage`` (rows,) is the
    weight of each row in its own prediction, 0 outside the regression.
    """

    residual: Floats
    centred: Floats
    columns: Floats
    leverage: Floats


class PairEffect(Struct, frozen=True):
    """The effect over the pairs, as the sum of a score for each row of the log."""

    effect: float
    scores: Floats
    regressed: OutcomeRegression
    pairs: Pairs
    treated_rows: Indices
    control_rows: Indices

    @property
    def rows(self) -> Indices:
        """Rows of both versions that are in a pair."""
        return np.union1d(self.treated_rows, self.control_rows)

    def fewest_clusters(self, code: Indices) -> int:
        """Return the number of clusters of the version that has fewer in the pairs."""
        return min(len(np.unique(code[rows])) for rows in (self.treated_rows, self.control_rows))


class EffectEstimate(Struct, frozen=True):
    """The effect on one outcome with every error, by name.

    ``main`` names the error that the answer uses. ``without_neighbors`` is the share of the matched
    rows that have no neighbour of the same version; Abadie and Imbens' error takes one variance for
    all of them. ``terms`` are those of the outcome's model, the covariates first.
    """

    pair_effect: PairEffect
    by: dict[str, Estimate]
    main: str
    without_neighbors: float
    terms: tuple[Term, ...]

    @property
    def estimate(self) -> Estimate:
        """The effect with the error that the answer uses."""
        return self.by[self.main]


class MatchedSample(Struct, frozen=True):
    """A sample with its match, and the effect over the pairs on each scale."""

    sample: Sample
    matched: BalancedMatch
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
    outcome: Floats,
    matched: BalancedMatch,
    clusters: Clusters | None,
    *,
    intervals: int = 1,
) -> EffectEstimate:
    """Estimate the effect on one outcome (rows,) over the pairs.

    ``intervals`` is the number of intervals that hold together at 95 %.
    """
    pairs, model = matched.pairs, matched.model
    strata = matched.covariates.exact_strata()
    terms = outcome_terms(outcome, matched)
    pair_effect = effect_over_pairs(outcome, model.dictionary.values(terms), strata, pairs)
    # The regression leaves the variance of Abadie and Imbens as it is (2011, theorem 2), but it has
    # pulled each residual of its rows towards 0.
    regressed = pair_effect.regressed
    free = 1.0 - np.minimum(regressed.leverage, _MAX_LEVERAGE)
    residual_match = match(
        regressed.residual / free,
        matched.treated,
        matched.points,
        reuse=pairs,
        **matched.options,
    )
    share_without = residual_match.n_without_neighbors / len(pair_effect.rows)
    quantile = t_quantile(math.inf, intervals=intervals)
    by = {ABADIE_IMBENS: with_error(pair_effect.effect, residual_match.se, quantile)}
    if clusters is None:
        return EffectEstimate(pair_effect, by, ABADIE_IMBENS, share_without, terms)
    by[BY_CLUSTERS] = estimate_by_clusters(pair_effect, clusters.code, intervals=intervals)
    return EffectEstimate(pair_effect, by, BY_CLUSTERS, share_without, terms)


def outcome_terms(outcome: Floats, matched: BalancedMatch) -> tuple[Term, ...]:
    """Return the terms of the regression of an outcome (rows,): double selection.

    They are the covariates, the terms that explain who has which version, and those that explain
    the outcome of the baseline's rows, as many as the matched baseline rows allow.
    """
    model = matched.model
    control = np.flatnonzero(~matched.treated)
    explaining = select_terms(model.dictionary, outcome, control, term_budget(matched.treated))
    terms = tuple(dict.fromkeys((*model.terms, *explaining)))
    return _supported(terms, matched)


def _supported(terms: tuple[Term, ...], matched: BalancedMatch) -> tuple[Term, ...]:
    """Return the terms that enough matched baseline rows separate from the terms before them."""
    dictionary = matched.model.dictionary
    _, serving = row_weights(matched.pairs, len(matched.treated))
    used = np.flatnonzero(serving > 0.0)
    terms = terms[: max(dictionary.lines, len(used) // TERM_ROWS)]
    if len(terms) == dictionary.lines:
        return terms
    columns = dictionary.values(terms)[used]
    columns -= np.average(columns, axis=0, weights=serving[used])
    columns *= np.sqrt(serving[used])[:, None]
    directions = np.linalg.qr(columns)[0]
    largest = (directions**2).max(axis=0)
    return tuple(
        term
        for place, term in enumerate(terms)
        if place < dictionary.lines or largest[place] <= MAX_ROW_SHARE
    )


def naive_estimate(candidate: Moments, baseline: Moments) -> Estimate:
    """Return the difference of the means of all rows, with Welch's interval."""
    return Estimate(candidate.mean - baseline.mean, None, welch_interval(candidate, baseline))


def to_effect(scales: Scales[Estimate]) -> Effect:
    """Return the effect as a ratio, where there is a logarithm, and as a difference."""
    log, plain = scales.on_log, scales.plain
    if log is None:
        return Effect(None, None, plain.effect, plain.interval)
    return Effect(math.exp(log.effect), _ratios(log.interval), plain.effect, plain.interval)


def to_matched_effect(scales: Scales[dict[str, Estimate]], main: str) -> MatchedEffect:
    """Return the effect on both scales with every error; the answer uses the error ``main``."""
    logs, plain = scales.on_log, scales.plain
    errors = tuple(
        ErrorEstimate(
            name,
            None if logs is None else logs[name].error,
            None if logs is None else _ratios(logs[name].interval),
            estimate.error,
            estimate.interval,
        )
        for name, estimate in plain.items()
    )
    return MatchedEffect(to_effect(scales.map(lambda by: by[main])), main, errors)


def _ratios(interval: Bounds) -> Bounds:
    return None if interval is None else (math.exp(interval[0]), math.exp(interval[1]))


def effect_over_pairs(outcome: Floats, matrix: Floats, strata: Indices, pairs: Pairs) -> PairEffect:
    """Return the effect over the pairs after the regression on the covariates.

    The outcome has shape (rows,), the matrix (rows, columns); ``strata`` (rows,) are those of exact
    matching.
    """
    treated, serving = row_weights(pairs, len(outcome))
    regressed = regress(outcome, matrix, strata, serving)
    residual, total = regressed.residual, float(treated.sum())
    middle = float((serving * residual).sum()) / total
    effect = float((treated * residual).sum()) / total - middle
    scores = (treated * (residual - middle - effect) - serving * (residual - middle)) / total
    rows = np.flatnonzero(treated > 0.0), np.flatnonzero(serving > 0.0)
    return PairEffect(effect, scores, regressed, pairs, *rows)


def row_weights(pairs: Pairs, rows: int) -> tuple[Floats, Floats]:
    """Return each row's weight as a candidate row and as a baseline row, shape (rows,) each."""
    treated = np.bincount(pairs.treated_index, pairs.weights, rows).astype(np.float64)
    serving = np.bincount(pairs.control_index, pairs.weights, rows).astype(np.float64)
    return treated, serving


def regress(outcome: Floats, matrix: Floats, strata: Indices, serving: Floats) -> OutcomeRegression:
    """Regress the outcome on the covariates among the matched baseline rows.

    With no more such rows than strata and columns, only the means of the strata are subtracted.
    In strata without such a row the result has no meaning. ``strata`` and ``serving``, the weights
    of the regression, have shape (rows,), as the outcome.
    """
    used = np.flatnonzero(serving > 0.0)
    centred = _centre(outcome, strata, serving)
    columns, leverage = np.zeros_like(matrix), np.zeros(len(outcome))
    for place in range(matrix.shape[1]):
        column = _centre(matrix[:, place], strata, serving)
        spread = math.sqrt(float(np.average(column[used] ** 2, weights=serving[used])))
        largest = float(np.abs(matrix[:, place]).max())
        columns[:, place] = column / spread if spread > _CONSTANT * largest else 0.0
    columns = columns[:, columns[used].any(axis=0)]
    terms = columns.shape[1] + len(np.unique(strata[used]))
    if not columns.shape[1] or len(used) <= terms:
        return OutcomeRegression(centred, centred, columns[:, :0], leverage)
    root = np.sqrt(serving[used])
    # Singular values give the slopes and the leverages; columns that repeat others add nothing.
    left, sizes, right = np.linalg.svd(columns[used] * root[:, None], full_matrices=False)
    full = sizes > _SINGULAR * sizes[0]
    left, right = left[:, full], right[full] / sizes[full, None]
    slopes = right.T @ (left.T @ (centred[used] * root))
    leverage[used] = (left**2).sum(axis=1)
    return OutcomeRegression(centred - columns @ slopes, centred, columns, leverage)


def _centre(column: Floats, strata: Indices, weights: Floats) -> Floats:
    """Subtract the weighted mean of its stratum from each value."""
    totals = np.bincount(strata, weights)
    sums = np.bincount(strata, weights * column)
    means = np.divide(sums, totals, out=np.zeros_like(sums), where=totals > 0.0)
    return np.asarray(column - means[strata], dtype=np.float64)


def estimate_by_clusters(pair_effect: PairEffect, code: Indices, *, intervals: int = 1) -> Estimate:
    """Return the effect with the interval that clusters give, if each version has enough.

    ``code`` (rows,) is the cluster of each row; ``intervals`` is the number of intervals that hold
    together (Bonferroni).
    """
    fewest = pair_effect.fewest_clusters(code)
    if fewest < MIN_CLUSTERS:
        return Estimate(pair_effect.effect)
    error = cluster_error(cluster_moves(pair_effect, code))
    quantile = t_quantile(fewest - 1, intervals=intervals)
    return with_error(pair_effect.effect, error if math.isfinite(error) else None, quantile)


def cluster_moves(pair_effect: PairEffect, code: Indices) -> Floats:
    """Return the change of the effect when each cluster is left out, in the order of their codes.

    Above ``MANY_CLUSTERS`` clusters it follows from the sums of scores: −G/(G − 1) Σ_i ψ_i.
    """
    rows = pair_effect.rows
    present, place = np.unique(code[rows], return_inverse=True)
    count = len(present)
    if count > MANY_CLUSTERS:
        return np.asarray(-np.bincount(place, pair_effect.scores[rows]) * count / (count - 1))
    return effects_without_each_cluster(pair_effect, code) - pair_effect.effect


def cluster_error(moves: Floats) -> float:
    """Return the error from the changes of the effect without each cluster.

    V = (G − 1)/G Σ_g (τ₍₋g₎ − τ)², the regression fitted again each time; the pairs' weights and
    the means of the strata stay (MacKinnon, Nielsen and Webb 2023, J. Econometrics 232(2), CV3).
    """
    return math.sqrt((len(moves) - 1) / len(moves) * float((moves**2).sum()))


def effects_without_each_cluster(pair_effect: PairEffect, code: Indices) -> Floats:
    """Return the effect with each cluster of the pairs left out, in the order of their codes.

    Each version must have rows in at least two clusters.
    """
    regressed, rows = pair_effect.regressed, pair_effect.rows
    treated, serving = row_weights(pair_effect.pairs, len(regressed.residual))
    present, place = np.unique(code[rows], return_inverse=True)
    count = len(present)
    outcome, columns = regressed.centred[rows], regressed.columns[rows]

    def others(values: Floats) -> Floats:
        """Return for each cluster the sum over all other clusters."""
        sums = np.bincount(place, values, count)
        return np.asarray(sums.sum() - sums, dtype=np.float64)

    terms = range(columns.shape[1])
    means = []
    for weights in (treated[rows], serving[rows]):
        total = others(weights)
        column_means = [others(weights * columns[:, term]) / total for term in terms]
        means.append((others(weights * outcome) / total, np.array(column_means)))
    (treated_outcome, treated_columns), (served_outcome, served_columns) = means
    if not len(terms):
        return np.asarray(treated_outcome - served_outcome)
    weights, total = serving[rows], others(serving[rows])
    cross = np.empty((count, len(terms), len(terms)))
    products = np.empty((count, len(terms), 1))
    for term in terms:
        weighted, mean = weights * columns[:, term], served_columns[term]
        products[:, term, 0] = others(weighted * outcome) / total - mean * served_outcome
        for other in terms:
            product = others(weighted * columns[:, other]) / total
            cross[:, term, other] = product - mean * served_columns[other]
    slopes = (np.linalg.pinv(cross, hermitian=True) @ products)[:, :, 0]
    moved = ((treated_columns - served_columns).T * slopes).sum(axis=1)
    return np.asarray(treated_outcome - served_outcome - moved)


def with_error(effect: float, error: float | None, quantile: float) -> Estimate:
    """Return an effect with its error and the interval of ``quantile`` errors around it."""
    if error is None:
        return Estimate(effect)
    reach = quantile * error
    return Estimate(effect, error, (effect - reach, effect + reach))


def t_quantile(freedom: float, *, intervals: int = 1) -> float:
    """Return the quantile of Student's t for two-sided intervals that hold together at 95 %.

    With infinite ``freedom`` it is that of the normal distribution.
    """
    stats: Any = require("scipy.stats", "intervals")
    return float(stats.t.ppf(1.0 - (1.0 - CONFIDENCE) / (2.0 * intervals), freedom))
