"""Charts and notebook HTML of the results of matching and of genoud.

``equipoise_matching.shared.extras`` calls these functions by name for the methods of the results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise_matching.shared.pictures import require_figures
from equipoise_matching.matching.balance import Balance, Groups
from equipoise_matching.matching.distributions import quantiles
from equipoise_matching.matching.gen_match import GenMatchResult
from equipoise_matching.matching.match import MatchResult
from equipoise.report.builders.matching import balance_table, smallest_p_sentence
from equipoise.report.document import Paragraph, text_of
from equipoise.report.renderers import notebook

if TYPE_CHECKING:
    from altair import LayerChart

    from equipoise_matching.genetic.genoud import GenoudResult
    from equipoise_matching.genetic.search import Generation

MOST_QUANTILES = 400
"""Points of a QQ plot at most: they show its shape."""

Floats = NDArray[np.float64]


def facts_html(result: MatchResult | GenoudResult) -> str:
    """Write the facts of a match or of a search."""
    return notebook.facts(result.facts())


def gen_match_html(result: GenMatchResult) -> str:
    """Write the weights that a search found, and its facts."""
    weights = [
        (name, f"{weight:.6g}") for name, weight in zip(result.names, result.weights, strict=True)
    ]
    headings = ("Weights of the standardised covariates", "")
    facts = notebook.facts(result.facts())
    return f"<div>{notebook.table(headings, weights)}{facts}</div>"


def balance_html(balance: Balance) -> str:
    """Write the table of a balance, and its smallest p-values."""
    sentence = Paragraph(smallest_p_sentence(balance))
    return notebook.parts_to_html((balance_table(balance), sentence))


def balance_text(balance: Balance) -> str:
    """Write the table of a balance as lines of text, and its smallest p-values."""
    table = balance_table(balance)
    lines = [tuple(column.heading for column in table.columns)]
    lines += [tuple(map(text_of, row)) for row in table.rows]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    is_number = [column.kind == "number" for column in table.columns]
    text = [
        "  ".join(
            f"{cell:>{width}}" if to_the_right else f"{cell:<{width}}"
            for cell, width, to_the_right in zip(line, widths, is_number, strict=True)
        ).rstrip()
        for line in lines
    ]
    return "\n".join((*text, smallest_p_sentence(balance)))


def love_chart(balance: Balance) -> LayerChart:
    """Draw the standardized differences of every variable, before and after."""
    require_figures()
    from equipoise_matching.charts.balance import love_plot

    return love_plot(
        balance.variables,
        [variable.sdiff for variable in balance.before],
        None if balance.after is None else [variable.sdiff for variable in balance.after],
    )


def qq_chart(balance: Balance, variable: str) -> LayerChart:
    """Draw the quantiles of the treated against those of the controls, before and after."""
    column = balance.column(variable)
    require_figures()
    from equipoise_matching.charts.balance import qq_plot

    before, after = balance.groups_before, balance.groups_after
    rows = min(len(before.treated), len(before.control))
    notes = []
    if rows > MOST_QUANTILES:
        notes = [f"{MOST_QUANTILES} quantiles stand for {rows:,} rows and more of each group."]
    return qq_plot(
        variable,
        _quantile_pairs(column, before),
        None if after is None else _quantile_pairs(column, after),
        notes=notes,
    )


def density_chart(balance: Balance, variable: str) -> LayerChart | None:
    """Draw how a variable is distributed in both groups; ``None`` if one has too few rows."""
    column = balance.column(variable)
    require_figures()
    from equipoise_matching.charts.balance import Weighted, group_density

    def split(groups: Groups) -> tuple[Weighted, Weighted]:
        treated, control = groups.split(column)
        return Weighted(treated.values, treated.weights), Weighted(control.values, control.weights)

    after = balance.groups_after
    return group_density(
        variable, split(balance.groups_before), None if after is None else split(after)
    )


def shares_chart(balance: Balance) -> LayerChart | None:
    """Draw the variables with two values, as shares of both groups; ``None`` without any."""
    require_figures()
    from equipoise_matching.charts.balance import Share, shares

    rows = []
    for place, name in enumerate(balance.variables):
        column = balance.matrix[:, place]
        values = np.unique(column)
        if len(values) != 2:
            continue
        larger = (column == values[1]).astype(np.float64)
        is_indicator = values.tolist() == [0.0, 1.0]
        after = balance.groups_after
        rows.append(
            Share(
                name if is_indicator else f"{name} = {values[1]:.6g}",
                _shares(larger, balance.groups_before),
                None if after is None else _shares(larger, after),
            )
        )
    return shares(rows) if rows else None


def search_course_chart(result: GenMatchResult) -> LayerChart:
    """Draw each covariate's difference before matching, along the search and after it."""
    require_figures()
    from equipoise_matching.charts.balance import search_balance

    along: list[tuple[int, list[float]]] = []
    best: Floats | None = None
    for generation in result.history:
        if best is None or not np.array_equal(best, generation.par):
            best = generation.par
            balance = result.balance(best, ks=False)
        along.append((generation.number, [one.sdiff for one in balance.after or ()]))
    first, end = result.history[0].value[0], result.fitness[0]
    return search_balance(
        result.balance_names,
        [variable.sdiff for variable in result.balance(ks=False).before],
        along,
        notes=[f"{result.criterion}: {first:.3g} in generation 0, {end:.3g} at the end"],
    )


def search_history_chart(result: GenMatchResult) -> LayerChart:
    """Draw the first criterion's best and median over the generations."""
    require_figures()
    from equipoise_matching.charts.balance import search_values

    return search_values(
        _history_rows(result.history), peak=result.peak_generation, value=result.criterion.lower()
    )


def genoud_history_chart(result: GenoudResult) -> LayerChart:
    """Draw the best value and the median over the generations."""
    require_figures()
    from equipoise_matching.charts.balance import search_values

    return search_values(_history_rows(result.history), peak=result.peak_generation)


def _history_rows(history: tuple[Generation, ...]) -> list[dict[str, Any]]:
    return [
        {
            "generation": generation.number,
            "best": float(generation.value[0]),
            "median": generation.median,
            "evaluations": generation.evaluations,
        }
        for generation in history
    ]


def _shares(column: Floats, groups: Groups) -> tuple[float, float]:
    """Return the shares of controls and of treated, in percent."""
    treated, control = (
        100.0 * float(np.average(arm.values, weights=arm.weights)) for arm in groups.split(column)
    )
    return control, treated


def _quantile_pairs(column: Floats, groups: Groups) -> list[tuple[float, float]]:
    """Return quantiles of controls and of treated at the same levels."""
    treated, control = groups.split(column)
    count = min(len(treated.values), len(control.values), MOST_QUANTILES)
    levels = (np.arange(count) + 0.5) / count
    both = (quantiles(arm, levels).tolist() for arm in (control, treated))
    return list(zip(*both, strict=True))
