"""Matches treated units with controls and estimates the effect of the treatment.

Abadie and Imbens 2006 (Econometrica 74(1)) and 2011 (JBES 29(1)); Sekhon 2011 (JSS 42(7)).
Formulae, and where R's package Matching differs: docs/matching.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from equipoise import _native
from equipoise.matching import validate
from equipoise.matching.result import MatchResult
from equipoise.matching.support import common_rows, effective_caliper, reported_caliper
from equipoise.matching.validate import Floats, Indices, Units
from equipoise.model.errors import UnusableInput

ESTIMANDS = ("ATT", "ATC", "ATE")


def match(
    y: ArrayLike | None,
    treat: ArrayLike,
    X: ArrayLike,
    *,
    estimand: Literal["ATT", "ATC", "ATE"] = "ATT",
    m: int = 1,
    metric: str | ArrayLike = "inverse_variance",
    exact: Any = None,
    caliper: ArrayLike | None = None,
    replace: bool = True,
    ties: bool = True,
    common_support: bool = False,
    weights: ArrayLike | None = None,
    bias_adjust: bool = False,
    covariates: ArrayLike | None = None,
    variance_neighbors: int = 0,
    variance: Literal["population", "sample"] = "population",
    restrict: ArrayLike | None = None,
    distance_tolerance: float = 1e-5,
    reuse: MatchResult | None = None,
    r_compatible: bool = False,
    threads: int | None = None,
    seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> MatchResult:
    """Matches each unit of the estimand with its nearest of the other arm.

    Parameters
    ----------
    y
        Shape (n,), the outcome; ``None`` matches without one.
    treat
        Shape (n,), 1 for treated units, 0 for controls.
    X
        Shape (n, k), the covariates to match on: array or frame.
    estimand
        The effect on the treated (ATT), on the controls (ATC) or on all (ATE).
    m
        How many matches a unit gets, before ties; no more than there are units to match with.
    metric
        On the standardised columns: "inverse_variance", "mahalanobis", k weights or a symmetric
        positive semidefinite matrix (k, k).
    exact
        Columns that must be equal: ``True`` for all, one truth each, or names.
    caliper
        How far a match may lie, in standard deviations of each column: one value or k.
    replace, ties
        Whether a unit may serve more than once; whether all tied matches are kept (their weight is
        shared) or some drawn by lot. Without replacement ties are always drawn.
    common_support
        Leaves out rows outside the range that both arms share in the first column.
    weights
        Shape (n,), observation weights.
    bias_adjust, covariates
        Regression adjustment on ``covariates`` (n, l), by default X (Abadie and Imbens 2011).
    variance_neighbors
        0 for one variance of all outcomes, else from so many neighbours of the same arm.
    variance
        The error of the effect in the "population" or among these units ("sample").
    restrict
        Triples: a row, another row (from 0), a squared distance; negative forbids the pair.
    distance_tolerance
        Squared distances that differ by no more are ties.
    reuse
        An earlier match of the same units, whose pairs are taken for this outcome.
    r_compatible
        Gives R's numbers where they differ from what is right (docs/matching.md).
    threads, seed
        Neither the number of threads (all cores by default) nor their timing changes the answer;
        lots are drawn from ``seed`` (0 by default).
    progress
        Called with how many units are done, of how many; may be called by any thread.

    Raises
    ------
    UnusableInput
        If something cannot be used, naming column and rows, or if no unit can be matched.
    """
    given = validate.units(y, treat, X, weights, covariates)
    check_choices(estimand, m, variance_neighbors, variance, distance_tolerance, threads, seed)
    rows = len(given.x)
    triples = validate.restrictions(restrict, rows)
    matrix = validate.metric_matrix(metric, given.names)
    kept: Indices | None = None
    if common_support:
        tolerance = distance_tolerance if r_compatible else 0.0
        kept = common_rows(given.x[:, 0], given.treated, given.names[0], tolerance)
        given, triples = trimmed(given, triples, kept, r_compatible)
    caliper_used, caliper_told = None, None
    if caliper is not None or exact is not None:
        caliper_used, is_exact = effective_caliper(
            given, caliper, exact, distance_tolerance, r_compatible
        )
        caliper_told = reported_caliper(caliper_used, is_exact, r_compatible)
    n_treated = int(np.count_nonzero(given.treated))
    serving = {"ATT": (0,), "ATC": (1,), "ATE": (0, 1)}[estimand]
    most = min((len(given.x) - n_treated, n_treated)[arm] for arm in serving)
    options: dict[str, Any] = {
        "x": given.x.ravel(),
        "columns": given.x.shape[1],
        "treated": given.treated,
        "weights": given.weights,
        "estimand": estimand,
        "matches": min(m, most),
        "metric": metric if matrix is None else "matrix",
        "matrix": None if matrix is None else matrix.ravel(),
        "caliper": caliper_used,
        "restrict": triples,
        "replace": replace,
        "ties": ties and replace,
        "tolerance": distance_tolerance,
        "r_compatible": r_compatible,
        "threads": threads or 0,
        "seed": 0 if seed is None else seed,
        "method": "chosen",
    }
    wants_variances = variance_neighbors > 0 and given.outcome is not None
    wants_variances &= not (r_compatible and not (replace and ties))
    engine = _native.MatchingEngine(options) if reuse is None or wants_variances else None
    if reuse is not None:
        pairs = reused(reuse, rows, estimand, common_support)
    elif engine is not None:
        pairs = Pairs(*engine.pairs(progress))
    if not len(pairs.query):
        raise no_valid_match()
    found = None
    if given.outcome is not None:
        variances = None
        if wants_variances and engine is not None:
            variances = engine.variances(
                given.outcome, clipped_neighbours(given, variance_neighbors)
            )
        found = estimated(
            given, pairs, estimand, variances, bias_adjust, r_compatible, replace and ties
        )
    # R's indices are into the rows that are left.
    if r_compatible or reuse is not None:
        kept = None
    dropped = named_by_r(pairs, caliper_used is not None) if r_compatible else pairs.dropped
    is_treated = given.treated[pairs.query] == 1
    query, matched = original(pairs.query, kept), original(pairs.matched, kept)
    numbers = told(found, variance, pairs, replace, ties, r_compatible, given.outcome_unit)
    return MatchResult(
        **numbers,
        treated_index=np.where(is_treated, query, matched),
        control_index=np.where(is_treated, matched, query),
        weights=pairs.weight,
        dropped_index=original(dropped, kept),
        n=len(given.x),
        n_treated=n_treated,
        n_weighted=float(pairs.weight.sum()),
        n_dropped=len(pairs.dropped),
        effective_caliper=caliper_told,
        estimand=estimand,
        matched_treated=is_treated,
        rows=rows,
    )


class Pairs:
    """Rows of each unit and its match, the pair's weight, and the rows without a match."""

    __slots__ = ("dropped", "matched", "query", "weight")

    def __init__(self, query: bytes, matched: bytes, weight: bytes, dropped: bytes) -> None:
        self.query: Indices = np.frombuffer(query, np.int64)
        self.matched: Indices = np.frombuffer(matched, np.int64)
        self.weight: Floats = np.frombuffer(weight, np.float64)
        self.dropped: Indices = np.frombuffer(dropped, np.int64)


