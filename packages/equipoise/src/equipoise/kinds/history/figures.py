"""Charts over commits: a history against its baseline, and an imported series.

The changes of a history have named marks above the curve, in rows, so that names overlap neither
each other nor a line. A series has its values, its levels, and marks at its suspicions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import altair as alt
from msgspec.structs import replace

from equipoise.figures.building import (
    RATIO_TOOLTIPS,
    RatioAxis,
    count_axis,
    ratio_axis,
)
from equipoise.figures.gallery import Figure, FiguresKind, Sequences
from equipoise.figures.quantity import extent, metric_name, rounded
from equipoise.kinds.history.terms import (
    HistoryDocument,
    HistoryResult,
    HistoryRevision,
    history_of_values,
)
from equipoise.model.metrics import is_time
from equipoise.model.quantities import counted
from equipoise.model.revisions import short_name
from equipoise.model.series import ImportedSeries, shown_commit
from equipoise.shared.chart_parts import (
    Rows,
    color_and_shape,
    frame,
    labels,
    layer,
    plain_scale,
    point,
    rule,
    tooltips,
    top_legend,
)
from equipoise.shared.theme import color_of

HOW_TO_READ = (
    "Each bar is a commit that ran side by side with the baseline. The mark is the ratio and the "
    "bar its interval; all intervals hold together. A triangle with a line is a certain change: "
    "the commit that made it, or a shaded range of commits. Within the grey strip the difference "
    "is too small to matter."
)
_MANY_COMMITS = 80
"""Number of commits from which on bars and marks are small."""
_CURVE, _CHANGE = 0, 1
"""Places of the two colours in the palette."""
_UP, _DOWN = 3, 5
"""Places of the two shapes in the list of shapes."""
_MEASURED = "commit over the baseline"
_COMMIT = (("commit:N",), ("subject:N",), ("author:N",), ("date:N",))
_NOT_BUILT_AT, _SUSPICIONS_AT = 8, 22
"""Distances of the marks from the lower edge, in pixels."""
HEIGHT = 260
"""Pixels of a chart."""
LOWER_EDGE = alt.value(HEIGHT)
"""Lower edge of a chart."""
NAME_LETTERS = 7
"""Letters of a commit's name next to its mark, as in ``git log --oneline``."""
_LANE_HEIGHT = 18
"""Height of a row of names, in pixels."""
_MAX_LANES = 4
_NAME_WIDTH = 0.28
"""Width of a name on a phone, as a fraction of the axis of commits."""
_GAP = 7
"""Distance between the centre of a mark and its line, in pixels."""


