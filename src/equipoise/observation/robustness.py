"""How strong a hidden factor must be, in units of the strongest observed covariate.

Cinelli and Hazlett 2020 (JRSS B 82(1)). In the regression of the outcome Y on the treatment D and
the covariates X, a factor Z with partial R² of D with Z and of Y with Z moves the estimate by
|τ| · sqrt(R²_Y R²_D / (1 − R²_D)) / f, f² being the partial f² of Y with D (their equation 14,
divided by the estimate). The robustness value is the R² that, in both, takes all of it away
(equation 20, q = 1); a factor k times as strong as a covariate Xⱼ has R²_D = k f²(D, Xⱼ) and
R²_Y = η² f²(Y, Xⱼ) (equations 22 and 23 with k_D = k_Y = k). statsmodels has the regression, not
the robustness value; all partial R² are read off one matrix of cross products here, so that a
million rows are passed over once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.observation.scores import Values

MOST_TIMES = 1000.0
_STEPS = 60
_REPEATED = 1e-10


@dataclass(frozen=True, slots=True)
class Regression:
    """The regression of an outcome on the treatment and the covariates, over all rows.

    Attributes
    ----------
    estimate
        The coefficient of the treatment, in the unit of the outcome.
    robustness
        The robustness value, 0 to 1.
    strongest, multiple
        The covariate that a hidden factor has to be the least multiple of to take the whole
        estimate away, and the multiple; ``None`` if none is related to both.
    shares
        For each covariate what the regression says of it in the difference of the means: its
        slope times the difference of its own means (Gelbach 2016, J. Labor Economics 34(2)).
    """

    estimate: float
    robustness: float
    strongest: str | None
    multiple: float | None
    shares: dict[str, float]


def regression(
    outcome: Values, treated: NDArray[np.bool_], matrix: Values, owners: Sequence[str]
) -> Regression:
    """Regress, and read off what a hidden factor would have to be like.

    Parameters
    ----------
    outcome, treated, matrix
        Shape (rows,), (rows,) and (rows, columns).
    owners
        Of each column of the matrix the covariate that it belongs to.
    """
    columns = np.column_stack([treated.astype(np.float64), matrix, outcome])
    spread = columns.std(axis=0)
    spread[spread == 0.0] = 1.0
    columns = (columns - columns.mean(axis=0)) / spread
    cross = columns.T @ columns
    last = cross.shape[0] - 1
    places = list(range(1, last))
    of_covariate = {
        name: [place for place in places if owners[place - 1] == name]
        for name in dict.fromkeys(owners)
    }
    slopes = _slopes(cross, [0, *places], last) * spread[last] / spread[:last]
    full = _left(cross, [0, *places], last)
    of_treatment = _left(cross, places, 0)
    f_squared = _ratio(_left(cross, places, last) - full, full)
    strongest, multiple = None, None
    for name, own in of_covariate.items():
        rest = [place for place in places if place not in own]
        for_outcome = _ratio(_left(cross, [0, *rest], last) - full, full)
        for_treatment = _ratio(_left(cross, rest, 0) - of_treatment, of_treatment)
        times = _times(f_squared, for_outcome, for_treatment)
        if times is not None and (multiple is None or times < multiple):
            strongest, multiple = name, times
    means = matrix[treated].mean(axis=0) - matrix[~treated].mean(axis=0)
    shares = {
        name: float(sum(slopes[place] * means[place - 1] for place in own))
        for name, own in of_covariate.items()
    }
    return Regression(float(slopes[0]), _robustness(f_squared), strongest, multiple, shares)


def _robustness(f_squared: float) -> float:
    if math.isinf(f_squared):
        return 1.0
    return (math.sqrt(f_squared**2 + 4.0 * f_squared) - f_squared) / 2.0


def _times(f_squared: float, for_outcome: float, for_treatment: float) -> float | None:
    """So many times as strong as a covariate takes the estimate away; ``None`` if none does.

    ``for_outcome`` and ``for_treatment`` are partial f² of the covariate, given all else.
    """
    if not (for_outcome > 0.0 and for_treatment > 0.0) or math.isinf(for_outcome):
        return None
    with_treatment = for_treatment / (1.0 + for_treatment)

    def is_enough(times: float) -> bool:
        of_treatment = times * for_treatment
        if of_treatment >= 1.0:
            return True
        if times * with_treatment >= 1.0:
            return True
        # Partial R² of the factor with the covariate, given the treatment: they meet in it.
        shared = times * with_treatment**2 / (1.0 - times * with_treatment) / (1.0 - with_treatment)
        if shared >= 1.0:
            return True
        eta = (math.sqrt(times) + math.sqrt(shared)) / math.sqrt(1.0 - shared)
        of_outcome = min(1.0, eta**2 * for_outcome)
        return of_outcome * of_treatment / (1.0 - of_treatment) >= f_squared

    if not is_enough(MOST_TIMES):
        return None
    low, high = 0.0, MOST_TIMES
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _slopes(cross: Values, on: list[int], of: int) -> Values:
    if not on:
        return np.empty(0)
    return np.asarray(np.linalg.pinv(cross[np.ix_(on, on)], rcond=_REPEATED) @ cross[on, of])


def _left(cross: Values, on: list[int], of: int) -> float:
    """What of a column's sum of squares the regression on others leaves."""
    return max(0.0, float(cross[of, of] - cross[on, of] @ _slopes(cross, on, of)))


def _ratio(gained: float, left: float) -> float:
    if left <= 0.0:
        return math.inf if gained > 0.0 else 0.0
    return max(0.0, gained) / left
