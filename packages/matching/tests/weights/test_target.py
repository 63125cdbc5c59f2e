"""The estimand of a weighting, and columns in standard deviations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise_matching.weights.target import standardized, weighting_problem

TREAT, X = [0, 1, 0, 1], [[1.0], [2.0], [3.0], [4.0]]


def test_the_target_of_each_estimand() -> None:
    targets = {
        estimand: weighting_problem(TREAT, X, estimand, None).target_rows.tolist()
        for estimand in ("ATT", "ATC", "ATE")
    }
    treated, everyone = [False, True, False, True], [True] * 4
    controls = [not is_treated for is_treated in treated]
    assert targets == {"ATT": treated, "ATC": controls, "ATE": everyone}


def test_a_design_of_labels_names_its_focal_arm() -> None:
    problem = weighting_problem(["x", "y", "z", "x"], X, "ATT", "z")
    assert (problem.focal, problem.weighted_arms) == (2, (0, 1))
    assert problem.target_name == "arm z"


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_standardised_columns_have_mean_0_and_deviation_1(scale: float) -> None:
    matrix = np.random.default_rng(1).normal(size=(50, 3)) * scale
    columns, varies = standardized(matrix)
    assert varies.all()
    assert np.abs(columns.mean(axis=0)).max() < 1e-14
    assert columns.std(axis=0) == pytest.approx(np.ones(3), rel=1e-13)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_constant_column_becomes_0(value: float) -> None:
    columns, varies = standardized(np.full((7, 1), value))
    assert not varies.any() and not columns.any()


def test_a_large_offset_keeps_the_digits_of_the_variation() -> None:
    column = 1e9 + np.arange(10.0)
    columns, varies = standardized(column[:, np.newaxis])
    assert varies.all()
    assert columns[:, 0] == pytest.approx((np.arange(10) - 4.5) / np.arange(10).std(), abs=1e-6)
