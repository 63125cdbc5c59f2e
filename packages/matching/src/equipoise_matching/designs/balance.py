"""The balance of a design: how alike its arms are in all covariates, before and after."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from equipoise_matching.designs.covariate_balance import (
    ArmSize,
    BalanceOptions,
    BinaryDifference,
    Denominator,
    VariableBalance,
    balances_of_column,
    checked_denominator,
    expanded_columns,
    row_groups_of,
)
from equipoise_matching.matching.frames import matrix_of
from equipoise_matching.matching.units import Floats, Indices, check_length
from equipoise_matching.report import UNKNOWN, TextTable
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import Library, frame_of
from equipoise_matching.shared.numbers import amount, listed

if TYPE_CHECKING:
    from altair import LayerChart
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame

    from equipoise_matching.designs.design import Design

When = Literal["before", "after"]

LARGE_DIFFERENCE = 0.1
"""Common threshold of a large difference, in standard deviations or as a share (Austin 2009)."""


@dataclass(frozen=True, slots=True)
class OverallBalance:
    """The balance of all covariates together; differences are without their sign.

    ``unknown`` has the number of differences that cannot be computed. ``worst`` is the place of
    the largest difference.
    """

    largest_difference: float
    worst: str
    mean_difference: float
    largest_ks: float
    unknown: int


@dataclass(frozen=True, slots=True, eq=False)
class WeightedColumns:
    """The covariates of a design's rows, for charts: names, matrix, arms, weights after."""

    names: tuple[str, ...]
    matrix: Floats
    arm: Indices
    arm_names: tuple[str, ...]
    weights: Floats


