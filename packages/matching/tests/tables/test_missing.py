"""Missing values: refused, left out, or kept with a covariate that marks them."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas
import polars
import pytest

from equipoise_matching import UnusableInput, match, tables
from packages.equipoise.tests.stats.simulated import at_least

WORDS = np.array(["a", "b", "a", "b", None, "b", "a", "b"], dtype=object)
TABLE: dict[str, Any] = {
    "t": [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0],
    "x": [1.0, 2.0, np.nan, 4.0, 1.1, 2.2, 3.3, 4.4],
    "w": WORDS,
    "y": [5.0, 6.0, 7.0, 8.0, 1.0, np.nan, 3.0, 4.0],
}


def test_a_missing_value_is_refused_with_its_row_and_a_hint() -> None:
    with pytest.raises(UnusableInput, match=r"x is missing in row 2 \(from 0\)") as refused:
        tables.match(TABLE, "y", "t", ["x", "w"])
    assert 'add missing="drop" to leave out the 3 rows' in str(refused.value.hint)


def test_rows_with_a_missing_value_are_left_out_and_counted() -> None:
    result = tables.match(TABLE, "y", "t", ["x", "w"], missing="drop")
    kept = [0, 1, 3, 6, 7]
    matrix = np.array([[TABLE["x"][row], WORDS[row] == "b"] for row in kept], dtype=float)
    expected = match([TABLE["y"][row] for row in kept], [TABLE["t"][row] for row in kept], matrix)
    assert result.estimate == expected.estimate
    assert result.pairs.treated_index.tolist() == [kept[row] for row in expected.treated_index]
    assert result.missing.columns == {"x": 1, "w": 1, "y": 1}
    assert result.missing.rows_left_out == 3
    assert "Missing values (x in 1, w in 1, y in 1): 3 rows are left out." in result.summary()


def test_an_indicator_keeps_rows_without_a_covariate_but_not_without_an_outcome() -> None:
    result = tables.match(TABLE, "y", "t", ["x", "w"], missing="indicator")
    assert result.balance.variables == ("x", "w=a", "w=b", "x is missing")
    kept = [0, 1, 2, 3, 4, 6, 7]
    known = [TABLE["x"][row] for row in kept if row != 2]
    assert result.table.covariates.matrix[2].tolist() == [np.mean(known), 1.0, 0.0, 1.0]
    assert result.missing.rows_left_out == 1
    assert result.table.rows.tolist() == kept
    assert "1 row is left out" in result.summary()


@pytest.mark.parametrize(
    "column",
    [
        pandas.array([1, None, 3, 4, 5, 6, 7, 8], dtype="Int64"),
        pandas.array(["u", None, "u", "v", "u", "v", "u", "v"], dtype="string"),
        pandas.array([True, None, False, True, False, True, False, True], dtype="boolean"),
        pandas.Categorical(["u", None, "u", "v", "u", "v", "u", "v"]),
    ],
    ids=["Int64", "string", "boolean", "category"],
)
def test_the_missing_values_of_pandas_are_missing(column: Any) -> None:
    frame = pandas.DataFrame({"t": TABLE["t"], "c": column})
    result = tables.match(frame, treatment="t", covariates=["c"], missing="drop")
    assert result.missing.columns == {"c": 1}
    assert 1 not in result.pairs.treated_index
    result = tables.match(frame, treatment="t", covariates=["c"], missing="indicator")
    assert result.missing.rows_left_out == 0


def test_the_missing_values_of_polars_are_missing() -> None:
    frame = polars.DataFrame(
        {"t": [1, 1, 0, 0, None], "c": ["u", None, "v", "u", "u"], "n": [1, 2, 3, None, 5]}
    )
    result = tables.match(frame, treatment="t", covariates=["c", "n"], missing="indicator")
    assert result.missing.columns == {"t": 1, "c": 1, "n": 1}
    assert result.missing.rows_left_out == 1
    assert result.balance.variables == ("c=u", "c=v", "n", "n is missing")


def test_truths_with_a_gap_are_numbers_in_a_formula_too() -> None:
    frame = {"t": [1, 1, 0, 0, 0], "c": np.array([True, None, False, True, False], dtype=object)}
    for missing in ("drop", "indicator"):
        by_name = tables.match(frame, treatment="t", covariates="c", missing=missing)
        by_formula = tables.match(frame, formula="t ~ c", missing=missing)
        assert len(by_name.balance.variables) == len(by_formula.balance.variables)
        assert by_name.pairs.control_index.tolist() == by_formula.pairs.control_index.tolist()


def test_a_formula_has_the_same_policies() -> None:
    frame = pandas.DataFrame(TABLE)
    dropped = tables.match(frame, "y", formula="t ~ x + w", missing="drop")
    assert dropped.estimate == tables.match(frame, "y", "t", ["x", "w"], missing="drop").estimate
    kept = tables.match(frame, "y", formula="t ~ x + w", missing="indicator")
    assert kept.balance.variables[-1] == "x is missing"
    assert kept.missing.rows_left_out == 1


def test_a_column_without_any_value_is_refused_under_every_policy() -> None:
    nothing = {"t": [1, 1, 0, 0], "x": [np.nan] * 4}
    for missing in ("drop", "indicator"):
        with pytest.raises(UnusableInput, match="every row"):
            tables.match(nothing, treatment="t", covariates="x", missing=missing)


def test_observe_has_the_same_policies() -> None:
    from packages.matching.tests.observation.logs import loaded_log

    log = loaded_log()
    log["load"] = log["load"].copy()
    log["load"][[3, 5, 8]] = np.nan
    options: dict[str, Any] = {"covariates": "load", "method": "mahalanobis"}
    with pytest.raises(UnusableInput, match="load is missing in rows 3, 5, 8"):
        tables.observe(log, "version=2.0:1.0", "wall_s", **options)
    kept = tables.observe(log, "version=2.0:1.0", "wall_s", missing="indicator", **options).document
    assert kept.question.covariates == ("load", "load is missing")
    assert kept.rows.left_out == {}
    left_out = tables.observe(log, "version=2.0:1.0", "wall_s", missing="drop", **options).document
    assert left_out.rows.left_out == {"a missing value (load)": 3}
    assert left_out.rows.read == 400


def test_errors_and_warnings_in_python_name_arguments_and_no_options() -> None:
    from packages.matching.tests.observation.logs import loaded_log

    nothing = {"t": [1, 1, 0, 0], "x": [np.nan] * 4}
    with pytest.raises(UnusableInput) as refused:
        tables.match(nothing, treatment="t", covariates="x", missing="drop")
    assert refused.value.hint == 'name fewer columns, or add missing="indicator"'
    dates = {**TABLE, "x": np.array([date(2024, 1, 1), None] * 4, dtype=object)}
    with pytest.raises(UnusableInput) as refused:
        tables.match(dates, "y", "t", "x", missing="indicator")
    assert 'add missing="drop"' in str(refused.value)
    with pytest.raises(UnusableInput, match="^common_support cannot be used with by"):
        tables.match(TABLE, "y", "t", ["x"], by="w", common_support=True, missing="drop")
    log = loaded_log()
    with pytest.raises(UnusableInput, match="^covariates: there is no column a--b"):
        tables.observe(log, "version=2.0:1.0", "wall_s", covariates="a--b")
    log["load"] = np.where(np.arange(400) < 20, np.nan, log["load"])
    found = tables.observe(log, "version=2.0:1.0", "wall_s", method="mahalanobis", cluster=())
    warning = next(
        entry for entry in found.document.warnings if entry.code == "covariates-left-out"
    )
    assert warning.summary.endswith("load (20 missing)")
    assert 'add missing="indicator"' in warning.hint


def test_an_indicator_removes_the_effect_of_being_missing() -> None:
    # Whoever has no answer is treated more often and has a higher outcome: without its indicator
    # the effect, 1 in truth, would be taken for about 2.
    within = 0
    for seed in range(60):
        draw = np.random.default_rng(seed)
        gone = draw.random(400) < 0.3
        treated = draw.random(400) < np.where(gone, 0.7, 0.2)
        x = draw.normal(size=400)
        y = treated + 4.0 * gone + x + draw.normal(0.0, 0.5, 400)
        table = {"t": treated, "x": np.where(gone, np.nan, x), "y": y}
        result = tables.match(table, "y", "t", "x", missing="indicator")
        assert result.interval is not None
        within += result.interval[0] <= 1.0 <= result.interval[1]
    assert within >= at_least(60, 0.95)
