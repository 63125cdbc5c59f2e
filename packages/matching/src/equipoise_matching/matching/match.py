"""Match treated units with controls, and estimate the effect of the treatment from the pairs.

Abadie and Imbens 2006 (Econometrica 74(1)) and 2011 (JBES 29(1)); Sekhon 2011 (JSS 42(7)).
Formulae, and where R's package Matching differs: docs/methods/matching.md. ``X``, ``m``,
``caliper`` and ``restrict`` are R's names.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching import _native
from equipoise_matching.matching.options import (
    DONOR_ARMS,
    MATCHED_ARMS,
    Estimand,
    MatchOptions,
    MatchProblem,
    Order,
    check_whole_number,
    match_problem,
    pairing_options,
)
from equipoise_matching.matching.units import Floats, Indices, Truths, Units, power_of_two, units_of
from equipoise_matching.shared import html
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import require

if TYPE_CHECKING:
    from pandas import DataFrame

VARIANCE_NEIGHBORS = 2
"""Default number of neighbours from which the variance of each unit is estimated.

R's default is 0: one variance for all units (docs/methods/matching.md compares both).
"""
_NORMAL_QUANTILE = 1.959963984540054
"""Number of standard errors from the estimate to either end of a 95 % interval."""
MANY_WITHOUT_NEIGHBORS = 0.1
"""A report warns above this share of matched units without a neighbour."""


def match(
    y: ArrayLike | None,
    treat: ArrayLike,
    X: ArrayLike,
    *,
    estimand: Estimand = "ATT",
    m: int = 1,
    metric: str | ArrayLike = "inverse_variance",
    exact: Any = None,
    caliper: ArrayLike | None = None,
    replace: bool = True,
    order: Order = "data",
    ties: bool = True,
    common_support: bool = False,
    weights: ArrayLike | None = None,
    bias_adjust: bool = False,
    covariates: ArrayLike | None = None,
    variance_neighbors: int | None = None,
    variance: Literal["population", "sample"] = "population",
    restrict: ArrayLike | None = None,
    distance_tolerance: float = 1e-5,
    reuse: MatchResult | None = None,
    r_compatible: bool = False,
    threads: int | None = None,
    seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> MatchResult:
    """Match each unit of the estimand with its nearest unit of the other arm.

    Raise `UnusableInput` if data or options cannot be used, or no unit can be matched.

    Examples
    --------
    >>> from equipoise_matching import match
    >>> age = [25, 31, 38, 46, 24, 30, 40, 47, 52]
    >>> trained = [1, 1, 1, 1, 0, 0, 0, 0, 0]
    >>> wage = [14, 17, 19, 24, 12, 15, 18, 21, 30]
    >>> result = match(wage, trained, age)
    >>> result.estimate
    2.0
    >>> [round(end, 3) for end in result.interval]
    [1.307, 2.693]

    Parameters
    ----------
    y
        Shape (n,), the outcome; ``None`` to match without an outcome.
    treat
        Shape (n,), 1 for treated units, 0 for controls.
    X
        Shape (n, k), the covariates to match on: array or frame.
    estimand
        The effect on the treated (ATT), on the controls (ATC) or on all (ATE).
    m
        Number of matches of a unit, not counting ties; at most the number of possible matches.
    metric
        Metric on the standardised columns: "inverse_variance", "mahalanobis", k weights or a
        symmetric positive semidefinite matrix (k, k).
    exact
        Columns that must be equal in a pair: their names, a truth value for each, or ``True``.
    caliper
        Largest difference in each column, in standard deviations: one value, or k values.
    replace, ties
        Whether a unit may be the match of several units. Whether all tied matches are kept and
        share the weight. If either is false, one of the ties is drawn at random.
    order
        Order in which units are matched without replacement: as in the "data", or by the "largest"
        or "smallest" value of the only column of X.
    common_support
        Whether to leave out rows outside the range that both arms share in the first column.
    weights
        Shape (n,), the weights of the units.
    bias_adjust, covariates
        Regression adjustment on ``covariates`` (n, l), by default X (Abadie and Imbens 2011).
    variance_neighbors
        Number of nearest units of the same arm that give the variance of a unit's outcome. With 0,
        all units share one variance. By default 2, or 0 with ``r_compatible``.
    variance
        Whether the standard error is about the effect in the "population" or in this "sample".
    restrict
        Triples: two rows (from 0) and their squared distance; -1 forbids the pair.
    distance_tolerance
        Squared distances that differ by no more are ties.
    reuse
        An earlier match of the same units, whose pairs are used for this outcome.
    r_compatible
        Whether to return R's numbers even where R has an error (docs/methods/matching.md).
    threads, seed
        Number of threads, by default one for each core; the answer does not depend on it. Seed of
        the draws among ties, by default 0.
    progress
        Function that receives the number of units done and of all units, from any thread.
    """
    units = units_of(y, treat, X, weights, covariates)
    neighbors = checked_neighbors(variance_neighbors, variance, r_compatible)
    rows = len(units.x)
    # Reused pairs keep their order.
    pairing_order = order if reuse is None else "data"
    problem = match_problem(units, metric=metric, order=pairing_order, **pairing_options(locals()))
    units, options = problem.units, problem.options
    has_se = replace and (ties or not r_compatible)
    needs_variances = neighbors > 0 and units.outcome is not None and has_se
    matcher = _native.Matcher(units, options) if reuse is None or needs_variances else None
    if reuse is not None:
        pairs = reused_pairs(reuse, rows, estimand, common_support)
    elif matcher is not None:
        pairs = matcher.pairs(progress)
    variances = None
    if needs_variances and matcher is not None and len(pairs.query):
        variances = matcher.variances(pairs, float(neighbors))
    fields = result_fields(
        problem,
        pairs,
        variances,
        variance,
        has_se=has_se,
        neighbors=neighbors,
        bias_adjust=bias_adjust,
    )
    if r_compatible:
        # R counts all dropped units, but lists only those without a match within the caliper that
        # are not the match of another unit.
        is_listed_by_r = (options.caliper is not None) & ~np.isin(pairs.dropped, pairs.matched)
        fields["dropped_index"] = pairs.dropped[is_listed_by_r]
    elif problem.rows is not None and reuse is None:
        # R numbers the rows within the common support; Equipoise numbers the rows of the input.
        for name in ("treated_index", "control_index", "dropped_index"):
            fields[name] = problem.rows[fields[name]]
    if fields["effective_caliper"] is not None:
        (fields["effective_caliper"],) = fields["effective_caliper"]
    return MatchResult(**fields, rows=rows)


@dataclass(frozen=True, slots=True, eq=False)
class MatchResult:
    """The pairs, the effect and its standard errors.

    Rows count from 0. The effect and the errors are ``None`` without an outcome. ``se`` is also
    ``None`` without replacement and for a single unit, where Abadie and Imbens have no error.

    Examples
    --------
    >>> from equipoise_matching import match
    >>> result = match([14, 17, 12, 15], treat=[1, 1, 0, 0], X=[25, 31, 24, 30])
    >>> result.treated_index.tolist(), result.control_index.tolist()
    ([0, 1], [2, 3])

    Parameters
    ----------
    estimate, estimate_unadjusted
        The effect with and without the bias adjustment, in units of the outcome.
    se, se_standard, se_conditional
        The standard error of Abadie and Imbens (2006); the standard error for independent pairs;
        the part of ``se`` that comes from the sampling of units.
    variance_neighbors
        Number of neighbours that gave each unit's variance (see ``match``); ``None`` without
        ``se``.
    n_without_neighbors
        Number of matched units without such a neighbour; they share one variance.
    t, p_value
        ``estimate`` divided by ``se`` (else ``se_standard``), and the two-sided normal p-value.
    treated_index, control_index, weights
        The treated row, the control and the weight of each pair.
    dropped_index
        Units with too few possible matches.
    n, n_treated
        Numbers of rows and of treated rows that took part, within the common support.
    n_weighted
        Sum of the weights of the pairs.
    n_dropped
        Number of dropped units.
    effective_caliper
        Shape (columns,), in the unit of each column; ``None`` without a caliper.
    estimand
        The effect that was estimated: ATT, ATC or ATE.
    matched_treated
        For each pair, true if a match was sought for the treated unit, false if for the control.
    rows
        Number of rows in the input.
    """

    estimate: float | None
    se: float | None
    se_standard: float | None
    se_conditional: float | None
    estimate_unadjusted: float | None
    t: float | None
    p_value: float | None
    treated_index: Indices = field(repr=False)
    control_index: Indices = field(repr=False)
    weights: Floats = field(repr=False)
    dropped_index: Indices = field(repr=False)
    n: int
    n_treated: int
    n_weighted: float
    n_dropped: int
    effective_caliper: Floats | None
    estimand: str
    matched_treated: Truths = field(repr=False)
    rows: int
    variance_neighbors: int | None
    n_without_neighbors: int

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of ``estimate``: ±1.96 errors; ``None`` without an error."""
        error = self.se_standard if self.se is None else self.se
        if self.estimate is None or error is None or not math.isfinite(error):
            return None
        return self.estimate - _NORMAL_QUANTILE * error, self.estimate + _NORMAL_QUANTILE * error

    @property
    def row_weights(self) -> Floats:
        """Weight of each row of the input in the matched data, shape (rows,); 0 if unmatched."""
        rows = np.concatenate([self.treated_index, self.control_index])
        sums = np.bincount(rows, np.tile(self.weights, 2), self.rows)
        return np.asarray(sums, dtype=np.float64)

    @property
    def effective_sizes(self) -> tuple[float, float]:
        """Effective numbers of treated units and of controls.

        Each number is (Σw)² / Σw² over the weights w of the rows in an arm (Kish 1965).
        """
        sizes = []
        for index in (self.treated_index, self.control_index):
            weights = np.bincount(index, self.weights)
            # Weights are divided by the largest, because the squares of tiny weights would be 0.
            weights = weights / (weights.max() or 1.0)
            squares = float((weights**2).sum())
            sizes.append(float(weights.sum()) ** 2 / squares if squares else 0.0)
        return sizes[0], sizes[1]

    def with_row_numbers(self, numbers: Indices, rows: int) -> Self:
        """Return the match with row numbers of a larger table, which has ``rows`` rows.

        ``numbers`` (n,) has the number in the larger table of each row of the input.
        """
        indices = ("treated_index", "control_index", "dropped_index")
        return replace(self, **{name: numbers[getattr(self, name)] for name in indices}, rows=rows)

    def facts(self) -> list[tuple[str, str]]:
        """Return names and values: the effect, its error and the numbers of units."""
        numbers = {
            "Estimate": self.estimate,
            "Abadie-Imbens error": self.se,
            "Error (pairs independent)": None if self.se is not None else self.se_standard,
            "t": self.t,
            "p-value": self.p_value,
        }
        facts = [(name, f"{number:.5g}") for name, number in numbers.items() if number is not None]
        if self.interval is not None:
            interval = " to ".join(f"{end:.5g}" for end in self.interval)
            facts.insert(1, ("95 % interval", interval))
        treated, controls = self.effective_sizes
        return [
            *facts,
            *self._variance_facts(),
            ("Estimand", self.estimand),
            ("Observations", f"{self.n}"),
            ("Treated", f"{self.n_treated}"),
            ("Matched observations", f"{self.n_weighted:.6g}"),
            ("Matched pairs (unweighted)", f"{len(self.weights)}"),
            ("Effective sample size", f"{treated:.4g} treated, {controls:.4g} controls"),
            ("Dropped", f"{self.n_dropped}"),
        ]

    def _variance_facts(self) -> list[tuple[str, str]]:
        if self.variance_neighbors is None:
            return []
        if not self.variance_neighbors:
            return [("Variance", "one for all units")]
        facts = [("Variance", f"each unit's, from {self.variance_neighbors} neighbours")]
        if self.n_without_neighbors:
            number = f"{self.n_without_neighbors} (one variance for all)"
            facts.append(("Without neighbours", number))
        return facts

    def summary(self) -> str:
        """Return the facts as text, one per line."""
        return aligned(self.facts())

    def _repr_html_(self) -> str:
        return html.facts(self.facts())

    def to_frame(self) -> DataFrame:
        """Return a row for each pair: ``treated_index``, ``control_index``, ``weight`` (pandas).

        Raise `UnusableInput` if pandas is not installed.
        """
        columns = {
            "treated_index": self.treated_index,
            "control_index": self.control_index,
            "weight": self.weights,
        }
        frame: DataFrame = require("pandas", "frames").DataFrame(columns)
        return frame


