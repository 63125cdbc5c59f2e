"""Draw two charts over commits: a history against its baseline, and an imported series.

The changes of a history have labelled marks above the curve, in several rows (lanes), so that
labels do not overlap. The chart of a series shows values, levels, and marks at suspicions. In the
data of both charts, ``place`` is the position of a commit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import altair as alt
from msgspec.structs import replace

from equipoise.figures.building import RATIO_TOOLTIPS, RatioAxis, count_axis, ratio_axis
from equipoise.figures.gallery import ConfidenceSequences, Figure, KindFigures
from equipoise.figures.quantity import metric_name, rounded, values_on_axis
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
_MAX_LARGE_MARKS = 80
"""Maximum number of commits with large bars and marks."""
_CURVE_COLOR, _CHANGE_COLOR, _NOT_BUILT_COLOR = 0, 1, 5
"""Indices of the colours in the palette of `color_of`."""
_UP_SHAPE, _DOWN_SHAPE = 3, 5
"""Indices of the two triangles in the list of shapes."""
_CURVE_LEGEND = "commit over the baseline"
"""Legend of the marks of the curve."""
_COMMIT_FIELDS = (("commit:N",), ("subject:N",), ("author:N",), ("date:N",))
_NOT_BUILT_DISTANCE, _SUSPICION_DISTANCE = 8, 22
"""Distances of the marks from the lower edge, in pixels."""
HEIGHT = 260
"""Height of a chart, in pixels."""
LOWER_EDGE = alt.value(HEIGHT)
"""Vertical position of the lower edge of a chart."""
HASH_LETTERS = 7
"""Number of letters of a hash next to a mark, as in ``git log --oneline``."""
_LANE_HEIGHT = 18
"""Height of a row of labels, in pixels."""
_MAX_LANES = 4
"""Maximum number of rows of labels."""
_LABEL_WIDTH = 0.28
"""Width of a label on a phone, as a fraction of the axis of commits."""
_MARK_RADIUS = 7
"""Distance between the centre of a mark and its line, in pixels."""


def history_chart(result: HistoryResult) -> alt.LayerChart:
    """Draw the curve over the commits, and the changes.

    If more of the metric is better, ``result`` has ratios of values instead of costs. The layers,
    from back to front, are: the strip of negligible ratios, the ranges and lines of changes, the
    curve, the commits that are not built, the suspicions, and the marks of changes.
    """
    revisions = [revision for revision in result.revisions if revision.ratio is not None]
    indices = {revision.commit: revision.place for revision in result.revisions}
    marks = list(_change_marks(result, indices))
    axis = ratio_axis(
        values_on_axis([(revision.ratio, revision.ratio_ci) for revision in revisions]),
        result.min_effect,
    )
    last_x = max([1, *indices.values()]) + 0.5
    x = count_axis("place", -0.5, end_of_axis(marks, last_x), "commits after the baseline")
    metric = metric_name(result.metric)
    y_axis = _with_space_above(axis, stretch_for_lanes(marks))
    y = y_axis.channel(alt.Y, f"{metric} against {result.baseline.typed_name}")
    drawn_legends = list(dict.fromkeys(mark["kind"] for mark in marks))
    legend_up, _ = _change_legends(result)
    color, shape = color_and_shape(
        "kind",
        [_CURVE_LEGEND, *drawn_legends],
        [_CURVE_COLOR, *(_CHANGE_COLOR for _ in drawn_legends)],
        top_legend(labelLimit=300, columns=2),
        [0, *(_UP_SHAPE if text == legend_up else _DOWN_SHAPE for text in drawn_legends)],
    )
    curve_rows = [_curve_row(axis, revision) for revision in revisions]
    suspicions = list(_suspicion_rows(result.imported_series, indices))
    has_small_marks = len(curve_rows) > _MAX_LARGE_MARKS
    tooltip = tooltips(*_COMMIT_FIELDS, *RATIO_TOOLTIPS, ("blocks:Q",), ("era:O",))
    line_mark = rule(1.5, color=color_of(_CHANGE_COLOR), aria=False)
    range_mark = alt.MarkDef("rect", color=color_of(_CHANGE_COLOR), opacity=0.13, aria=False)
    band_mark = alt.MarkDef("area", color=color_of(_CURVE_COLOR), opacity=0.15, aria=False)
    bar_mark = rule(1 if has_small_marks else 3, color=color_of(_CURVE_COLOR))
    curve_mark = point(20 if has_small_marks else 50)
    unbuildable = [revision for revision in result.revisions if revision.status == "not built"]
    channels = {"color": color, "shape": shape}
    layers = [
        *axis.reference_marks(result.min_effect, y),
        *draw_lines(
            [mark for mark in marks if mark["is_range"]],
            lambda rows, top: layer(rows, range_mark, x=x, x2="after:Q", y=top, y2=LOWER_EDGE),
        ),
        *draw_lines(marks, lambda rows, top: layer(rows, line_mark, x=x, y=top, y2=LOWER_EDGE)),
        layer(curve_rows, band_mark, x=x, y=y, y2="high:Q"),
        layer(curve_rows, bar_mark, x=x, y=y, y2="high:Q", tooltip=tooltip),
        layer(curve_rows, curve_mark, x=x, y="ratio:Q", tooltip=tooltip, **channels),
        layer(
            list(map(_commit_row, unbuildable)),
            point(50, shape="cross", angle=45, color=color_of(_NOT_BUILT_COLOR)),
            x=x,
            y=alt.value(HEIGHT - _NOT_BUILT_DISTANCE),
            tooltip=tooltips(("commit:N", "not built"), *_COMMIT_FIELDS[1:]),
        ),
        layer(
            suspicions,
            point(90, shape="diamond", color=SERIES_COLOR, filled=False, strokeWidth=2),
            x=x,
            y=alt.value(HEIGHT - _SUSPICION_DISTANCE),
            tooltip=SUSPICION_TOOLTIPS,
        ),
        *draw_marks(
            marks,
            x,
            lambda rows, height: layer(
                rows, point(80), x=x, y=height, tooltip=_CHANGE_TOOLTIPS, **channels
            ),
        ),
    ]
    subject = f"{counted(len(curve_rows) - 1, 'commit')} against {result.baseline.label}"
    metric_title = f"{metric[:1].upper()}{metric[1:]}"
    return frame(
        layers,
        title=f"{metric_title} over the commits since {result.baseline.typed_name}",
        notes=list(_notes(result, axis, marks, suspicions)),
        description=f"Ratio of the {metric} of {subject}, with intervals. {result.summary}",
        height=HEIGHT,
    )


_CHANGE_TOOLTIPS = tooltips(
    ("what:N", "change"),
    *_COMMIT_FIELDS[1:],
    *((f"{field}:Q", f"{field}, in %", "+.3~r") for field in ("change", "least", "most")),
)


def _change_legends(result: HistoryResult) -> tuple[str, str]:
    """Return the legends of the changes up and of the changes down."""
    up, down = ("slower", "faster") if is_time(result.metric) else ("higher", "lower")
    return f"change: {up}", f"change: {down}"


def _with_space_above(axis: RatioAxis, stretch: float) -> RatioAxis:
    """Return a longer axis, with free space at the upper end; ``stretch`` is the factor."""
    if axis.in_percent:
        return replace(axis, high=axis.low + stretch * (axis.high - axis.low))
    return replace(axis, high=axis.low * (axis.high / axis.low) ** stretch)


def _change_marks(result: HistoryResult, indices: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Yield a mark for each change of a drawn commit."""
    legend_up, legend_down = _change_legends(result)
    changes = [change for change in result.changes if change.later_hash in indices]
    lanes = lanes_of(
        [indices[change.later_hash] for change in changes], max([1, *indices.values()])
    )
    for change, lane in zip(changes, lanes, strict=True):
        later_index, (low, high) = indices[change.later_hash], change.ratio_ci
        yield {
            "place": later_index,
            "after": indices.get(change.earlier_hash, later_index - change.commit_count),
            "is_range": not change.confirmed,
            "lane": lane,
            "kind": legend_down if (change.ratio or 1.0) < 1.0 else legend_up,
            "label": change.later_hash[:HASH_LETTERS]
            if change.confirmed
            else f"{change.commit_count} commits",
            "what": change.summary,
            "subject": change.subject,
            "author": change.author,
            "date": change.date[:10],
            **{
                field: None if ratio is None else rounded(100.0 * (ratio - 1.0))
                for field, ratio in (("change", change.ratio), ("least", low), ("most", high))
            },
        }