@dataclass(frozen=True, slots=True)
class DesignBalance:
    """The balance of every covariate of a design, before and after.

    Methods raise `UnusableInput` for an unknown covariate, and for a missing package: altair
    (``equipoise-matching[charts]``) for a chart, pandas or polars for a frame.

    Attributes
    ----------
    method, estimand
        Those of the design.
    standardize
        Rows whose standard deviation divides the differences.
    binary
        Whether differences of binary covariates are raw.
    variables
        A balance for each covariate, pair of arms, cluster and imputed data set.
    sizes
        Numbers of rows of each arm.
    """

    method: str
    estimand: str
    standardize: Denominator
    binary: BinaryDifference
    variables: tuple[VariableBalance, ...]
    sizes: tuple[ArmSize, ...]
    columns: WeightedColumns = field(repr=False, compare=False)

    def overall(self, when: When = "after") -> OverallBalance:
        """Return the largest and the mean difference of all covariates, and the largest KS."""
        pairs = [(variable, getattr(variable, when)) for variable in self.variables]
        known = [(variable, pair) for variable, pair in pairs if not math.isnan(pair.difference)]
        unknown = len(pairs) - len(known)
        if not known:
            return OverallBalance(math.nan, "", math.nan, math.nan, unknown)
        worst, largest = max(known, key=lambda entry: abs(entry[1].difference))
        return OverallBalance(
            abs(largest.difference),
            worst.place,
            math.fsum(abs(pair.difference) for _, pair in known) / len(known),
            max(pair.ks_statistic for _, pair in known),
            unknown,
        )

    def unbalanced(self, threshold: float = LARGE_DIFFERENCE) -> tuple[str, ...]:
        """Return the covariates with a larger difference than the threshold, the largest first."""
        large = [
            variable for variable in self.variables if abs(variable.after.difference) > threshold
        ]
        large.sort(key=lambda variable: -abs(variable.after.difference))
        return tuple(dict.fromkeys(variable.place for variable in large))

    def of(self, variable: str) -> tuple[VariableBalance, ...]:
        """Return the balance of one covariate: in each pair of arms, cluster and imputation."""
        found = tuple(balance for balance in self.variables if balance.variable == variable)
        if not found:
            known = list(dict.fromkeys(balance.variable for balance in self.variables))
            raise UnusableInput(
                f"there is no covariate {variable}", hint=f"name one of {listed(known)}"
            )
        return found

    def rows(self) -> list[dict[str, Any]]:
        """Return two rows for each balance, before and after; unknown numbers are ``None``.

        The columns ``comparison``, ``cluster`` and ``imputation`` are there if they differ.
        """
        rows = []
        for balance in self.variables:
            labels: dict[str, Any] = {"variable": balance.variable}
            for name in ("comparison", "cluster", "imputation"):
                if getattr(balance, name) not in ("", None):
                    labels[name] = getattr(balance, name)
            labels["kind"] = "binary" if balance.is_binary else "continuous"
            for when, pair in (("before", balance.before), ("after", balance.after)):
                numbers = {
                    name: None if math.isnan(value) else value
                    for name, value in asdict(pair).items()
                }
                rows.append({**labels, "when": when, **numbers})
        return rows

    def to_frame(self, library: Library = "pandas") -> PandasFrame | PolarsFrame:
        """Return ``rows()`` as a data frame."""
        return frame_of(self.rows(), library)

    def summary(self) -> str:
        """Return the answer in a sentence, the table of balance and the numbers of rows."""
        tables = [table.to_text() for table in self._tables()]
        return "\n\n".join([self._sentence(), *tables, self._convention()])

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def _repr_html_(self) -> str:
        from equipoise_matching.shared import html

        tables = "".join(table.to_html() for table in self._tables())
        first, last = (html.text(text) for text in (self._sentence(), self._convention()))
        return f"<div><p>{first}</p>{tables}<p>{last}</p></div>"

    def love_plot(self) -> LayerChart:
        """Draw the differences of every covariate, before and after (a love plot)."""
        from equipoise_matching.designs.drawing import love_chart

        return love_chart({self.method: self})

    def density_plot(self, variable: str) -> LayerChart | None:
        """Draw the densities of a covariate in each arm: after above, before below the axis.

        ``None`` if an arm has fewer than five rows.
        """
        from equipoise_matching.designs.drawing import density_chart

        return density_chart(self.columns, self._index_of(variable))

    def histogram_plot(self, variable: str) -> LayerChart:
        """Draw histograms of a covariate: treated above, controls below; lines are before."""
        from equipoise_matching.designs.drawing import histogram_chart

        return histogram_chart(self.columns, self._index_of(variable))

    def shares_plot(self) -> LayerChart | None:
        """Draw the shares of the binary covariates; ``None`` without binary covariates."""
        from equipoise_matching.designs.drawing import shares_chart

        return shares_chart(self.columns)

    def _index_of(self, variable: str) -> int:
        if variable not in self.columns.names:
            raise UnusableInput(
                f"there is no covariate {variable}",
                hint=f"name one of {listed(self.columns.names)}",
            )
        return self.columns.names.index(variable)

    def _sentence(self) -> str:
        before, after = self.overall("before"), self.overall("after")
        text = (
            f"{self.method} ({self.estimand}): the largest difference is "
            f"{_difference_text(after.largest_difference)}"
            f"{f' ({after.worst})' if after.worst else ''}, before "
            f"{_difference_text(before.largest_difference)}"
            f"{f' ({before.worst})' if before.worst else ''}."
        )
        if after.unknown:
            text += f" {after.unknown} of {len(self.variables)} differences are unknown."
        return text

    def _convention(self) -> str:
        rows = {
            "treated": "of the treated rows",
            "controls": "of the controls",
            "pooled": "pooled over the arms",
            "all": "of all rows",
        }[self.standardize]
        text = f"Differences are in standard deviations {rows}, before matching."
        if self.binary == "raw" and any(variable.is_binary for variable in self.variables):
            text += " Those of binary covariates are raw."
        return text

    def _tables(self) -> list[TextTable]:
        is_grouped = any(
            variable.cluster is not None or variable.imputation is not None
            for variable in self.variables
        )
        balance = _table_of_groups(self) if is_grouped else _table_of_variables(self)
        return [balance, _table_of_sizes(self)]


