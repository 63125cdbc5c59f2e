"""Strata and weights of a design from its pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from equipoise_matching.designs.design import LEFT_OUT, Design
from equipoise_matching.designs.units import DesignUnits
from equipoise_matching.matching.options import Estimand
from equipoise_matching.matching.units import Floats, Indices, Truths


def design_of_pairs(
    method: str,
    estimand: Estimand,
    units: DesignUnits,
    pairs: tuple[Indices, Indices],
    details: Mapping[str, Any],
) -> Design:
    """Return the design whose strata are the sets of rows that ``pairs`` connect.

    ``pairs`` has the treated row and the control of each pair. In a set, one row is in all pairs.
    """
    strata = strata_of_pairs(pairs, len(units))
    weights = stratum_weights(strata, units.treated, estimand)
    return Design(method, estimand, units, weights, strata, details=dict(details))


def strata_of_pairs(pairs: tuple[Indices, Indices], count: int) -> Indices:
    """Return the stratum of each row, numbered in the order of the rows, ``LEFT_OUT`` without."""
    treated, controls = pairs
    is_centre = np.bincount(treated, minlength=count)[treated] > 1
    centre = np.where(is_centre, treated, controls)
    strata = np.full(count, LEFT_OUT, dtype=np.int64)
    strata[treated], strata[controls] = centre, centre
    matched = np.flatnonzero(strata != LEFT_OUT)
    _, first_rows, labels = np.unique(strata[matched], return_index=True, return_inverse=True)
    strata[matched] = np.argsort(np.argsort(first_rows))[labels.reshape(-1)]
    return strata


def stratum_weights(strata: Indices, treated: Truths, estimand: Estimand) -> Floats:
    """Return the weight of each row, 0 for rows without a stratum.

    In a stratum with t of T treated rows, c of C controls and n of N rows:

    - ATT: a treated row weighs 1 and a control t / c
    - ATC: a control weighs 1 and a treated row c / t
    - ATE: a treated row weighs (n / N) / (t / T) and a control (n / N) / (c / C)
    """
    is_matched = strata != LEFT_OUT
    count = int(strata.max(initial=LEFT_OUT)) + 1
    sizes = [np.bincount(strata[is_matched & arm], minlength=count) for arm in (~treated, treated)]
    own = np.where(treated, sizes[1][strata], sizes[0][strata]) if count else np.ones(len(strata))
    if estimand == "ATE":
        totals = np.where(treated, sizes[1].sum(), sizes[0].sum())
        share = (sizes[0] + sizes[1]) / max(int(is_matched.sum()), 1)
        weights = share[strata] * totals / own if count else own
    else:
        focal = int(estimand == "ATT")
        weights = sizes[focal][strata] / own if count else own
    return np.where(is_matched, weights, 0.0)


def without_redundant_pairs(pairs: tuple[Indices, Indices], distance: Floats) -> Truths:
    """Return which pairs remain if both rows of no pair are in other pairs, too.

    In an optimal solution a redundant pair has distance 0. The largest distance goes first.
    """
    kept = np.ones(len(distance), dtype=np.bool_)
    degrees = [np.bincount(rows) for rows in pairs]
    is_redundant = (degrees[0][pairs[0]] > 1) & (degrees[1][pairs[1]] > 1)
    candidates = np.flatnonzero(is_redundant)
    for pair in candidates[np.argsort(-distance[candidates], kind="stable")].tolist():
        first, second = pairs[0][pair], pairs[1][pair]
        if degrees[0][first] > 1 and degrees[1][second] > 1:
            kept[pair] = False
            degrees[0][first] -= 1
            degrees[1][second] -= 1
    return kept
