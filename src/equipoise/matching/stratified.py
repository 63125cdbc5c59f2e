"""Matches inside strata and estimates one effect over all of them.

Sekhon 2011 (JSS 42(7)); the errors are those of Abadie and Imbens 2006 (Econometrica 74(1)) over
the pairs of all strata. Formulae, and where R's Matchby differs: docs/matching.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from equipoise import _native
from equipoise.matching import validate
from equipoise.matching.match import Pairs, check_choices, estimated, no_valid_match, told
from equipoise.matching.strata import Factors, factors_of
from equipoise.matching.stratified_result import MatchByResult, Stratum
from equipoise.matching.support import reported_caliper, stratum_calipers
from equipoise.matching.validate import Floats, Units
from equipoise.model.errors import UnusableInput


def match_by(
    y: ArrayLike | None,
    treat: ArrayLike,
    X: ArrayLike,
    by: Any,
    *,
    estimand: Literal["ATT", "ATC", "ATE"] = "ATT",
    m: int = 1,
    metric: str | ArrayLike = "inverse_variance",
    exact: Any = None,
    caliper: ArrayLike | None = None,
    replace: bool = True,
    ties: bool | None = None,
    weights: ArrayLike | None = None,
    variance_neighbors: int = 0,
    variance: Literal["population", "sample"] = "population",
    distance_tolerance: float = 1e-5,
    r_compatible: bool = False,
    threads: int | None = None,
    seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> MatchByResult:
    """Matches each unit of the estimand with its nearest of the other arm in its stratum.

    Each stratum is matched as ``match`` would match it alone: columns are scaled, calipers and
    the Mahalanobis metric are computed inside it, and ``m`` is at most what it has to offer.
    Strata without treated units or without controls are skipped, and told. The effect is the
    mean over all pairs, and its error that of a match with these pairs.

    Parameters
    ----------
    y, treat, X, estimand, m, metric, exact, caliper, replace, weights, variance_neighbors, \
variance, distance_tolerance, threads, seed
        As for ``match``.
    by
        The strata: shape (n,) or (n, factors), a frame, or a mapping of names to columns.
        Several factors form a stratum of each combination that occurs.
    ties
        Whether all tied matches are kept; by default they are, but not in R.
    r_compatible
        Gives R's numbers where they differ from what is right (docs/matching.md).
    progress
        Called with how many rows are done, of how many; may be called by any thread.

    Raises
    ------
    UnusableInput
        If something cannot be used, naming column and rows, or if no unit can be matched.
    """
    given = validate.units(y, treat, X, weights, None)
    check_choices(estimand, m, variance_neighbors, variance, distance_tolerance, threads, seed)
    rows = len(given.x)
    factors = factors_of(by, rows)
    count = len(factors.values)
    matrix = validate.metric_matrix(metric, given.names)
    ties = (not r_compatible if ties is None else bool(ties)) and replace
    # R has an error of Abadie and Imbens for this estimand only.
    has_error = replace and (not r_compatible or (ties and estimand == "ATT"))
    calipers, told_calipers = None, None
    if caliper is not None or exact is not None:
        calipers, is_exact = stratum_calipers(
            given, factors.code, count, caliper, exact, distance_tolerance, r_compatible
        )
        told_calipers = reported_caliper(calipers, is_exact, r_compatible)
    wants_variances = variance_neighbors > 0 and given.outcome is not None and has_error
    options: dict[str, Any] = {
        "x": given.x.ravel(),
        "columns": given.x.shape[1],
        "treated": given.treated,
        "weights": given.weights,
        "estimand": estimand,
        "matches": min(m, rows),
        "metric": metric if matrix is None else "matrix",
        "matrix": None if matrix is None else matrix.ravel(),
        "restrict": [],
        "replace": replace,
        "ties": ties,
        "tolerance": distance_tolerance,
        "r_compatible": r_compatible,
        "threads": threads or 0,
        "seed": 0 if seed is None else seed,
        "method": "chosen",
        "strata": factors.code,
        "stratum_count": count,
        "calipers": None if calipers is None else calipers.ravel(),
        "outcome": given.outcome if wants_variances else None,
        "neighbours": float(variance_neighbors),
    }
    *found, variances = _native.matching_strata(options, progress)
    pairs = Pairs(*found)
    lacking = without_an_arm(given, factors)
    if lacking.all():
        raise UnusableInput(
            f"each of the {count} strata of {', '.join(factors.names)} lacks treated units or "
            "controls",
            hint="match by fewer factors or coarser ones",
        )
    if not len(pairs.query):
        raise no_valid_match()
    own = variances if wants_variances else None
    estimates = None
    if given.outcome is not None:
        estimates = estimated(given, pairs, estimand, own, False, r_compatible, True)
    numbers = told(estimates, variance, pairs, replace, has_error, r_compatible, given.outcome_unit)
    is_treated = given.treated[pairs.query] == 1
    n_treated, n_weighted = int(given.treated.sum()), float(pairs.weight.sum())
    return MatchByResult(
        **numbers,
        treated_index=np.where(is_treated, pairs.query, pairs.matched),
        control_index=np.where(is_treated, pairs.matched, pairs.query),
        weights=pairs.weight,
        dropped_index=pairs.dropped,
        n=rows,
        n_treated=n_treated,
        n_weighted=n_weighted,
        # R takes the pairs from the treated whoever was matched; it may be negative.
        n_dropped=round(n_treated - n_weighted) if r_compatible else len(pairs.dropped),
        effective_caliper=told_calipers,
        estimand=estimand,
        matched_treated=is_treated,
        rows=rows,
        by=factors.names,
        strata=strata_of(given, factors, pairs, lacking),
        stratum=factors.code[pairs.query],
    )


def without_an_arm(given: Units, factors: Factors) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Of each stratum: whether its treated units or its controls weigh nothing."""
    weights = np.ones(len(given.x)) if given.weights is None else given.weights
    arms = [
        np.bincount(factors.code, weights * (given.treated == arm), len(factors.values))
        for arm in (0, 1)
    ]
    return np.asarray((arms[0] <= 0) | (arms[1] <= 0), dtype=np.bool_)


def strata_of(
    given: Units,
    factors: Factors,
    pairs: Pairs,
    lacking: np.ndarray[Any, np.dtype[np.bool_]],
) -> tuple[Stratum, ...]:
    """What there is in each stratum."""
    count = len(factors.values)

    def sums(code: validate.Indices, values: Floats | None = None) -> list[Any]:
        found: list[Any] = np.bincount(code, values, count).tolist()
        return found

    of_pairs = factors.code[pairs.query]
    weighted = sums(of_pairs, pairs.weight)
    effects: list[float | None] = [None] * count
    if given.outcome is not None:
        sign = np.where(given.treated[pairs.query] == 1, 1.0, -1.0)
        differences = sign * (given.outcome[pairs.query] - given.outcome[pairs.matched])
        totals = sums(of_pairs, pairs.weight * differences)
        effects = [
            total / weight * given.outcome_unit if weight > 0 else None
            for total, weight in zip(totals, weighted, strict=True)
        ]
    columns = zip(
        factors.values,
        sums(factors.code),
        sums(factors.code[given.treated == 1]),
        weighted,
        sums(factors.code[pairs.dropped]),
        effects,
        lacking.tolist(),
        strict=True,
    )
    return tuple(Stratum(*column) for column in columns)