def history(result: HistoryResult) -> alt.LayerChart:
    """Draw the curve over the commits, and the changes.

    Ratios are of values, not of costs, if more of the metric is better.
    """
    revisions = [revision for revision in result.revisions if revision.ratio is not None]
    places = {revision.commit: revision.place for revision in result.revisions}
    marks = list(_marks(result, places))
    axis = ratio_axis(
        extent([(revision.ratio, revision.ratio_ci) for revision in revisions]),
        result.min_effect,
    )
    last = max([1, *places.values()]) + 0.5
    x = count_axis("place", -0.5, end_of_axis(marks, last), "commits after the baseline")
    name = metric_name(result.metric)
    stretched_axis = _stretched(axis, stretch_for(marks))
    y = stretched_axis.channel(alt.Y, f"{name} against {result.baseline.asked}")
    kinds = list(dict.fromkeys(mark["kind"] for mark in marks))
    color, shape = color_and_shape(
        "kind",
        [_MEASURED, *kinds],
        [_CURVE, *(_CHANGE for _ in kinds)],
        top_legend(labelLimit=300, columns=2),
        [0, *(_UP if kind in _kinds(result)[:1] else _DOWN for kind in kinds)],
    )
    curve = [_point(axis, revision) for revision in revisions]
    suspicions = list(_suspicions(result.series, places))
    is_many = len(curve) > _MANY_COMMITS
    tooltip = tooltips(*_COMMIT, *RATIO_TOOLTIPS, ("blocks:Q",), ("era:O",))
    line = rule(1.5, color=color_of(_CHANGE), aria=False)
    stretch = alt.MarkDef("rect", color=color_of(_CHANGE), opacity=0.13, aria=False)
    band = alt.MarkDef("area", color=color_of(_CURVE), opacity=0.15, aria=False)
    bar = rule(1 if is_many else 3, color=color_of(_CURVE))
    channels = {"color": color, "shape": shape}
    layers = [
        *axis.landmarks(result.min_effect, y),
        *lines(
            [mark for mark in marks if mark["is_range"]],
            lambda rows, top: layer(rows, stretch, x=x, x2="after:Q", y=top, y2=LOWER_EDGE),
        ),
        *lines(marks, lambda rows, top: layer(rows, line, x=x, y=top, y2=LOWER_EDGE)),
        layer(curve, band, x=x, y=y, y2="high:Q"),
        layer(curve, bar, x=x, y=y, y2="high:Q", tooltip=tooltip),
        layer(curve, point(20 if is_many else 50), x=x, y="ratio:Q", tooltip=tooltip, **channels),
        layer(
            [_commit(revision) for revision in result.revisions if revision.status == "not built"],
            point(50, shape="cross", angle=45, color=color_of(5)),
            x=x,
            y=alt.value(HEIGHT - _NOT_BUILT_AT),
            tooltip=tooltips(("commit:N", "not built"), *_COMMIT[1:]),
        ),
        layer(
            suspicions,
            point(90, shape="diamond", color=SERIES_COLOR, filled=False, strokeWidth=2),
            x=x,
            y=alt.value(HEIGHT - _SUSPICIONS_AT),
            tooltip=SUSPICION_TOOLTIPS,
        ),
        *names(
            marks,
            x,
            lambda rows, at: layer(
                rows, point(80), x=x, y=at, tooltip=_CHANGE_TOOLTIPS, **channels
            ),
        ),
    ]
    measured = f"{counted(len(curve) - 1, 'commit')} against {result.baseline.label}"
    return frame(
        layers,
        title=f"{name[:1].upper()}{name[1:]} over the commits since {result.baseline.asked}",
        notes=list(_notes(result, axis, marks, suspicions)),
        description=f"Ratio of the {name} of {measured}, with intervals. {result.summary}",
        height=HEIGHT,
    )


_CHANGE_TOOLTIPS = tooltips(
    ("what:N", "change"),
    *_COMMIT[1:],
    *((f"{field}:Q", f"{field}, in %", "+.3~r") for field in ("change", "least", "most")),
)


def _kinds(result: HistoryResult) -> tuple[str, str]:
    """Return the names of the two kinds of changes: up, and down."""
    words = ("slower", "faster") if is_time(result.metric) else ("higher", "lower")
    return f"change: {words[0]}", f"change: {words[1]}"


def _stretched(axis: RatioAxis, stretch: float) -> RatioAxis:
    """Return an axis with free space at its upper end."""
    if axis.in_percent:
        return replace(axis, high=axis.low + stretch * (axis.high - axis.low))
    return replace(axis, high=axis.low * (axis.high / axis.low) ** stretch)


