"""Shares, distributions and estimates of two groups, as the specifications that they are."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.figures.density import density
from equipoise.figures.estimates import Estimate, estimates
from equipoise.figures.group_density import Arms, Weighted, group_density
from equipoise.figures.shares import Share, shares
from tests.figures.charts import tables


def arms(shift: float, weights: np.ndarray | None = None) -> Arms:
    generator = np.random.default_rng(1)
    treated, control = generator.normal(shift, 1.0, 400), generator.normal(0.0, 1.0, 400)
    return Arms(Weighted(treated, None), Weighted(control, weights))


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
    chart = group_density("age", arms(2.0), arms(0.1))
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
    far = arms(1.0)
    large = Arms(
        *(Weighted(1e200 * one.values, one.weights) for one in (far.treated, far.controls))
    )
    chart = group_density("age", large, None)
    assert chart is not None
    assert max(row["at"] for row in tables(chart, "line")[0]) > 1e200


def test_without_matching_the_hills_point_up_and_a_group_of_few_has_none() -> None:
    chart = group_density("age", arms(1.0), None)
    assert chart is not None
    assert min(row["height"] for row in tables(chart, "line")[0]) >= 0.0
    few = Weighted(np.arange(3.0), None)
    assert group_density("age", Arms(few, few), None) is None


def test_a_weighted_density_is_that_of_rows_repeated() -> None:
    places = np.random.default_rng(2).normal(size=60)
    times = np.arange(60) % 3 + 1
    weighted = density(places, -4.0, 4.0, times.astype(float))
    repeated = density(np.repeat(places, times), -4.0, 4.0)
    assert weighted is not None
    assert repeated is not None
    # Fewer rows than repetitions say: a wider kernel, whose peak is lower and broader.
    assert weighted[0][0] < repeated[0][0]
    mean, other = (float(np.average(one[0], weights=one[1])) for one in (weighted, repeated))
    assert mean == pytest.approx(other, abs=0.05)


def test_an_infinite_estimate_is_not_drawn_and_rows_that_name_themselves_need_no_legend() -> None:
    rows = [Estimate("all", "all", 2.0, (1.0, 3.0)), Estimate("some", "some", 1.0, (-np.inf, 3.0))]
    chart = estimates(
        rows, ("some", "all"), unit="kg", title="Effect", notes=[], description="words"
    )
    assert [row["label"] for row in tables(chart, "point")[0]] == ["all"]
    assert chart.to_dict()["layer"][2]["encoding"]["color"]["legend"] is None
