"""Optimal matching: pairs, or sets of one row with k others, of smallest total distance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching.designs.design import Design
from equipoise_matching.designs.distance import grouped
from equipoise_matching.designs.distance_options import distances_of
from equipoise_matching.designs.flow import Certificate, Degrees, FlowResult, cheapest_pairs
from equipoise_matching.designs.matched_sets import design_of_pairs
from equipoise_matching.designs.units import design_units, setting_details
from equipoise_matching.matching.options import Estimand, check_whole_number
from equipoise_matching.matching.units import Indices
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

    Raise `UnusableInput` for missing or infinite values, an empty arm, an unknown column,
    metric or estimand, or no admissible pair.

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
    distinct, groups = grouped(matrix)
    sizes = [np.bincount(group) for group in groups]
    n1, n2 = matrix.shape
    k = min(int(k), n2)
    neighbors = MIN_NEIGHBORS + 4 * k
    # If donors are scarce, each donor chooses too, so that all donors are in the first graph.
    start = distinct.start(neighbors, neighbors if k * n1 > n2 // 2 else 0)
    has_partner = np.bincount(start.candidates.first, minlength=len(sizes[0])) > 0
    if not has_partner.any():
        raise UnusableInput("no pair of rows is admissible", hint=NO_PAIR_HINT)
    wanted = k * sizes[0] * has_partner
    answer = cheapest_pairs(
        distinct,
        start,
        Degrees(wanted, wanted, sizes[0]),
        Degrees(np.zeros_like(sizes[1]), sizes[1], sizes[1]),
    )
    positions = row_pairs(answer, groups)
    arms = np.flatnonzero(units.arm == focal), np.flatnonzero(units.arm != focal)
    pairs = arms[0][positions[0]], arms[1][positions[1]]
    matched, matchable = len(np.unique(pairs[0])), int(sizes[0][has_partner].sum())
    details = {
        **setting_details(
            metric=metric if distances is None else "given distances", caliper=caliper, exact=exact
        ),
        "Pairs": len(pairs[0]),
        f"{units.arm_names[focal]} without an admissible match": n1 - matchable,
        f"{units.arm_names[focal]} left out for want of matches": matchable - matched,
        **certificate_details(answer.certificate),
    }
    return design_of_pairs(
        "optimal_match", estimand, units, pairs if focal else (pairs[1], pairs[0]), details
    )


def row_pairs(result: FlowResult, groups: tuple[Indices, Indices]) -> tuple[Indices, Indices]:
    """Return the position of each pair's rows in both arms, from pairs of groups of equal rows.

    The rows of a group take turns, so that each row has a match before another has its second.
    """
    units = (
        np.repeat(result.pairs.first, result.times),
        np.repeat(result.pairs.second, result.times),
    )
    positions = []
    for unit, group in zip(units, groups, strict=True):
        members = np.argsort(group, kind="stable")
        sizes = np.bincount(group)
        starts = np.cumsum(sizes) - sizes
        order = np.argsort(unit, kind="stable")
        counts = np.bincount(unit, minlength=len(sizes))
        turns = np.empty(len(unit), dtype=np.int64)
        turns[order] = np.arange(len(unit)) - np.repeat(np.cumsum(counts) - counts, counts)
        positions.append(members[starts[unit] + turns % sizes[unit]])
    return positions[0], positions[1]


def certificate_details(certificate: Certificate) -> dict[str, float | int]:
    """Return the total distance, its lower bound, their difference, and the size of the search."""
    return {
        "Total distance": certificate.total_distance,
        "Lower bound": certificate.lower_bound,
        "Gap": certificate.gap,
        "Arcs": certificate.arcs,
        "Rounds": certificate.rounds,
    }
