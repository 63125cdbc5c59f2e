"""Turn the result of ``match`` or ``gen_match`` into a design, to compare it with other designs."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise_matching.designs.design import Design
from equipoise_matching.designs.units import design_units
from equipoise_matching.matching.balance import MatchedPairs, matched_groups
from equipoise_matching.matching.frames import covariates_of


def design_of_match(result: MatchedPairs, treat: Any, X: Any) -> Design:
    """Return the pairs of a match as a design of the same rows, to compare its balance.

    The weight of a row is the sum of the weights of its pairs. The error of the effect of a match
    is that of the match itself (Abadie and Imbens 2006), not that of the design.

    Raise `UnusableInput` if ``result`` is not a match of these rows.

    Examples
    --------
    >>> from equipoise_matching import design_of_match, match
    >>> trained, age = [1, 1, 0, 0, 0], [25, 31, 24, 31, 52]
    >>> design = design_of_match(match(None, trained, age), trained, {"age": age})
    >>> design.weights.tolist()
    [1.0, 1.0, 1.0, 1.0, 0.0]
    >>> design.pairs().tolist()
    [[0, 2], [1, 3]]

    Parameters
    ----------
    result
        The result of ``match`` or ``match_by``, or the matches of ``gen_match``.
    treat
        Shape (n,), 1 for treated rows and 0 for controls, as the match had it.
    X
        Shape (n, k), the covariates to compare.
    """
    groups = matched_groups(result, covariates_of(X, treat))
    units = design_units(treat, X)
    weights = np.zeros(len(units))
    for rows, pair_weights in (
        (groups.treated, groups.weights_treated),
        (groups.control, groups.weights_control),
    ):
        weights += np.bincount(rows, pair_weights, minlength=len(units))
    pairs = np.column_stack([groups.treated, groups.control]).astype(np.int64)
    estimand: Any = getattr(result, "estimand", "ATT")
    return Design("match", estimand, units, weights, matched_pairs=pairs)