def aligned(facts: list[tuple[str, str]]) -> str:
    """Return names and values as text, one pair per line, in aligned columns."""
    width = max(len(name) for name, _ in facts)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in facts)


def checked_neighbors(neighbors: int | None, variance: str, r_compatible: bool) -> int:
    """Return the number of neighbours for the variance of a unit, after checking the options."""
    if neighbors is None:
        neighbors = 0 if r_compatible else VARIANCE_NEIGHBORS
    check_whole_number("variance_neighbors", neighbors, 0)
    if variance not in ("population", "sample"):
        raise UnusableInput(
            f"there is no variance {variance!r}", hint="choose 'population' or 'sample'"
        )
    return int(neighbors)


def reused_pairs(
    earlier: MatchResult, rows: int, estimand: str, common_support: bool
) -> _native.Pairs:
    """Return the pairs of an earlier match of the same units."""
    if not isinstance(earlier, MatchResult):
        raise UnusableInput(
            f"reuse is of type {type(earlier).__name__}", hint="give the result of match()"
        )
    if earlier.rows != rows or earlier.estimand != estimand:
        raise UnusableInput(
            f"reuse is a match of {earlier.rows} rows for {earlier.estimand}, but this match has "
            f"{rows} rows for {estimand}",
            hint="reuse a match of the same units with the same estimand",
        )
    if common_support or earlier.n != earlier.rows:
        raise UnusableInput(
            "reuse needs a match of all rows, but common_support leaves out rows",
            hint="make both matches without common_support",
        )
    is_treated = earlier.matched_treated
    return _native.Pairs(
        np.where(is_treated, earlier.treated_index, earlier.control_index),
        np.where(is_treated, earlier.control_index, earlier.treated_index),
        earlier.weights,
        earlier.dropped_index,
    )


