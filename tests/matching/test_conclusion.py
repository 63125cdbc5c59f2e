"""What a match, its balance and a search came to, in words."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from equipoise.matching import gen_match, match, match_balance, match_by
from equipoise.matching.balance import Balance
from equipoise.matching.conclusion import (
    MOST_STRATA,
    Question,
    balance_conclusion,
    match_conclusion,
    search_conclusion,
)
from equipoise.matching.effect_words import (
    Difference,
    effect_words,
    estimate_cells,
    matched_difference,
    naive_difference,
)
from equipoise.matching.match import MatchResult

ASKED = Question("people.csv", "t", "y", ("Each by its nearest.",), "equipoise match people.csv")


def people(rows: int = 120) -> tuple[Any, Any, Any]:
    """Outcome, who was treated, and two covariates of which the first decides both."""
    generator = np.random.default_rng(6)
    x = np.column_stack([generator.normal(size=rows), generator.integers(0, 2, rows)])
    treated = x[:, 0] + generator.normal(size=rows) > 0.6
    return 2.0 * x[:, 0] + 300.0 * treated + generator.normal(size=rows), treated, x


def balance_of(result: MatchResult | None) -> Balance:
    _, treated, x = people()
    return match_balance({"age": x[:, 0], "black": x[:, 1]}, treated, result, boot=0)


def matched(**how: Any) -> MatchResult:
    outcome, treated, x = people()
    return match(outcome, treated, x, **how)


def test_an_effect_is_said_with_its_interval_and_its_direction() -> None:
    assert effect_words(Difference(1794.3, (474.2, 3114.9)), "re78", "treat") == (
        "Among comparable units re78 is 1,794 higher with treat [474, 3,115]."
    )
    assert effect_words(Difference(-0.125, (-0.2, -0.05)), "y", "t") == (
        "Among comparable units y is 0.125 lower with t [0.05, 0.2]."
    )
    assert effect_words(Difference(1.0, (-2.0, 4.0)), "y", "t") == (
        "Among comparable units no effect of t on y is shown [from 2 lower to 4 higher]."
    )
    assert effect_words(Difference(1.0, None), "y", "t") == (
        "Among comparable units y is 1 higher with t."
    )
    assert estimate_cells(Difference(1.0, None)) == ("+1", "unknown")


def test_the_interval_is_the_estimate_and_1_96_errors() -> None:
    result = matched()
    effect = matched_difference(result)
    assert effect is not None
    assert effect.interval is not None
    assert result.se is not None
    half = (effect.interval[1] - effect.interval[0]) / 2.0
    assert half == pytest.approx(stats.norm.ppf(0.975) * result.se)
    assert matched_difference(replace(result, estimate=None)) is None
    single = matched_difference(replace(result, se=None, se_standard=math.nan))
    assert single is not None
    assert single.interval is None


def test_the_naive_interval_is_that_of_welch() -> None:
    outcome, treated, _ = people()
    naive = naive_difference(outcome, treated, None)
    welch = stats.ttest_ind(outcome[treated], outcome[~treated], equal_var=False)
    assert naive.interval == pytest.approx(tuple(welch.confidence_interval()), rel=1e-9)
    huge = naive_difference(1e300 * outcome, treated, None)
    assert huge.interval == pytest.approx([1e300 * end for end in naive.interval or ()], rel=1e-9)
    assert naive_difference(np.ones(4), np.array([True, False] * 2), None).interval is None


def test_a_match_says_effect_naive_difference_worst_covariate_and_who_is_left_out() -> None:
    outcome, treated, _ = people()
    result = matched(caliper=0.05)
    found = match_conclusion(
        result, balance_of(result), naive_difference(outcome, treated, None), ASKED
    )
    assert found.words.startswith("Among comparable units y is 30")
    assert found.estimate is not None
    naively, worst, dropped = found.beside
    assert naively.startswith("Naively, all rows as they are: 30")
    assert " is furthest apart, by " in worst
    assert worst.endswith("; before, age was, by 182.2 %.")
    assert dropped == (
        f"{result.n_dropped} of {int(treated.sum())} treated found no match and are left out."
    )
    assert "dropped" in [one.code for one in found.warnings]
    assert found.method[0] == "Each by its nearest."
    assert found.again == ASKED.again


def test_a_match_without_an_outcome_answers_with_its_balance() -> None:
    _, treated, x = people()
    result = match(None, treated, x)
    found = match_conclusion(result, balance_of(result), None, replace(ASKED, outcome=None))
    assert found.words.startswith("After matching age is furthest apart, by ")
    assert found.estimate is None
    assert {row["kind"] for row in found.numbers} == {"covariate"}


def test_balance_alone_tells_of_all_rows_and_warns_of_nothing() -> None:
    found = balance_conclusion(balance_of(None), None, ASKED)
    assert found.words == (
        "Of treated and controls as they are age is furthest apart, by 182.2 % of a standard "
        "deviation."
    )
    assert found.beside[0].startswith("The smallest p-value of balance is ")
    assert found.warnings == ()
    assert found.tone == "undecided"


def test_two_constants_are_apart_without_limit_and_are_warned_of() -> None:
    treated = np.arange(6) % 2 == 0
    columns = {"side": treated.astype(float), "x": np.array([1.0, 1.1, 2.0, 2.1, 3.0, 3.1])}
    result = match(None, treated, np.column_stack([columns["x"]]))
    balance = match_balance(columns, treated, result, boot=0)
    found = balance_conclusion(balance, result, ASKED)
    assert found.words == (
        "After matching side is furthest apart, without limit; before, side was, without limit."
    )
    assert [one.code for one in found.warnings] == ["unbalanced"]


def test_every_covariate_has_its_row_before_and_after_with_its_name() -> None:
    result = matched()
    (table,) = match_conclusion(result, balance_of(result), None, ASKED).tables
    assert [row[:2] for row in table.rows] == [
        ("age", "before"),
        ("age", "after"),
        ("black", "before"),
        ("black", "after"),
    ]
    assert all(len(row) == len(table.headings) for row in table.rows)


def test_of_many_strata_the_largest_stand_in_the_table_and_the_skipped_are_warned_of() -> None:
    outcome, treated, x = people()
    strata = np.arange(120) % 40 + np.where(np.arange(120) < 60, 0, 100)
    result = match_by(outcome, treated, x, by={"city": strata})
    balance = match_balance({"age": x[:, 0]}, treated, result, boot=0)
    found = match_conclusion(result, balance, None, ASKED)
    table = found.tables[0]
    assert len(table.rows) == min(MOST_STRATA, len(result.strata))
    assert table.notes == (
        f"The largest of them; --json has the {len(result.strata) - MOST_STRATA} others too.",
    )
    assert result.skipped
    assert "skipped" in [one.code for one in found.warnings]


def test_a_search_tells_the_smallest_p_value_before_and_after_and_its_weights() -> None:
    outcome, treated, x = people()
    found = gen_match(treated, x, population=10, generations=1, seed=1)
    balance = found.balance()
    told = search_conclusion(found, None, balance, None, ASKED)
    before, after = balance.smallest_before, balance.smallest_after
    assert after is not None
    assert told.words.startswith(f"The smallest p-value of balance was {before.value:.3g} (")
    assert f"and is {after.value:.3g} (" in told.words
    weights = {row["name"]: row["weight"] for row in told.numbers if row["kind"] == "weight"}
    assert weights == dict(zip(found.names, found.weights.tolist(), strict=True))
    effect = match(outcome, treated, x, metric=found.to_metric())
    answered = search_conclusion(found, effect, balance, None, ASKED)
    assert answered.words.startswith("Among comparable units y is ")
    assert answered.beside[0] == told.words
    assert len(dict(answered.facts)) == len(answered.facts)
