"""Distributions side by side: every trial a dot, the density, the median and its interval."""

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
from equipoise.figures.quantity import Quantity, quantity_of, rounded
from equipoise.figures.values import (
    EVERY_TRIAL,
    analysed_values,
    known_values,
    primary_metric,
)
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
from equipoise.shared.theme import LABEL_STRIP, color_of

HOW_TO_READ = (
    "Each dot is one trial, and the hill above shows where trials are dense (all hills have the "
    "same height). The ring is the median, the thick bar its interval. Where there are several "
    "modes, each has a ▾ and its share of the trials. Further left is less."
)

ROW_HEIGHT = 112
BINS = 80
_HILL = 0.40
_DOTS = 0.34
_GAP = 0.07
_LABEL_AT = 0.5
_STRIP = LABEL_STRIP / ROW_HEIGHT
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0

Floats = NDArray[np.float64]


def distributions(
    document: ResultDocument, metric: str | None = None, *, every_trial: int = EVERY_TRIAL
) -> alt.LayerChart:
    """Draw the analysed trials of every condition on one axis, by default of the primary metric.

    Bars of counts replace more than ``every_trial`` dots.
    """
    metric = metric or primary_metric(document)
    values = analysed_values(document, metric)
    quantity = quantity_of(metric, list(values.values()))
    rows, count = len(values), sum(len(group) for group in values.values())
    panel = _Panel(
        document,
        metric,
        values,
        quantity,
        alt.X("x:Q", scale=quantity_scale(quantity), axis=quantity_axis(quantity, 8)),
        alt.Y("y:Q", scale=plain_scale(0.5 - rows, _LABEL_AT + _STRIP / 2), axis=None),
    )
    notes = panel.notes()
    if count > every_trial:
        notes.insert(0, f"{count} trials are too many for a dot each: bars show their counts.")
    return frame(
        [
            panel.name_strips(),
            *panel.hills(),
            *(panel.bars() if count > every_trial else panel.dots()),
            *panel.edges(),
            *panel.medians(),
            *panel.modes(),
            *panel.names(),
        ],
        title=f"Distribution of the {quantity.name}",
        notes=notes,
        description=panel.describe(),
        height=ROW_HEIGHT * max(rows, 1),
    )


