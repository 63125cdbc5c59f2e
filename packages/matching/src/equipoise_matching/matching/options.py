"""Check the options of a match, and convert them for the native engine in Rust.

R has the names ``m`` (number of matches of a unit), ``exact`` (columns that are equal in a pair),
``caliper`` (largest distance in a column) and ``restrict`` (pairs with a given distance).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise_matching.matching.units import (
    MAX_LISTED_ROWS,
    Floats,
    Indices,
    Truths,
    Units,
    power_of_two,
    refuse_non_finite,
    refuse_rows,
    to_floats,
)
from equipoise_matching.shared.errors import UnusableInput

Estimand = Literal["ATT", "ATC", "ATE"]
Order = Literal["data", "largest", "smallest"]
Restriction = tuple[int, int, float]
"""Two rows, and the squared distance to use between them; a negative distance forbids the pair."""

MATCHED_ARMS = {"ATT": (1,), "ATC": (0,), "ATE": (0, 1)}
"""Arms for whose units matches are sought, by estimand: 1 for treated units, 0 for controls."""
DONOR_ARMS = {"ATT": (0,), "ATC": (1,), "ATE": (0, 1)}
"""Arms from which the matches come, by estimand."""

ROUNDING_SHARE = 1e-8
"""Largest asymmetry or negative eigenvalue of a metric, as a share of its largest entry."""
R_EXACT_TOLERANCE = float(np.sqrt(np.finfo(np.float64).eps))
"""Caliper of exact columns in R's results; R matches with ``distance_tolerance`` instead."""


@dataclass(frozen=True, slots=True, eq=False)
class MatchOptions:
    """The options of the native engine, which reads fields by these names (``crates/python``)."""

    estimand: Estimand
    matches: int
    """Number of matches of each unit, not counting ties."""
    metric: str | Floats
    """Name of a metric, or a weight matrix (k, k)."""
    caliper: Floats | None
    """Shape (strata, k): largest distance in each column, in the unit of the column."""
    restrictions: Sequence[Restriction]
    """The option ``restrict``: pairs with a given squared distance, and forbidden pairs."""
    replace: bool
    ties: bool
    """Whether all tied matches are kept, which needs ``replace``."""
    tolerance: float
    """Largest difference of two squared distances that count as equal (ties)."""
    r_compatible: bool
    threads: int
    """Number of threads; 0 for one on each core."""
    seed: int
    search: Literal["chosen", "brute_force", "tree"] = "chosen"
    """Search method; ``chosen`` leaves the choice to the engine. It changes only the speed."""
    instructions: str | None = None
    """Processor instructions; ``None`` for the fastest."""


class PairingOptions(TypedDict, total=False):
    """The options of ``match`` that ``gen_match`` takes too."""

    estimand: Estimand
    m: int
    exact: Any
    caliper: ArrayLike | None
    replace: bool
    ties: bool
    common_support: bool
    restrict: ArrayLike | None
    distance_tolerance: float
    r_compatible: bool
    threads: int | None
    seed: int | None


def pairing_options(arguments: Mapping[str, Any]) -> PairingOptions:
    """Return the `PairingOptions` among the arguments of a function."""
    names = PairingOptions.__annotations__
    return cast(PairingOptions, {name: arguments[name] for name in names if name in arguments})


@dataclass(frozen=True, slots=True, eq=False)
class MatchProblem:
    """Checked units and options, ready for the native engine.

    ``rows`` has the row of each unit in the caller's data; ``None`` if the rows are the same.
    ``reported_caliper`` (strata, k) is the caliper in results.
    """

    units: Units
    options: MatchOptions
    rows: Indices | None
    reported_caliper: Floats | None


