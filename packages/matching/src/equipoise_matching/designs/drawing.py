"""Draw the charts of a design's balance, with the functions of ``charts``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise_matching.designs.covariate_balance import BalanceOptions, expanded_columns
from equipoise_matching.matching.units import Floats
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.pictures import require_figures

if TYPE_CHECKING:
    from altair import LayerChart

    from equipoise_matching.charts.balance import WeightedValues
    from equipoise_matching.designs.balance import DesignBalance, WeightedColumns
    from equipoise_matching.designs.covariate_balance import VariableBalance
    from equipoise_matching.designs.design import Design

MAX_DESIGNS = 5
"""Largest number of designs in one chart, which has a colour and a shape for each."""


def overlap_plot(design: Design, score: Any) -> LayerChart | None:
    """Draw the densities of a score in each arm: after above the axis, before below it.

    ``score`` has one number for each row, such as the chance of treatment, or is the result of
    ``propensity_score``. A note has the number of rows outside the range of another arm. ``None``
    if an arm has fewer than five rows. Raise `UnusableInput` if the score cannot be used, or
    altair is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise_matching import optimal_match, overlap_plot
    >>> treat, age = np.arange(20) % 2, np.arange(20.0)
    >>> overlap_plot(optimal_match(treat, age), score=age / 20).to_dict()["title"]["text"]
    'Overlap of the score'
    """
    balance = design.balance(covariates={"score": np.asarray(getattr(score, "score", score))})
    columns = balance.columns
    values, arms = columns.matrix[:, 0], columns.arm_names
    lows = [float(values[columns.arm == index].min()) for index in range(len(arms))]
    highs = [float(values[columns.arm == index].max()) for index in range(len(arms))]
    is_outside = (values < max(lows)) | (values > min(highs))
    counts = [
        f"{int((is_outside & (columns.arm == index)).sum()):,} of "
        f"{int((columns.arm == index).sum()):,} {name.lower()}"
        for index, name in enumerate(arms)
    ]
    areas = " and ".join(
        f"{min(getattr(variable, when).overlap for variable in balance.variables):.2f} {when}"
        for when in ("before", "after")
    )
    return density_chart(
        columns,
        0,
        title="Overlap of the score",
        notes=[
            f"Area that the densities share: {areas} matching.",
            f"Outside the range of another arm: {', '.join(counts)}.",
        ],
    )


def love_chart(balances: Mapping[str, DesignBalance]) -> LayerChart:
    """Draw the differences of every covariate before matching and after each design."""
    require_figures()
    from equipoise_matching.charts.designs import designs_love_plot

    if not 1 <= len(balances) <= MAX_DESIGNS:
        raise UnusableInput(
            f"a love plot has 1 to {MAX_DESIGNS} designs, not {len(balances)}",
            hint=f"give at most {MAX_DESIGNS} designs",
        )
    first = next(iter(balances.values()))
    variables = list(dict.fromkeys(variable.variable for variable in first.variables))
    return designs_love_plot(
        variables,
        [_largest(first.of(name), "before") for name in variables],
        {
            label: [_largest(balance.of(name), "after") for name in variables]
            for label, balance in balances.items()
        },
    )


def density_chart(
    columns: WeightedColumns, index: int, *, title: str = "", notes: Sequence[str] = ()
) -> LayerChart | None:
    """Draw the densities of a covariate in each arm; ``None`` if an arm has too few rows."""
    require_figures()
    from equipoise_matching.charts.balance import group_density

    return group_density(
        columns.names[index],
        _arms(columns, index, "before"),
        _arms(columns, index, "after"),
        names=[name.lower() for name in reversed(columns.arm_names)],
        title=title,
        notes=notes,
    )


def histogram_chart(columns: WeightedColumns, index: int) -> LayerChart:
    """Draw mirrored histograms of a covariate in two arms."""
    require_figures()
    from equipoise_matching.charts.designs import mirrored_histograms

    _require_two_arms(columns, "a histogram")
    return mirrored_histograms(
        columns.names[index], _arms(columns, index, "before"), _arms(columns, index, "after")
    )


def shares_chart(columns: WeightedColumns) -> LayerChart | None:
    """Draw the shares of the binary covariates; ``None`` without binary covariates."""
    require_figures()
    from equipoise_matching.charts.balance import Share, shares

    _require_two_arms(columns, "a chart of shares")
    rows = []
    options = BalanceOptions()
    for label, column, is_binary in expanded_columns(columns.names, columns.matrix, options):
        if is_binary:
            before, after = (
                _shares(column, columns, weights)
                for weights in (np.ones(len(column)), columns.weights)
            )
            rows.append(Share(label, before, after))
    return shares(rows) if rows else None


def _arms(columns: WeightedColumns, index: int, when: str) -> list[WeightedValues]:
    """Return the values and weights of a covariate in each arm, the last arm first."""
    from equipoise_matching.charts.balance import WeightedValues

    arms = []
    for position in reversed(range(len(columns.arm_names))):
        is_in_arm = columns.arm == position
        if when == "before":
            arms.append(WeightedValues(columns.matrix[is_in_arm, index], None))
        else:
            is_in_arm = is_in_arm & (columns.weights > 0.0)
            values = columns.matrix[is_in_arm, index]
            arms.append(WeightedValues(values, columns.weights[is_in_arm]))
    return arms


def _largest(balances: tuple[VariableBalance, ...], when: str) -> float:
    """Return the largest difference of a covariate, with its sign; NaN if none is known."""
    differences = [float(getattr(balance, when).difference) for balance in balances]
    known = [difference for difference in differences if not math.isnan(difference)]
    return max(known, key=abs, default=math.nan)


def _shares(column: Floats, columns: WeightedColumns, weights: Floats) -> tuple[float, float]:
    """Return the mean of a binary column among the controls and the treated, in percent."""
    control, treated = (
        100.0 * float(np.average(column[columns.arm == arm], weights=weights[columns.arm == arm]))
        for arm in (0, 1)
    )
    return control, treated


def _require_two_arms(columns: WeightedColumns, what: str) -> None:
    if len(columns.arm_names) != 2:
        raise UnusableInput(
            f"{what} has two arms, and the design has {len(columns.arm_names)}",
            hint="use density_plot, which draws several arms",
        )