def _marks(result: HistoryResult, places: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Yield a mark for each change whose commit is drawn, with the row of its name."""
    drawn = [change for change in result.changes if change.until in places]
    lanes = lanes_of([places[change.until] for change in drawn], max([1, *places.values()]))
    for change, lane in zip(drawn, lanes, strict=True):
        until, (low, high) = places[change.until], change.ratio_ci
        yield {
            "place": until,
            "after": places.get(change.after, until - change.commits),
            "is_range": not change.confirmed,
            "lane": lane,
            "kind": _kinds(result)[(change.ratio or 1.0) < 1.0],
            "label": change.until[:NAME_LETTERS]
            if change.confirmed
            else f"{change.commits} commits",
            "what": change.summary,
            "subject": change.subject,
            "author": change.author,
            "date": change.date[:10],
            **{
                field: None if ratio is None else rounded(100.0 * (ratio - 1.0))
                for field, ratio in (("change", change.ratio), ("least", low), ("most", high))
            },
        }


def _point(axis: RatioAxis, revision: HistoryRevision) -> dict[str, Any]:
    return {
        **_commit(revision),
        "kind": _MEASURED,
        **axis.coordinates(revision.ratio, revision.ratio_ci),
        "blocks": revision.blocks,
        "era": revision.era,
    }


def _commit(revision: HistoryRevision) -> dict[str, Any]:
    return {
        "place": revision.place,
        "commit": short_name(revision.commit),
        "subject": revision.subject,
        "author": revision.author,
        "date": revision.date[:10],
    }


def _suspicions(
    series: Sequence[ImportedSeries], places: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    """Yield the suspicions about commits of the curve; a file may have the start of a name."""
    for each in series:
        for suspicion in each.suspicions:
            commit = each.points[suspicion.place].commit
            matching_places = [place for name, place in places.items() if name.startswith(commit)]
            if len(matching_places) == 1:
                yield {
                    "place": matching_places[0],
                    "what": f"{each.benchmark}, {each.tool}",
                    "summary": suspicion.summary,
                    "confirm": suspicion.confirm,
                }


def _notes(result: HistoryResult, axis: RatioAxis, marks: Rows, suspicions: Rows) -> Iterator[str]:
    yield from axis.edge_note(
        revision.ratio_ci for revision in result.revisions if revision.ratio is not None
    )
    if waiting := sum(revision.status == "waiting" for revision in result.revisions):
        yield f"Not measured yet: {counted(waiting, 'commit')} of the curve."
    if any(revision.status == "not built" for revision in result.revisions):
        yield "A grey cross is a commit that does not build or run."
    if suspicions:
        yield "A hollow diamond is a suspicion: a series of another tool may change there."
    if nameless := sum(not has_name(mark) for mark in marks):
        yield f"There is no room for the name of {counted(nameless, 'change')}."


def lanes_of(places: Sequence[float], length: float) -> list[int]:
    """Return the row of each name above the curve, 0 for the topmost.

    A name is to the right of its mark, and a line goes down from the mark. A name that would
    overlap an earlier name gets the row below it. Below the last row of names a mark has no name.
    Places are in ascending order.
    """
    width = _NAME_WIDTH * length / (1.0 - _NAME_WIDTH)
    rows: list[int] = []
    for place in places:
        overlapped = [
            row
            for before, row in zip(places, rows, strict=False)
            if place - before < width and row < _MAX_LANES
        ]
        rows.append(min(1 + max(overlapped, default=-1), _MAX_LANES))
    return rows


def has_name(mark: dict[str, Any]) -> bool:
    """Return whether there is room for the name of a mark."""
    return bool(mark["lane"] < _MAX_LANES)


def end_of_axis(marks: Rows, last: float) -> float:
    """Return the end of an axis up to ``last`` with enough room for the names of its marks."""
    places = [float(mark["place"]) for mark in marks if has_name(mark)]
    return max([last, *(place / (1.0 - _NAME_WIDTH) for place in places)])


def stretch_for(marks: Rows) -> float:
    """Return the factor that stretches the vertical axis, so that the rows fit above the curve."""
    lanes = 1 + max((mark["lane"] for mark in marks), default=-1)
    return HEIGHT / (HEIGHT - _LANE_HEIGHT * lanes)


def lines(marks: Rows, draw: Callable[[Rows, Any], alt.Chart]) -> Iterator[alt.Chart]:
    """Draw the lines from each mark down to ``LOWER_EDGE``; ``draw`` gets a row and its top."""
    for lane, members in _by_lane(marks):
        yield draw(members, alt.value(_LANE_HEIGHT * (lane + 0.5) + _GAP))


def names(marks: Rows, x: alt.X, draw: Callable[[Rows, Any], alt.Chart]) -> Iterator[alt.Chart]:
    """Draw each mark in its row, with its field ``label`` next to it; call it after ``lines``."""
    for lane, members in _by_lane(marks):
        place = alt.value(_LANE_HEIGHT * (lane + 0.5))
        yield draw(members, place)
        if lane < _MAX_LANES:
            yield from labels(members, "label:N", x=x, y=place, mark={"align": "left", "dx": 9})


def _by_lane(marks: Rows) -> Iterator[tuple[int, Rows]]:
    ordered = sorted(marks, key=lambda mark: mark["lane"])
    for lane, members in itertools.groupby(ordered, key=lambda mark: mark["lane"]):
        yield lane, list(members)


HOW_TO_READ_SERIES = (
    "Each point is a commit, as another tool measured it on some day; the lines are levels. A "
    "hollow diamond is a suspicion: the level may have changed within the grey band, because of "
    "the program or of the machine. Only a measurement side by side can decide that."
)
SERIES_COLOR = color_of(2)
"""Colour of values that were not measured side by side."""
SUSPICION_MARK = point(110, shape="diamond", color=SERIES_COLOR, filled=False, strokeWidth=2)
"""Mark of a suspicion."""
SUSPICION_TOOLTIPS = tooltips(
    ("what:N", "suspicion"), ("summary:N",), ("confirm:N", "to confirm it")
)
"""Tooltip of a suspicion."""
_MARGIN = 0.08
"""Free space above and below the values, as a fraction of their range."""


def series(imported: ImportedSeries) -> alt.LayerChart:
    """Draw the values of a series in the order of its commits; at least one."""
    values = [at.value for at in imported.points]
    low, high = min(values), max(values)
    margin = _MARGIN * (high - low or high)
    scale = plain_scale(rounded(low - margin), rounded(high + margin))
    title = f"{imported.metric}, in {imported.unit}" if imported.unit else imported.metric
    x = count_axis("place", 0.5, len(values) + 0.5, "commit, in the order of the series")
    y = alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(format="~s"))
    points = [
        {
            "place": place,
            "value": rounded(at.value),
            "commit": shown_commit(at.commit),
            "date": (at.date or "")[:10],
        }
        for place, at in enumerate(imported.points, start=1)
    ]
    suspicions = list(_suspicions_in(imported))
    tooltip = tooltips(("commit:N",), ("date:N",), ("value:Q", title, "~s"))
    layers = [
        layer(suspicions, alt.MarkDef("rect", style="negligible"), x=x, x2="last:Q"),
        layer(list(_levels(imported)), rule(1.5, color=SERIES_COLOR), x=x, x2="until:Q", y=y),
        layer(points, point(30, color=SERIES_COLOR), x=x, y=y, tooltip=tooltip),
        layer(suspicions, SUSPICION_MARK, x=alt.X("at:Q"), y=y, tooltip=SUSPICION_TOOLTIPS),
    ]
    setting = f" ({imported.setting})" if imported.setting else ""
    return frame(
        layers,
        title=f"{imported.benchmark}{setting}",
        notes=[f"From {imported.tool}: {imported.source}. Not measured side by side."],
        description=f"Series of another tool, not measured side by side. {imported.summary}",
        height=HEIGHT,
    )


def _suspicions_in(series: ImportedSeries) -> Iterator[dict[str, Any]]:
    """Yield each suspicion: its band, from the first place to the last, and its best place."""
    for suspicion in series.suspicions:
        yield {
            "place": suspicion.first + 1,
            "last": suspicion.last + 1,
            "at": suspicion.place + 1,
            "value": rounded(suspicion.before * suspicion.ratio),
            "what": shown_commit(series.points[suspicion.place].commit),
            "summary": suspicion.summary,
            "confirm": suspicion.confirm,
        }


def _levels(series: ImportedSeries) -> Iterator[dict[str, Any]]:
    """Yield a line for each level; a series without suspicions has none."""
    begin = 0.5
    for suspicion in series.suspicions:
        yield {"place": begin, "until": suspicion.place + 0.5, "value": rounded(suspicion.before)}
        begin = suspicion.place + 0.5
    if series.suspicions:
        last = series.suspicions[-1]
        level = rounded(last.before * last.ratio)
        yield {"place": begin, "until": len(series.points) + 0.5, "value": level}


class HistoryFigures(FiguresKind):
    """The figure of a history; its report draws the series of other tools."""

    def gallery(self, document: HistoryDocument, sequences: Sequences) -> Iterator[Figure]:
        """Draw the curve."""
        yield Figure("curve", HOW_TO_READ, self.chart(document))

    def chart(self, document: HistoryDocument) -> alt.LayerChart:
        """Draw the curve; ratios are of values where more is better."""
        return history(history_of_values(document.history, document.more_is_better))