class _Panel(Struct, frozen=True):
    """The values of each condition, a row each, and the axes that all layers share."""

    document: ResultDocument
    metric: str
    values: dict[str, list[float]]
    quantity: Quantity
    x: alt.X
    y: alt.Y

    def density(self, group: list[float]) -> tuple[Floats, Floats] | None:
        """Estimate the density of a group of values over the drawn range."""
        quantity = self.quantity
        places = np.array([quantity.place(quantity.clipped(value)) for value in group])
        return density(places, quantity.place(quantity.low), quantity.place(quantity.high))

    def crowding(self, group: list[float]) -> Callable[[float], float]:
        """Return a function that gives the density of trials around a value, from 0 to 1."""
        quantity, hill = self.quantity, self.density(group)
        if hill is None:
            return lambda value: 0.6
        return lambda value: float(np.interp(quantity.place(quantity.scaled(value)), *hill))

    def draw(self, rows: Rows, mark: alt.MarkDef, **channels: Any) -> alt.Chart:
        """Draw rows of ``x`` and ``y`` on the shared axes."""
        return layer(rows, mark, **{"x": self.x, "y": self.y, **channels})

    def analysed(self) -> Iterator[tuple[TrialRow, int, float]]:
        """Return each analysed trial of the plan with a value, and its condition's row."""
        names = list(self.values)
        for _, trial, value in known_values(self.document, self.metric):
            if trial.analysed and trial.condition in self.values:
                yield trial, names.index(trial.condition), value

    def summaries(self) -> list[tuple[int, MetricSummary]]:
        """Return the row and the summary of each condition with a finite median."""
        return [
            (index, summary)
            for index, condition in enumerate(self.document.conditions)
            if (summary := condition.metrics.get(self.metric)) is not None
            and math.isfinite(summary.median)
        ]

    def hills(self) -> list[alt.Chart]:
        """Draw the density of each condition."""
        charts = []
        for index, group in enumerate(self.values.values()):
            hill = self.density(group)
            if hill is None:
                continue
            rows: Rows = [
                {
                    "x": rounded(math.exp(place) if self.quantity.logarithmic else place),
                    "y": round(_HILL * height - index, 4),
                    "base": -index,
                }
                for place, height in zip(*hill, strict=True)
            ]
            area = alt.MarkDef("area", color=color_of(index), opacity=0.35, line=False, aria=False)
            charts.append(self.draw(rows, area, y2="base:Q"))
        return charts

    def dots(self) -> list[alt.Chart]:
        """Draw each trial as a dot, spread where trials are dense."""
        quantity = self.quantity
        rows: list[Rows] = [[] for _ in self.values]
        crowding = [self.crowding(group) for group in self.values.values()]
        for trial, index, value in self.analysed():
            if math.isfinite(value) and not quantity.beyond(value):
                # Golden-ratio steps spread neighbours in time evenly, without a random source.
                spread = (len(rows[index]) * _GOLDEN) % 1.0 * crowding[index](value)
                y = round(-index - _GAP - _DOTS * spread, 3)
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
        low, high = quantity.place(quantity.low), quantity.place(quantity.high)
        charts = []
        for index, group in enumerate(self.values.values()):
            places = [quantity.place(quantity.scaled(v)) for v in group if not quantity.beyond(v)]
            counts, edges = np.histogram(places, bins=BINS, range=(low, high))
            ends = np.exp(edges) if quantity.logarithmic else edges
            top = -index - _GAP
            rows: Rows = [
                {
                    "x": rounded(float(ends[bin_])),
                    "until": rounded(float(ends[bin_ + 1])),
                    "y": top,
                    "base": round(top - _DOTS * int(counts[bin_]) / int(counts.max()), 4),
                    "trials": int(counts[bin_]),
                }
                for bin_ in np.flatnonzero(counts)
            ]
            bar = alt.MarkDef("rect", color=color_of(index), opacity=0.8, aria=False)
            charts.append(self.draw(rows, bar, x2="until:Q", y2="base:Q", tooltip=["trials:Q"]))
        return charts

    def edges(self) -> list[alt.Chart]:
        """Draw trials that lie beyond the axis or timed out as arrows at its edge."""
        quantity = self.quantity
        numbers: Counter[tuple[int, bool, str]] = Counter()
        for _, index, value in self.analysed():
            if quantity.beyond(value):
                kind = "timed out" if math.isinf(value) else "beyond"
                numbers[index, quantity.scaled(value) > quantity.high, kind] += 1
        charts = []
        for (index, right, kind), number in numbers.items():
            arrow = {
                "x": quantity.high if right else quantity.low,
                "y": -index + _HILL * (0.5 if kind == "timed out" else 0.15),
                "words": f"{number} {kind} ▸" if right else f"◂ {number} {kind}",
            }
            align: Literal["right", "left"] = "right" if right else "left"
            mark = {"align": align, "fontSize": 12}
            charts += labels([arrow], "words:N", x=self.x, y=self.y, mark=mark)
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
        """Draw the position and the share of each mode, where there are several."""
        summaries = [condition.metrics.get(self.metric) for condition in self.document.conditions]
        rows: Rows = [
            {
                "x": self.quantity.clipped(mode.at),
                "y": _HILL - index,
                "words": f"{mode.share:.0%} ▾" if place == 0 else f"▾ {mode.share:.0%}",
                "first": place == 0,
            }
            for index, summary in enumerate(summaries)
            if summary is not None and len(summary.modes) > 1
            for place, mode in enumerate(summary.modes)
        ]
        # The lowest mode has its share to the left, so that near modes leave room for each other.
        sides: tuple[tuple[bool, Literal["right", "left"], int], ...] = (
            (True, "right", 5),
            (False, "left", -5),
        )
        return [
            chart
            for first, align, dx in sides
            if (side := [row for row in rows if row["first"] is first])
            for chart in labels(
                side,
                "words:N",
                x=self.x,
                y=self.y,
                mark={"fontSize": 11, "dy": -6, "dx": dx, "align": align},
            )
        ]

    def name_strips(self) -> alt.Chart:
        """Keep the grid out of the strips of the names."""
        return label_strips(self.named(), self.y)

    def names(self) -> list[alt.Chart]:
        """Write the name of each condition above its row."""
        mark = {"align": "left", "limit": alt.ExprRef("width - 8")}
        return labels(self.named(), "words:N", x=alt.value(4), y=self.y, mark=mark)

    def named(self) -> Rows:
        """Return the place and the name of each condition."""
        return [
            {"y": _LABEL_AT - index, "words": name if group else f"{name} (no trial to show)"}
            for index, (name, group) in enumerate(self.values.items())
        ]

    def notes(self) -> list[str]:
        """Return the notes that a reader needs to read the data."""
        lines = []
        known = sum(row.analysed for _, row, _ in known_values(self.document, self.metric))
        unknown = sum(row.analysed for row in self.document.trials) - known
        if unknown:
            lines.append(f"{unknown} analysed trials have no known {self.quantity.name}.")
        if self.quantity.logarithmic:
            lines.append("The axis is logarithmic: the conditions lie far apart.")
        return lines

    def describe(self) -> str:
        """Return the medians in words."""
        parts = []
        for index, summary in self.summaries():
            condition = self.document.conditions[index]
            median = f"median {self.quantity.scaled(summary.median):g} {self.quantity.unit}"
            parts.append(f"{condition.name}: {median.strip()}, {condition.trials} trials")
        return f"Distribution of the {self.quantity.name} by condition. " + "; ".join(parts)
