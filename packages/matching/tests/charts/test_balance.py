"""Charts of covariate balance, by their specifications."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from equipoise_matching.charts.balance import (
    Groups,
    Share,
    WeightedValues,
    group_density,
    love_plot,
    qq_plot,
    shares,
)
from packages.equipoise.tests.figures.charts import tables


def test_the_love_plot_puts_the_largest_difference_on_top() -> None:
    chart = love_plot(["small", "large"], [5.0, -40.0], [1.0, 2.0]).to_dict()
    (domain,) = {
        tuple(layer["encoding"]["y"]["scale"]["domain"])
        for layer in chart["layer"]
        if "y" in layer["encoding"]
    }
    assert domain == ("large", "small")
    assert "large: -40.0 % before, 2.0 % after" in chart["description"]


def test_the_love_plot_names_the_variables_that_it_cannot_draw() -> None:
    chart = love_plot(["known", "constant"], [5.0, -math.inf], [1.0, math.nan]).to_dict()
    assert chart["title"]["subtitle"] == ["Not finite, so not drawn: constant."]
    assert "Infinity" not in json.dumps(chart["layer"])


def test_the_love_plot_names_no_after_where_nothing_was_matched() -> None:
    text = json.dumps(love_plot(["x"], [5.0]).to_dict())
    assert "before matching" in text
    assert "after" not in text


def test_the_qq_plot_has_one_scale_for_both_axes() -> None:
    chart = qq_plot("age", [(1.0, 2.0), (30.0, 90.0)], [(2.0, 2.0)]).to_dict()
    scales = [
        layer["encoding"][axis]["scale"]["domain"]
        for layer in chart["layer"]
        for axis in ("x", "y")
    ]
    assert all(scale == scales[0] for scale in scales)
    assert scales[0][0] < 1.0 < 90.0 < scales[0][1]


def test_the_qq_plot_of_a_constant_has_an_axis() -> None:
    chart = qq_plot("one", [(0.0, 0.0)]).to_dict()
    low, high = chart["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low < 0.0 < high


def groups(shift: float, weights: np.ndarray | None = None) -> Groups:
    generator = np.random.default_rng(1)
    treated, control = generator.normal(shift, 1.0, 400), generator.normal(0.0, 1.0, 400)
    return WeightedValues(treated, None), WeightedValues(control, weights)


def test_shares_are_lines_from_controls_to_treated_before_and_after() -> None:
    chart = shares([Share("married", (80.0, 20.0), (25.0, 20.0)), Share("black", (5.0, 5.0), None)])
    lines = tables(chart, "rule")[0]
    assert [(row["label"], row["side"], row["controls"], row["treated"]) for row in lines] == [
        ("married", "before matching", 80.0, 20.0),
        ("married", "after matching", 25.0, 20.0),
        ("black", "before matching", 5.0, 5.0),
    ]
    assert len(tables(chart, "point")[0]) == 2 * len(lines)
    assert (
        "married: 20.0 % of the treated and 80.0 % of the controls before, 20.0 % and 25.0 % "
        in (chart.to_dict()["description"])
    )


def test_hills_before_point_down_after_up_and_each_has_the_same_area() -> None:
    chart = group_density("age", groups(2.0), groups(0.1))
    assert chart is not None
    rows = tables(chart, "line")[0]
    areas: list[float] = []
    for side in dict.fromkeys(row["side"] for row in rows):
        hill = [row for row in rows if row["side"] == side]
        step = hill[1]["at"] - hill[0]["at"]
        areas.append(sum(row["height"] for row in hill) * step)
    assert areas[:2] == pytest.approx([areas[0]] * 2, rel=1e-3)
    assert areas[2:] == pytest.approx([-areas[0]] * 2, rel=1e-3)


def test_very_large_values_have_hills_too() -> None:
    treated, controls = (
        WeightedValues(1e200 * group.values, group.weights) for group in groups(1.0)
    )
    chart = group_density("age", (treated, controls), None)
    assert chart is not None
    assert max(row["at"] for row in tables(chart, "line")[0]) > 1e200


def test_without_matching_the_hills_point_up_and_a_group_of_few_has_none() -> None:
    chart = group_density("age", groups(1.0), None)
    assert chart is not None
    assert min(row["height"] for row in tables(chart, "line")[0]) >= 0.0
    few = WeightedValues(np.arange(3.0), None)
    assert group_density("age", (few, few), None) is None
