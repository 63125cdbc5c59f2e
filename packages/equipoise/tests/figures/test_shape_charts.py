"""Modes, states, disagreements and iterations are drawn where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from equipoise.analysis.result import analyse_campaign as result_of
from equipoise.figures.distributions import distributions
from equipoise.figures.gallery import iteration_figures
from equipoise.figures.iterations import MAX_TRIALS
from equipoise.figures.ratios import shift
from equipoise.figures.time_course import time_course
from equipoise.model.result import Mode, ResultDocument, State
from equipoise.stats.shift import shift_function
from packages.equipoise.tests.documents import document_of
from packages.equipoise.tests.figures.charts import notes, tables
from packages.equipoise.tests.iterated import FloatArray, record_of, short, steady


def test_several_modes_are_marked_with_their_shares() -> None:
    document = document_of()
    assert not [
        row for table in tables(distributions(document), "text") for row in table if "▾" in row
    ]
    modes = (Mode(0.049, 0.7), Mode(0.052, 0.3))
    marked = with_wall(document, modes=modes)
    rows = [row for table in tables(distributions(marked), "text") for row in table]
    shares = [(row["x"], row["text"]) for row in rows if "▾" in str(row["text"])]
    # Each label is drawn twice: what is behind it, and its letters.
    assert list(dict.fromkeys(shares)) == [(49.0, "70% ▾"), (52.0, "▾ 30%")]


def with_wall(document: ResultDocument, **changed: Any) -> ResultDocument:
    """The document with another summary of its first condition's time."""
    first = document.conditions[0]
    wall = replace(first.metrics["wall_s"], **changed)
    changed_first = replace(first, metrics={**first.metrics, "wall_s": wall})
    return replace(document, conditions=(changed_first, *document.conditions[1:]))


def test_a_change_of_state_stands_at_its_trial_with_the_levels_around_it() -> None:
    document = document_of(blocks=60)
    assert tables(time_course(document), "rule") == []
    changed = with_wall(document, states=(State(0, 0.0495), State(40, 0.051)))
    levels, changes = tables(time_course(changed), "rule")
    trials = [
        number
        for number, row in enumerate(document.trials, 1)
        if row.analysed and row.condition == document.conditions[0].name
    ]
    assert [(row["trial"], row["until"]) for row in levels] == [
        (trials[0], trials[40]),
        (trials[40], trials[-1]),
    ]
    assert [row["value"] for row in levels] == [49.5, 51.0]
    assert [row["trial"] for row in changes] == [trials[40]]


def test_states_of_a_document_without_its_trials_are_not_drawn() -> None:
    changed = with_wall(document_of(), states=(State(0, 0.0495), State(40, 0.051)))
    assert tables(time_course(replace(changed, trials=())), "rule") == []


def test_the_shift_chart_says_where_statistics_disagree() -> None:
    document = document_of()
    comparison = replace(document.comparisons[0], disagreement="b is faster by the minimum")
    pairs = np.array([1.0, 1.1, 1.2] * 5)
    chart = shift(document, comparison, shift_function(pairs, 1.05 * pairs, seed=1))
    assert notes(chart) == "b is faster by the minimum."


def iterated() -> ResultDocument:
    """Twelve trials each, of which the first condition's warm up over ten iterations."""
    return result_of(record_of(steady(0.01), steady(0.01, warm_up=0), blocks=12))


def test_each_condition_has_its_iterations_drawn_with_their_change_points() -> None:
    document = iterated()
    warming, flat = list(iteration_figures(document))
    assert (warming.name, flat.name) == ("iterations_a_request_s", "iterations_b_request_s")
    (lines,) = tables(warming.chart, "line")
    assert len(lines) == MAX_TRIALS * 40
    row = next(trial for trial in document.trials if trial.analysed and trial.condition == "a")
    drawn = [line["value"] for line in lines if line["block"] == row.block]
    assert drawn == pytest.approx(
        [1000 * iteration for iteration in row.iterations["request_s"]], rel=1e-5
    )
    (levels,), (changes,) = tables(warming.chart, "rule"), tables(warming.chart, "point")
    assert [(level["iteration"], level["end"]) for level in levels[:2]] == [(1, 10), (11, 40)]
    assert [change["iteration"] for change in changes] == [11] * MAX_TRIALS
    assert tables(flat.chart, "point") == [[]]
    assert "warm-up in all 12 trials" in notes(warming.chart)
    assert f"The first {MAX_TRIALS} of 12 trials are drawn." in notes(warming.chart)


def test_a_long_series_is_thinned_to_medians_and_says_so() -> None:
    long = result_of(record_of(steady(0.01, count=1000), steady(0.01), blocks=2))
    chart = next(iteration_figures(long)).chart
    assert "the median of 5 iterations" in notes(chart)
    (lines,) = tables(chart, "line")
    assert [row["iteration"] for row in lines[:3]] == [1, 6, 11]


def test_series_without_a_class_are_not_drawn_and_their_trials_have_no_levels() -> None:
    def some(generator: np.random.Generator, block: int) -> FloatArray:
        return (short if block < 3 else steady(0.01))(generator, block)

    document = result_of(record_of(short, some, blocks=4))
    (figure,) = iteration_figures(document)
    assert figure.name == "iterations_b_request_s"
    assert len({row["block"] for row in tables(figure.chart, "line")[0]}) == 4
    assert {row["block"] for row in tables(figure.chart, "rule")[0]} == {3, 4}


def test_values_below_zero_are_drawn() -> None:
    document = result_of(record_of(lambda generator, block: -np.ones(40), short, blocks=3))
    (figure,) = iteration_figures(document)
    assert [row["value"] for row in tables(figure.chart, "rule")[0]] == [-1.0] * 3