def result_fields(
    problem: MatchProblem,
    pairs: _native.Pairs,
    variances: Floats | None,
    variance: str,
    *,
    has_se: bool,
    neighbors: int,
    bias_adjust: bool = False,
) -> dict[str, Any]:
    """Return the fields of a `MatchResult` except ``rows``, with the problem's row numbers."""
    if not len(pairs.query):
        raise UnusableInput(
            "no unit has a valid match: caliper, exact or restrict exclude all pairs",
            hint="widen the caliper, or give fewer exact columns or fewer matches (m)",
        )
    units, options, estimate = problem.units, problem.options, None
    if units.outcome is not None:
        estimate = effect_estimate(units, options, pairs, variances, bias_adjust=bias_adjust)
    is_treated = units.treated[pairs.query]
    numbers = effect_numbers(problem, pairs, estimate, variance, has_se=has_se)
    return {
        **numbers,
        "variance_neighbors": None if numbers["se"] is None else neighbors,
        "n_without_neighbors": count_without_neighbors(pairs, variances),
        "treated_index": np.where(is_treated, pairs.query, pairs.matched),
        "control_index": np.where(is_treated, pairs.matched, pairs.query),
        "weights": pairs.weights,
        "dropped_index": pairs.dropped,
        "n": len(units.x),
        "n_treated": int(units.treated.sum()),
        "n_weighted": float(pairs.weights.sum()),
        "n_dropped": len(pairs.dropped),
        "effective_caliper": problem.reported_caliper,
        "estimand": options.estimand,
        "matched_treated": is_treated,
    }


