"""Subclassification: strata of rows with similar propensity scores.

Rosenbaum and Rubin 1984 (JASA 79(387)); weights by Hong 2010 (Journal of Educational and Behavioral
Statistics 35(5)) and, with several arms, Hong 2012 (Psychological Methods 17(1)). Formulae:
docs/methods/coarsened-matching.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise_matching.designs.design import LEFT_OUT, Design
from equipoise_matching.designs.strata import (
    arm_counts,
    check_estimand,
    focal_arm,
    renumber,
    stratum_weights,
)
from equipoise_matching.designs.units import DesignUnits, design_units
from equipoise_matching.matching.frames import Covariates
from equipoise_matching.matching.options import Estimand, check_whole_number
from equipoise_matching.matching.propensity import score_of
from equipoise_matching.matching.units import Floats, Indices, check_length, checked_table
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

    With several arms, each arm has its own score and its own subclasses: rows of the arm against
    all other rows (Hong 2012). The design then has weights, but no strata.

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
        Shape (n,), 1 for treated rows and 0 for controls, or the labels of several arms.
    X
        Covariates of the balance and, without ``score``, of a logistic model of the treatment:
        a frame, or an array (n, k).
    score
        Shape (n,), the propensity score, or any other number that orders the rows. With several
        arms, shape (n, arms): the score of each arm, in ascending order of the labels.
    subclasses
        Number of subclasses, at least 2.
    estimand
        The effect on the treated (ATT), on the controls (ATC) or on all (ATE). With several arms,
        the ATE.
    min_n
        Smallest number of rows of each arm in a subclass, at least 1.
    """
    check_estimand(estimand)
    check_whole_number("subclasses", subclasses, 2)
    check_whole_number("min_n", min_n, 1)
    units = design_units(treat, X, several_arms=True)
    if subclasses > len(units):
        raise UnusableInput(
            f"{subclasses} subclasses are more than the {len(units)} rows",
            hint="give fewer subclasses, such as 5",
        )
    scores = _checked_scores(score, units)
    counts = (int(subclasses), int(min_n))
    if units.arms != (0, 1):
        if estimand != "ATE":
            raise UnusableInput(
                f"subclasses of {len(units.arms)} arms give the ATE, not the {estimand}",
                hint="give estimand='ATE'",
            )
        return _several_arms(units, scores, *counts)
    focal = focal_arm(units, estimand)
    strata = _subclasses_of(scores[:, 0], units, focal, *counts)
    remaining = int(strata.max()) + 1
    details: dict[str, Any] = {
        "Subclasses": f"{remaining} of {int(subclasses)}",
        "Fewest rows of an arm in a subclass": int(arm_counts(strata, units).min()),
    }
    if remaining < subclasses:
        details["Merged"] = f"subclasses with less than {min_n} rows of an arm, with a neighbour"
    weights = stratum_weights(strata, units, focal)
    return Design("subclassify", estimand, units, weights, strata, details=details)


def _several_arms(units: DesignUnits, scores: Floats, subclasses: int, min_n: int) -> Design:
    """Return the weights of several arms; a row's stratum is that of its own arm's score."""
    weights = np.zeros(len(units))
    details = {}
    for arm, label in enumerate(units.arms):
        is_in_arm = units.arm == arm
        beside_others = DesignUnits(
            units.names, units.matrix, is_in_arm.astype(np.int64), arms=(0, 1)
        )
        strata = _subclasses_of(scores[:, arm], beside_others, None, subclasses, min_n)
        weights[is_in_arm] = stratum_weights(strata, beside_others, None)[is_in_arm]
        details[f"Subclasses, {label}"] = f"{int(strata.max()) + 1} of {subclasses}"
    return Design("subclassify", "ATE", units, weights, details=details)


def _checked_scores(score: Any, units: DesignUnits) -> Floats:
    """Return the scores, shape (n, 1) with two arms 0 and 1, else (n, arms)."""
    arms = 1 if units.arms == (0, 1) else len(units.arms)
    if score is None:
        if arms > 1:
            listed_arms = ", ".join(map(str, units.arms))
            raise UnusableInput(
                f"without score, subclassify needs the arms 0 and 1, not {listed_arms}",
                hint="give score: a column of probabilities for each arm, in this order",
            )
        model = score_of(Covariates(units.names, units.matrix, units.treated))
        return model.score[:, np.newaxis]
    scores, _ = checked_table(score, "score", "score")
    check_length(len(scores), "score", len(units))
    if scores.shape[1] != arms:
        raise UnusableInput(
            f"score has {scores.shape[1]} columns",
            hint=f"give {arms}: one number for each row"
            if arms == 1
            else f"give {arms}: one column for each of the arms {', '.join(map(str, units.arms))}",
        )
    return scores


def _subclasses_of(
    score: Floats, units: DesignUnits, focal: int | None, subclasses: int, min_n: int
) -> Indices:
    """Return the subclass of each row, from 0 in the order of the score, shape (n,).

    Raise `UnusableInput` if fewer than two subclasses remain after small ones are merged.
    """
    strata = _merge_small(_quantile_strata(score, units, subclasses, focal), units, min_n)
    if not strata.any():
        raise UnusableInput(
            f"no cut of the score leaves {min_n} rows of each arm on both sides of it",
            hint="the arms hardly overlap, or the score hardly varies: use other covariates"
            if min_n == 1
            else "give a smaller min_n",
        )
    return strata


def _quantile_strata(
    score: Floats, units: DesignUnits, subclasses: int, focal: int | None
) -> Indices:
    """Return the quantile class of each row, numbered from 0 in the order of the score.

    A score equal to a cut point is in the class above it. Quantiles are interpolated linearly
    (type 7 of Hyndman and Fan 1996).
    """
    population = score if focal is None else score[units.arm == focal]
    shares = np.linspace(0, 1, subclasses + 1)[1:-1]
    codes = np.searchsorted(np.quantile(population, shares), score, side="right")
    return renumber(codes.astype(np.int64), subclasses)[0]


def _merge_small(strata: Indices, units: DesignUnits, min_n: int) -> Indices:
    """Return the strata after small ones are merged with a neighbour, numbered from 0."""
    counts = list(arm_counts(strata, units))
    members = [[number] for number in range(len(counts))]
    position = 0
    while position < len(counts) and len(counts) > 1:
        if counts[position].min() >= min_n:
            position += 1
            continue
        neighbors = [index for index in (position - 1, position + 1) if 0 <= index < len(counts)]
        chosen = min(neighbors, key=lambda index: int(counts[index].sum()))
        low, high = sorted((position, chosen))
        counts[low] = counts[low] + counts.pop(high)
        members[low] += members.pop(high)
        # The merged subclass may still be too small.
        position = low
    numbers = np.full(int(strata.max()) + 1, LEFT_OUT, dtype=np.int64)
    for number, merged in enumerate(members):
        numbers[merged] = number
    return np.asarray(numbers[strata], dtype=np.int64)