def match_problem(
    units: Units,
    *,
    estimand: Estimand = "ATT",
    m: int = 1,
    metric: str | ArrayLike = "inverse_variance",
    exact: Any = None,
    caliper: ArrayLike | None = None,
    replace: bool = True,
    ties: bool = True,
    common_support: bool = False,
    restrict: ArrayLike | None = None,
    distance_tolerance: float = 1e-5,
    r_compatible: bool = False,
    threads: int | None = None,
    seed: int | None = None,
    order: Order = "data",
    strata: tuple[Indices, int] | None = None,
) -> MatchProblem:
    """Check the options of ``match`` and return them with the units that take part.

    The steps: check the options, leave out units outside the common support, sort the units, and
    compute the caliper of each column. If units leave or move, restrictions get their new rows.

    ``strata`` has the stratum of each row, and the number of strata. Each stratum has its own
    caliper, and the engine limits ``m`` in each stratum.
    """
    check_options(estimand, m, distance_tolerance, threads, seed)
    restrictions = checked_restrictions(restrict, len(units.x))
    metric_or_matrix = checked_metric(metric, units.names)
    rows = None
    if common_support:
        rows = rows_in_common_range(
            units.x[:, 0], units.treated, units.names[0], distance_tolerance if r_compatible else 0
        )
        units = units.subset(rows)
        # R counts the rows of restrictions only among the remaining rows.
        old_rows = range(len(rows)) if r_compatible else rows.tolist()
        new_rows = {old_row: new_row for new_row, old_row in enumerate(old_rows)}
        restrictions = [
            (new_rows[first], new_rows[second], distance)
            for first, second, distance in restrictions
            if first in new_rows and second in new_rows
        ]
    if order != "data" and not replace:
        ordered_rows = rows_in_order(units, order, r_compatible=r_compatible)
        units, places = units.subset(ordered_rows), np.argsort(ordered_rows).tolist()
        rows = ordered_rows if rows is None else rows[ordered_rows]
        restrictions = [
            (places[first], places[second], distance) for first, second, distance in restrictions
        ]
    max_distances, reported_caliper = None, None
    if caliper is not None or exact is not None:
        row_strata, strata_count = strata or (np.zeros(len(units.x), dtype=np.int64), 1)
        max_distances, is_exact = max_column_distances(
            units, row_strata, strata_count, caliper, exact, distance_tolerance, r_compatible
        )
        reported_caliper = max_distances.copy()
        if r_compatible:
            reported_caliper[:, is_exact] = R_EXACT_TOLERANCE
    if strata is None:
        m = min(m, *(int((units.treated == arm).sum()) for arm in DONOR_ARMS[estimand]))
    options = MatchOptions(
        estimand=estimand,
        matches=min(int(m), len(units.x)),
        metric=metric_or_matrix,
        caliper=max_distances,
        restrictions=restrictions,
        replace=replace,
        ties=ties and replace,
        tolerance=distance_tolerance,
        r_compatible=r_compatible,
        threads=int(threads or 0),
        seed=int(seed or 0),
    )
    return MatchProblem(units, options, rows, reported_caliper)


def rows_in_order(units: Units, order: str, *, r_compatible: bool) -> Indices:
    """Return the rows in the order in which they are matched; ties are in the order of the data."""
    if order not in ("largest", "smallest"):
        raise UnusableInput(
            f"there is no order {order!r}", hint="choose 'data', 'largest' or 'smallest'"
        )
    if r_compatible:
        raise UnusableInput(
            f"order={order!r} cannot be used with r_compatible: R matches in the order of the data",
            hint="leave out order or r_compatible",
        )
    if units.x.shape[1] != 1:
        raise UnusableInput(
            f"order={order!r} needs a single column, but X has {units.x.shape[1]} columns",
            hint="match on a propensity score, or give order='data'",
        )
    score = units.x[:, 0]
    return np.argsort(score if order == "smallest" else -score, kind="stable")


def check_options(
    estimand: str, m: int, tolerance: float, threads: int | None, seed: int | None
) -> None:
    """Raise `UnusableInput` if a value is unknown or out of its range."""
    if estimand not in DONOR_ARMS:
        raise UnusableInput(f"there is no estimand {estimand!r}", hint="choose ATT, ATC or ATE")
    for name, value, minimum in (("m", m, 1), ("threads", threads, 1), ("seed", seed, 0)):
        check_whole_number(name, value, minimum)
    if not (isinstance(tolerance, int | float | np.number) and 0 <= tolerance < math.inf):
        raise UnusableInput(f"distance_tolerance is {tolerance!r}", hint="give 0 or more")


