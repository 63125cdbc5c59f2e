"""Omitted-variable bias of a regression in partial R² (Cinelli and Hazlett 2020, JRSS B 82(1)).

A hidden factor Z has the partial R² R²_Y with the outcome, given treatment and covariates, and R²_D
with the treatment, given the covariates. It moves the slope of the treatment by

    se √df √(R²_Y R²_D / (1 − R²_D)),

and multiplies its standard error by √((1 − R²_Y)/(1 − R²_D) · df/(df − 1)). The robustness value is
the value of both partial R² that removes the share q of the slope. Partial f² is R²/(1 − R²).
"""

from __future__ import annotations

import math

import numpy as np

from equipoise_matching.effects.signed_rank import bisect
from equipoise_matching.matching.units import Floats
from equipoise_matching.shared.extras import require

MAX_MULTIPLE = 1000.0
"""Largest multiple of a covariate's strength that is tried."""
_MULTIPLE_BISECTIONS = 60
"""Bisection rounds for a multiple of a covariate's strength."""


def robustness_value_of(f_squared: float) -> float:
    """Return the robustness value of the treatment's partial f² (equation 20, q = 1)."""
    if math.isinf(f_squared):
        return 1.0
    if f_squared == 0.0:
        return 0.0
    # The difference √(f⁴ + 4f²) − f² would lose all digits of a large f².
    return 2.0 / (math.sqrt(1.0 + 4.0 / f_squared) + 1.0)


def significance_robustness_value(
    t: float, degrees_of_freedom: float, share: float, confidence: float
) -> float:
    """Return the partial R² with both that a factor needs to move the interval to a reduced slope.

    A factor with smaller partial R² cannot move the interval to (1 − q) times the slope. This is
    RV_{q,α} of Cinelli and Hazlett 2020 (§4.2), with q = ``share`` and 1 − α = ``confidence``.
    """
    special = require("scipy.special", "robustness values")
    freedom = degrees_of_freedom - 1.0
    critical = float(special.stdtrit(freedom, (1.0 + confidence) / 2.0)) / math.sqrt(freedom)
    f = share * abs(t) / math.sqrt(degrees_of_freedom)
    excess = f - critical
    if excess <= 0.0:
        return 0.0
    # The worst factor has a smaller partial R² with the outcome here, because it lowers the error.
    if f > 1.0 / critical:
        return (f**2 - critical**2) / (1.0 + f**2)
    return robustness_value_of(excess**2)


def adjusted_slope(
    estimate: float, se: float, degrees_of_freedom: float, r2_outcome: float, r2_treatment: float
) -> tuple[float, float]:
    """Return the slope and its error after a factor that moves the slope towards 0."""
    bias = se * math.sqrt(degrees_of_freedom * r2_outcome * r2_treatment / (1.0 - r2_treatment))
    factor = (1.0 - r2_outcome) / (1.0 - r2_treatment)
    factor *= degrees_of_freedom / (degrees_of_freedom - 1.0)
    return estimate - math.copysign(bias, estimate), se * math.sqrt(factor)


def factor_strength(
    multiple: float, f_outcome: float, f_treatment: float
) -> tuple[float, float] | None:
    """Return the partial R² with outcome and treatment of a factor, or ``None`` if none exists.

    The factor is ``multiple`` times as strong as a covariate, whose partial f² with the outcome,
    given the treatment, and with the treatment are ``f_outcome`` and ``f_treatment`` (equations 22
    and 23). A partial R² with the outcome above 1 becomes 1.
    """
    covariate_r2 = f_treatment / (1.0 + f_treatment)
    r2_treatment = multiple * f_treatment
    if r2_treatment >= 1.0 or multiple * covariate_r2 >= 1.0:
        return None
    # Partial R² of the factor with the covariate, given the treatment.
    common_r2 = multiple * covariate_r2**2 / (1.0 - multiple * covariate_r2) / (1.0 - covariate_r2)
    if common_r2 >= 1.0:
        return None
    eta = (math.sqrt(multiple) + math.sqrt(common_r2)) / math.sqrt(1.0 - common_r2)
    return min(1.0, eta**2 * f_outcome), r2_treatment


def needed_multiple(f_squared: float, f_outcome: float, f_treatment: float) -> float | None:
    """Return the multiple of a covariate's strength that removes the slope, if there is one.

    ``f_squared`` is the treatment's partial f² with the outcome; the others are as in
    `factor_strength`.
    """
    if not (f_outcome > 0.0 and f_treatment > 0.0) or math.isinf(f_outcome):
        return None

    def is_enough(multiple: float) -> bool:
        strength = factor_strength(multiple, f_outcome, f_treatment)
        if strength is None:
            return True
        r2_outcome, r2_treatment = strength
        return r2_outcome * r2_treatment / (1.0 - r2_treatment) >= f_squared

    if not is_enough(MAX_MULTIPLE):
        return None
    _, needed = bisect(
        lambda multiple: not is_enough(multiple), 0.0, MAX_MULTIPLE, _MULTIPLE_BISECTIONS
    )
    return needed


def partial_f2(explained: float, residual: float) -> float:
    """Return partial f² from the sum of squares that is explained and the residual one."""
    if residual <= 0.0:
        return math.inf if explained > 0.0 else 0.0
    return max(0.0, explained) / residual


def residuals(columns: Floats, predictors: Floats) -> Floats:
    """Return the residuals (n, m) of columns after the regression on predictors (n, p)."""
    orthogonal, singular, _ = np.linalg.svd(predictors, full_matrices=False)
    orthogonal = orthogonal[:, singular > 1e-10 * singular[0]]
    # The second projection removes rounding errors of the first.
    for _ in range(2):
        columns = columns - orthogonal @ (orthogonal.T @ columns)
    return columns