def reused(earlier: MatchResult, rows: int, estimand: str, common_support: bool) -> Pairs:
    """The pairs of an earlier match of the same units."""
    if not isinstance(earlier, MatchResult):
        raise UnusableInput(
            f"reuse is of type {type(earlier).__name__}", hint="give what match() returned"
        )
    if earlier.rows != rows or earlier.estimand != estimand:
        raise UnusableInput(
            f"reuse is a match of {earlier.rows} rows for {earlier.estimand}, and this is one of "
            f"{rows} rows for {estimand}",
            hint="reuse a match of the same units with the same estimand",
        )
    if common_support or earlier.n != earlier.rows:
        raise UnusableInput("reuse and common_support do not go together")
    first = earlier.matched_treated
    return Pairs(
        np.where(first, earlier.treated_index, earlier.control_index).tobytes(),
        np.where(first, earlier.control_index, earlier.treated_index).tobytes(),
        earlier.weights.tobytes(),
        earlier.dropped_index.tobytes(),
    )


def original(rows: Indices, kept: Indices | None) -> Indices:
    """The rows among those that were given; all were kept without ``kept``."""
    return rows if kept is None else kept[rows]


def no_valid_match() -> UnusableInput:
    """The error where nobody is left to match with."""
    return UnusableInput(
        "no unit has a valid match: caliper, exact or restrict leave none",
        hint="widen the caliper, or ask for fewer exact columns or fewer matches (m)",
    )


def named_by_r(pairs: Pairs, fenced: bool) -> Indices:
    """Of the dropped units, those that R names: with a caliper or exact columns, who serve nobody.

    It counts, but does not name, those whom restrictions or an exhausted pool left without a match.
    """
    return pairs.dropped[~np.isin(pairs.dropped, pairs.matched)] if fenced else pairs.dropped[:0]


def trimmed(
    given: Units, triples: list[tuple[int, int, float]], kept: Indices, r_compatible: bool
) -> tuple[Units, list[tuple[int, int, float]]]:
    """The units of the kept rows, and the restrictions among them.

    R looks the rows of restrictions up among those that are left.
    """
    named = np.arange(len(kept)) if r_compatible else kept
    place = {int(row): position for position, row in enumerate(named)}
    within = [
        (place[first], place[second], distance)
        for first, second, distance in triples
        if first in place and second in place
    ]

    def part(values: Floats | None) -> Floats | None:
        return None if values is None else values[kept]

    return (
        Units(
            np.ascontiguousarray(given.x[kept]),
            given.names,
            given.treated[kept],
            part(given.outcome),
            part(given.weights),
            part(given.z),
            given.outcome_unit,
        ),
        within,
    )


