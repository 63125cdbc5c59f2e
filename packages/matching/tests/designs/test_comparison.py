"""Designs in order of balance; an outcome and an effect are refused by name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas
import pytest

from equipoise_matching.designs.comparison import (
    balance_of_imputations,
    compare_designs,
    love_plot,
)
from equipoise_matching.shared.errors import UnusableInput
from packages.equipoise.tests.figures.charts import tables
from packages.matching.tests.designs.designs import confounded, weighted


def designs() -> dict[str, Any]:
    """Return designs of the same rows: all rows, and rows weighted towards the treated."""
    X, treat = confounded(400)
    chance = 1.0 / (1.0 + np.exp(-(X["age"] - 45.0) / 10.0 + X["married"]))
    odds = np.where(treat == 1, 1.0, chance / (1.0 - chance))
    return {
        "all rows": weighted(treat, X),
        "odds": weighted(treat, X, odds),
        "half the way": weighted(treat, X, odds**0.5),
    }


def test_the_design_with_the_smallest_largest_difference_is_first() -> None:
    comparison = compare_designs(designs())
    assert [row["design"] for row in comparison.rows()] == ["odds", "half the way", "all rows"]
    largest = [row["largest_difference"] for row in comparison.rows()]
    assert largest == sorted(largest)


def test_rounding_errors_do_not_decide_the_order() -> None:
    treat, values = [1, 1, 1, 1, 0, 0, 0, 0], [1.0, 2.0, 3.0, 4.0] * 2
    X = {"x": values}
    few = weighted(treat, X, [1, 0, 0, 1, 1, 0, 0, 1], method="few rows")
    all_rows = weighted(treat, X, [1, 1, 1, 1, 1, 1, 1, 1 + 1e-9], method="all rows")
    assert all_rows.balance().overall().largest_difference > 0.0
    assert few.balance().overall().largest_difference == 0.0
    # The balance is equal but for rounding, so that the effective number of rows decides.
    assert [row["design"] for row in compare_designs([few, all_rows]).rows()] == [
        "all rows",
        "few rows",
    ]


def test_a_row_has_the_numbers_of_the_balance_and_the_effective_sizes() -> None:
    odds = designs()["odds"]
    (row,) = compare_designs([odds]).rows()
    overall = odds.balance().overall()
    assert row["design"] == "weighted"
    assert row["largest_difference"] == overall.largest_difference
    assert row["mean_difference"] == overall.mean_difference
    assert row["largest_ks"] == overall.largest_ks
    assert (row["effective controls"], row["effective treated"]) == odds.effective_sizes
    frame = compare_designs([odds]).to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == 1


def test_the_summary_has_the_balance_before_matching_too() -> None:
    text = compare_designs(designs()).summary()
    assert text.splitlines()[1].startswith("before matching")
    assert "No outcome takes part." in text
    assert "<table" in compare_designs(designs())._repr_html_()


def test_designs_of_one_method_get_a_number() -> None:
    named = designs()
    comparison = compare_designs([named["all rows"], named["odds"]])
    assert {design.name for design in comparison.designs} == {"weighted", "weighted 2"}


def test_different_estimands_are_compared_by_the_pooled_deviation() -> None:
    X, treat = confounded(60)
    pair = [weighted(treat, X, estimand=estimand) for estimand in ("ATT", "ATE")]
    comparison = compare_designs(pair)
    assert {design.balance.standardize for design in comparison.designs} == {"pooled"}


def test_a_design_that_keeps_an_infinite_difference_is_last() -> None:
    treat = [1, 1, 0, 0, 0]
    # The treated are equal, so that every difference is infinite in their standard deviations.
    X = {"x": [1.0, 1.0, 1.0, 2.0, 9.0], "y": [1.0, 5.0, 2.0, 3.0, 30.0]}
    infinite = weighted(treat, X, [1, 1, 1, 1, 0.01], method="cem")
    finite = weighted(treat, X, [1, 1, 1, 0, 0], method="full_match")
    comparison = compare_designs([infinite, finite])
    assert [design.name for design in comparison.designs] == ["full_match", "cem"]
    assert comparison.designs[1].overall.largest_difference == math.inf


@pytest.mark.parametrize("name", ["outcome", "y", "effect"])
def test_an_outcome_is_refused_by_its_name(name: str) -> None:
    outcome: dict[str, Any] = {name: np.ones(400)}
    with pytest.raises(UnusableInput, match=f"takes no outcome, and got {name}"):
        compare_designs(designs(), **outcome)
    with pytest.raises(UnusableInput, match="takes no outcome, and got a second argument"):
        compare_designs(designs(), np.ones(400))


def test_an_effect_in_the_place_of_a_design_is_refused_with_its_type() -> None:
    class EffectEstimate:
        """An effect by its name."""

    broken: Any = [designs()["odds"], EffectEstimate()]
    with pytest.raises(UnusableInput, match=r"designs\[1\] is of type EffectEstimate"):
        compare_designs(broken)


def test_designs_of_other_rows_or_covariates_are_refused() -> None:
    X, treat = confounded(50)
    first, other = weighted(treat, X), weighted(1 - treat, X)
    with pytest.raises(UnusableInput, match="different rows or treatments"):
        compare_designs([first, other])
    score = weighted(treat, {"score": X["age"]}, method="nearest_match")
    with pytest.raises(UnusableInput, match="different covariates"):
        compare_designs([first, score])
    assert len(compare_designs([first, score], covariates=X).designs) == 2


def test_no_design_is_refused() -> None:
    with pytest.raises(UnusableInput, match="there is no design to compare"):
        compare_designs([])


def test_imputed_data_sets_need_two_designs_and_a_table_for_each() -> None:
    X, treat = confounded(50)
    design = weighted(treat, X)
    with pytest.raises(UnusableInput, match="there is 1 design"):
        balance_of_imputations([design])
    with pytest.raises(UnusableInput, match="covariates has 1 tables for 2 designs"):
        balance_of_imputations([design, design], covariates=[X])


def test_the_love_plot_has_a_mark_for_each_design_and_one_before() -> None:
    chart = love_plot(designs())
    (rows,) = tables(chart, "point")
    ages = {row["side"]: row["sdiff"] for row in rows if row["variable"] == "age"}
    assert list(ages) == ["before matching", "odds", "half the way", "all rows"]
    balance = designs()["odds"].balance()
    assert ages["odds"] == pytest.approx(balance.of("age")[0].after.difference, abs=5e-5)
    assert ages["before matching"] == ages["all rows"]


def test_a_love_plot_of_six_designs_is_refused() -> None:
    X, treat = confounded(50)
    with pytest.raises(UnusableInput, match="a love plot has 1 to 5 designs, not 6"):
        love_plot([weighted(treat, X)] * 6)
