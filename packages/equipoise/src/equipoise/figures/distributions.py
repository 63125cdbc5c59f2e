"""Chart of the distribution of each condition: trials as dots, density, median and modes.

Each condition has a row: its density (a hill) is above a horizontal line, its dots are below.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Literal

import altair as alt
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from equipoise.figures.building import quantity_axis, quantity_scale
from equipoise.figures.quantity import DrawnQuantity, drawn_quantity, rounded
from equipoise.figures.values import MAX_DOTS, analysed_values, primary_metric, trials_with_values
from equipoise.model.result import MetricSummary, ResultDocument, TrialRow
from equipoise.shared.chart_parts import (
    Rows,
    frame,
    label_strips,
    labels,
    layer,
    plain_scale,
    point,
    rule,
    tooltips,
)
from equipoise.shared.density import density
from equipoise.shared.theme import LABEL_STRIP_PIXELS, color_of

HOW_TO_READ = (
    "Each dot is one trial, and the hill above shows where trials are dense (all hills have the "
    "same height). The ring is the median, the thick bar its interval. Where there are several "
    "modes, each has a ▾ and its share of the trials. Further left is less."
)

ROW_HEIGHT = 112
"""Height of a row in pixels. The heights below are fractions of this height."""
BIN_COUNT = 80
"""Number of bars if bars replace the dots."""
_HILL_HEIGHT = 0.40
_DOTS_HEIGHT = 0.34
_GAP_HEIGHT = 0.07
"""Space between the line of a row and its dots."""
_NAME_Y = 0.5
"""Distance from the line of a row up to the name of its condition."""
_STRIP_HEIGHT = LABEL_STRIP_PIXELS / ROW_HEIGHT
_UNKNOWN_DENSITY = 0.6
"""Relative density that spreads the dots if there are too few values for a density."""
_GOLDEN_RATIO = (math.sqrt(5.0) - 1.0) / 2.0

Floats = NDArray[np.float64]


def distributions(
    result: ResultDocument, metric: str | None = None, *, max_dots: int = MAX_DOTS
) -> alt.LayerChart:
    """Draw the analysed trials of every condition on one axis, by default of the primary metric.

    With more than ``max_dots`` trials, bars of counts replace the dots.
    """
    metric = metric or primary_metric(result)
    values = analysed_values(result, metric)
    quantity = drawn_quantity(metric, list(values.values()))
    row_count, trial_count = len(values), sum(map(len, values.values()))
    panel = _Panel(
        result,
        metric,
        values,
        quantity,
        alt.X("x:Q", scale=quantity_scale(quantity), axis=quantity_axis(quantity, 8)),
        alt.Y("y:Q", scale=plain_scale(0.5 - row_count, _NAME_Y + _STRIP_HEIGHT / 2), axis=None),
    )
    notes = panel.notes()
    if trial_count > max_dots:
        notes.insert(
            0, f"{trial_count} trials are too many for a dot each: bars show their counts."
        )
    return frame(
        [
            panel.name_strips(),
            *panel.hills(),
            *(panel.bars() if trial_count > max_dots else panel.dots()),
            *panel.edge_arrows(),
            *panel.medians(),
            *panel.modes(),
            *panel.name_labels(),
        ],
        title=f"Distribution of the {quantity.name}",
        notes=notes,
        description=panel.describe(),
        height=ROW_HEIGHT * max(row_count, 1),
    )


class _Panel(Struct, frozen=True):
    """Drawing area with a row for each condition."""

    result: ResultDocument
    metric: str
    values_by_condition: dict[str, list[float]]
    quantity: DrawnQuantity
    x: alt.X
    """Axis of the values."""
    y: alt.Y
    """Axis of the rows: the condition with the index n is at -n."""

    def density_of(self, values: list[float]) -> tuple[Floats, Floats] | None:
        """Estimate the density of values in the drawn range; ``None`` for too few values."""
        quantity = self.quantity
        coordinates = np.array([quantity.coordinate(quantity.clipped(value)) for value in values])
        low, high = quantity.coordinate(quantity.low), quantity.coordinate(quantity.high)
        return density(coordinates, low, high)

    def relative_density(self, values: list[float]) -> Callable[[float], float]:
        """Return the density of trials as a function of a value; the maximum density is 1."""
        quantity, hill = self.quantity, self.density_of(values)
        if hill is None:
            return lambda value: _UNKNOWN_DENSITY
        return lambda value: float(np.interp(quantity.coordinate(quantity.scaled(value)), *hill))

    def draw(self, rows: Rows, mark: alt.MarkDef, **channels: Any) -> alt.Chart:
        """Draw rows with the fields ``x`` and ``y`` on the shared axes."""
        return layer(rows, mark, **{"x": self.x, "y": self.y, **channels})

    def analysed_trials(self) -> Iterator[tuple[TrialRow, int, float]]:
        """Yield each analysed trial with a value, the index of its condition, and the value."""
        names = list(self.values_by_condition)
        for _, trial, value in trials_with_values(self.result, self.metric):
            if trial.analysed and trial.condition in self.values_by_condition:
                yield trial, names.index(trial.condition), value

    def summaries(self) -> list[tuple[int, MetricSummary]]:
        """Return the index and the summary of each condition with a finite median."""
        return [
            (index, summary)
            for index, condition in enumerate(self.result.conditions)
            if (summary := condition.metrics.get(self.metric)) is not None
            and math.isfinite(summary.median)
        ]

    def hills(self) -> list[alt.Chart]:
        """Draw the density of each condition."""
        charts = []
        for index, values in enumerate(self.values_by_condition.values()):
            hill = self.density_of(values)
            if hill is None:
                continue
            rows: Rows = [
                {
                    "x": rounded(
                        math.exp(coordinate) if self.quantity.is_logarithmic else coordinate
                    ),
                    "y": round(_HILL_HEIGHT * height - index, 4),
                    "base": -index,
                }
                for coordinate, height in zip(*hill, strict=True)
            ]
            area = alt.MarkDef("area", color=color_of(index), opacity=0.35, line=False, aria=False)
            charts.append(self.draw(rows, area, y2="base:Q"))
        return charts

    def dots(self) -> list[alt.Chart]:
        """Draw each trial as a dot; where trials are dense, spread their dots vertically."""
        quantity = self.quantity
        rows: list[Rows] = [[] for _ in self.values_by_condition]
        densities = [self.relative_density(values) for values in self.values_by_condition.values()]
        for trial, index, value in self.analysed_trials():
            if math.isfinite(value) and not quantity.is_beyond(value):
                # Multiples of the golden ratio, modulo 1, are evenly spread.
                spread = (len(rows[index]) * _GOLDEN_RATIO) % 1.0 * densities[index](value)
                y = round(-index - _GAP_HEIGHT - _DOTS_HEIGHT * spread, 3)
                rows[index].append({"x": quantity.scaled(value), "y": y, "block": trial.block})
        tooltip = tooltips(("x:Q", quantity.title(), ".5~r"), ("block:Q", "block"))
        charts = []
        for index, dots in enumerate(rows):
            size = float(np.clip(6000 / max(len(dots), 1), 8, 36))
            mark = alt.MarkDef(
                "circle", color=color_of(index), size=size, opacity=0.7, clip=True, aria=False
            )
            charts += [self.draw(dots, mark, tooltip=tooltip)] if dots else []
        return charts

    def bars(self) -> list[alt.Chart]:
        """Draw the counts of trials in bins."""
        quantity = self.quantity
        low, high = quantity.coordinate(quantity.low), quantity.coordinate(quantity.high)
        charts = []
        for index, values in enumerate(self.values_by_condition.values()):
            drawn_values = [
                quantity.scaled(value) for value in values if not quantity.is_beyond(value)
            ]
            coordinates = [quantity.coordinate(value) for value in drawn_values]
            counts, edges = np.histogram(coordinates, bins=BIN_COUNT, range=(low, high))
            bin_ends = np.exp(edges) if quantity.is_logarithmic else edges
            top = -index - _GAP_HEIGHT
            rows: Rows = [
                {
                    "x": rounded(float(bin_ends[bin_index])),
                    "until": rounded(float(bin_ends[bin_index + 1])),
                    "y": top,
                    "base": round(
                        top - _DOTS_HEIGHT * int(counts[bin_index]) / int(counts.max()), 4
                    ),
                    "trials": int(counts[bin_index]),
                }
                for bin_index in np.flatnonzero(counts)
            ]
            bar = alt.MarkDef("rect", color=color_of(index), opacity=0.8, aria=False)
            charts.append(self.draw(rows, bar, x2="until:Q", y2="base:Q", tooltip=["trials:Q"]))
        return charts

    def edge_arrows(self) -> list[alt.Chart]:
        """Draw arrows at the edges, with the number of trials that timed out or lie beyond."""
        quantity = self.quantity
        edge_counts: Counter[tuple[int, bool, str]] = Counter()
        for _, index, value in self.analysed_trials():
            if quantity.is_beyond(value):
                kind = "timed out" if math.isinf(value) else "beyond"
                edge_counts[index, quantity.scaled(value) > quantity.high, kind] += 1
        charts = []
        for (index, is_right, kind), count in edge_counts.items():
            arrow = {
                "x": quantity.high if is_right else quantity.low,
                "y": -index + _HILL_HEIGHT * (0.5 if kind == "timed out" else 0.15),
                "text": f"{count} {kind} ▸" if is_right else f"◂ {count} {kind}",
            }
            align: Literal["right", "left"] = "right" if is_right else "left"
            mark = {"align": align, "fontSize": 12}
            charts += labels([arrow], "text:N", x=self.x, y=self.y, mark=mark)
        return charts

    def medians(self) -> list[alt.Chart]:
        """Draw the median of each condition with its interval."""
        quantity = self.quantity
        points: Rows = []
        bars: Rows = []
        for index, summary in self.summaries():
            points.append({"x": quantity.clipped(summary.median), "y": -index})
            low, high = summary.median_ci
            if low is None and high is None:
                continue
            bars.append(
                {
                    "x": quantity.low if low is None else quantity.clipped(low),
                    "until": quantity.high if high is None else quantity.clipped(high),
                    "y": -index,
                }
            )
        if not points:
            return []
        median = point(60, style="median")
        return [
            self.draw(bars, rule(style="median-interval"), x2="until:Q"),
            self.draw(points, median, tooltip=tooltips(("x:Q", "median", ".5~r"))),
        ]

    def modes(self) -> list[alt.Chart]:
        """Draw the position and the share of each mode, if there are several modes."""
        summaries = [condition.metrics.get(self.metric) for condition in self.result.conditions]
        rows: Rows = [
            {
                "x": self.quantity.clipped(mode.value),
                "y": _HILL_HEIGHT - index,
                "text": f"{mode.share:.0%} ▾" if number == 0 else f"▾ {mode.share:.0%}",
                "first": number == 0,
            }
            for index, summary in enumerate(summaries)
            if summary is not None and len(summary.modes) > 1
            for number, mode in enumerate(summary.modes)
        ]
        # The text of the lowest mode is left of the mode, so that texts of near modes do not touch.
        sides: tuple[tuple[bool, Literal["right", "left"], int], ...] = (
            (True, "right", 5),
            (False, "left", -5),
        )
        return [
            chart
            for is_first, align, offset in sides
            if (side_rows := [row for row in rows if row["first"] is is_first])
            for chart in labels(
                side_rows,
                "text:N",
                x=self.x,
                y=self.y,
                mark={"fontSize": 11, "dy": -6, "dx": offset, "align": align},
            )
        ]

    def name_strips(self) -> alt.Chart:
        """Draw strips behind the names; the strips hide the grid."""
        return label_strips(self.names_with_positions(), self.y)

    def name_labels(self) -> list[alt.Chart]:
        """Write the name of each condition above its row."""
        mark = {"align": "left", "limit": alt.ExprRef("width - 8")}
        return labels(self.names_with_positions(), "text:N", x=alt.value(4), y=self.y, mark=mark)

    def names_with_positions(self) -> Rows:
        """Return the position and the name of each condition."""
        return [
            {"y": _NAME_Y - index, "text": name if values else f"{name} (no trial to show)"}
            for index, (name, values) in enumerate(self.values_by_condition.items())
        ]

    def notes(self) -> list[str]:
        """Return the notes on unknown values and on the scale."""
        notes = []
        known_count = sum(
            row.analysed for _, row, _ in trials_with_values(self.result, self.metric)
        )
        unknown_count = sum(row.analysed for row in self.result.trials) - known_count
        if unknown_count:
            notes.append(f"{unknown_count} analysed trials have no known {self.quantity.name}.")
        if self.quantity.is_logarithmic:
            notes.append("The axis is logarithmic: the conditions lie far apart.")
        return notes

    def describe(self) -> str:
        """Return the medians as text, for readers who cannot see the chart."""
        sentences = []
        for index, summary in self.summaries():
            condition = self.result.conditions[index]
            median = f"median {self.quantity.scaled(summary.median):g} {self.quantity.unit}"
            sentences.append(f"{condition.name}: {median.strip()}, {condition.trials} trials")
        return f"Distribution of the {self.quantity.name} by condition. " + "; ".join(sentences)
