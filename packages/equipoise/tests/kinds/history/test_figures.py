"""The chart of a history: the curve, the changes, and suspicions of other tools."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from equipoise.figures.gallery import gallery
from equipoise.kinds.history.figures import SERIES_COLOR, history_chart, lanes_of, series_chart
from equipoise.shared.theme import color_of
from packages.equipoise.tests.figures.charts import notes, tables
from packages.equipoise.tests.histories import (
    FASTER,
    MEASURED,
    NOT_BUILT,
    RANGE,
    SLOWER,
    change_of,
    history_document,
    history_result,
    name_of,
    series_of,
)
from packages.equipoise.tests.kinds.history.test_suspicions import STEP, result_of, series_named


def test_each_measured_commit_has_a_bar_with_its_subject_and_author() -> None:
    bars = tables(history_chart(history_result()), "area")[0]
    assert [row["place"] for row in bars] == list(MEASURED)
    assert (bars[1]["subject"], bars[1]["author"]) == ("Change 1", "Ada")
    assert bars[8]["low"] < bars[8]["ratio"] < bars[8]["high"]


def test_a_confirmed_change_has_its_commit_and_a_range_its_stretch() -> None:
    chart = history_chart(history_result())
    marks = [row for rows in tables(chart, "point")[3:] for row in rows]
    assert [(row["place"], row["label"]) for row in marks] == [
        (SLOWER, name_of(SLOWER)[:7]),
        (FASTER, name_of(FASTER)[:7]),
        (RANGE[1], "4 commits"),
    ]
    assert [row["kind"] for row in marks] == ["change: slower", "change: faster", "change: slower"]
    (stretch,) = tables(chart, "rect")[1:]
    assert [(row["after"], row["place"]) for row in stretch] == [RANGE]


def test_failed_builds_are_marked_and_waiting_commits_are_counted() -> None:
    chart = history_chart(history_result())
    assert [row["place"] for row in tables(chart, "point")[1]] == [NOT_BUILT]
    assert notes(chart) == (
        "Not measured yet: 1 commit of the curve. A grey cross is a commit that does not build or "
        "run."
    )


def test_a_suspicion_is_hollow_and_in_another_colour() -> None:
    chart = history_chart(replace(history_result(), imported_series=(series_of(),))).to_dict()
    hollow = [layer["mark"] for layer in chart["layer"] if layer["mark"].get("filled") is False]
    curve = next(layer["mark"] for layer in chart["layer"] if layer["mark"]["type"] == "area")
    assert [mark["shape"] for mark in hollow] == ["diamond"]
    assert hollow[0]["color"] != curve["color"]


@pytest.mark.parametrize(
    "places", [(3, 4, 5, 6), (0, 10, 40, 95), tuple(range(0, 100, 4)), (5, 5, 5)], ids=str
)
def test_names_overlap_neither_each_other_nor_a_line(places: tuple[int, ...]) -> None:
    lanes, room = lanes_of(places, 100.0), 100.0 * 0.28 / 0.72
    named = [(place, lane) for place, lane in zip(places, lanes, strict=True) if lane < 4]
    assert named
    for place, lane in named:
        for other, below in zip(places, lanes, strict=True):
            if place < other < place + room:
                # Its line begins in its own row, and goes down from there.
                assert below > lane


def test_changes_without_room_for_a_name_are_marked_and_counted() -> None:
    changes = tuple(change_of(place - 1, place, ratio=1.03) for place in range(2, 15))
    result = history_result()
    revisions = tuple(
        replace(result.revisions[1], commit=name_of(place), place=place) for place in range(1, 25)
    )
    crowded = replace(result, changes=changes, revisions=(result.revisions[0], *revisions))
    chart = history_chart(crowded)
    labels = {row["label"] for rows in tables(chart, "text") for row in rows}
    marks = [row for rows in tables(chart, "point")[3:] for row in rows]
    assert len(marks) == len(changes) > len(labels)
    assert f"There is no room for the name of {len(changes) - len(labels)} changes." in notes(chart)


def test_the_chart_shows_values_if_more_of_the_metric_is_better() -> None:
    document = replace(history_document(), more_is_better=("wall_s",))
    (curve,) = (figure.chart for figure in gallery(document, {}))
    cost = tables(history_chart(history_result()), "area")[0][8]["ratio"]
    value = tables(curve, "area")[0][8]["ratio"]
    assert math.isclose((1.0 + cost / 100.0) * (1.0 + value / 100.0), 1.0, rel_tol=1e-4)


def test_a_history_without_a_measured_commit_can_be_drawn() -> None:
    result = replace(
        history_result(), changes=(), pairs=(), revisions=history_result().revisions[:1]
    )
    assert [row["place"] for row in tables(history_chart(result), "area")[0]] == [0]


def test_values_levels_and_hollow_suspicions_in_colours_of_their_own() -> None:
    chart = series_chart(result_of(series_named("parse", STEP)).series[0])
    points, marks = tables(chart, "point")
    assert [row["commit"] for row in points] == [f"v{number}" for number in range(1, 25)]
    assert [(row["place"], row["at"], row["last"], row["value"]) for row in marks] == [
        (12, 13, 13, 104.0)
    ]
    (levels,) = tables(chart, "rule")
    assert [(row["place"], row["until"], row["value"]) for row in levels] == [
        (0.5, 12.5, 100.0),
        (12.5, 24.5, 104.0),
    ]
    hollow = chart.to_dict()["layer"][3]["mark"]
    assert (hollow["filled"], hollow["color"]) == (False, SERIES_COLOR)
    # Neither that of the curve of a history, nor that of a change that is certain.
    assert SERIES_COLOR not in {color_of(0), color_of(1)}
    assert notes(chart) == "From CSV: log.csv. Not measured side by side."


def test_a_series_of_equal_values_without_a_suspicion_can_be_drawn() -> None:
    chart = series_chart(result_of(series_named("flat", [2.0])).series[0])
    assert tables(chart, "rule") == [[]]
    assert chart.to_dict()["layer"][2]["encoding"]["y"]["scale"]["domain"] == [1.84, 2.16]
