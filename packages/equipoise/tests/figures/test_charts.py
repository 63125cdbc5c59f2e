"""Each chart holds the numbers that it claims to show, and says what it leaves out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import altair as alt
import numpy as np
import pytest
from msgspec.structs import replace

from equipoise.analysis.result import analyse_campaign as result_of
from equipoise.figures.distributions import distributions
from equipoise.figures.gallery import gallery
from equipoise.figures.ratios import sequence, shift
from equipoise.figures.scaling import size_scaling
from equipoise.figures.time_course import time_course
from equipoise.figures.values import law_sentence, numeric_factors, scaling_laws
from equipoise.figures.variance_by_level import MAX_ROWS, variance_by_level
from equipoise.model.errors import UnusableInput
from equipoise.model.result import ResultDocument
from equipoise.stats.sequence import SequencePoint
from equipoise.stats.shift import shift_function
from packages.equipoise.tests.documents import (
    HOSTILE,
    comparison_of,
    document_of,
    layered_document,
    points_of,
    sized_document,
)
from packages.equipoise.tests.figures.charts import notes, tables
from packages.equipoise.tests.iterated import record_of, short, steady


def axis_titles(chart: alt.LayerChart) -> Iterator[str]:
    """The title of every axis that is drawn."""
    for layer in chart.to_dict()["layer"]:
        for name in ("x", "y"):
            channel = layer["encoding"].get(name, {})
            title = channel.get("title") or (channel.get("axis") or {}).get("title")
            if title:
                yield title


def test_every_analysed_trial_is_one_dot_and_no_warm_up_is() -> None:
    document = document_of(blocks=60)
    dots = tables(distributions(document), "circle")
    assert [len(trials) for trials in dots] == [60, 60]
    places = sorted(row["x"] for row in dots[0])
    times = sorted(
        row.wall_s * 1e3
        for row in document.trials
        if row.analysed and row.condition == "sort words" and row.wall_s is not None
    )
    np.testing.assert_allclose(places, times, rtol=1e-5)


def test_the_median_and_its_interval_are_those_of_the_document() -> None:
    document = document_of()
    medians = tables(distributions(document), "point")[0]
    expected = [1e3 * condition.metrics["wall_s"].median for condition in document.conditions]
    np.testing.assert_allclose([row["x"] for row in medians], expected, rtol=1e-5)


def test_beyond_the_limit_bars_count_every_trial_and_the_chart_says_so() -> None:
    chart = distributions(document_of(blocks=60), max_dots=100)
    assert not tables(chart, "circle")
    counted = [sum(row["trials"] for row in bars) for bars in tables(chart, "rect")]
    assert counted == [60, 60]
    assert "120 trials are too many for a dot each" in notes(chart)


def test_timeouts_are_counted_at_the_edge_of_the_distribution() -> None:
    chart = distributions(document_of(timeouts=frozenset({3, 9})))
    words = [row["text"] for rows in tables(chart, "text") for row in rows]
    assert "2 timed out ▸" in words
    assert sum(len(rows) for rows in tables(chart, "circle")) == 118


def test_a_far_outlier_does_not_squeeze_the_rest_but_is_pointed_at() -> None:
    document = document_of()
    slow = replace(document.trials[10], wall_s=30.0)
    document = replace(document, trials=(*document.trials[:10], slow, *document.trials[11:]))
    chart = distributions(document)
    words = [row["text"] for rows in tables(chart, "text") for row in rows]
    assert "1 beyond ▸" in words
    domain = chart.to_dict()["layer"][1]["encoding"]["x"]["scale"]["domain"]
    assert domain[1] < 100


def test_conditions_far_apart_share_a_logarithmic_axis() -> None:
    chart = distributions(document_of(medians=(0.001, 0.5)))
    scale = chart.to_dict()["layer"][1]["encoding"]["x"]["scale"]
    assert scale["type"] == "log"
    assert "logarithmic" in notes(chart)


def test_a_condition_that_always_times_out_is_named_and_nothing_breaks() -> None:
    document = document_of(blocks=9, timeouts=frozenset(range(1, 10)))
    words = [row["text"] for rows in tables(distributions(document), "text") for row in rows]
    assert "sort --parallel=2 words (no trial to show)" in words
    assert "9 timed out ▸" in words
    assert "9 of 20 trials timed out" in notes(time_course(document))


def test_one_block_is_drawn_without_a_density_or_an_interval() -> None:
    chart = distributions(document_of(blocks=1))
    assert not tables(chart, "area")
    assert tables(chart, "rule") == [[]]
    assert [len(rows) for rows in tables(chart, "circle")] == [1, 1]


def test_unknown_values_are_counted_in_a_note() -> None:
    document = document_of(blocks=20)
    unknown = replace(document.trials[5], wall_s=None, unknown={"wall_s": "no clock"})
    document = replace(document, trials=(*document.trials[:5], unknown, *document.trials[6:]))
    assert "1 analysed trials have no known time" in notes(distributions(document))


def test_a_metric_of_the_workload_itself_has_its_own_distribution() -> None:
    document = document_of(blocks=10)
    rows = tuple(replace(row, metrics={"latency_s": 0.001 * row.block}) for row in document.trials)
    chart = distributions(replace(document, trials=rows), "latency_s")
    assert "latency, in ms" in set(axis_titles(chart))
    assert [len(table) for table in tables(chart, "circle")] == [10, 10]


def test_the_sequence_shows_the_interval_after_every_block() -> None:
    document = document_of()
    comparison = document.comparisons[0]
    chart = sequence(document, comparison, points_of(1.05))
    band = tables(chart, "area")[0]
    assert len(band) == 120
    last = tables(chart, "rule")[-1][-1]
    point = points_of(1.05)[-1]
    assert point.low is not None
    assert point.high is not None
    assert last["low"] == pytest.approx(100 * (point.low - 1), rel=1e-4)
    assert last["high"] == pytest.approx(100 * (point.high - 1), rel=1e-4)


def test_an_unlimited_interval_fills_the_axis() -> None:
    document = document_of()
    chart = sequence(document, document.comparisons[0], points_of(1.05))
    band = tables(chart, "area")[0]
    scale = next(
        layer["encoding"]["y"]["scale"]
        for layer in chart.to_dict()["layer"]
        if layer["mark"]["type"] == "area"
    )
    assert [band[0]["low"], band[0]["high"]] == scale["domain"]
    assert tables(chart, "line")[0][0]["block"] == 6


def test_a_sequence_that_never_closed_says_so() -> None:
    document = document_of(blocks=2)
    points = tuple(SequencePoint(block, None, None, None) for block in (1, 2))
    chart = sequence(document, comparison_of("sort words", "b", None), points)
    assert "still unlimited" in notes(chart)


def test_a_long_sequence_is_thinned_to_what_can_be_seen_and_keeps_its_end() -> None:
    document = document_of()
    chart = sequence(document, document.comparisons[0], points_of(1.05, blocks=5000))
    assert len(tables(chart, "area")[0]) <= 800
    assert tables(chart, "line")[0][-1]["block"] == 5000
    assert "of 5000 interim analyses" in notes(chart)


def test_a_ratio_of_two_hundred_has_a_logarithmic_axis_in_times() -> None:
    document = document_of(medians=(0.0001, 0.02))
    comparison = document.comparisons[0]
    chart = sequence(document, comparison, points_of(200.0))
    assert any("times it (logarithmic)" in title for title in axis_titles(chart))
    assert tables(chart, "line")[0][-1]["ratio"] == pytest.approx(200.0)


def test_the_shift_chart_shows_the_numbers_it_was_given() -> None:
    document = document_of()
    baseline = np.linspace(1.0, 2.0, 50)
    numbers = shift_function(baseline, 1.04 * baseline, seed=1)
    chart = shift(document, document.comparisons[0], numbers)
    points = tables(chart, "point")[0]
    assert [row["share"] for row in points] == pytest.approx(list(numbers.quantiles))
    assert [row["ratio"] for row in points] == pytest.approx([4.0] * 9)


def test_quantiles_without_a_ratio_are_left_out_and_counted() -> None:
    document = document_of()
    baseline = np.where(np.arange(50) < 30, 1.0 + np.arange(50) / 50, math.inf)
    numbers = shift_function(baseline, baseline * 1.04, seed=1)
    chart = shift(document, document.comparisons[0], numbers)
    assert len(tables(chart, "point")[0]) == 9 - int(np.isnan(numbers.ratio).sum())
    assert "both sides timed out" in notes(chart)


def test_the_course_holds_every_trial_in_the_order_in_which_it_ran() -> None:
    document = document_of(blocks=30)
    chart = time_course(document)
    drawn = [row for kind in ("point", "text") for rows in tables(chart, kind) for row in rows]
    assert sorted(row["trial"] for row in drawn) == list(range(1, 63))


def test_warm_up_is_drawn_hollow() -> None:
    document = document_of(blocks=30, noise=0.1)
    layers = time_course(document).to_dict()
    hollow = next(
        layer
        for layer in layers["layer"]
        if layer["mark"]["type"] == "point" and layer["mark"]["filled"] is False
    )
    rows = layers["datasets"][hollow["data"]["name"]]
    assert [row["trial"] for row in rows] == [1, 2]


def test_the_running_median_follows_the_drift() -> None:
    document = document_of(blocks=200, noise=0.002)
    line = tables(time_course(document), "line")[0]
    values = [row["value"] for row in line if row["condition"] == "sort words"]
    assert values[-1] / values[0] == pytest.approx(1.02 * 0.9 + 0.1, abs=0.004)


def test_a_course_of_many_trials_is_binned_from_least_to_most() -> None:
    chart = time_course(document_of(blocks=600), max_dots=1000)
    bands = tables(chart, "area")[0]
    assert sum(row["trials"] for row in bands) == 1202
    assert all(row["value"] <= row["most"] for row in bands)
    assert "1202 trials are too many to draw each" in notes(chart)


def test_numeric_levels_are_sizes_and_each_algorithm_has_a_line() -> None:
    document = sized_document()
    assert numeric_factors(document, "wall_s") == ("rows",)
    chart = size_scaling(document, "rows")
    line = tables(chart, "line")[0]
    assert [row["size"] for row in line] == [445, 890, 1780, 5340] * 2
    assert {row["condition"] for row in line} == {"algorithm fast", "algorithm slow"}


def test_the_law_of_each_line_is_fitted_and_in_the_notes() -> None:
    document = sized_document()
    laws = scaling_laws(document, "rows", "wall_s")
    assert set(laws) == {"algorithm fast", "algorithm slow"}
    for name, true in (("algorithm fast", 1.0), ("algorithm slow", 1.5)):
        low, high = laws[name].power_law.exponent_ci
        assert low is not None and high is not None
        # Twelve blocks of 2 % noise: the interval is that narrow, and holds the truth.
        assert true - 0.05 < low <= high < true + 0.05
        assert law_sentence(laws[name]) in notes(size_scaling(document, "rows"))


def test_a_factor_without_numbers_is_refused_by_name() -> None:
    with pytest.raises(UnusableInput, match="the factor algorithm") as refusal:
        size_scaling(sized_document(), "algorithm")
    assert refusal.value.hint == "draw one of these factors: rows"


@pytest.mark.parametrize(
    "document",
    [
        document_of(),
        document_of("a", "b", "c", timeouts=frozenset({2})),
        document_of(blocks=1),
        document_of(HOSTILE, "b " + HOSTILE),
        document_of(blocks=9, timeouts=frozenset(range(1, 10))),
        replace(document_of(), trials=()),
        replace(document_of(), comparisons=()),
        sized_document(),
        layered_document(HOSTILE, "b"),
        result_of(record_of(steady(0.01), short, blocks=4)),
    ],
    ids=[
        "two",
        "three",
        "one block",
        "hostile",
        "timeouts",
        "no trials",
        "alone",
        "sizes",
        "levels",
        "iterations",
    ],
)
def test_every_figure_of_a_document_has_titles_units_and_a_line_on_how_to_read_it(
    document: ResultDocument,
) -> None:
    sequences = {
        comparison.candidate: points_of(comparison.ratio or 1.0)
        for comparison in document.comparisons
    }
    figures = list(gallery(document, sequences))
    assert {"distributions", "time_course"} <= {figure.name for figure in figures}
    for figure in figures:
        whole = figure.chart.to_dict()
        assert whole["title"]["text"]
        assert whole["description"]
        assert figure.how_to_read.endswith(".")
        assert list(axis_titles(figure.chart))


def test_the_same_document_gives_the_same_charts() -> None:
    def drawn() -> list[dict[str, Any]]:
        return [figure.chart.to_dict() for figure in gallery(document_of(), {})]

    assert drawn() == drawn()


def test_a_candidate_without_a_sequence_has_no_such_figure() -> None:
    assert "sequence" not in {figure.name for figure in gallery(document_of(), {})}


def test_few_blocks_give_no_shift_function() -> None:
    assert "shift" not in {figure.name for figure in gallery(document_of(blocks=9), {})}
    assert "shift" in {figure.name for figure in gallery(document_of(blocks=10), {})}


def test_each_level_stands_at_the_deviation_that_it_adds_with_its_interval() -> None:
    chart = variance_by_level(layered_document("a", "b"))
    assert chart is not None
    (rows,) = tables(chart, "point")
    assert [row["name"] for row in rows[::2]] == ["b against a", "a", "b"]
    assert [row["level"] for row in rows[:2]] == ["layout", "trial"]
    layout, trial = rows[:2]
    assert (layout["low"], layout["deviation"], layout["high"]) == pytest.approx((2.0, 3.0, 5.0))
    assert (trial["low"], trial["deviation"], trial["high"]) == pytest.approx((0.8, 1.0, 1.2))
    assert tables(chart, "rule") == [rows]


def test_of_many_conditions_the_first_are_drawn_and_the_chart_says_so() -> None:
    chart = variance_by_level(layered_document(*(f"c{number}" for number in range(9))))
    assert chart is not None
    assert f"The first {MAX_ROWS} of 17" in notes(chart)
    assert len(tables(chart, "point")[0]) == 2 * MAX_ROWS


def test_trials_alone_are_no_levels_to_draw() -> None:
    assert variance_by_level(document_of()) is None
    assert "variance_by_level" not in {figure.name for figure in gallery(document_of(), {})}
