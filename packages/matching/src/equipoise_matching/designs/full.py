"""Optimal full matching: every row is in a stratum of one row with several of the other arm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching.designs.design import Design
from equipoise_matching.designs.distance_options import distances_of
from equipoise_matching.designs.flow import Degrees, cheapest_pairs
from equipoise_matching.designs.matched_sets import design_of_pairs, without_redundant_pairs
from equipoise_matching.designs.optimal import NO_PAIR_HINT, certificate_details
from equipoise_matching.designs.units import DesignUnits, design_units, setting_details
from equipoise_matching.matching.options import DONOR_ARMS, Estimand
from equipoise_matching.shared.errors import UnusableInput

NEIGHBORS = 4
"""Nearest neighbours of each row of the larger arm with which the search begins."""
MAX_NEIGHBORS = 24
"""Largest number of nearest neighbours of each row of the smaller arm."""
MANY = 2**31
"""Number of controls of a stratum without a limit."""


def full_match(
    treat: Any,
    X: Any,
    *,
    estimand: Estimand = "ATT",
    min_controls: float = 0,
    max_controls: float = math.inf,
    omit_fraction: float | None = None,
    metric: str | ArrayLike = "mahalanobis",
    distances: ArrayLike | None = None,
    caliper: float | Mapping[str, float] | None = None,
    exact: Any = None,
) -> Design:
    """Divide all rows into strata of smallest total distance, each with both arms.

    A stratum is one treated row with one or more controls, or one control with several treated
    rows. The total distance is the sum over the pairs of the strata; it is the smallest possible
    (Rosenbaum 1991, JRSS B 53(3); Hansen and Klopfer 2006, JCGS 15(3)).

    Raise `UnusableInput` for missing or infinite values, an empty arm, unknown columns or
    options, no admissible pair, or limits that cannot hold.

    Parameters
    ----------
    treat
        Shape (n,), 1 for treated rows and 0 for controls.
    X
        Covariates, shape (n, columns): an array or a data frame. A propensity score is one column.
    estimand
        ``ATT``, ``ATC`` or ``ATE``; it changes the weights, not the strata.
    min_controls, max_controls
        Smallest and largest number of controls for each treated row of a stratum. 1/2 means one
        control for two treated rows. 0 and infinity set no limit.
    omit_fraction
        Up to this fraction of the controls is left out; a negative number leaves out treated rows.
    metric, distances, caliper, exact
        As in `optimal_match`. Rows without an admissible partner are left out.

    Returns
    -------
    Design
        With ``strata``. Weights for ATT: 1 for a treated row, and for a control the treated rows
        of its stratum divided by its controls. ATC: the reverse. ATE: the stratum's share of all
        rows divided by its share of the arm.

    Examples
    --------
    >>> from equipoise_matching import full_match
    >>> design = full_match([1, 1, 0, 0, 0], [1, 9, 2, 3, 8], metric="euclidean")
    >>> design.strata.tolist(), design.weights.tolist()
    ([0, 1, 0, 0, 1], [1.0, 1.0, 0.5, 0.5, 1.0])
    >>> design.details["Total distance"]
    4.0
    """
    units = design_units(treat, X)
    if estimand not in DONOR_ARMS:
        raise UnusableInput(f"there is no estimand {estimand!r}", hint="choose ATT, ATC or ATE")
    treated_range, control_range = stratum_ranges(min_controls, max_controls)
    fraction = _checked_fraction(omit_fraction, treated_range[0], control_range[0])
    matrix = distances_of(
        units, 1, metric=metric, distances=distances, caliper=caliper, exact=exact
    )
    start = matrix.start(*_neighbors(*matrix.shape))
    candidates = start.candidates
    has_partner = (
        np.bincount(candidates.first, minlength=matrix.shape[0]) > 0,
        np.bincount(candidates.second, minlength=matrix.shape[1]) > 0,
    )
    if not len(candidates):
        raise UnusableInput("no pair of rows is admissible", hint=NO_PAIR_HINT)
    counts = [int(side.sum()) for side in has_partner]
    degrees = [
        Degrees(
            limits[0] * side.astype(np.int64),
            np.full(len(side), min(limits[1], others)),
            np.ones(len(side), dtype=np.int64),
            math.floor(max(sign * fraction, 0.0) * count),
        )
        for limits, side, others, sign, count in zip(
            (treated_range, control_range),
            has_partner,
            matrix.shape[::-1],
            (-1, 1),
            counts,
            strict=True,
        )
    ]
    answer = cheapest_pairs(matrix, start, *degrees)
    unmet = int(answer.missing[0].sum()), int(answer.missing[1].sum())
    if any(unmet):
        raise _impossible(units, unmet, _number(min_controls), _number(max_controls))
    pairs = answer.pairs.first, answer.pairs.second
    kept = without_redundant_pairs(pairs, answer.pairs.distance)
    treated, controls = np.flatnonzero(units.treated), np.flatnonzero(~units.treated)
    rows = treated[pairs[0][kept]], controls[pairs[1][kept]]
    details = {
        **setting_details(
            metric=metric if distances is None else "given distances", caliper=caliper, exact=exact
        ),
        **{
            f"{name} without an admissible match": int((~side).sum())
            for name, side in zip(units.arm_names[::-1], has_partner, strict=True)
        },
        **{
            f"{name} omitted": count - len(np.unique(side))
            for name, count, side in zip(units.arm_names[::-1], counts, rows, strict=True)
        },
        **certificate_details(answer.certificate),
    }
    return design_of_pairs("full_match", estimand, units, rows, details)


def _neighbors(treated: int, controls: int) -> tuple[int, int]:
    """Return how many neighbours each treated row and each control has in the first graph.

    Both arms together have about as many, so that a row of the smaller arm has more.
    """
    numbers = (
        NEIGHBORS * others // own for own, others in ((treated, controls), (controls, treated))
    )
    first, second = (min(max(number, NEIGHBORS), MAX_NEIGHBORS) for number in numbers)
    return first, second


def stratum_ranges(
    min_controls: float, max_controls: float
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return how many controls a treated row has, and how many treated rows a control has.

    From 1 on, the limits are whole numbers of controls for a treated row; below 1 they are 1
    divided by a whole number of treated rows for a control.
    """
    limits = []
    for name, value, without_limit in (
        ("min_controls", min_controls, 0.0),
        ("max_controls", max_controls, math.inf),
    ):
        number = _number(value)
        if number == without_limit:
            limits.append((name, without_limit))
            continue
        count = number if number >= 1 else 1 / number if number > 0 else math.nan
        if not (math.isfinite(count) and abs(count - round(count)) < 1e-9 * count):
            raise UnusableInput(
                f"{name} is {value!r}",
                hint="give a whole number, or 1 divided by a whole number, such as 1/2",
            )
        limits.append((name, float(round(count)) if number >= 1 else 1 / round(count)))
    low, high = limits[0][1], limits[1][1]
    if low > high:
        raise UnusableInput(
            f"min_controls is {low:g} and max_controls {high:g}",
            hint="give a max_controls that is at least min_controls",
        )
    treated_range = (int(max(low, 1)), int(min(max(high, 1), MANY)))
    control_range = (
        1 if high >= 1 else round(1 / high),
        1 if low >= 1 else MANY if low == 0 else round(1 / low),
    )
    return treated_range, control_range


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _checked_fraction(fraction: float | None, treated_minimum: int, control_minimum: int) -> float:
    """Return the fraction of controls to omit, negative for treated rows; 0 for ``None``."""
    number = 0.0 if fraction is None else _number(fraction)
    if not -1 < number < 1:
        raise UnusableInput(f"omit_fraction is {fraction!r}", hint="give a number between -1 and 1")
    if number > 0 and control_minimum > 1:
        raise UnusableInput(
            "omit_fraction cannot leave out controls if max_controls is below 1",
            hint="give a max_controls of at least 1, or no omit_fraction",
        )
    if number < 0 and treated_minimum > 1:
        raise UnusableInput(
            "omit_fraction cannot leave out treated rows if min_controls is above 1",
            hint="give a min_controls of at most 1, or no omit_fraction",
        )
    return number


def _impossible(
    units: DesignUnits, unmet: tuple[int, int], min_controls: float, max_controls: float
) -> UnusableInput:
    """Return the error for limits that leave rows without a stratum."""
    sides = [
        f"{count} of the {name.lower()}"
        for name, count in zip(units.arm_names[::-1], unmet, strict=True)
        if count
    ]
    hint = "lower min_controls, or widen the caliper"
    if unmet[1]:
        hint = "raise max_controls, or let omit_fraction leave out controls"
    return UnusableInput(
        f"min_controls={min_controls:g} and max_controls={max_controls:g} leave "
        f"{' and '.join(sides)} without a stratum",
        hint=hint,
    )