def count_without_neighbors(pairs: _native.Pairs, variances: Floats | None) -> int:
    """Return the number of matched units without neighbours for a variance."""
    if variances is None:
        return 0
    is_matched = np.zeros(len(variances), dtype=np.bool_)
    is_matched[pairs.query] = True
    is_matched[pairs.matched] = True
    return int((is_matched & np.isnan(variances)).sum())


def effect_estimate(
    units: Units,
    options: MatchOptions,
    pairs: _native.Pairs,
    variances: Floats | None,
    *,
    bias_adjust: bool,
) -> _native.Estimate:
    """Estimate the effect from the pairs, in multiples of ``units.outcome_scale``."""
    z = units.x if units.z is None else units.z
    if bias_adjust and options.r_compatible:
        # R adjusts only if enough units are matched. With fsum, fifteen weights of 1/3 are 5.
        total = math.fsum(pairs.weights)
        count = min(int(np.isin(units.treated, MATCHED_ARMS[options.estimand]).sum()), total)
        bias_adjust = options.ties and count >= z.shape[1]
    elif bias_adjust:
        for arm in DONOR_ARMS[options.estimand]:
            donors = np.unique(pairs.matched[units.treated[pairs.matched] == arm]).size
            if donors <= z.shape[1]:
                raise UnusableInput(
                    f"bias_adjust fits {z.shape[1]} slopes and a constant to {donors} matched "
                    f"{'treated units' if arm else 'controls'}, which are too few",
                    hint="give fewer columns in covariates, or match without bias_adjust",
                )
    adjustment_columns = z / [power_of_two(column) for column in z.T] if bias_adjust else None
    return _native.estimate_effect(units, options, pairs, adjustment_columns, variances)


def effect_numbers(
    problem: MatchProblem,
    pairs: _native.Pairs,
    estimate: _native.Estimate | None,
    variance: str,
    *,
    has_se: bool,
) -> dict[str, float | None]:
    """Return the fields of a result that come from the outcome."""
    if estimate is None:
        names = ("estimate", "se", "se_standard", "se_conditional", "estimate_unadjusted")
        return dict.fromkeys((*names, "t", "p_value"))
    # Pairs are in the order of their units, so this is the case of a single matched unit.
    if not problem.options.r_compatible and pairs.query[0] == pairs.query[-1]:
        has_se = False
    is_population = variance == "population"
    error = math.sqrt(estimate.population_variance if is_population else estimate.sample_variance)
    reported_error = error if has_se else estimate.standard_error_of_pairs
    t = None
    if reported_error > 0 and (has_se or pairs.query.size > 1):
        t = estimate.effect / reported_error
    scale = problem.units.outcome_scale
    return {
        "estimate": estimate.effect * scale,
        "se": error * scale if has_se else None,
        "se_standard": estimate.standard_error_of_pairs * scale,
        "se_conditional": estimate.conditional_error * scale if has_se else None,
        "estimate_unadjusted": estimate.unadjusted * scale,
        "t": t,
        "p_value": None if t is None else math.erfc(abs(t) / math.sqrt(2.0)),
    }
