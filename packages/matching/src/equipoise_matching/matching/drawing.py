"""Draw the charts of a balance and of a genetic search, with the functions of ``charts``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equipoise_matching.genetic.search import history_rows
from equipoise_matching.matching.distributions import quantiles
from equipoise_matching.shared.pictures import require_figures

if TYPE_CHECKING:
    from altair import LayerChart

    from equipoise_matching.matching.balance import Balance, Groups
    from equipoise_matching.matching.gen_match import GenMatchResult

MAX_QUANTILES = 400
"""Largest number of points in a QQ plot, which is enough to show its shape."""

Floats = NDArray[np.float64]


def love_chart(balance: Balance) -> LayerChart:
    """Draw the standardized differences of every variable, before and after (a love plot)."""
    require_figures()
    from equipoise_matching.charts.balance import love_plot

    return love_plot(
        balance.variables,
        [variable.sdiff for variable in balance.before],
        None if balance.after is None else [variable.sdiff for variable in balance.after],
    )


def qq_chart(balance: Balance, variable: str) -> LayerChart:
    """Draw quantiles of the treated against quantiles of the controls, before and after."""
    column = balance.column(variable)
    require_figures()
    from equipoise_matching.charts.balance import qq_plot

    before, after = balance.groups_before, balance.groups_after
    rows = min(len(before.treated), len(before.control))
    notes = []
    if rows > MAX_QUANTILES:
        notes = [f"{MAX_QUANTILES} quantiles represent at least {rows:,} rows of each group."]
    return qq_plot(
        variable,
        _quantile_pairs(column, before),
        None if after is None else _quantile_pairs(column, after),
        notes=notes,
    )


def density_chart(balance: Balance, variable: str) -> LayerChart | None:
    """Draw the density of a variable in both groups; ``None`` if a group has too few rows."""
    column = balance.column(variable)
    require_figures()
    from equipoise_matching.charts.balance import WeightedValues, group_density

    def split(groups: Groups) -> tuple[WeightedValues, WeightedValues]:
        treated, control = (WeightedValues(arm.values, arm.weights) for arm in groups.split(column))
        return treated, control

    after = balance.groups_after
    return group_density(
        variable, split(balance.groups_before), None if after is None else split(after)
    )


def shares_chart(balance: Balance) -> LayerChart | None:
    """Draw the shares of variables with two values; ``None`` without such variables."""
    require_figures()
    from equipoise_matching.charts.balance import Share, shares

    rows = []
    for index, name in enumerate(balance.variables):
        column = balance.matrix[:, index]
        values = np.unique(column)
        if len(values) != 2:
            continue
        has_larger_value = (column == values[1]).astype(np.float64)
        is_indicator = values.tolist() == [0.0, 1.0]
        after = balance.groups_after
        rows.append(
            Share(
                name if is_indicator else f"{name} = {values[1]:.6g}",
                _shares(has_larger_value, balance.groups_before),
                None if after is None else _shares(has_larger_value, after),
            )
        )
    return shares(rows) if rows else None


def search_course_chart(result: GenMatchResult) -> LayerChart:
    """Draw each covariate's difference before matching, and during and after the search."""
    require_figures()
    from equipoise_matching.charts.balance import search_balance

    course: list[tuple[int, list[float]]] = []
    best_weights: Floats | None = None
    for generation in result.history:
        if best_weights is None or not np.array_equal(best_weights, generation.parameters):
            best_weights = generation.parameters
            balance = result.balance(best_weights, ks=False)
        course.append((generation.number, [variable.sdiff for variable in balance.after or ()]))
    first_criterion, last_criterion = result.history[0].value[0], result.fitness[0]
    return search_balance(
        result.balance_names,
        [variable.sdiff for variable in result.balance(ks=False).before],
        course,
        notes=[
            f"{result.criterion}: {first_criterion:.3g} in generation 0, "
            f"{last_criterion:.3g} at the end"
        ],
    )


def search_history_chart(result: GenMatchResult) -> LayerChart:
    """Draw the best and the median value of the first criterion over the generations."""
    require_figures()
    from equipoise_matching.charts.balance import search_values

    return search_values(
        history_rows(result.history), peak=result.peak_generation, title=result.criterion.lower()
    )


def _shares(column: Floats, groups: Groups) -> tuple[float, float]:
    """Return the percentage of ones in a column, among the controls and among the treated."""
    treated, control = (
        100.0 * float(np.average(arm.values, weights=arm.weights)) for arm in groups.split(column)
    )
    return control, treated


def _quantile_pairs(column: Floats, groups: Groups) -> list[tuple[float, float]]:
    """Return quantiles of controls and of treated at the same levels."""
    treated, control = groups.split(column)
    count = min(len(treated.values), len(control.values), MAX_QUANTILES)
    levels = (np.arange(count) + 0.5) / count
    quantile_lists = (quantiles(arm, levels).tolist() for arm in (control, treated))
    return list(zip(*quantile_lists, strict=True))
