"""Strength that a hidden factor needs, compared with the strongest observed covariate.

Cinelli and Hazlett 2020 (JRSS B 82(1)). In the regression of the outcome Y on the treatment D and
the covariates X, a factor Z with partial R² of D with Z and of Y with Z moves the estimate by
|τ| · sqrt(R²_Y R²_D / (1 − R²_D)) / f, f² being the partial f² of Y with D (their equation 14,
divided by the estimate). The robustness value is the R² that, in both, removes all of it
(equation 20, q = 1); a factor k times as strong as a covariate Xⱼ has R²_D = k f²(D, Xⱼ) and
R²_Y = η² f²(Y, Xⱼ) (equations 22 and 23 with k_D = k_Y = k). statsmodels has the regression, not
the robustness value; all partial R² are read off one matrix of cross products here, so that a
million rows are passed over once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise.matching.units import Floats, Truths
from equipoise.model.observation_result import Contribution, Robustness
from equipoise.model.quantities import significant
from equipoise.observation.sample import Sample, Scales

MAX_MULTIPLE = 1000.0
_BISECTIONS = 60
_SINGULAR = 1e-10


class Regression(Struct, frozen=True):
    """The regression of an outcome on the treatment and the covariates, over all rows.

    Attributes
    ----------
    estimate
        Coefficient of the treatment, in the unit of the outcome.
    robustness
        The robustness value, 0 to 1.
    strongest, multiple
        The covariate of which a hidden factor needs the smallest multiple of the strength to
        remove the whole estimate, and the multiple; ``None`` if no covariate is related to both.
    contributions
        For each covariate the part of the difference of the means that it explains: its slope
        times the difference of its own means (Gelbach 2016, J. Labor Economics 34(2)).
    """

    estimate: float
    robustness: float
    strongest: str | None
    multiple: float | None
    contributions: dict[str, float]


def regressions(sample: Sample) -> Scales[Regression] | None:
    """Fit the regressions on both scales over all rows; ``None`` without covariates."""
    matrix, owners = sample.covariates.matrix, sample.covariates.owners
    if not owners:
        return None
    return sample.outcomes.map(lambda outcome: regression(outcome, sample.treated, matrix, owners))


def contributions(fitted: Scales[Regression]) -> tuple[Contribution, ...]:
    """Return the part of the naive difference that each covariate explains, the largest first."""
    logs, plain, main = fitted.on_log, fitted.plain.contributions, fitted.main.contributions
    return tuple(
        Contribution(name, None if logs is None else logs.contributions[name], plain[name])
        for name in sorted(plain, key=lambda name: -abs(main[name]))
    )


def robustness_of(fitted: Regression, effect: float) -> Robustness:
    """Return the robustness value, if the regression has the sign of the matched effect."""
    if fitted.estimate * effect <= 0.0:
        why = "the regression over all rows has the opposite sign of the matched effect"
        return Robustness(None, None, None, f"unknown: {why}")
    share = significant(100.0 * fitted.robustness, 2)
    summary = (
        "something that was not measured would remove the whole effect if it explained "
        f"{share} % of the variance that the covariates leave, in the "
        "outcome and in who has which version"
    )
    if fitted.strongest is not None and fitted.multiple is not None:
        multiple = significant(fitted.multiple, 2)
        summary += f", or mattered {multiple} times as much as {fitted.strongest} does"
    return Robustness(fitted.robustness, fitted.strongest, fitted.multiple, summary)


def regression(
    outcome: Floats, treated: Truths, matrix: Floats, owners: Sequence[str]
) -> Regression:
    """Fit the regression, and compute the strength that a hidden factor needs.

    ``owners`` are the covariates that the columns of the matrix (rows, columns) belong to.
    """
    columns = np.column_stack([treated.astype(np.float64), matrix, outcome])
    spread = columns.std(axis=0)
    spread[spread == 0.0] = 1.0
    columns = (columns - columns.mean(axis=0)) / spread
    cross = columns.T @ columns
    last = cross.shape[0] - 1
    places = list(range(1, last))
    places_of = {
        name: [place for place in places if owners[place - 1] == name]
        for name in dict.fromkeys(owners)
    }
    slopes = _slopes(cross, [0, *places], last) * spread[last] / spread[:last]
    outcome_residual = _residual_squares(cross, [0, *places], last)
    treatment_residual = _residual_squares(cross, places, 0)
    f_squared = _ratio(_residual_squares(cross, places, last) - outcome_residual, outcome_residual)
    strongest, multiple = None, None
    for name, members in places_of.items():
        rest = [place for place in places if place not in members]
        f_outcome = _ratio(
            _residual_squares(cross, [0, *rest], last) - outcome_residual, outcome_residual
        )
        f_treatment = _ratio(
            _residual_squares(cross, rest, 0) - treatment_residual, treatment_residual
        )
        needed = _multiple(f_squared, f_outcome, f_treatment)
        if needed is not None and (multiple is None or needed < multiple):
            strongest, multiple = name, needed
    means = matrix[treated].mean(axis=0) - matrix[~treated].mean(axis=0)
    explained = {
        name: float(sum(slopes[place] * means[place - 1] for place in members))
        for name, members in places_of.items()
    }
    return Regression(float(slopes[0]), _robustness(f_squared), strongest, multiple, explained)


def _robustness(f_squared: float) -> float:
    if math.isinf(f_squared):
        return 1.0
    return (math.sqrt(f_squared**2 + 4.0 * f_squared) - f_squared) / 2.0


def _multiple(f_squared: float, f_outcome: float, f_treatment: float) -> float | None:
    """Return the multiple of a covariate's strength that removes the estimate, if any does.

    ``f_outcome`` and ``f_treatment`` are partial f² of the covariate, given all else.
    """
    if not (f_outcome > 0.0 and f_treatment > 0.0) or math.isinf(f_outcome):
        return None
    with_treatment = f_treatment / (1.0 + f_treatment)

    def is_enough(multiple: float) -> bool:
        r_treatment = multiple * f_treatment
        if r_treatment >= 1.0 or multiple * with_treatment >= 1.0:
            return True
        # Partial R² of the factor with the covariate, given the treatment, where they meet.
        shared = (
            multiple
            * with_treatment**2
            / (1.0 - multiple * with_treatment)
            / (1.0 - with_treatment)
        )
        if shared >= 1.0:
            return True
        eta = (math.sqrt(multiple) + math.sqrt(shared)) / math.sqrt(1.0 - shared)
        r_outcome = min(1.0, eta**2 * f_outcome)
        return r_outcome * r_treatment / (1.0 - r_treatment) >= f_squared

    if not is_enough(MAX_MULTIPLE):
        return None
    low, high = 0.0, MAX_MULTIPLE
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _slopes(cross: Floats, on: list[int], of: int) -> Floats:
    """Return the slopes of the regression of one column on others."""
    if not on:
        return np.empty(0)
    return np.asarray(np.linalg.pinv(cross[np.ix_(on, on)], rcond=_SINGULAR) @ cross[on, of])


def _residual_squares(cross: Floats, on: list[int], of: int) -> float:
    """Return the residual sum of squares of one column after the regression on others."""
    return max(0.0, float(cross[of, of] - cross[on, of] @ _slopes(cross, on, of)))


def _ratio(explained: float, residual: float) -> float:
    if residual <= 0.0:
        return math.inf if explained > 0.0 else 0.0
    return max(0.0, explained) / residual
