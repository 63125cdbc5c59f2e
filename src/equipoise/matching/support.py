"""Who may be matched at all: common support, calipers and exact columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.matching import validate
from equipoise.matching.validate import Floats, Indices, Units
from equipoise.model.errors import UnusableInput

TOLERANCE_OF_R = float(np.sqrt(np.finfo(np.float64).eps))


def common_rows(values: Floats, treated: NDArray[np.uint8], name: str, tolerance: float) -> Indices:
    """Rows inside the range of the column that both arms share, wider by ``tolerance``."""
    arms = [values[treated == arm] for arm in (0, 1)]
    low = max(float(arm.min()) for arm in arms) - tolerance
    high = min(float(arm.max()) for arm in arms) + tolerance
    kept = np.flatnonzero((values >= low) & (values <= high))
    if np.unique(treated[kept]).size < 2:
        raise UnusableInput(
            f"X, column {name!r}: treated units and controls have no range in common",
            hint="match without common_support, or leave this column out",
        )
    return kept


def effective_caliper(
    given: Units, caliper: Any, exact: Any, tolerance: float, r_compatible: bool
) -> tuple[Floats, NDArray[np.bool_]]:
    """How far apart a pair may lie in each column, in its units, and which are exact.

    A standard deviation has divisor n; R leaves the weights out of its numerator. Exact values may
    differ by rounding; R lets them differ by the distance tolerance.
    """
    one = np.zeros(len(given.x), dtype=np.int64)
    limit, is_exact = stratum_calipers(given, one, 1, caliper, exact, tolerance, r_compatible)
    return limit[0], is_exact


def stratum_calipers(
    given: Units,
    stratum: Indices,
    count: int,
    caliper: Any,
    exact: Any,
    tolerance: float,
    r_compatible: bool,
) -> tuple[Floats, NDArray[np.bool_]]:
    """The same inside each of ``count`` strata, given that of each row: shape (count, columns)."""
    columns = len(given.names)
    limit = np.full((count, columns), np.inf)
    if caliper is not None:
        weights = np.ones(len(given.x)) if given.weights is None else given.weights
        # A stratum that weighs nothing is not matched.
        total = np.maximum(np.bincount(stratum, weights, count), np.finfo(np.float64).tiny)
        widths = validate.calipers(caliper, given.names)
        for place in np.flatnonzero(np.isfinite(widths)):
            unit = validate.power_of_two(given.x[:, place])
            values = given.x[:, place] / unit
            mean = np.bincount(stratum, weights * values, count) / total
            squares = (values - mean[stratum]) ** 2
            spread = np.bincount(stratum, squares if r_compatible else weights * squares, count)
            limit[:, place] = widths[place] * np.sqrt(spread / total) * unit
    is_exact = np.zeros(columns, dtype=np.bool_)
    if exact is not None:
        is_exact = validate.exact_columns(exact, given.names)
        largest = np.zeros((count, columns))
        np.maximum.at(largest, stratum, np.abs(given.x))
        rounding = 4 * np.finfo(np.float64).eps * largest
        equal = np.full_like(limit, tolerance) if r_compatible else rounding
        limit[:, is_exact] = equal[:, is_exact]
    return limit, is_exact


def reported_caliper(limit: Floats, is_exact: NDArray[np.bool_], r_compatible: bool) -> Floats:
    """What the result tells; R tells another tolerance than it uses for exact columns."""
    return np.where(is_exact, TOLERANCE_OF_R, limit) if r_compatible else limit.copy()
