"""Unusable input is refused with column and rows; unusual but usable input is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import polars
import pytest

from equipoise_matching import match
from equipoise_matching.shared.errors import UnusableInput

TREAT = np.array([1, 0, 1, 0, 0, 1, 0, 0])
Y = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0])
X = np.column_stack([np.arange(8.0), [2, 7, 1, 8, 2, 8, 1, 8]])


def with_value(place: tuple[int, ...], value: float, array: Any) -> Any:
    changed = np.array(array, dtype=np.float64)
    changed[place] = value
    return changed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"X": with_value((3, 1), np.nan, X)}, r"X, column 'x2' is missing in row 3"),
        ({"X": with_value((3, 0), np.inf, X)}, r"X, column 'x1' is infinite in row 3"),
        ({"y": with_value((2,), np.nan, Y)}, r"y is missing in row 2"),
        ({"treat": with_value((4,), 2, TREAT)}, r"treat is neither 0 nor 1 in row 4"),
        ({"treat": with_value((4,), np.nan, TREAT)}, r"treat is missing in row 4"),
        ({"treat": np.ones(8)}, r"treat is 1 in all 8 rows"),
        ({"y": Y[:5]}, r"y has 5 rows and X has 8"),
        ({"treat": TREAT[:5]}, r"treat has 5 rows and X has 8"),
        ({"weights": np.ones(5)}, r"weights has 5 rows and X has 8"),
        ({"weights": -np.ones(8)}, r"weights is negative in rows 0, 1, 2, 3, 4 and 3 more"),
        ({"weights": 1.0 - TREAT}, r"every treated unit weighs 0"),
        ({"covariates": X[:5]}, r"covariates has 5 rows and X has 8"),
        ({"caliper": [1, 2, 3]}, r"caliper has 3 values and X has 2 columns"),
        ({"caliper": -1}, r"the caliper of column 'x1' is -1"),
        ({"exact": [True]}, r"exact has 1 values and X has 2 columns"),
        ({"exact": ["age"]}, r"exact names 'age', which is not a column of X"),
        ({"metric": "euclid"}, r"there is no metric 'euclid'"),
        ({"metric": [1, 2, 3]}, r"metric has shape \(3,\) and X has 2 columns"),
        ({"metric": [[1, 2], [0, 1]]}, r"metric is not symmetric: row 0, column 'x2' is 2"),
        ({"metric": [1, -1]}, r"not positive semidefinite: .* mostly along column 'x2'"),
        ({"metric": [0, 0]}, r"metric is 0 throughout"),
        ({"restrict": [[0, 8, -1]]}, r"restrict names a row that is not among 0 to 7"),
        ({"restrict": [[0, 1]]}, r"restrict has shape"),
        ({"estimand": "ATX"}, r"there is no estimand 'ATX'"),
        ({"m": 0}, r"m is 0"),
        ({"m": "2"}, r"m is '2'"),
        ({"m": np.nan}, r"m is nan"),
        ({"seed": 2**64}, r"seed is 18446744073709551616"),
        ({"distance_tolerance": "x"}, r"distance_tolerance is 'x'"),
        ({"caliper": "wide"}, r"caliper is 'wide'"),
        ({"reuse": 3}, r"reuse is of type int"),
        ({"X": X + 1j}, r"X has the type complex128"),
        (
            {"X": pandas.DataFrame({"day": pandas.date_range("2020", periods=8)})},
            r"X has the type date",
        ),
        ({"X": [[1, 2], [3]] * 4}, r"X has rows of unequal lengths"),
        ({"y": [*"1234567", "x"]}, r"y is not a number in row 7"),
        ({"variance": "both"}, r"there is no variance 'both'"),
        ({"distance_tolerance": -1.0}, r"distance_tolerance is -1"),
        ({"exact": True}, r"no unit has a valid match"),
        ({"X": [["a"]] * 8}, r"X, column 'x1' is not a number in rows 0, 1, 2, 3, 4 and 3 more"),
        ({"X": np.zeros((8, 0))}, r"X has shape \(8, 0\)"),
        ({"bias_adjust": True, "covariates": np.eye(8)[:, :6]}, r"bias_adjust fits 6 slopes"),
    ],
)
def test_an_error_names_the_fault_and_its_place(options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"y": Y, "treat": TREAT, "X": X}
    with pytest.raises(UnusableInput, match=message):
        match(**(arguments | options))


def test_the_error_names_the_column_of_a_frame() -> None:
    frame = pandas.DataFrame(with_value((3, 1), np.nan, X), columns=["age", "educ"])
    with pytest.raises(UnusableInput, match="X, column 'educ' is missing in row 3"):
        match(Y, TREAT, frame)


def test_a_missing_value_in_any_kind_of_frame_is_named() -> None:
    frame = pandas.DataFrame(X, columns=["age", "educ"]).astype("Int64")
    frame.loc[3, "educ"] = pandas.NA
    polars_frame = polars.DataFrame(
        {"age": X[:, 0], "educ": [1.0, 2.0, 1.0, None, 2.0, 1.0, 3.0, 1.0]}
    )
    frames: list[Any] = [
        frame,
        polars_frame,
        {name: polars_frame[name] for name in polars_frame.columns},
    ]
    for covariates in frames:
        with pytest.raises(UnusableInput, match="X, column 'educ' is missing in row 3"):
            match(Y, TREAT, covariates)
    frame_of_texts = pandas.DataFrame(
        {"age": X[:, 0], "site": ["1", "2", "x", "4", "5", "y", "7", "8"]}
    )
    with pytest.raises(UnusableInput, match="X, column 'site' is not a number in rows 2, 5"):
        match(Y, TREAT, frame_of_texts)


def test_exact_takes_names_of_columns() -> None:
    frame = pandas.DataFrame(X, columns=["age", "educ"])
    result = match(Y, TREAT, frame, exact=["educ"])
    assert (X[result.treated_index, 1] == X[result.control_index, 1]).all()


def test_no_common_support_is_an_error() -> None:
    with pytest.raises(UnusableInput, match="no range in common"):
        match(Y, TREAT, TREAT.astype(float), common_support=True)


def test_a_constant_column_changes_nothing() -> None:
    for metric in ("inverse_variance", "mahalanobis"):
        plain = match(Y, TREAT, X, metric=metric)
        # Seven times 0.1 is where R stops with an error: its variance is slightly negative.
        odd = match(Y, TREAT, np.column_stack([X, np.full(8, 0.1)]), metric=metric)
        assert odd.estimate == pytest.approx(plain.estimate)
        assert list(odd.control_index) == list(plain.control_index)


def test_only_constant_columns_tie_everyone() -> None:
    result = match(Y, TREAT, np.full(8, 0.1))
    assert result.estimate == pytest.approx(Y[TREAT == 1].mean() - Y[TREAT == 0].mean())


@pytest.mark.parametrize("scale", [1e-160, 1e-12, 1e12, 1e160])
def test_the_scale_of_a_column_does_not_matter(scale: float) -> None:
    generator = np.random.default_rng(4)
    x = np.column_stack([generator.normal(size=90), generator.integers(0, 4, 90)])
    treat, y = (np.arange(90) % 3 == 0).astype(float), x.sum(axis=1)
    choices: list[dict[str, Any]] = [
        {},
        {"metric": "mahalanobis"},
        {"caliper": 0.8},
        {"exact": [False, True]},
        {"common_support": True},
    ]
    for more in choices:
        plain = match(y, treat, x, **more)
        scaled = match(y, treat, x * [1.0, scale], **more)
        assert list(scaled.dropped_index) == list(plain.dropped_index)
        assert list(scaled.control_index) == list(plain.control_index)
        assert scaled.estimate == pytest.approx(plain.estimate)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_scale_of_the_outcome_does_not_matter(scale: float) -> None:
    generator = np.random.default_rng(5)
    x = generator.normal(size=(60, 2))
    treat = (np.arange(60) % 3 == 0).astype(float)
    y = x @ [1.0, 2.0] + treat + generator.normal(size=60)
    for more in ({}, {"variance_neighbors": 2}, {"bias_adjust": True}):
        plain = match(y, treat, x, **more)
        scaled = match(y * scale, treat, x, **more)
        for name in ("estimate", "se", "se_standard", "estimate_unadjusted"):
            assert getattr(scaled, name) == pytest.approx(scale * getattr(plain, name))
        assert scaled.p_value == pytest.approx(plain.p_value)


def test_bias_adjustment_does_not_depend_on_the_scale_of_a_column() -> None:
    generator = np.random.default_rng(3)
    x = generator.normal(size=(60, 2))
    treat = (np.arange(60) % 3 == 0).astype(float)
    y = x @ [1.0, 2.0] + treat + generator.normal(size=60)
    plain = match(y, treat, x, bias_adjust=True)
    for scales in ([1e-12, 1e12], [1e-170, 1e170]):
        scaled = match(y, treat, x * scales, bias_adjust=True)
        assert scaled.estimate == pytest.approx(plain.estimate, rel=1e-9)
        assert scaled.se == pytest.approx(plain.se, rel=1e-9)


def test_one_treated_unit_gives_an_effect_but_no_error_of_abadie_and_imbens() -> None:
    result = match([5.0, 1.0, 2.0, 3.0], [1, 0, 0, 0], [[0.0], [0.1], [5.0], [9.0]])
    assert result.estimate == 4.0
    assert list(result.control_index) == [1]
    assert result.se is None
    assert "Estimate" in result.summary()


def test_duplicates_of_every_row_leave_the_effect_as_it_is() -> None:
    once = match(Y, TREAT, X, estimand="ATE")
    twice = match(np.tile(Y, 2), np.tile(TREAT, 2), np.tile(X, (2, 1)), estimand="ATE")
    assert twice.estimate == pytest.approx(once.estimate)
    assert twice.n_weighted == 2 * once.n_weighted
    assert len(twice.weights) == 4 * len(once.weights)


def test_without_an_outcome_there_are_pairs_and_no_numbers() -> None:
    result = match(None, TREAT, X)
    assert result.estimate is result.se is result.p_value is None
    assert list(result.to_frame().columns) == ["treated_index", "control_index", "weight"]
    assert list(result.control_index) == list(match(Y, TREAT, X).control_index)
