"""Coarsened exact matching: bins of each covariate, and strata of rows that agree in all bins.

Iacus, King and Porro 2012 (Political Analysis 20(1)). Formulae: docs/methods/coarsened-matching.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from equipoise_matching.designs.design import LEFT_OUT, Design
from equipoise_matching.designs.strata import (
    combine_codes,
    focal_arm,
    keep_complete_strata,
    number_strata,
    stratum_weights,
)
from equipoise_matching.designs.stratum_pairs import count_greedy_strata, nearest_pairs
from equipoise_matching.designs.units import DesignUnits, design_units
from equipoise_matching.matching.frames import (
    MAX_CATEGORIES,
    check_present,
    columns_of,
    holds_text,
    numbers_of,
    text_of,
)
from equipoise_matching.matching.options import Estimand
from equipoise_matching.matching.units import Floats, Indices, check_length, power_of_two
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.numbers import listed

Rule = Literal["sturges", "scott", "fd"]
Cutpoints = Rule | int | Sequence[float] | None
"""Bins of one covariate: a rule, a number of bins, the cut points, or ``None`` for its values."""

MAX_BINS = 100_000
"""Largest number of bins of a covariate."""
SCOTT_FACTOR = 3.5
"""Bin width by Scott (1979) in units of sd · n^(-1/3); 3.49 in the paper, 3.5 in R."""
MAX_MODERATE_VALUE = 1e100
"""Values beyond this number or its inverse are scaled before they are squared."""
IMBALANCE_RULE: Rule = "scott"
"""Rule of the cells in which the imbalance L1 is measured, whatever the bins of the matching."""


def cem(
    treat: Any,
    X: Any,
    *,
    cutpoints: Cutpoints | Mapping[str, Cutpoints] = "sturges",
    grouping: Mapping[str, Sequence[Sequence[Any]]] | None = None,
    k2k: bool = False,
    estimand: Estimand = "ATT",
    focal: Any = None,
) -> Design:
    """Match rows exactly on coarsened covariates (Iacus, King and Porro 2012).

    Each covariate is cut into bins. Rows in the same bins of all covariates are a stratum. Strata
    that lack an arm are left out, and weights make the strata equally frequent in all arms.

    The details have the number of strata and the multivariate imbalance L1 before and after. L1 is
    0 if the arms have the same distribution over the cells, and 1 if they share no cell. The cells
    come from Scott's rule; they are the same before and after.

    Raise `UnusableInput` for missing or infinite values, unknown columns or options, or if no
    stratum has rows of every arm.

    Examples
    --------
    >>> from equipoise_matching import cem
    >>> age = [25, 31, 38, 46, 24, 30, 40, 47, 52]
    >>> trained = [1, 1, 1, 1, 0, 0, 0, 0, 0]
    >>> design = cem(trained, {"age": age}, cutpoints={"age": [30, 40, 50]})
    >>> design.strata.tolist()
    [0, 1, 1, 2, 0, 1, 2, 2, -1]
    >>> design.weights.tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 0.5, 0.5, 0.0]

    Parameters
    ----------
    treat
        Shape (n,), 1 for treated rows and 0 for controls, or the labels of several arms.
    X
        Covariates: a frame or a mapping of names to columns, or an array (n, k). Columns of texts
        are categories.
    cutpoints
        Bins of each column of numbers. "sturges", "scott" and "fd" (Freedman and Diaconis 1981) are
        rules for the number of bins of equal width; a number is this number of bins; a list has the
        cut points, and a value equal to a cut point is in the bin above it. ``None`` matches on the
        values themselves. A mapping has these for the columns that it names; others take "sturges".
    grouping
        Categories to join, by column: ``{"race": [["black", "hispanic"]]}``. Categories that are
        not named stay alone.
    k2k
        Whether to keep equal numbers of both arms in each stratum. Each row of the smaller arm
        gets a row of the larger arm, so that the total Mahalanobis distance is smallest; each pair
        becomes a stratum, and other rows are left out.
    estimand
        The effect on the treated (ATT), on the controls (ATC) or on all (ATE), within the strata
        that are kept.
    focal
        The arm that the ATT is about, if the arms are not 0 and 1.
    """
    columns = _covariate_columns(X)
    numbers = _numeric_columns(columns)
    units = design_units(treat, numbers, several_arms=True)
    focal_position = focal_arm(units, estimand, focal)
    if k2k and len(units.arms) != 2:
        raise UnusableInput(
            f"k2k pairs rows of two arms, but there are {len(units.arms)}", hint="leave out k2k"
        )
    bins = _bins_of_columns(columns, numbers, cutpoints, grouping)
    with ThreadPoolExecutor(max_workers=1) as pool:
        # The cells of the imbalance are sorted while the strata are made.
        sorted_cells = pool.submit(_sorted_cells, bins)
        all_strata, formed = number_strata([column_bins.codes for column_bins in bins])
        cells = keep_complete_strata(all_strata, units)
        kept = int(cells.max()) + 1
        if not kept:
            raise _no_complete_strata(units, bins, formed)
        strata = nearest_pairs(units, cells) if k2k else cells
        if k2k:
            weights = (strata != LEFT_OUT).astype(np.float64)
        else:
            weights = stratum_weights(cells, units, focal_position)
        order, starts = sorted_cells.result()
    before, after = (
        imbalance(order, starts, units, row_weights)
        for row_weights in (np.ones(len(units)), weights)
    )
    details: dict[str, Any] = {
        "Strata before": formed,
        "Strata with every arm": kept,
        "Bins": listed([f"{column_bins.name} {column_bins.count}" for column_bins in bins]),
        "Imbalance L1 before": before,
        "Imbalance L1 after": after,
    }
    if k2k and (greedy := count_greedy_strata(units, cells)):
        details["Strata paired in the order of the rows"] = greedy
    return Design("cem", estimand, units, weights, strata, details=details)


def imbalance(order: Indices, starts: Indices, units: DesignUnits, weights: Floats) -> float:
    """Return the multivariate imbalance L1; of several arms, that of the worst two.

    L1 = ½ Σ |f_c − g_c|, where f and g are the weighted shares of two arms in cell c (Iacus, King
    and Porro 2011, JASA 106(493)). ``order`` (n,) has the rows sorted by cell, and ``starts``
    (cells,) the first position of each cell.
    """
    arms, ordered_weights = units.arm[order], weights[order]
    totals = np.bincount(units.arm, weights)
    worst = 0.0
    for first in range(len(totals)):
        for second in range(first):
            factors = np.zeros(len(totals))
            factors[first], factors[second] = 1 / totals[first], -1 / totals[second]
            differences = np.add.reduceat(ordered_weights * factors[arms], starts)
            worst = max(worst, float(np.abs(differences).sum()) / 2)
    return worst


def _sorted_cells(bins: Sequence[ColumnBins]) -> tuple[Indices, Indices]:
    """Return the rows in the order of their cells, and the first position of each cell."""
    codes, _ = combine_codes([_imbalance_codes(column_bins) for column_bins in bins])
    order = np.argsort(codes)
    ordered = codes[order]
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    return order, np.flatnonzero(is_first)


def _no_complete_strata(
    units: DesignUnits, bins: Sequence[ColumnBins], formed: int
) -> UnusableInput:
    arms = "both arms" if len(units.arms) == 2 else "every arm"
    finest = max(bins, key=lambda column_bins: column_bins.count)
    return UnusableInput(
        f"none of the {formed} strata has rows of {arms}; {finest.name} alone has "
        f"{finest.count} bins",
        hint=f"cut the columns into fewer bins: cutpoints={{{finest.name!r}: 4}}"
        if finest.values is not None
        else f"join categories with grouping, or leave {finest.name} out",
    )


@dataclass(frozen=True, slots=True, eq=False)
class ColumnBins:
    """The bins of a column, and for each row the number of its bin.

    ``values`` (n,) has the numbers of the column; ``None`` for categories.
    """

    name: str
    values: Floats | None
    codes: Indices
    count: int


def _bins_of_columns(
    columns: Mapping[str, NDArray[Any]],
    numbers: Mapping[str, Floats],
    cutpoints: Cutpoints | Mapping[str, Cutpoints],
    grouping: Mapping[str, Sequence[Sequence[Any]]] | None,
) -> list[ColumnBins]:
    """Return the bins of all columns, after checking the names in both options."""
    groups = {} if grouping is None else grouping
    by_column = cutpoints if isinstance(cutpoints, Mapping) else {}
    default: Cutpoints = "sturges" if isinstance(cutpoints, Mapping) else cutpoints
    for option, mapping in (("cutpoints", by_column), ("grouping", groups)):
        if not isinstance(mapping, Mapping):
            raise UnusableInput(
                f"{option} is of type {type(mapping).__name__}",
                hint=f"give a mapping of columns: {option}={{'column': …}}",
            )
        for name in mapping:
            if name not in columns:
                raise UnusableInput(
                    f"{option} names {name!r}, which is not a column of X",
                    hint=f"name one of the columns {listed(list(columns))}",
                )
    bins = []
    for name, column in columns.items():
        is_category = name in groups or holds_text(column)
        if is_category and name in by_column:
            reason = "grouping names it, too" if name in groups else "it holds texts"
            raise UnusableInput(
                f"cutpoints names the column {name}, which has no bins: {reason}",
                hint=f"join its categories: grouping={{{name!r}: [[…, …]]}}",
            )
        if is_category:
            categories, codes = _categories(column, name)
            codes = _grouped(categories, codes, groups.get(name, ()), name)
            bins.append(ColumnBins(name, None, codes, int(codes.max()) + 1))
        else:
            values = numbers[name]
            codes, count = bin_codes(values, by_column.get(name, default), name)
            bins.append(ColumnBins(name, values, codes, count))
    return bins


def bin_codes(values: Floats, cutpoints: Cutpoints, name: str) -> tuple[Indices, int]:
    """Return for each value the number of its bin, from 0, and the number of bins.

    A value equal to a cut point is in the bin above it. ``values`` has shape (n,).
    """
    if cutpoints is None:
        distinct, codes = np.unique(values, return_inverse=True)
        return codes.reshape(-1), len(distinct)
    scaled = _moderate(values)
    if isinstance(cutpoints, str):
        count = _bin_count(scaled, cutpoints)
    elif isinstance(cutpoints, int | np.integer) and not isinstance(cutpoints, bool):
        count = int(cutpoints)
        if not 1 <= count <= MAX_BINS:
            raise UnusableInput(
                f"cutpoints of {name}: {count} is not a number of bins",
                hint=f"give 1 to {MAX_BINS} bins, or a list of cut points",
            )
    else:
        edges = _checked_edges(cutpoints, name)
        return np.searchsorted(edges, values, side="right"), len(edges) + 1
    edges = np.linspace(scaled.min(), scaled.max(), count + 1)[1:-1]
    return np.searchsorted(edges, scaled, side="right"), count


def _checked_edges(cutpoints: Any, name: str) -> Floats:
    """Return the cut points in ascending order, each once."""
    try:
        edges = np.asarray(cutpoints, dtype=np.float64)
    except (TypeError, ValueError):
        edges = np.full((), np.nan)
    if edges.ndim != 1 or not np.isfinite(edges).all():
        raise UnusableInput(
            f"cutpoints of {name}: {cutpoints!r} is not a list of finite numbers",
            hint="give a rule such as 'sturges', a whole number of bins, or a list of cut points",
        )
    return np.unique(edges)


def _bin_count(values: Floats, rule: str) -> int:
    """Return the number of bins of equal width by a rule; 1 for a constant column.

    Sturges 1926 (JASA 21(153)), Scott 1979 (Biometrika 66(3)), and Freedman and Diaconis 1981 (ZW
    57(4)). The last rule needs an interquartile range above 0; without it, Scott's rule is used.
    """
    rows, spread = len(values), float(np.ptp(values))
    width = 0.0
    if rule == "sturges":
        return math.ceil(math.log2(rows) + 1) if spread > 0 else 1
    if rule == "fd":
        quarter, three_quarters = np.quantile(values, (0.25, 0.75))
        width = 2 * float(three_quarters - quarter) / rows ** (1 / 3)
    elif rule != "scott":
        raise UnusableInput(
            f"there is no rule {rule!r} for bins", hint="choose 'sturges', 'scott' or 'fd'"
        )
    if width == 0:
        width = SCOTT_FACTOR * float(values.std(ddof=1)) / rows ** (1 / 3)
    if spread == 0 or width == 0:
        return 1
    return math.ceil(min(max(spread / width, 1), MAX_BINS))


def _imbalance_codes(column_bins: ColumnBins) -> Indices:
    """Return the cells of the imbalance L1 in one column; categories are cells as they are."""
    if column_bins.values is None:
        return column_bins.codes
    scaled = _moderate(column_bins.values)
    spread, count = float(np.ptp(scaled)), _bin_count(scaled, IMBALANCE_RULE)
    if spread == 0:
        return np.zeros(len(scaled), dtype=np.int64)
    # Faster than a search among edges, which only the bins of the matching need.
    codes: Indices = ((scaled - scaled.min()) * (count / spread)).astype(np.int64)
    codes[codes == count] = count - 1
    return codes


def _moderate(values: Floats) -> Floats:
    """Return values whose range and squares are finite: the values over a power of two.

    Such a division never rounds, so that bins of equal width stay the same.
    """
    largest = max(float(values.max()), -float(values.min()))
    if 1 / MAX_MODERATE_VALUE < largest < MAX_MODERATE_VALUE:
        return values
    return values / power_of_two(values)


def _covariate_columns(X: Any) -> dict[str, NDArray[Any]]:
    """Return the columns of X by name; those of an array are ``x0``, ``x1``, …."""
    try:
        columns = columns_of(X)
        array = np.asarray(X if columns is None else 0)
    except ValueError as error:
        raise UnusableInput(
            "X has rows or cells of unequal lengths", hint="give one value for each row and column"
        ) from error
    if columns is None:
        cells = array[:, np.newaxis] if array.ndim == 1 else array
        if cells.ndim != 2:
            raise UnusableInput(
                f"X has shape {array.shape}", hint="give one row for each unit, of its covariates"
            )
        rows = [np.ascontiguousarray(column) for column in cells.T]
        columns = {f"x{index}": column for index, column in enumerate(rows)}
    if not columns:
        raise UnusableInput("X has no columns", hint="give at least one covariate")
    for name, column in columns.items():
        if column.ndim != 1:
            raise UnusableInput(
                f"{name} has shape {column.shape}", hint="give one value for each row"
            )
        check_length(len(column), name, len(next(iter(columns.values()))))
        if not len(column):
            raise UnusableInput("X has no rows", hint="give rows of both arms")
    return columns


def _numeric_columns(columns: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
    """Return the columns as numbers, by which the balance is judged.

    A column of texts becomes indicators: of all texts but the first or, if there are more than
    ``MAX_CATEGORIES``, of the most frequent ones.
    """
    numbers: dict[str, Floats] = {}
    for name, column in columns.items():
        if not holds_text(column):
            numbers[name] = numbers_of(column, name)
            continue
        categories, codes = _categories(column, name)
        chosen = list(range(1, len(categories)))
        if len(categories) > MAX_CATEGORIES:
            frequencies = np.bincount(codes)
            chosen = sorted(np.argsort(-frequencies, kind="stable")[:MAX_CATEGORIES].tolist())
        for index in chosen or [0]:
            indicator = (codes == index).astype(np.float64)
            numbers[f"{name}={text_of(categories[index])}"] = indicator
    return numbers


def _categories(column: NDArray[Any], name: str) -> tuple[list[Any], Indices]:
    """Return the distinct values in the order of their texts, and for each row its index."""
    check_present(column, name)
    values = column.tolist()
    try:
        # Equal texts of different values keep the order of their first occurrence.
        categories = sorted(dict.fromkeys(values), key=str)
    except TypeError as error:
        raise UnusableInput(
            f"{name} holds values that are neither numbers nor texts",
            hint="convert the column to texts",
        ) from error
    index_of = {value: index for index, value in enumerate(categories)}
    codes = np.fromiter((index_of[value] for value in values), dtype=np.int64, count=len(values))
    return categories, codes


def _grouped(
    categories: Sequence[Any], codes: Indices, groups: Sequence[Sequence[Any]], name: str
) -> Indices:
    """Return the codes after the categories of each group are joined, shape (n,)."""
    index_of = {value: index for index, value in enumerate(categories)}
    joined = np.arange(len(categories))
    named: set[Any] = set()
    for group in groups:
        if isinstance(group, str) or not isinstance(group, Sequence | np.ndarray):
            raise UnusableInput(
                f"grouping of {name}: {group!r} is not a list of categories",
                hint=f"give a list of lists: grouping={{{name!r}: [[…, …]]}}",
            )
        for value in group:
            if value not in index_of:
                raise UnusableInput(
                    f"grouping of {name} names {value!r}, which does not occur",
                    hint=f"name some of {listed([repr(category) for category in categories])}",
                )
            if value in named:
                raise UnusableInput(
                    f"grouping of {name} names {value!r} twice",
                    hint="name each category in one group",
                )
            named.add(value)
        if len(group):
            joined[[index_of[value] for value in group]] = min(index_of[value] for value in group)
    return np.unique(joined[codes], return_inverse=True)[1].reshape(-1).astype(np.int64)
