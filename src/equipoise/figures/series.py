"""Chart of an imported series: its values, the levels, and where the level may have changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt

from equipoise.figures.building import count_axis, frame, layer, plain_scale, point, rule, tooltips
from equipoise.figures.quantity import rounded
from equipoise.figures.theme import color_of
from equipoise.model.series import ImportedSeries, shown_commit

HOW_TO_READ = (
    "Each point is a commit, as another tool measured it on some day; the lines are levels. A "
    "hollow diamond is a suspicion: the level may have changed within the grey band, by the "
    "program or by the machine. Only a measurement side by side tells which."
)
VALUE_COLOR = color_of(2)
SUSPICION_COLOR = color_of(1)
"""Neither is the colour of what was measured side by side."""
_MARGIN = 0.08
"""Part of the range of values that is left free above and below."""
_HEIGHT = 260


def imported_series(series: ImportedSeries) -> alt.LayerChart:
    """Draw the values of a series in the order of its commits."""
    values = [one.value for one in series.points]
    low, high = min(values), max(values)
    room = _MARGIN * (high - low or high)
    unit = f", in {series.unit}" if series.unit else ""
    scale = plain_scale(rounded(low - room), rounded(high + room))
    axis = alt.Axis(format="~s")
    title = f"{series.metric}{unit}"
    x = count_axis("place", 0.5, len(values) + 0.5, "commit, in the order of the series")
    y = alt.Y("value:Q", title=title, scale=scale, axis=axis)
    points = [
        {
            "place": place,
            "value": rounded(one.value),
            "commit": shown_commit(one.commit),
            "date": (one.date or "")[:10],
        }
        for place, one in enumerate(series.points, start=1)
    ]
    suspicions = list(_suspicions(series))
    layers = [
        layer(suspicions, alt.MarkDef("rect", style="negligible"), x=x, x2="last:Q"),
        layer(list(_levels(series)), rule(1.5, color=VALUE_COLOR), x=x, x2="until:Q", y=y),
        layer(
            points,
            point(30, color=VALUE_COLOR),
            x=x,
            y=y,
            tooltip=tooltips(("commit:N",), ("date:N",), ("value:Q", title, "~s")),
        ),
        layer(
            suspicions,
            point(110, shape="diamond", filled=False, color=SUSPICION_COLOR, strokeWidth=2),
            x=alt.X("at:Q"),
            y=y,
            tooltip=tooltips(("summary:N", "suspicion"), ("confirm:N", "to confirm")),
        ),
    ]
    setting = f" ({series.setting})" if series.setting else ""
    return frame(
        layers,
        title=f"{series.benchmark}{setting}",
        notes=[f"From {series.tool}: {series.source}. Not measured side by side."],
        description=f"Imported series. {series.summary}",
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
