"""The chart of balance along a search, by its specification."""

from __future__ import annotations

import json
import math
from typing import Any

from equipoise_matching.charts.balance import search_balance


def lines(chart: Any) -> list[Any]:
    """The lines, each with the rows that it is drawn from."""
    drawn = chart.to_dict()
    layers = [
        layer
        for layer in drawn["layer"]
        if isinstance(layer["mark"], dict) and layer["mark"]["type"] == "line"
    ]
    for layer in layers:
        layer["rows"] = layer["data"].get("values") or drawn["datasets"][layer["data"]["name"]]
    return layers


def test_the_strong_line_follows_the_worst_covariate_of_each_generation() -> None:
    chart = search_balance(["a", "b"], [-30.0, 10.0], [(0, [2.0, -5.0]), (1, [1.0, 0.5])])
    thin, strong = lines(chart)
    drawn = [(row["generation"], row["variable"]) for row in strong["rows"]]
    assert drawn == [(-1, "a"), (0, "b"), (1, "a")]
    assert len(thin["rows"]) == 6
    assert strong["mark"]["strokeWidth"] > thin["mark"]["strokeWidth"]


def test_the_description_gives_the_worst_before_and_after() -> None:
    described = search_balance(["a", "b"], [-30.0, 10.0], [(4, [2.0, -5.0])]).to_dict()
    assert "30.0 % (a) before matching, 5.0 % (b)" in described["description"]


def test_values_that_are_not_finite_are_not_drawn_and_a_note_names_them() -> None:
    chart = search_balance(["known", "constant"], [5.0, math.inf], [(0, [1.0, math.nan])])
    text = json.dumps(chart.to_dict()["layer"])
    assert "Infinity" not in text
    assert "NaN" not in text
    assert "drawn there: constant." in chart.to_dict()["title"]["subtitle"][0]


def test_the_most_different_of_very_many_covariates_are_drawn_and_a_note_counts_them() -> None:
    names = [f"x{place}" for place in range(200)]
    course = [(generation, [float(place) for place in range(200)]) for generation in range(99)]
    chart = search_balance(names, [0.0] * 200, course)
    thin, strong = lines(chart)
    assert {row["variable"] for row in thin["rows"]} == set(names[-50:])
    assert len(strong["rows"]) == 100
    assert (
        "the 50 of 200 covariates with the largest differences"
        in chart.to_dict()["title"]["subtitle"][0]
    )


def test_a_search_without_a_finite_difference_can_still_be_drawn() -> None:
    chart = search_balance(["constant"], [math.nan], [(0, [math.nan])])
    assert "none is finite" in chart.to_dict()["description"]


def test_every_point_lies_on_the_axes() -> None:
    chart = search_balance(["a"], [45.0], [(0, [3.0]), (7, [1.0])])
    (_, strong) = lines(chart)
    scales = {axis: strong["encoding"][axis]["scale"]["domain"] for axis in ("x", "y")}
    for row in strong["rows"]:
        assert scales["x"][0] <= row["generation"] <= scales["x"][1]
        assert scales["y"][0] <= row["sdiff"] <= scales["y"][1]
