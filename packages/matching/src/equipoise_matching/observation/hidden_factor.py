"""Compute how strong a hidden factor must be to change the answer, by two methods.

A hidden factor is a property of the rows that nobody measured.

The first method is Rosenbaum's bounds for the signed-rank statistic (``effects/signed_rank.py``).

The second method compares a hidden factor with the strongest covariate (Cinelli and Hazlett 2020,
JRSS B 82(1)). Its equations are for the slope of the treatment in a regression of the outcome. A
factor whose partial R² with treatment and outcome is the robustness value makes this slope 0.
Partial f² is R²/(1 − R²).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise_matching.effects.omitted_factor import (
    needed_multiple,
    partial_f2,
    robustness_value_of,
)
from equipoise_matching.effects.signed_rank import MAX_GAMMA, gamma_to_change, interval_at
from equipoise_matching.matching.units import Floats, Indices, Truths
from equipoise_matching.observation.effects import MatchedSample, Pairs
from equipoise_matching.observation.result import Contribution, GammaBound, HiddenBias, Robustness
from equipoise_matching.observation.sample import Scales
from equipoise_matching.shared.numbers import significant

GAMMAS = (1.0, 1.5, 2.0, 3.0)
"""Factors Γ of the odds for which the result has an interval."""
_SINGULAR_TOLERANCE = 1e-10
"""Size below which an eigenvalue of the cross products counts as 0, relative to the largest."""


def bound_hidden_bias(matched_sample: MatchedSample) -> HiddenBias:
    """Return Rosenbaum's bounds on a match without replacement, by pairs or by clusters."""
    sample, pairs = matched_sample.sample, matched_sample.balanced_match.without_replacement()
    residual = matched_sample.effects.answer_scale.pair_effect.regression.residual
    clusters = sample.clusters
    version = f"{sample.question.treatment} {sample.arms.candidate}"
    if clusters is None:
        kind, unit = "pairs", sample.question.unit
        differences = residual[pairs.treated_index] - residual[pairs.control_index]
    else:
        kind, unit = "clusters", f"clusters ({clusters.by})"
        differences = cluster_differences(pairs, residual, clusters.code)
    bounds = []
    for gamma in GAMMAS:
        low, high = interval_at(differences, gamma)
        if matched_sample.effects.log_scale is not None:
            low, high = (None if end is None else math.exp(end) for end in (low, high))
        bounds.append(GammaBound(gamma, low, high))
    gamma_needed = gamma_to_change(differences)
    summary = _summary(gamma_needed, len(differences), kind, unit, version)
    return HiddenBias(kind, len(differences), tuple(bounds), gamma_needed, summary)


def _summary(gamma: float | None, count: int, kind: str, unit: str, version: str) -> str:
    """Return the sentence on the factor ``gamma`` of the odds that changes the answer.

    The answer rests on the differences of ``count`` pairs or clusters (``kind``). ``unit`` is the
    noun for the rows or clusters, and ``version`` is the candidate.
    """
    if gamma is None:
        return (
            f"with each row used once, {count} {kind} show no effect, even without a hidden factor"
        )
    modelled = "if the listed columns act as modelled, "
    unmeasured = f"something that was not measured made one of two comparable {unit}"
    if gamma >= MAX_GAMMA:
        return (
            f"{modelled}the answer holds even if {unmeasured} {gamma:.0f} times as likely as the "
            f"other to have {version}"
        )
    return (
        f"{modelled}the answer holds unless {unmeasured} more than {gamma:.3g} times as likely as "
        f"the other to have {version}"
    )


def cluster_differences(pairs: Pairs, residual: Floats, code: Indices) -> Floats:
    """Return the difference between each candidate cluster and one baseline cluster.

    The difference of a candidate cluster is the mean over its pairs with one baseline cluster. This
    is the unused baseline cluster with the most such pairs. No baseline cluster is used twice, so
    the differences are independent. ``residual`` (rows,) is the outcome minus the part that the
    covariates explain (Rosenbaum 2002, Statistical Science 17(3): ranks of residuals).
    """
    treated_code, control_code = code[pairs.treated_index], code[pairs.control_index]
    differences = residual[pairs.treated_index] - residual[pairs.control_index]
    count = int(code.max()) + 1
    combinations, index = np.unique(treated_code * count + control_code, return_inverse=True)
    sizes = np.bincount(index)
    means = np.bincount(index, differences) / sizes
    used_treated, used_control = set[int](), set[int]()
    cluster_means: list[float] = []
    # Combinations of the same size come in the order of the clusters.
    for combination_index in np.argsort(-sizes, kind="stable").tolist():
        treated, control = divmod(int(combinations[combination_index]), count)
        if treated in used_treated or control in used_control:
            continue
        used_treated.add(treated)
        used_control.add(control)
        cluster_means.append(float(means[combination_index]))
    return np.array(cluster_means)


class Regression(Struct, frozen=True):
    """The regression of an outcome on the treatment and the covariates, over all rows."""

    estimate: float
    """Slope of the treatment, in the unit of the outcome."""
    robustness: float
    """The robustness value, 0 to 1."""
    strongest_column: str | None
    """The covariate with the smallest ``multiple``."""
    multiple: float | None
    """A hidden factor this many times as strong as ``strongest_column`` removes the estimate."""
    contributions: dict[str, float]
    """Part of the outcome's difference that each covariate explains: its slope times the difference
    of its means (Gelbach 2016, J. Labor Economics 34(2))."""


