"""The options of the native engine, and their checks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise_matching.matching.units import (
    MAX_NAMED_ROWS,
    Floats,
    Indices,
    Truths,
    Units,
    numbers,
    power_of_two,
    refuse_non_finite,
    refuse_rows,
)
from equipoise_matching.shared.errors import UnusableInput

Estimand = Literal["ATT", "ATC", "ATE"]
Order = Literal["data", "largest", "smallest"]
Restriction = tuple[int, int, float]

SEEKING_ARMS = {"ATT": (1,), "ATC": (0,), "ATE": (0, 1)}
"""Arms whose units are matched, by estimand."""
DONOR_ARMS = {"ATT": (0,), "ATC": (1,), "ATE": (0, 1)}
"""Arms whose units serve as matches, by estimand."""

ROUNDING = 1e-8
"""Asymmetry or negative eigenvalue that a matrix may have, as a share of its largest entry."""
TOLERANCE_OF_R = float(np.sqrt(np.finfo(np.float64).eps))


@dataclass(frozen=True, slots=True, eq=False)
class MatchOptions:
    """The options of the native engine, which reads them by these names (``crates/python``).

    Parameters
    ----------
    matches
        Matches of each unit, before ties.
    metric
        Name of a metric, or a weight matrix (k, k).
    caliper
        Shape (strata, k): largest distance in each column, in units of the column.
    restrictions
        Triples of two rows and their squared distance; negative forbids the pair.
    ties
        Whether all tied matches are kept; they cannot be without ``replace``.
    tolerance
        Squared distances that differ by no more are ties.
    threads
        Number of threads; 0 for one on each core.
    search, instructions
        Method and processor instructions, which change the speed only.
    """

    estimand: Estimand
    matches: int
    metric: str | Floats
    caliper: Floats | None
    restrictions: Sequence[Restriction]
    replace: bool
    ties: bool
    tolerance: float
    r_compatible: bool
    threads: int
    seed: int
    search: Literal["chosen", "brute_force", "tree"] = "chosen"
    instructions: str | None = None


class PairingOptions(TypedDict, total=False):
    """The options of ``match`` that a search for weights takes too."""

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


def pairing_of(arguments: Mapping[str, Any]) -> PairingOptions:
    """Return the options of pairing among the arguments of a function, by their names."""
    names = PairingOptions.__annotations__
    return cast(PairingOptions, {name: arguments[name] for name in names if name in arguments})


@dataclass(frozen=True, slots=True, eq=False)
class MatchProblem:
    """Checked units and options, ready for the native engine.

    ``rows`` are those inside the common support, in the numbers of the caller; ``None`` for all.
    ``reported_caliper`` (strata, k) is the caliper that results show; ``None`` without one.
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

    ``strata`` are the stratum of each row and the number of strata. Each has its own caliper,
    and the engine limits ``m`` in each.
    """
    check_options(estimand, m, distance_tolerance, threads, seed)
    triples = restrictions(restrict, len(units.x))
    checked_metric = metric_of(metric, units.names)
    rows = None
    if common_support:
        rows = common_rows(
            units.x[:, 0], units.treated, units.names[0], distance_tolerance if r_compatible else 0
        )
        units = units.subset(rows)
        # R looks the rows of restrictions up among those that remain.
        names = range(len(rows)) if r_compatible else rows.tolist()
        places = {row: place for place, row in enumerate(names)}
        triples = [
            (places[first], places[second], distance)
            for first, second, distance in triples
            if first in places and second in places
        ]
    if order != "data" and not replace:
        ordered_rows = rows_in_order(units, order, r_compatible=r_compatible)
        units, place = units.subset(ordered_rows), np.argsort(ordered_rows).tolist()
        rows = ordered_rows if rows is None else rows[ordered_rows]
        triples = [(place[first], place[second], distance) for first, second, distance in triples]
    limit, reported = None, None
    if caliper is not None or exact is not None:
        of_row, count = strata or (np.zeros(len(units.x), dtype=np.int64), 1)
        limit, is_exact = caliper_limits(
            units, of_row, count, caliper, exact, distance_tolerance, r_compatible
        )
        # R reports another tolerance than it uses for exact columns.
        reported = np.where(is_exact, TOLERANCE_OF_R, limit) if r_compatible else limit.copy()
    if strata is None:
        m = min(m, *(int((units.treated == arm).sum()) for arm in DONOR_ARMS[estimand]))
    options = MatchOptions(
        estimand=estimand,
        matches=min(int(m), len(units.x)),
        metric=checked_metric,
        caliper=limit,
        restrictions=triples,
        replace=replace,
        ties=ties and replace,
        tolerance=distance_tolerance,
        r_compatible=r_compatible,
        threads=int(threads or 0),
        seed=int(seed or 0),
    )
    return MatchProblem(units, options, rows, reported)


def rows_in_order(units: Units, order: str, *, r_compatible: bool) -> Indices:
    """Return the rows in the order in which they find their matches, ties as in the data."""
    if order not in ("largest", "smallest"):
        raise UnusableInput(
            f"there is no order {order!r}", hint="give 'data', 'largest' or 'smallest'"
        )
    if r_compatible:
        raise UnusableInput(
            f"order={order!r} and r_compatible do not go together: R has the order of the data",
            hint="leave one of them out",
        )
    if units.x.shape[1] != 1:
        raise UnusableInput(
            f"order={order!r} is the order of one score, and there are {units.x.shape[1]} columns",
            hint="match on a propensity score, or give order='data'",
        )
    score = units.x[:, 0]
    return np.argsort(score if order == "smallest" else -score, kind="stable")


def check_options(
    estimand: str, m: int, tolerance: float, threads: int | None, seed: int | None
) -> None:
    """Refuse single values out of their range."""
    if estimand not in DONOR_ARMS:
        raise UnusableInput(f"there is no estimand {estimand!r}", hint="give ATT, ATC or ATE")
    for name, value, low in (("m", m, 1), ("threads", threads, 1), ("seed", seed, 0)):
        check_whole_number(name, value, low)
    if not (isinstance(tolerance, int | float | np.number) and 0 <= tolerance < math.inf):
        raise UnusableInput(f"distance_tolerance is {tolerance!r}", hint="give 0 or more")


def check_whole_number(name: str, value: float | None, low: int) -> None:
    """Require a whole number from ``low`` up, or ``None``."""
    known = isinstance(value, int | float | np.number) and math.isfinite(value)
    if value is not None and not (known and value == int(value) and low <= value < 2**63):
        raise UnusableInput(f"{name} is {value!r}", hint=f"give a whole number from {low} to 2^63")


def metric_of(metric: str | ArrayLike, names: Sequence[str]) -> str | Floats:
    """Return the name of a metric, or a weight matrix, symmetric positive semidefinite."""
    if isinstance(metric, str):
        if metric not in ("inverse_variance", "mahalanobis"):
            raise UnusableInput(
                f"there is no metric {metric!r}",
                hint="give 'inverse_variance', 'mahalanobis', a diagonal or a full matrix",
            )
        return metric
    matrix, count = numbers(metric, "metric"), len(names)
    if matrix.shape == (count,):
        matrix = np.diag(matrix)
    if matrix.shape != (count, count):
        raise UnusableInput(
            f"metric has shape {matrix.shape} and X has {count} columns",
            hint=f"give {count} weights or a matrix of {count} rows and columns",
        )
    for place, label in enumerate(names):
        refuse_non_finite(matrix[:, place], f"metric, column {label!r}")
    largest = float(np.abs(matrix).max())
    lopsided = np.abs(matrix - matrix.T) > ROUNDING * largest
    if lopsided.any():
        row, other = (int(place) for place in np.argwhere(lopsided)[0])
        raise UnusableInput(
            f"metric is not symmetric: row {row}, column {names[other]!r} is "
            f"{matrix[row, other]:g} and row {other}, column {names[row]!r} is "
            f"{matrix[other, row]:g} (from 0)"
        )
    matrix = (matrix + matrix.T) / 2
    values, vectors = np.linalg.eigh(matrix)
    if values[0] < -ROUNDING * largest:
        worst = names[int(np.abs(vectors[:, 0]).argmax())]
        raise UnusableInput(
            f"metric is not positive semidefinite: its smallest eigenvalue is {values[0]:g}, "
            f"mostly along column {worst!r}",
            hint="give weights of 0 or more: distances would be negative",
        )
    if largest == 0:
        raise UnusableInput("metric is 0 throughout: every pair would be at distance 0")
    return np.ascontiguousarray(matrix)


def restrictions(restrict: Any, rows: int) -> list[Restriction]:
    """Return triples of two rows (from 0) and a squared distance, negative for a forbidden pair."""
    if restrict is None:
        return []
    triples = numbers(restrict, "restrict")
    if triples.ndim == 1 and triples.size == 3:
        triples = triples[np.newaxis, :]
    if triples.ndim != 2 or triples.shape[1] != 3:
        raise UnusableInput(
            f"restrict has shape {triples.shape}",
            hint="give triples: a row, another row, a distance (negative to forbid the pair)",
        )
    is_missing = np.asarray(np.isnan(triples).any(axis=1))
    refuse_rows(is_missing, "restrict", "is missing", "fill in these triples")
    is_wrong = np.asarray(np.isin(triples[:, :2], np.arange(rows), invert=True).any(axis=1))
    fault = f"names a row that is not among 0 to {rows - 1}"
    refuse_rows(is_wrong, "restrict", fault, "count rows from 0")
    return [(int(first), int(second), float(distance)) for first, second, distance in triples]


def common_rows(values: Floats, treated: Truths, name: str, tolerance: float) -> Indices:
    """Return the rows inside the range of a column that both arms share, and ``tolerance`` more."""
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


def caliper_limits(
    units: Units,
    strata: Indices,
    count: int,
    caliper: Any,
    exact: Any,
    tolerance: float,
    r_compatible: bool,
) -> tuple[Floats, Truths]:
    """Return the largest distance of a pair by column, (count, k), and the exact columns, (k,).

    The standard deviation of each stratum has divisor n; R leaves the weights out of its
    numerator. Exact values may differ by rounding; R lets them differ by the distance tolerance.
    """
    columns = len(units.names)
    limit = np.full((count, columns), np.inf)
    if caliper is not None:
        weights = units.weights_or_ones
        # A stratum that weighs nothing is not matched.
        total = np.maximum(np.bincount(strata, weights, count), np.finfo(np.float64).tiny)
        widths = caliper_widths(caliper, units.names)
        for place in np.flatnonzero(np.isfinite(widths)):
            unit = power_of_two(units.x[:, place])
            values = units.x[:, place] / unit
            mean = np.bincount(strata, weights * values, count) / total
            squares = (values - mean[strata]) ** 2
            spread = np.bincount(strata, squares if r_compatible else weights * squares, count)
            limit[:, place] = widths[place] * np.sqrt(spread / total) * unit
    is_exact = np.zeros(columns, dtype=np.bool_)
    if exact is not None:
        is_exact = exact_columns(exact, units.names)
        largest = np.zeros((count, columns))
        np.maximum.at(largest, strata, np.abs(units.x))
        rounding = 4 * np.finfo(np.float64).eps * largest
        equal = np.full_like(limit, tolerance) if r_compatible else rounding
        limit[:, is_exact] = equal[:, is_exact]
    return limit, is_exact


def caliper_widths(caliper: Any, names: Sequence[str]) -> Floats:
    """Return the widths in standard deviations, shape (k,); infinite for no limit."""
    try:
        widths = np.asarray(per_column(caliper, "caliper", names), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UnusableInput(
            f"caliper is {caliper!r}", hint="give standard deviations: one number or one a column"
        ) from error
    for width, label in zip(widths, names, strict=True):
        if not width >= 0:
            raise UnusableInput(
                f"caliper, column {label!r} is {width:g}",
                hint="a caliper is 0 or more standard deviations (infinite for no limit)",
            )
    return widths


def exact_columns(exact: Any, names: Sequence[str]) -> Truths:
    """Return which columns must be equal, shape (k,), from ``True``, a truth for each, or names."""
    columns = np.asarray([exact] if isinstance(exact, str) else exact)
    if columns.dtype.kind == "U" and columns.ndim == 1:
        unknown = [str(name) for name in columns if name not in names]
        if unknown:
            raise UnusableInput(
                f"exact names {unknown[0]!r}, which is not a column of X",
                hint=f"X has {list(names)}",
            )
        return np.array([name in columns for name in names])
    return np.asarray(per_column(columns, "exact", names), dtype=np.bool_)


def per_column(values: Any, name: str, names: Sequence[str]) -> NDArray[Any]:
    """Return one value for each column of X; a single value holds for all columns."""
    array = np.asarray(values)
    if array.ndim == 0:
        return np.full(len(names), array[()])
    if array.shape != (len(names),):
        more = ", …" if len(names) > MAX_NAMED_ROWS else ""
        raise UnusableInput(
            f"{name} has {array.size} values and X has {len(names)} columns "
            f"({', '.join(names[:MAX_NAMED_ROWS])}{more})",
            hint=f"give one value, or {len(names)}",
        )
    return array
