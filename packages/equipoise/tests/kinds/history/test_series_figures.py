"""The picture of an imported series."""

from __future__ import annotations

from equipoise.kinds.history.figures import COLOR, series
from equipoise.shared.theme import color_of
from packages.equipoise.tests.figures.charts import notes, tables
from packages.equipoise.tests.kinds.history.test_suspicions import STEP, result_of, series_named


def test_values_levels_and_hollow_suspicions_in_colours_of_their_own() -> None:
    chart = series(result_of(series_named("parse", STEP)).series[0])
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
    assert (hollow["filled"], hollow["color"]) == (False, COLOR)
    # Neither that of the curve of a history, nor that of a change that is certain.
    assert COLOR not in {color_of(0), color_of(1)}
    assert notes(chart) == "From CSV: log.csv. Not measured side by side."


def test_a_series_of_equal_values_without_a_suspicion_can_be_drawn() -> None:
    chart = series(result_of(series_named("flat", [2.0])).series[0])
    assert tables(chart, "rule") == [[]]
    assert chart.to_dict()["layer"][2]["encoding"]["y"]["scale"]["domain"] == [1.84, 2.16]