def _curve_row(axis: RatioAxis, revision: HistoryRevision) -> dict[str, Any]:
    return {
        **_commit_row(revision),
        "kind": _CURVE_LEGEND,
        **axis.coordinates(revision.ratio, revision.ratio_ci),
        "blocks": revision.blocks,
        "era": revision.era,
    }


def _commit_row(revision: HistoryRevision) -> dict[str, Any]:
    return {
        "place": revision.place,
        "commit": short_name(revision.commit),
        "subject": revision.subject,
        "author": revision.author,
        "date": revision.date[:10],
    }


def _suspicion_rows(
    series: Sequence[ImportedSeries], indices: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    """Yield the suspicions about commits of the curve, also for abbreviated hashes."""
    for imported in series:
        for suspicion in imported.suspicions:
            commit = imported.points[suspicion.change_index].commit
            matches = [index for sha, index in indices.items() if sha.startswith(commit)]
            if len(matches) == 1:
                yield {
                    "place": matches[0],
                    "what": f"{imported.benchmark}, {imported.tool}",
                    "summary": suspicion.summary,
                    "confirm": suspicion.confirm_command,
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
    if unlabelled_count := sum(not has_label(mark) for mark in marks):
        yield f"There is no room for the name of {counted(unlabelled_count, 'change')}."


def lanes_of(positions: Sequence[float], length: float) -> list[int]:
    """Return the lane of each label above the curve; the topmost lane is 0.

    ``positions`` are the ascending positions of the marks. A label is to the right of its mark. If
    two labels would overlap, the later label gets a lower lane. If no lane is free, the result is
    `_MAX_LANES`, and the mark has no label.
    """
    label_width = _LABEL_WIDTH * length / (1.0 - _LABEL_WIDTH)
    lanes: list[int] = []
    for position in positions:
        overlapped_lanes = [
            lane
            for earlier, lane in zip(positions, lanes, strict=False)
            if position - earlier < label_width and lane < _MAX_LANES
        ]
        lanes.append(min(1 + max(overlapped_lanes, default=-1), _MAX_LANES))
    return lanes


def has_label(mark: dict[str, Any]) -> bool:
    """Return whether there is room for the label of a mark."""
    return bool(mark["lane"] < _MAX_LANES)


def end_of_axis(marks: Rows, min_end: float) -> float:
    """Return the end of an axis, at least ``min_end``, with room for all labels."""
    label_positions = [float(mark["place"]) for mark in marks if has_label(mark)]
    return max([min_end, *(position / (1.0 - _LABEL_WIDTH) for position in label_positions)])


def stretch_for_lanes(marks: Rows) -> float:
    """Return the factor that stretches the vertical axis, so that the lanes fit above the curve."""
    lane_count = 1 + max((mark["lane"] for mark in marks), default=-1)
    return HEIGHT / (HEIGHT - _LANE_HEIGHT * lane_count)


def draw_lines(marks: Rows, draw: Callable[[Rows, Any], alt.Chart]) -> Iterator[alt.Chart]:
    """Draw the lines below marks; ``draw`` gets the marks of a lane, and the top of the lines."""
    for lane, lane_marks in _marks_by_lane(marks):
        yield draw(lane_marks, alt.value(_LANE_HEIGHT * (lane + 0.5) + _MARK_RADIUS))


def draw_marks(
    marks: Rows, x: alt.X, draw: Callable[[Rows, Any], alt.Chart]
) -> Iterator[alt.Chart]:
    """Draw each mark in its lane, with the field ``label`` to the right of the mark."""
    for lane, lane_marks in _marks_by_lane(marks):
        y = alt.value(_LANE_HEIGHT * (lane + 0.5))
        yield draw(lane_marks, y)
        if lane < _MAX_LANES:
            yield from labels(lane_marks, "label:N", x=x, y=y, mark={"align": "left", "dx": 9})


def _marks_by_lane(marks: Rows) -> Iterator[tuple[int, Rows]]:
    ordered = sorted(marks, key=lambda mark: mark["lane"])
    for lane, lane_marks in itertools.groupby(ordered, key=lambda mark: mark["lane"]):
        yield lane, list(lane_marks)


HOW_TO_READ_SERIES = (
    "Each point is a commit, as another tool measured it on some day; the lines are levels. A "
    "hollow diamond is a suspicion: the level may have changed within the grey band, because of "
    "the program or of the machine. Only a measurement side by side can decide that."
)
SERIES_COLOR = color_of(2)
"""Colour of values that were not measured side by side."""
SUSPICION_MARK = point(110, shape="diamond", color=SERIES_COLOR, filled=False, strokeWidth=2)
SUSPICION_TOOLTIPS = tooltips(
    ("what:N", "suspicion"), ("summary:N",), ("confirm:N", "to confirm it")
)
_MARGIN_SHARE = 0.08
"""Free space above and below the values, as a fraction of their range."""


def series_chart(imported: ImportedSeries) -> alt.LayerChart:
    """Draw the values of a series, at least one, in the order of the commits."""
    values = [commit_value.value for commit_value in imported.points]
    low, high = min(values), max(values)
    margin = _MARGIN_SHARE * (high - low or high)
    scale = plain_scale(rounded(low - margin), rounded(high + margin))
    title = f"{imported.metric}, in {imported.unit}" if imported.unit else imported.metric
    x = count_axis("place", 0.5, len(values) + 0.5, "commit, in the order of the series")
    y = alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(format="~s"))
    points = [
        {
            "place": number,
            "value": rounded(commit_value.value),
            "commit": shown_commit(commit_value.commit),
            "date": (commit_value.date or "")[:10],
        }
        for number, commit_value in enumerate(imported.points, start=1)
    ]
    suspicions = list(_suspicion_ranges(imported))
    tooltip = tooltips(("commit:N",), ("date:N",), ("value:Q", title, "~s"))
    layers = [
        layer(suspicions, alt.MarkDef("rect", style="negligible"), x=x, x2="last:Q"),
        layer(list(_level_rows(imported)), rule(1.5, color=SERIES_COLOR), x=x, x2="until:Q", y=y),
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


def _suspicion_ranges(series: ImportedSeries) -> Iterator[dict[str, Any]]:
    """Yield each suspicion: the range of possible commits, and the most likely commit (``at``)."""
    for suspicion in series.suspicions:
        yield {
            "place": suspicion.last_old_index + 1,
            "last": suspicion.first_new_index + 1,
            "at": suspicion.change_index + 1,
            "value": rounded(suspicion.old_level * suspicion.ratio),
            "what": shown_commit(series.points[suspicion.change_index].commit),
            "summary": suspicion.summary,
            "confirm": suspicion.confirm_command,
        }


def _level_rows(series: ImportedSeries) -> Iterator[dict[str, Any]]:
    """Yield a line for each level between suspicions; a series without suspicions has no line."""
    # Positions count from 1. A line extends half a position beyond its first and last commit.
    begin = 0.5
    for suspicion in series.suspicions:
        yield {
            "place": begin,
            "until": suspicion.change_index + 0.5,
            "value": rounded(suspicion.old_level),
        }
        begin = suspicion.change_index + 0.5
    if series.suspicions:
        last_suspicion = series.suspicions[-1]
        level = rounded(last_suspicion.old_level * last_suspicion.ratio)
        yield {"place": begin, "until": len(series.points) + 0.5, "value": level}


class HistoryFigures(KindFigures):
    """The chart of a history; `HistoryReport` draws the series of other tools."""

    def gallery(
        self, document: HistoryDocument, sequences: ConfidenceSequences
    ) -> Iterator[Figure]:
        """Draw the curve."""
        yield Figure("curve", HOW_TO_READ, self.chart(document))

    def chart(self, document: HistoryDocument) -> alt.LayerChart:
        """Draw the curve, with ratios of values if more of the metric is better."""
        return history_chart(history_of_values(document.history, document.more_is_better))
