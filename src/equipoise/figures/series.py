"""Chart of an imported series: its values, the levels, and where the level may have changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt

from equipoise.figures.building import count_axis, frame, layer, plain_scale, point, rule, tooltips
from equipoise.figures.quantity import rounded
from equipoise.figures.theme import color_of
from equipoise.model.history import ImportedSeries, shown_commit

HOW_TO_READ = (
    "Each point is a commit, as another tool measured it on some day; the lines are levels. A "
    "hollow diamond is a suspicion: the level may have changed within the grey band, by the "
    "program or by the machine. Only a measurement side by side tells which."
)
COLOR = color_of(2)
"""Colour of what was not measured side by side."""
HOLLOW = point(110, shape="diamond", color=COLOR, filled=False, strokeWidth=2)
"""Mark of a suspicion."""
SUSPICION = tooltips(("what:N", "suspicion"), ("summary:N",), ("confirm:N", "to confirm it"))
"""What a reader sees at a suspicion."""
_MARGIN = 0.08
"""Part of the range of values that is left free above and below."""
_HEIGHT = 260


def series(one: ImportedSeries) -> alt.LayerChart:
    """Draw the values of a series in the order of its commits; at least one."""
    values = [at.value for at in one.points]
    low, high = min(values), max(values)
    room = _MARGIN * (high - low or high)
    scale = plain_scale(rounded(low - room), rounded(high + room))
    title = f"{one.metric}, in {one.unit}" if one.unit else one.metric
    x = count_axis("place", 0.5, len(values) + 0.5, "commit, in the order of the series")
    y = alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(format="~s"))
    points = [
        {
            "place": place,
            "value": rounded(at.value),
            "commit": shown_commit(at.commit),
            "date": (at.date or "")[:10],
        }
        for place, at in enumerate(one.points, start=1)
    ]
    suspicions = list(_suspicions(one))
    tooltip = tooltips(("commit:N",), ("date:N",), ("value:Q", title, "~s"))
    layers = [
        layer(suspicions, alt.MarkDef("rect", style="negligible"), x=x, x2="last:Q"),
        layer(list(_levels(one)), rule(1.5, color=COLOR), x=x, x2="until:Q", y=y),
        layer(points, point(30, color=COLOR), x=x, y=y, tooltip=tooltip),
        layer(suspicions, HOLLOW, x=alt.X("at:Q"), y=y, tooltip=SUSPICION),
    ]
    setting = f" ({one.setting})" if one.setting else ""
    return frame(
        layers,
        title=f"{one.benchmark}{setting}",
        notes=[f"From {one.tool}: {one.source}. Not measured side by side."],
        description=f"Series of another tool, not measured side by side. {one.summary}",
        height=_HEIGHT,
    )


def _suspicions(series: ImportedSeries) -> Iterator[dict[str, Any]]:
    """Yield each suspicion: its band, from the first place to the last, and its best place."""
    for one in series.suspicions:
        yield {
            "place": one.first + 1,
            "last": one.last + 1,
            "at": one.place + 1,
            "value": rounded(one.before * one.ratio),
            "what": shown_commit(series.points[one.place].commit),
            "summary": one.summary,
            "confirm": one.confirm,
        }


def _levels(series: ImportedSeries) -> Iterator[dict[str, Any]]:
    """Yield a line for each level; a series without suspicions has none."""
    begin = 0.5
    for one in series.suspicions:
        yield {"place": begin, "until": one.place + 0.5, "value": rounded(one.before)}
        begin = one.place + 0.5
    if series.suspicions:
        last = series.suspicions[-1]
        level = rounded(last.before * last.ratio)
        yield {"place": begin, "until": len(series.points) + 0.5, "value": level}
