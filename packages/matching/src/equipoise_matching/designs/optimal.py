"""Optimal matching: pairs, or sets of one row with k others, of smallest total distance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching.designs.design import Design
from equipoise_matching.designs.distance_options import distances_of
from equipoise_matching.designs.flow import Certificate, Degrees, cheapest_pairs
from equipoise_matching.designs.matched_sets import design_of_pairs
from equipoise_matching.designs.units import design_units
from equipoise_matching.matching.options import Estimand, check_whole_number
from equipoise_matching.shared.errors import UnusableInput

MIN_NEIGHBORS = 12
"""Nearest neighbours of each row with which the search begins, or more for 1:k matching."""
NO_PAIR_HINT = "widen the caliper, or give fewer exact columns"


def optimal_match(
    treat: Any,
    X: Any,
    *,
    k: int = 1,
    estimand: Estimand = "ATT",
    metric: str | ArrayLike = "mahalanobis",
    distances: ArrayLike | None = None,
    caliper: float | Mapping[str, float] | None = None,
    exact: Any = None,
) -> Design:
    """Match each treated row to k controls so that the total distance is as small as possible.

    A control is in at most one stratum. Among all matchings with as many pairs as possible, the
    total distance is the smallest (Rosenbaum 1989, JASA 84(408)). The details of the design have a
    lower bound of it: the dual value of a minimum-cost flow.

    Parameters
    ----------
    treat
        Shape (n,), 1 for treated rows and 0 for controls.
    X
        Covariates, shape (n, columns): an array or a data frame. A propensity score is one column.
    k
        Number of controls for each treated row. A row gets fewer only if there are too few.
    estimand
        ``ATT`` matches the treated rows; ``ATC`` matches each control to k treated rows.
    metric
        ``mahalanobis`` (by the covariance of all rows), ``inverse_variance``, ``euclidean``
        (differences as they are, as for a score), or weights (columns,) or a weight matrix for the
        standardised columns, as in `match`.
    distances
        Own distances, shape (treated rows, controls), in place of the metric; infinite for a pair
        that must not be formed.
    caliper
        A number is the largest distance of a pair. A mapping limits columns of X, in standard
        deviations (divisor n) of all rows: ``{"age": 0.2}``. Its key ``distance`` limits the
        distance.
    exact
        Names of columns of X, or an array with n values, that are equal in a pair.

    Returns
    -------
    Design
        Strata of one row with its matches. Weights: 1 for rows of the matched arm, and 1 / (number
        of matches in the stratum) for their matches.

    Raises
    ------
    UnusableInput
        For missing or infinite values, an empty arm, an unknown column, metric or estimand, no
        admissible pair, or if ortools is not installed (the extra ``flow``).

    Examples
    --------
    Nearest-neighbour matching in the order of the rows would give 5 the control 6, and leave 0 for
    7. The optimal pairs have the distances 5 and 1:

    >>> from equipoise_matching import optimal_match
    >>> design = optimal_match([1, 1, 0, 0], [5, 7, 6, 0], metric="euclidean")
    >>> design.pairs().tolist(), design.details["Total distance"]
    ([[0, 3], [1, 2]], 6.0)
    """
    units = design_units(treat, X)
    check_whole_number("k", k, 1)
    if k is None or estimand not in ("ATT", "ATC"):
        raise UnusableInput(
            f"there is no optimal matching for k={k!r} and estimand {estimand!r}",
            hint="choose a whole number, and ATT or ATC; full_match has ATE, too",
        )
    focal = int(estimand == "ATT")
    matrix = distances_of(
        units, focal, metric=metric, distances=distances, caliper=caliper, exact=exact
    )
    n1, n2 = matrix.shape
    neighbors = min(MIN_NEIGHBORS + 4 * int(k), n2)
    # If donors are scarce, each donor chooses too, so that all donors are in the first graph.
    start = matrix.start(neighbors, neighbors if k * n1 > n2 // 2 else 0)
    has_partner = np.bincount(start.candidates.first, minlength=n1) > 0
    if not has_partner.any():
        raise UnusableInput("no pair of rows is admissible", hint=NO_PAIR_HINT)
    k = min(int(k), n2)
    answer = cheapest_pairs(
        matrix, start, Degrees(k, k), Degrees(0, 1), (has_partner, np.ones(n2, dtype=np.bool_))
    )
    rows = np.flatnonzero(units.arm == focal), np.flatnonzero(units.arm != focal)
    pairs = rows[0][answer.pairs.first], rows[1][answer.pairs.second]
    matched = len(np.unique(pairs[0]))
    details = {
        "Pairs": len(pairs[0]),
        f"{units.arm_names[focal]} without an admissible match": int((~has_partner).sum()),
        f"{units.arm_names[focal]} left out for want of matches": int(has_partner.sum()) - matched,
        **certificate_details(answer.certificate),
    }
    return design_of_pairs(
        "optimal_match", estimand, units, pairs if focal else (pairs[1], pairs[0]), details
    )


def certificate_details(certificate: Certificate) -> dict[str, float | int]:
    """Return the total distance, its lower bound, their difference, and the size of the search."""
    return {
        "Total distance": certificate.total_distance,
        "Lower bound": certificate.lower_bound,
        "Gap": certificate.gap,
        "Arcs": certificate.arcs,
        "Rounds": certificate.rounds,
    }
