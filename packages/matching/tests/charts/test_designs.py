"""Charts of designs, by their specifications."""

from __future__ import annotations

import json

import numpy as np
import pytest

from equipoise_matching.charts.designs import bin_edges, designs_love_plot
from equipoise_matching.designs.drawing import overlap_plot
from equipoise_matching.matching.propensity import propensity_score
from equipoise_matching.shared.errors import UnusableInput
from packages.equipoise.tests.figures.charts import notes, tables
from packages.matching.tests.designs.designs import confounded, weighted


def test_the_love_plot_of_designs_marks_a_tenth_of_a_standard_deviation() -> None:
    chart = designs_love_plot(["age"], [0.5], {"cem": [0.02], "optimal_match": [-0.01]})
    lines = tables(chart, "rule")
    assert [row["sdiff"] for row in lines[1]] == [-0.1, 0.1]
    description = chart.to_dict()["description"]
    assert "age: 0.500 before, 0.020 cem, -0.010 optimal_match" in description


def test_bars_of_treated_point_up_and_of_controls_down_and_each_arm_adds_up_to_100() -> None:
    X, treat = confounded(300)
    weights = np.where(treat == 1, 1.0, np.arange(300) / 300)
    chart = weighted(treat, X, weights).balance().histogram_plot("age")
    for rows in tables(chart, "rect"):
        shares = {
            arm: [row["share"] for row in rows if row["arm"] == arm]
            for arm in ("treated", "controls")
        }
        assert sum(shares["treated"]) == pytest.approx(100.0, abs=0.01)
        assert sum(shares["controls"]) == pytest.approx(-100.0, abs=0.01)


def test_bars_after_matching_are_weighted() -> None:
    treat, values = [1, 1, 0, 0], {"x": [0, 1, 0, 1]}
    chart = weighted(treat, values, [1, 1, 3, 1]).balance().histogram_plot("x")
    after, before = tables(chart, "rect")
    controls = [
        [row["size"] for row in rows if row["arm"] == "controls"] for rows in (after, before)
    ]
    assert controls == [[75.0, 25.0], [50.0, 50.0]]


def test_few_whole_numbers_have_a_bin_each() -> None:
    assert bin_edges(np.array([3.0, 5.0, 4.0])).tolist() == [2.5, 3.5, 4.5, 5.5]
    assert len(bin_edges(np.random.default_rng(1).normal(size=10_000))) == 41


def test_a_binary_covariate_is_drawn_as_shares_before_and_after() -> None:
    design = weighted([1, 1, 0, 0], {"sex": [1, 2, 1, 2], "x": [1, 2, 3, 4]}, [1, 1, 3, 1])
    chart = design.balance().shares_plot()
    assert chart is not None
    rows = tables(chart, "rule")[0]
    assert [(row["label"], row["side"], row["controls"]) for row in rows] == [
        ("sex = 2", "before matching", 50.0),
        ("sex = 2", "after matching", 25.0),
    ]
    assert weighted([1, 1, 0, 0], {"x": [1, 2, 3, 4]}).balance().shares_plot() is None


def test_the_density_has_a_curve_for_each_of_several_arms() -> None:
    design = weighted(["a", "b", "c"] * 30, {"x": np.arange(90.0)}, estimand="ATE")
    chart = design.balance().density_plot("x")
    assert chart is not None
    assert {row["arm"] for row in tables(chart, "line")[0]} == {"a", "b", "c"}
    with pytest.raises(UnusableInput, match="a histogram has two arms, and the design has 3"):
        design.balance().histogram_plot("x")


def test_the_overlap_of_a_score_counts_the_rows_outside_the_range_of_the_other_arm() -> None:
    X, treat = confounded(300)
    score = propensity_score(X, treat)
    chart = overlap_plot(weighted(treat, X), score)
    assert chart is not None
    low = max(score.score[treat == arm].min() for arm in (0, 1))
    high = min(score.score[treat == arm].max() for arm in (0, 1))
    outside = (score.score < low) | (score.score > high)
    assert f"{int(outside[treat == 1].sum())} of {int((treat == 1).sum())} treated" in notes(chart)
    assert "NaN" not in json.dumps(chart.to_dict()["title"])


def test_the_chart_of_an_unknown_covariate_is_refused() -> None:
    X, treat = confounded(50)
    with pytest.raises(UnusableInput, match="there is no covariate weight"):
        weighted(treat, X).balance().density_plot("weight")