def check_whole_number(name: str, value: float | None, minimum: int) -> None:
    """Raise `UnusableInput` if the value is neither ``None`` nor an integer from ``minimum`` on."""
    is_finite = isinstance(value, int | float | np.number) and math.isfinite(value)
    if value is not None and not (is_finite and value == int(value) and minimum <= value < 2**63):
        hint = f"give a whole number from {minimum} to 2^63 - 1"
        raise UnusableInput(f"{name} is {value!r}", hint=hint)


def checked_metric(metric: str | ArrayLike, names: Sequence[str]) -> str | Floats:
    """Return the name of a metric, or a symmetric positive semidefinite matrix of weights."""
    if isinstance(metric, str):
        if metric not in ("inverse_variance", "mahalanobis"):
            raise UnusableInput(
                f"there is no metric {metric!r}",
                hint="choose 'inverse_variance' or 'mahalanobis', or give weights or a matrix",
            )
        return metric
    matrix, column_count = to_floats(metric, "metric"), len(names)
    if matrix.shape == (column_count,):
        matrix = np.diag(matrix)
    if matrix.shape != (column_count, column_count):
        raise UnusableInput(
            f"metric has shape {matrix.shape} and X has {column_count} columns",
            hint=f"give {column_count} weights or a matrix of {column_count} rows and columns",
        )
    for index, label in enumerate(names):
        refuse_non_finite(matrix[:, index], f"metric, column {label!r}")
    largest_entry = float(np.abs(matrix).max())
    is_asymmetric = np.abs(matrix - matrix.T) > ROUNDING_SHARE * largest_entry
    if is_asymmetric.any():
        row, column = (int(index) for index in np.argwhere(is_asymmetric)[0])
        raise UnusableInput(
            f"metric is not symmetric: row {row}, column {names[column]!r} is "
            f"{matrix[row, column]:g} and row {column}, column {names[row]!r} is "
            f"{matrix[column, row]:g} (from 0)",
            hint="give a symmetric matrix",
        )
    matrix = (matrix + matrix.T) / 2
    eigenvalues, eigenvectors = np.linalg.eigh(matrix)
    if eigenvalues[0] < -ROUNDING_SHARE * largest_entry:
        worst_column = names[int(np.abs(eigenvectors[:, 0]).argmax())]
        raise UnusableInput(
            f"metric is not positive semidefinite: its smallest eigenvalue is {eigenvalues[0]:g}, "
            f"mostly along column {worst_column!r}",
            hint="give weights of 0 or more, so that no distance is negative",
        )
    if largest_entry == 0:
        raise UnusableInput(
            "metric is 0 throughout, so all distances are 0", hint="give a weight above 0"
        )
    return np.ascontiguousarray(matrix)


def checked_restrictions(restrict: Any, rows: int) -> list[Restriction]:
    """Return the option ``restrict`` as a list, after checking its rows, which count from 0."""
    if restrict is None:
        return []
    triples = to_floats(restrict, "restrict")
    if triples.ndim == 1 and triples.size == 3:
        triples = triples[np.newaxis, :]
    if triples.ndim != 2 or triples.shape[1] != 3:
        raise UnusableInput(
            f"restrict has shape {triples.shape}",
            hint="give triples of two rows and a squared distance, or -1 to forbid the pair",
        )
    is_missing = np.asarray(np.isnan(triples).any(axis=1))
    refuse_rows(is_missing, "restrict", "is missing", "give all three numbers of each triple")
    is_wrong = np.asarray(np.isin(triples[:, :2], np.arange(rows), invert=True).any(axis=1))
    problem = f"names a row that is not among 0 to {rows - 1}"
    refuse_rows(is_wrong, "restrict", problem, "count rows from 0")
    return [(int(first), int(second), float(distance)) for first, second, distance in triples]


def rows_in_common_range(values: Floats, treated: Truths, name: str, tolerance: float) -> Indices:
    """Return the rows in the range of a column that both arms share, widened by ``tolerance``."""
    arms = [values[treated == arm] for arm in (0, 1)]
    low = max(float(arm.min()) for arm in arms) - tolerance
    high = min(float(arm.max()) for arm in arms) + tolerance
    rows = np.flatnonzero((values >= low) & (values <= high))
    if np.unique(treated[rows]).size < 2:
        raise UnusableInput(
            f"X, column {name!r}: treated units and controls have no range in common",
            hint="match without common_support, or leave this column out",
        )
    return rows