def clipped_neighbours(given: Units, neighbours: int) -> float:
    """No more than either arm weighs."""
    weights = np.ones(len(given.x)) if given.weights is None else given.weights
    arms = (float(weights[given.treated == arm].sum()) for arm in (0, 1))
    return float(min(float(neighbours), *arms))


Estimates = tuple[float, float, float, float, float, float]


def estimated(
    given: Units,
    pairs: Pairs,
    estimand: str,
    variances: bytes | None,
    bias_adjust: bool,
    r_compatible: bool,
    with_error: bool,
) -> Estimates:
    """Effect, unadjusted effect, the two variances, error of the pairs, conditional error."""
    z = given.x if given.z is None else given.z
    if bias_adjust and r_compatible:
        arms = {"ATT": (1,), "ATC": (0,), "ATE": (0, 1)}[estimand]
        # Fifteen thirds are five.
        weight = math.fsum(pairs.weight)
        size = min(int(np.isin(given.treated, arms).sum()), weight)
        bias_adjust = with_error and size >= z.shape[1]
    elif bias_adjust:
        for arm in {"ATT": (0,), "ATC": (1,), "ATE": (0, 1)}[estimand]:
            serving = np.unique(pairs.matched[given.treated[pairs.matched] == arm]).size
            if serving <= z.shape[1]:
                raise UnusableInput(
                    f"bias_adjust fits {z.shape[1]} slopes and a constant to {serving} matched "
                    f"{'treated units' if arm else 'controls'}: too few",
                    hint="give fewer covariates, or match without bias_adjust",
                )
    weights = np.ones(len(given.x)) if given.weights is None else given.weights
    return _native.matching_estimate(
        {
            "treated": given.treated,
            "outcome": given.outcome,
            "weights": weights,
            "query": pairs.query,
            "matched": pairs.matched,
            "weight": pairs.weight,
            "covariates": (z / validate.power_of_two(z)).ravel() if bias_adjust else None,
            "columns": z.shape[1],
            "variances": None if variances is None else np.frombuffer(variances, np.float64),
            "estimand": estimand,
            "r_compatible": r_compatible,
        }
    )


def told(
    found: Estimates | None,
    variance: str,
    pairs: Pairs,
    replace: bool,
    ties: bool,
    r_compatible: bool,
    unit: float,
) -> dict[str, float | None]:
    """The numbers of the result that an outcome in this unit gives."""
    names = ("estimate", "se", "se_standard", "se_conditional", "estimate_unadjusted")
    if found is None:
        return dict.fromkeys((*names, "t", "p_value"))
    effect, unadjusted, population, sample, of_pairs, conditional = found
    known = replace and ties if r_compatible else replace
    # Pairs are in the order of the units that were matched.
    if not r_compatible and pairs.query[0] == pairs.query[-1]:
        known = False
    error = math.sqrt(population if variance == "population" else sample)
    shown = error if known else of_pairs
    t = effect / shown if shown > 0 and (known or pairs.query.size > 1) else None
    return {
        "estimate": effect * unit,
        "se": error * unit if known else None,
        "se_standard": of_pairs * unit,
        "se_conditional": conditional * unit if known else None,
        "estimate_unadjusted": unadjusted * unit,
        "t": t,
        "p_value": None if t is None else math.erfc(abs(t) / math.sqrt(2.0)),
    }


def check_choices(
    estimand: str,
    m: int,
    neighbours: int,
    variance: str,
    tolerance: float,
    threads: int | None,
    seed: int | None,
) -> None:
    """The single values, each in its range."""
    if estimand not in ESTIMANDS:
        raise UnusableInput(f"there is no estimand {estimand!r}", hint="give ATT, ATC or ATE")
    if variance not in ("population", "sample"):
        raise UnusableInput(
            f"there is no variance {variance!r}", hint="give 'population' or 'sample'"
        )
    whole: list[tuple[str, int | None, int]] = [
        ("m", m, 1),
        ("variance_neighbors", neighbours, 0),
        ("threads", threads, 1),
        ("seed", seed, 0),
    ]
    for name, value, least in whole:
        known = isinstance(value, int | float | np.number) and math.isfinite(value)
        if value is not None and not (known and value == int(value) and least <= value < 2**63):
            raise UnusableInput(
                f"{name} is {value!r}", hint=f"give a whole number from {least} to 2^63"
            )
    if not (isinstance(tolerance, int | float | np.number) and 0 <= tolerance < math.inf):
        raise UnusableInput(f"distance_tolerance is {tolerance!r}", hint="give 0 or more")