def balance_of_designs(
    designs: Sequence[Design],
    *,
    covariates: Sequence[Any],
    cluster: Any = None,
    options: BalanceOptions,
) -> DesignBalance:
    """Return the balance of one design, or of several designs of imputed data sets.

    ``covariates`` has for each design the table to compare; ``None`` for the design's own.
    """
    standardize = checked_denominator(options, designs[0])
    variables: list[VariableBalance] = []
    sizes: list[ArmSize] = []
    columns: WeightedColumns | None = None
    for number, (design, table) in enumerate(zip(designs, covariates, strict=True), start=1):
        imputation = number if len(designs) > 1 else None
        names, matrix = design.units.names, design.units.matrix
        if table is not None:
            names, matrix = matrix_of(table)
            check_length(len(design.weights), "the design", len(matrix))
        groups = list(row_groups_of(design, cluster, imputation))
        sizes += [size for group in groups for size in group.sizes()]
        for name, column, is_binary in expanded_columns(names, matrix, options):
            for group in groups:
                variables += balances_of_column(
                    name, column, is_binary, group, standardize, options
                )
        if columns is None:
            arm_names = design.units.arm_names
            columns = WeightedColumns(names, matrix, design.units.arm, arm_names, design.weights)
    assert columns is not None, "there is a design"
    first = designs[0]
    return DesignBalance(
        first.method,
        first.estimand,
        standardize,
        options.binary,
        tuple(variables),
        tuple(sizes),
        columns,
    )


def _table_of_variables(balance: DesignBalance) -> TextTable:
    """Return a table with a row for each covariate and pair of arms."""
    has_pairs = any(variable.comparison for variable in balance.variables)
    rows = []
    for variable in balance.variables:
        labels = [variable.variable, *([variable.comparison] if has_pairs else [])]
        after = variable.after
        cells = (
            _text_of(after.mean_treated),
            _text_of(after.mean_control),
            _difference_text(variable.before.difference),
            _difference_text(after.difference),
            _text_of(after.variance_ratio),
            _difference_text(after.ks_statistic),
            _difference_text(after.overlap),
        )
        rows.append((*labels, *cells))
    headings = (
        *("covariate", *(["arms"] if has_pairs else []), "treated", "control"),
        *("before", "after", "var ratio", "KS", "overlap"),
    )
    return TextTable(headings, tuple(rows), "Balance", label_columns=1 + has_pairs)


def _table_of_groups(balance: DesignBalance) -> TextTable:
    """Return a table of each covariate's differences across clusters or imputed data sets."""
    by_name: dict[tuple[str, str], list[VariableBalance]] = {}
    for variable in balance.variables:
        by_name.setdefault((variable.variable, variable.comparison), []).append(variable)
    rows = []
    for (name, comparison), group in by_name.items():
        cells = [", ".join(filter(None, (name, comparison)))]
        for when in ("before", "after"):
            sizes = [abs(getattr(variable, when).difference) for variable in group]
            known = [size for size in sizes if not math.isnan(size)]
            cells.append(_difference_text(math.fsum(known) / len(known) if known else math.nan))
            cells.append(_difference_text(max(known, default=math.nan)))
        known_group = [variable for variable in group if not math.isnan(variable.after.difference)]
        worst = max(
            known_group, key=lambda variable: abs(variable.after.difference), default=group[0]
        )
        place = worst.cluster if worst.imputation is None else f"imputation {worst.imputation}"
        rows.append((*cells, str(place)))
    headings = ("covariate", "mean before", "largest before", "mean after", "largest after", "in")
    title = "Differences across clusters or imputed data sets, without their sign"
    return TextTable(headings, tuple(rows), title)


def _table_of_sizes(balance: DesignBalance) -> TextTable:
    """Return a table of the numbers of rows of each arm."""
    labels = [
        name
        for name in ("cluster", "imputation")
        if any(getattr(size, name) is not None for size in balance.sizes)
    ]
    rows = tuple(
        (
            size.arm,
            *(str(getattr(size, name)) for name in labels),
            f"{size.rows:,}",
            f"{size.kept:,}",
            f"{size.effective:,.1f}",
        )
        for size in balance.sizes
    )
    headings = ("arm", *labels, "rows", "kept", "effective")
    return TextTable(headings, rows, "Numbers of rows", label_columns=1 + len(labels))


def _text_of(value: float) -> str:
    """Return a mean or a ratio of variances."""
    return _special_text(value) or amount(value)


def _difference_text(value: float) -> str:
    """Return a difference, a KS statistic or an overlap with three decimals."""
    # The sum with 0 takes the sign from a difference that rounds to 0.
    return _special_text(value) or f"{round(value, 3) + 0.0:.3f}"


def _special_text(value: float) -> str:
    if math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return ""