def max_column_distances(
    units: Units,
    strata: Indices,
    strata_count: int,
    caliper: Any,
    exact: Any,
    tolerance: float,
    r_compatible: bool,
) -> tuple[Floats, Truths]:
    """Return the largest distance by stratum and column, and whether each column is exact.

    The shapes are (strata_count, k) and (k,). A caliper is a multiple of the standard deviation in
    the stratum, with the divisor n. With ``r_compatible``, the sum of squares ignores the weights.
    Values of exact columns may differ by rounding, or with ``r_compatible`` by the tolerance.
    """
    column_count = len(units.names)
    max_distances = np.full((strata_count, column_count), np.inf)
    if caliper is not None:
        weights = units.weights_or_ones
        # A stratum without weight is not matched, so its caliper does not matter.
        totals = np.maximum(np.bincount(strata, weights, strata_count), np.finfo(np.float64).tiny)
        widths = caliper_widths(caliper, units.names)
        for index in np.flatnonzero(np.isfinite(widths)):
            # The values are divided by a power of two, so that no square overflows.
            scale = power_of_two(units.x[:, index])
            values = units.x[:, index] / scale
            means = np.bincount(strata, weights * values, strata_count) / totals
            squares = (values - means[strata]) ** 2
            weighted_squares = squares if r_compatible else weights * squares
            square_sums = np.bincount(strata, weighted_squares, strata_count)
            max_distances[:, index] = widths[index] * np.sqrt(square_sums / totals) * scale
    is_exact = np.zeros(column_count, dtype=np.bool_)
    if exact is not None:
        is_exact = exact_columns(exact, units.names)
        largest_values = np.zeros((strata_count, column_count))
        np.maximum.at(largest_values, strata, np.abs(units.x))
        rounding = 4 * np.finfo(np.float64).eps * largest_values
        exact_tolerance = np.full_like(max_distances, tolerance) if r_compatible else rounding
        max_distances[:, is_exact] = exact_tolerance[:, is_exact]
    return max_distances, is_exact


def caliper_widths(caliper: Any, names: Sequence[str]) -> Floats:
    """Return the calipers in standard deviations, shape (k,); infinite without a limit."""
    try:
        widths = np.asarray(per_column(caliper, "caliper", names), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UnusableInput(
            f"caliper is {caliper!r}",
            hint="give one number of standard deviations, or one per column",
        ) from error
    for width, label in zip(widths, names, strict=True):
        if not width >= 0:
            raise UnusableInput(
                f"the caliper of column {label!r} is {width:g}",
                hint="give 0 or more standard deviations, or infinity for no limit",
            )
    return widths


def exact_columns(exact: Any, names: Sequence[str]) -> Truths:
    """Return whether each column must be equal, shape (k,), from truth values or names."""
    columns = np.asarray([exact] if isinstance(exact, str) else exact)
    if columns.dtype.kind == "U" and columns.ndim == 1:
        unknown = [str(name) for name in columns if name not in names]
        if unknown:
            raise UnusableInput(
                f"exact names {unknown[0]!r}, which is not a column of X",
                hint=f"name one of the columns {', '.join(names)}",
            )
        return np.array([name in columns for name in names])
    return np.asarray(per_column(columns, "exact", names), dtype=np.bool_)


def per_column(values: Any, name: str, names: Sequence[str]) -> NDArray[Any]:
    """Return one value for each column of X; a single value holds for all columns."""
    array = np.asarray(values)
    if array.ndim == 0:
        return np.full(len(names), array[()])
    if array.shape != (len(names),):
        ellipsis = ", …" if len(names) > MAX_LISTED_ROWS else ""
        raise UnusableInput(
            f"{name} has {array.size} values and X has {len(names)} columns "
            f"({', '.join(names[:MAX_LISTED_ROWS])}{ellipsis})",
            hint=f"give one value for all columns, or {len(names)} values",
        )
    return array
