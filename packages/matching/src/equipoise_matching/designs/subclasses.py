"""Subclassification: strata of rows with similar propensity scores.

Rosenbaum and Rubin 1984 (JASA 79(387)); weights by Hong 2010 (Journal of Educational and Behavioral
Statistics 35(5)). Formulae: docs/methods/coarsened-matching.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise_matching.designs.design import LEFT_OUT, Design
from equipoise_matching.designs.strata import arm_counts, focal_arm, renumber, stratum_weights
from equipoise_matching.designs.units import DesignUnits, design_units
from equipoise_matching.matching.frames import Covariates
from equipoise_matching.matching.options import Estimand, check_whole_number
from equipoise_matching.matching.propensity import score_of
from equipoise_matching.matching.units import Floats, Indices, checked_column
from equipoise_matching.shared.errors import UnusableInput


def subclassify(
    treat: Any,
    X: Any,
    *,
    score: Any = None,
    subclasses: int = 5,
    estimand: Estimand = "ATT",
    min_n: int = 1,
) -> Design:
    """Cut the propensity score into strata, and weight the rows of each stratum.

    The cut points are quantiles of the score (Rosenbaum and Rubin 1984): among the treated for the
    ATT, among the controls for the ATC, among all rows for the ATE. Five subclasses remove about
    90 % of the bias of a covariate. All rows are kept, and their weights are those of marginal mean
    weighting through stratification (Hong 2010).

    A subclass with fewer than ``min_n`` rows of an arm is merged with the neighbour that has fewer
    rows, and with the lower one in a tie, from the lowest subclass on. The details have the number
    of subclasses that remain.

    Raise `UnusableInput` for missing or infinite values, covariates that separate the arms, or if
    fewer than two subclasses remain.

    Examples
    --------
    >>> from equipoise_matching import subclassify
    >>> trained = [0, 0, 0, 1, 0, 1, 0, 1, 1]
    >>> age = [22, 25, 28, 31, 34, 37, 40, 43, 46]
    >>> design = subclassify(trained, {"age": age}, subclasses=2)
    >>> design.strata.tolist()
    [0, 0, 0, 0, 0, 0, 1, 1, 1]
    >>> design.weights.tolist()
    [0.5, 0.5, 0.5, 1.0, 0.5, 1.0, 2.0, 1.0, 1.0]

    Parameters
    ----------
    treat
        Shape (n,), 1 for treated rows and 0 for controls.
    X
        Covariates of the balance and, without ``score``, of a logistic model of the treatment:
        a frame, or an array (n, k).
    score
        Shape (n,), the propensity score, or any other number that orders the rows.
    subclasses
        Number of subclasses, at least 2.
    estimand
        The effect on the treated (ATT), on the controls (ATC) or on all (ATE).
    min_n
        Smallest number of rows of each arm in a subclass, at least 1.
    """
    units = design_units(treat, X)
    focal = focal_arm(units, estimand)
    check_whole_number("subclasses", subclasses, 2)
    check_whole_number("min_n", min_n, 1)
    if subclasses > len(units):
        raise UnusableInput(
            f"{subclasses} subclasses are more than the {len(units)} rows",
            hint="give fewer subclasses, such as 5",
        )
    values = (
        score_of(Covariates(units.names, units.matrix, units.treated)).score
        if score is None
        else checked_column(score, "score", len(units))
    )
    quantile_strata = _quantile_strata(values, units, int(subclasses), focal)
    strata = _merge_small(quantile_strata, units, int(min_n))
    remaining = int(strata.max()) + 1
    if remaining < 2:
        raise UnusableInput(
            f"no cut of the score leaves {min_n} rows of each arm on both sides of it",
            hint="the arms hardly overlap, or the score hardly varies: use other covariates"
            if min_n == 1
            else "give a smaller min_n",
        )
    weights = stratum_weights(strata, units, focal)
    counts = arm_counts(strata, units)
    details: dict[str, Any] = {
        "Subclasses": f"{remaining} of {int(subclasses)}",
        "Fewest rows of an arm in a subclass": int(counts.min()),
    }
    if remaining < subclasses:
        details["Merged"] = f"subclasses with less than {min_n} rows of an arm, with a neighbour"
    return Design("subclassify", estimand, units, weights, strata, details=details)


def _quantile_strata(
    score: Floats, units: DesignUnits, subclasses: int, focal: int | None
) -> Indices:
    """Return the subclass of each row, numbered from 0 in the order of the score, shape (n,).

    A score equal to a cut point is in the subclass above it. Quantiles are interpolated linearly
    (type 7 of Hyndman and Fan 1996).
    """
    population = score if focal is None else score[units.arm == focal]
    shares = np.linspace(0, 1, subclasses + 1)[1:-1]
    codes = np.searchsorted(np.quantile(population, shares), score, side="right")
    return renumber(codes.astype(np.int64), subclasses)[0]


def _merge_small(strata: Indices, units: DesignUnits, min_n: int) -> Indices:
    """Return the strata after small ones are merged with a neighbour, numbered from 0."""
    counts = [row.copy() for row in arm_counts(strata, units)]
    members = [[number] for number in range(len(counts))]
    position = 0
    while position < len(counts) and len(counts) > 1:
        if counts[position].min() >= min_n:
            position += 1
            continue
        neighbours = [
            index for index in (position - 1, position + 1) if 0 <= index < len(counts)
        ]
        chosen = min(neighbours, key=lambda index: int(counts[index].sum()))
        low, high = sorted((position, chosen))
        counts[low] = counts[low] + counts.pop(high)
        members[low] += members.pop(high)
        # The merged subclass may still be too small.
        position = low
    numbers = np.full(int(strata.max()) + 1, LEFT_OUT, dtype=np.int64)
    for number, merged in enumerate(members):
        numbers[merged] = number
    return numbers[strata]
