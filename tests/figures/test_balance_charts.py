"""The love plot and the QQ plot, as the specifications that they are."""

from __future__ import annotations

import json
import math

from equipoise.figures.love_plot import love_plot
from equipoise.figures.qq_plot import qq_plot


def test_the_love_plot_puts_the_largest_difference_on_top() -> None:
    chart = love_plot(["small", "large"], [5.0, -40.0], [1.0, 2.0]).to_dict()
    (domain,) = {
        tuple(layer["encoding"]["y"]["scale"]["domain"])
        for layer in chart["layer"]
        if "y" in layer["encoding"]
    }
    assert domain == ("large", "small")
    assert "large: -40.0 % before, 2.0 % after" in chart["description"]


def test_the_love_plot_says_what_it_cannot_draw() -> None:
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