def fit_regressions(matched_sample: MatchedSample) -> Scales[Regression] | None:
    """Fit the regressions on both scales over all rows; ``None`` without covariates.

    The regressions have the terms of the outcome's model. A term of two columns counts as a
    covariate of its own, which is named after both columns.
    """
    sample, dictionary = matched_sample.sample, matched_sample.balanced_match.model.dictionary
    terms = matched_sample.effects.answer_scale.terms
    if not terms:
        return None
    matrix = dictionary.values(terms)
    log_columns = [" and ".join(dictionary.log_columns_of(term)) for term in terms]
    return sample.outcomes.map(
        lambda outcome: fit_regression(outcome, sample.treated, matrix, log_columns)
    )


def contributions_of(regressions: Scales[Regression]) -> tuple[Contribution, ...]:
    """Return the part of the naive difference that each covariate explains, largest part first."""
    log_ratios = None if regressions.log_scale is None else regressions.log_scale.contributions
    differences, sizes = regressions.raw_scale.contributions, regressions.answer_scale.contributions
    return tuple(
        Contribution(name, None if log_ratios is None else log_ratios[name], differences[name])
        for name in sorted(differences, key=lambda name: -abs(sizes[name]))
    )


def robustness_of(regression: Regression, effect: float) -> Robustness:
    """Return the robustness value, if regression and matched effect have the same sign."""
    if regression.estimate * effect <= 0.0:
        reason = "the regression over all rows has the opposite sign of the matched effect"
        return Robustness(None, None, None, f"unknown: {reason}")
    share = significant(100.0 * regression.robustness, 2)
    summary = (
        "if the listed columns act as modelled, something that was not measured would remove the "
        f"whole effect if it explained {share} % of the variance that the covariates leave, in the "
        "outcome and in who has which version"
    )
    if regression.strongest_column is not None and regression.multiple is not None:
        multiple = significant(regression.multiple, 2)
        summary += f", or mattered {multiple} times as much as {regression.strongest_column} does"
    return Robustness(
        regression.robustness, regression.strongest_column, regression.multiple, summary
    )


def fit_regression(
    outcome: Floats, treated: Truths, matrix: Floats, log_columns: Sequence[str]
) -> Regression:
    """Fit the regression, and compute the strength that a hidden factor needs.

    ``log_columns`` has the covariate of each column of the matrix (rows, columns). In the
    standardised columns, the treatment is column 0, and the outcome is the last column, ``target``.
    Their cross products give the residual sums of squares with and without each covariate.
    """
    columns = np.column_stack([treated.astype(np.float64), matrix, outcome])
    spread = columns.std(axis=0)
    spread[spread == 0.0] = 1.0
    columns = (columns - columns.mean(axis=0)) / spread
    cross = columns.T @ columns
    target = cross.shape[0] - 1
    terms = list(range(1, target))
    columns_by_name = {
        name: [column for column in terms if log_columns[column - 1] == name]
        for name in dict.fromkeys(log_columns)
    }
    slopes = _slopes(cross, [0, *terms], target) * spread[target] / spread[:target]
    outcome_residual = _residual_squares(cross, [0, *terms], target)
    treatment_residual = _residual_squares(cross, terms, 0)
    f_squared = partial_f2(
        _residual_squares(cross, terms, target) - outcome_residual, outcome_residual
    )
    strongest_column, multiple = None, None
    for name, own_columns in columns_by_name.items():
        other_terms = [column for column in terms if column not in own_columns]
        f_outcome = partial_f2(
            _residual_squares(cross, [0, *other_terms], target) - outcome_residual, outcome_residual
        )
        f_treatment = partial_f2(
            _residual_squares(cross, other_terms, 0) - treatment_residual, treatment_residual
        )
        own_multiple = needed_multiple(f_squared, f_outcome, f_treatment)
        if own_multiple is not None and (multiple is None or own_multiple < multiple):
            strongest_column, multiple = name, own_multiple
    mean_differences = matrix[treated].mean(axis=0) - matrix[~treated].mean(axis=0)
    explained = {
        name: float(sum(slopes[column] * mean_differences[column - 1] for column in own_columns))
        for name, own_columns in columns_by_name.items()
    }
    robustness = robustness_value_of(f_squared)
    return Regression(float(slopes[0]), robustness, strongest_column, multiple, explained)


def _slopes(cross: Floats, predictors: list[int], target: int) -> Floats:
    if not predictors:
        return np.empty(0)
    inner = cross[np.ix_(predictors, predictors)]
    return np.asarray(np.linalg.pinv(inner, rcond=_SINGULAR_TOLERANCE) @ cross[predictors, target])


def _residual_squares(cross: Floats, predictors: list[int], target: int) -> float:
    """Return the residual sum of squares of a target column after this regression."""
    explained = cross[predictors, target] @ _slopes(cross, predictors, target)
    return max(0.0, float(cross[target, target] - explained))
