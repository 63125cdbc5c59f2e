"""Entropy balancing against its definition, closed forms, scipy and published numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.weights.entropy_balance import entropy_balance
from packages.matching.tests.weights.samples import (
    COVARIATES,
    Floats,
    three_arms,
    treated_beside_cps,
    two_arms,
    weighted_mean,
)


def standardized_gap(matrix: Floats, first: Floats, second: Floats) -> float:
    return float((np.abs(first - second) / matrix.std(axis=0)).max())


def powers(matrix: Floats, moments: int) -> Floats:
    return np.column_stack([matrix**power for power in range(1, moments + 1)])


@pytest.mark.parametrize("moments", [1, 2, 3])
@pytest.mark.parametrize("estimand", ["ATT", "ATC", "ATE"])
def test_the_moments_are_those_of_the_target(estimand: Any, moments: int) -> None:
    sample = two_arms(800)
    design = entropy_balance(sample.treat, sample.matrix, estimand=estimand, moments=moments)
    columns = powers(sample.matrix, moments)
    target_rows = {
        "ATT": sample.treat == 1, "ATC": sample.treat == 0, "ATE": sample.treat >= 0,
    }[estimand]  # fmt: skip
    target = columns[target_rows].mean(axis=0)
    for arm in (0, 1):
        rows = sample.treat == arm
        mean = weighted_mean(columns, design.weights, rows)
        assert standardized_gap(columns, mean, target) < 1e-8
        assert design.weights[rows].sum() == pytest.approx(rows.sum(), rel=1e-12)
    assert design.details["Largest remaining imbalance (standard deviations)"] < 1e-8


@pytest.mark.parametrize("focal", [None, "b"])
def test_several_arms_get_the_means_of_the_target(focal: str | None) -> None:
    sample = three_arms(600)
    design = entropy_balance(
        sample.treat, sample.matrix, estimand="ATE" if focal is None else "ATT", focal=focal
    )
    target_rows = np.ones(600, dtype=bool) if focal is None else sample.treat == focal
    target = sample.matrix[target_rows].mean(axis=0)
    for arm in "abc":
        mean = weighted_mean(sample.matrix, design.weights, sample.treat == arm)
        assert standardized_gap(sample.matrix, mean, target) < 1e-8
    if focal is not None:
        assert (design.weights[sample.treat == focal] == 1).all()
        assert design.details["Focal arm"] == focal


def test_a_binary_covariate_has_the_closed_form_of_ratios_of_shares() -> None:
    x = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    treat = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    design = entropy_balance(treat, x)
    assert design.weights[:4] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 3], rel=1e-9)


def test_the_weights_are_exponential_in_the_covariates() -> None:
    sample = two_arms(400)
    design = entropy_balance(sample.treat, sample.matrix)
    controls = sample.treat == 0
    logs = np.log(design.weights[controls])
    regressors = np.column_stack([np.ones(controls.sum()), sample.matrix[controls]])
    residuals = logs - regressors @ np.linalg.lstsq(regressors, logs, rcond=None)[0]
    assert np.abs(residuals).max() < 1e-10


def test_scipy_on_the_primal_finds_the_same_weights() -> None:
    sample = two_arms(60, seed=3)
    controls = sample.treat == 0
    base = np.random.default_rng(1).uniform(0.5, 2.0, size=60)
    ours = entropy_balance(sample.treat, sample.matrix[:, :2], base_weights=base).weights
    columns, start = sample.matrix[controls, :2], base[controls] / base[controls].sum()
    target = np.average(sample.matrix[~controls, :2], axis=0, weights=base[~controls])
    found = minimize(
        lambda w: float((w * np.log(w / start)).sum()),
        start,
        jac=lambda w: np.log(w / start) + 1,
        bounds=[(1e-9, None)] * len(start),
        constraints=[
            {"type": "eq", "fun": lambda w: columns.T @ w - target, "jac": lambda w: columns.T},
            {"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones_like(w)},
        ],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    assert found.success
    assert ours[controls] / ours[controls].sum() == pytest.approx(found.x, abs=1e-6)
    assert (ours[~controls] == base[~controls]).all()


def test_weights_of_whole_numbers_are_those_of_repeated_rows() -> None:
    sample = two_arms(200)
    copies = np.random.default_rng(2).integers(1, 4, size=200)
    repeated = np.repeat(np.arange(200), copies)
    weighted = entropy_balance(sample.treat, sample.matrix, base_weights=copies)
    long = entropy_balance(sample.treat[repeated], sample.matrix[repeated])
    assert weighted.weights == pytest.approx(np.bincount(repeated, long.weights), rel=1e-8)


def test_the_number_of_threads_changes_no_bit() -> None:
    limits = pytest.importorskip("threadpoolctl", reason="comes with scikit-learn")
    sample = two_arms(30_000)
    weights = []
    for threads in (1, 2):
        with limits.threadpool_limits(threads):
            weights.append(entropy_balance(sample.treat, sample.matrix, moments=2).weights)
    assert np.array_equal(weights[0], weights[1])


def test_balanced_arms_keep_their_weights() -> None:
    matrix = np.tile([[0.0, 1.0], [1.0, 0.0], [2.0, 5.0]], (2, 1))
    design = entropy_balance([0, 0, 0, 1, 1, 1], matrix, moments=2)
    assert design.weights == pytest.approx(np.ones(6), rel=1e-12)


def test_units_and_copies_of_columns_change_nothing() -> None:
    sample = two_arms(300)
    plain = entropy_balance(sample.treat, sample.matrix).weights
    scaled = sample.matrix * [1e-6, 1e6, 1.0, 1.0] + [0.0, 0.0, 1e5, 0.0]
    changed = np.column_stack([scaled, sample.matrix[:, 0] + sample.matrix[:, 1], np.ones(300)])
    assert entropy_balance(sample.treat, changed).weights == pytest.approx(plain, rel=1e-7)


def test_a_target_on_the_edge_of_an_arm_gives_other_rows_the_weight_0() -> None:
    # All treated have x = 0, so that controls with x = 1 cannot count.
    treat, x = [0, 0, 0, 1, 1], np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    design = entropy_balance(treat, x)
    assert design.weights == pytest.approx([1.5, 1.5, 0.0, 1.0, 1.0], abs=1e-7)


def test_the_error_of_an_unreachable_mean_names_its_column() -> None:
    sample = two_arms(100)
    columns = {"age": sample.matrix[:, 0], "income": sample.matrix[:, 2] + 50 * sample.treat}
    with pytest.raises(UnusableInput, match="income the mean of arm Treated") as caught:
        entropy_balance(sample.treat, columns)
    assert "\n" not in caught.value.what


def test_the_error_of_an_unreachable_combination_names_its_columns() -> None:
    # Each mean of the treated is within the range of the controls, but not both together.
    random = np.random.default_rng(1)
    first = random.uniform(0, 1, size=60)
    columns = {
        "noise": random.normal(size=60),
        "first": np.where(np.arange(60) < 30, first, 0.5),
        "second": np.where(np.arange(60) < 30, first, 0.7),
    }
    with pytest.raises(
        UnusableInput, match="outside the arm's values in (first and second|second)"
    ):
        entropy_balance(np.arange(60) >= 30, columns)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 7), st.integers(1, 3))
def test_weights_are_found_exactly_if_a_linear_programme_finds_some(
    seed: int, controls: int, columns: int
) -> None:
    random = np.random.default_rng(seed)
    matrix = random.integers(0, 4, size=(controls + 3, columns)).astype(float)
    treat = np.arange(controls + 3) >= controls
    if not np.ptp(matrix, axis=0).any():
        return
    target = matrix[treat].mean(axis=0)
    equations = np.vstack([matrix[~treat].T, np.ones(controls)])
    exists = linprog(np.zeros(controls), A_eq=equations, b_eq=[*target, 1.0]).status == 0
    try:
        weights = entropy_balance(treat, matrix).weights
    except UnusableInput:
        assert not exists
        return
    assert exists
    assert weighted_mean(matrix, weights, ~treat) == pytest.approx(target, abs=1e-7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"moments": 4}, "moments is 4"),
        ({"moments": 0}, "moments is 0"),
        ({"estimand": "ATO"}, "there is no estimand 'ATO'"),
        ({"base_weights": [1, 1, -1, 1]}, "base_weights is negative in row 2"),
        ({"base_weights": [1, 1, np.inf, 1]}, "base_weights is infinite in row 2"),
        ({"base_weights": [1, 0, 1, 0]}, "every row of arm Treated weighs 0"),
        ({"base_weights": [1, 1, 1]}, "base_weights has 3 rows"),
        ({"base_weights": [1e308, 1e308, 1, 1]}, "the sum of base_weights is infinite"),
        ({"X": np.ones((4, 2))}, "no covariate varies"),
        ({"X": [1.0, 2.0, np.nan, 1.0]}, "is missing in row 2"),
        ({"treat": [0, 0, 0, 0]}, "nothing to compare with"),
    ],
)
def test_unusable_input_ends_in_one_line(arguments: dict[str, Any], message: str) -> None:
    given = {"treat": [0, 1, 0, 1], "X": [1.0, 2.0, 3.0, 1.5], **arguments}
    with pytest.raises(UnusableInput, match=message) as caught:
        entropy_balance(given.pop("treat"), given.pop("X"), **given)
    assert "\n" not in caught.value.what


def test_63_moments_of_cps_come_near_the_effect_of_the_experiment() -> None:
    # Products, squares and cubes of LaLonde's covariates, as in Hainmueller (2012) and Hainmueller
    # and Xu (2013). The experiment has the effect 1,794.3 dollars; the raw difference is -8,498.
    pytest.importorskip("causaldata", reason="needs causaldata (make dev)")
    sample = treated_beside_cps()
    continuous = [COVARIATES.index(name) for name in ("age", "educ", "re74", "re75")]
    scaled = sample.matrix / np.abs(sample.matrix).max(axis=0)
    products = [
        scaled[:, first] * scaled[:, second]
        for first in range(len(COVARIATES))
        for second in range(first)
    ]
    powers_of = [scaled[:, index] ** power for index in continuous for power in (2, 3)]
    columns = np.column_stack([scaled, *products, *powers_of])
    design = entropy_balance(sample.treat, columns)
    controls = sample.treat == 0
    target = columns[~controls].mean(axis=0)
    mean = weighted_mean(columns, design.weights, controls)
    varies = columns.std(axis=0) > 0
    assert standardized_gap(columns[:, varies], mean[varies], target[varies]) < 1e-8
    outcomes = [
        np.average(sample.outcome[rows], weights=design.weights[rows])
        for rows in (~controls, controls)
    ]
    assert abs(outcomes[0] - outcomes[1] - 1794.3) < 100
