"""Chart of a series of another tool over its commits, with suspicions as hollow marks."""

from __future__ import annotations

import statistics

import altair as alt

from equipoise.figures.building import (
    Rows,
    count_axis,
    frame,
    layer,
    linear,
    point,
    rule,
    tooltips,
)
from equipoise.figures.lanes import (
    END,
    HEIGHT,
    LETTERS,
    end_of_axis,
    lanes_of,
    lines,
    names,
    stretch_for,
)
from equipoise.figures.quantity import metric_name, rounded, unit_of
from equipoise.figures.theme import color_of
from equipoise.model.plan import short_name
from equipoise.model.quantities import counted
from equipoise.model.series import ImportedSeries

HOW_TO_READ = (
    "Values that another tool measured at different times: they may differ because the machine "
    "did. A hollow mark is a suspicion. Nothing is certain until both commits run side by side."
)
COLOR = color_of(2)
"""Colour of what was not measured side by side."""
_MANY = 80
"""Number of commits from which on marks are small."""
_MARGIN = 0.08
HOLLOW = point(90, shape="diamond", color=COLOR, filled=False, strokeWidth=2)
"""Mark of a suspicion."""
SUSPICION = tooltips(("what:N", "suspicion"), ("summary:N",), ("confirm:N", "to confirm it"))
"""What a reader sees at a suspicion."""


def series(one: ImportedSeries) -> alt.LayerChart:
    """Draw the values of a series in the order of its commits; at least one."""
    values = [each.value for each in one.points]
    divisor, known_unit = unit_of(one.metric, statistics.median(values))
    unit, name = known_unit or one.unit or "", metric_name(one.metric)
    rows: Rows = [
        {
            "place": place,
            "value": rounded(each.value / divisor),
            "commit": short_name(each.commit),
            "date": each.date or "unknown",
        }
        for place, each in enumerate(one.points)
    ]
    lanes = lanes_of([suspicion.place for suspicion in one.suspicions], len(rows))
    marks: Rows = [
        {
            "place": suspicion.place,
            "lane": lane,
            "label": suspicion.until[:LETTERS],
            "what": short_name(suspicion.until),
            "summary": suspicion.summary,
            "confirm": suspicion.confirm,
        }
        for suspicion, lane in zip(one.suspicions, lanes, strict=True)
    ]
    low, high = min(values) / divisor, max(values) / divisor
    margin = _MARGIN * (high - low) or _MARGIN * abs(high) or 1.0
    low, high = low - margin, high + margin
    title = f"{name}, in {unit}" if unit else name
    high = low + stretch_for(marks) * (high - low)
    y = linear(alt.Y, "value", low, high, title=title, tickCount=6)
    x = count_axis("place", -0.5, end_of_axis(marks, len(rows) - 0.5), "commits, in order")
    line = alt.MarkDef("line", color=COLOR, strokeWidth=1, opacity=0.6, aria=False)
    tooltip = tooltips(("commit:N",), ("date:N",), ("value:Q", title, ".5~r"))
    down = rule(1, strokeDash=[3, 3], color=COLOR, aria=False)
    layers = [
        layer(rows, line, x=x, y=y),
        layer(rows, point(16 if len(rows) > _MANY else 36, color=COLOR), x=x, y=y, tooltip=tooltip),
        *lines(marks, lambda here, top: layer(here, down, x=x, y=top, y2=END)),
        *names(marks, x, lambda here, at: layer(here, HOLLOW, x=x, y=at, tooltip=SUSPICION)),
    ]
    where = f" on {one.host}" if one.host else ""
    return frame(
        layers,
        title=f"{one.benchmark}, as another tool measured it",
        notes=[*filter(None, (f"{one.tool}{where}: {one.source}.", one.summary)), *one.notes],
        description=(
            f"The {name} of {one.benchmark} over {counted(len(rows), 'commit')}, not measured "
            f"side by side, with {counted(len(marks), 'suspicion')}."
        ),
        height=HEIGHT,
    )
