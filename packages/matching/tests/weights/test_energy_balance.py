"""Energy balancing against the definition of the energy distance and other solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, nnls
from scipy.spatial.distance import cdist

from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.weights import energy_balance as module
from equipoise_matching.weights.energy_balance import energy_balance
from packages.matching.tests.weights.samples import Floats, three_arms, two_arms

pytest.importorskip("piqp", reason="needs piqp: pip install equipoise-matching[energy]")


def energy_distance(matrix: Floats, first: Floats, second: Floats) -> float:
    """2 E|X - Y| - E|X - X'| - E|Y - Y'| for two distributions over the same rows."""
    scaled = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)
    distances = cdist(scaled, scaled)
    return float(
        2 * first @ distances @ second - first @ distances @ first - second @ distances @ second
    )


def shares_of(weights: Floats, rows: Any) -> Floats:
    return np.asarray(np.where(rows, weights, 0.0) / weights[rows].sum())


def total_distance(matrix: Floats, arm: Any, weights: Floats, *, improved: bool) -> float:
    """The objective for the ATE, written out."""
    everyone = np.full(len(matrix), 1 / len(matrix))
    labels = np.unique(arm)
    shares = [shares_of(weights, arm == label) for label in labels]
    total = sum(energy_distance(matrix, share, everyone) for share in shares)
    if improved:
        total += sum(
            energy_distance(matrix, shares[first], shares[second])
            for first in range(len(shares))
            for second in range(first)
        )
    return total


def test_the_details_have_the_energy_distance_of_its_definition() -> None:
    sample = two_arms(120)
    design = energy_balance(sample.treat, sample.matrix)
    treated = sample.treat == 1
    target = treated / treated.sum()
    weighted = energy_distance(sample.matrix, shares_of(design.weights, ~treated), target)
    unweighted = energy_distance(sample.matrix, ~treated / (~treated).sum(), target)
    assert design.details["Energy distance"] == pytest.approx(weighted, rel=1e-9)
    assert design.details["Energy distance without weights"] == pytest.approx(unweighted, rel=1e-9)
    assert weighted < 0.5 * unweighted


@pytest.mark.parametrize("improved", [True, False])
@pytest.mark.parametrize("arms", [2, 3])
def test_the_distance_of_the_ate_is_the_sum_of_its_definition(arms: int, improved: bool) -> None:
    sample = two_arms(100) if arms == 2 else three_arms(100)
    design = energy_balance(sample.treat, sample.matrix, estimand="ATE", improved=improved)
    expected = total_distance(sample.matrix, sample.treat, design.weights, improved=improved)
    assert design.details["Energy distance"] == pytest.approx(expected, rel=1e-8)
    for label in np.unique(sample.treat):
        rows = sample.treat == label
        assert design.weights[rows].sum() == pytest.approx(rows.sum(), rel=1e-10)


def test_non_negative_least_squares_finds_the_same_weights_of_the_att() -> None:
    # Minimising pᵀKp + (Σp - 1)² over p of 0 or more gives a multiple of the solution.
    sample = two_arms(150)
    design = energy_balance(sample.treat, sample.matrix)
    controls = np.flatnonzero(sample.treat == 0)
    scaled = (sample.matrix - sample.matrix.mean(axis=0)) / sample.matrix.std(axis=0)
    to_target = cdist(scaled, scaled[sample.treat == 1]).mean(axis=1)
    within = to_target[sample.treat == 1].mean()
    kernel = to_target[controls, None] + to_target[controls] - within
    kernel = kernel - cdist(scaled[controls], scaled[controls])
    values, vectors = np.linalg.eigh(kernel)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    found, _ = nnls(np.vstack([root, np.ones(len(controls))]), [*np.zeros(len(controls)), 1.0])
    expected = found / found.sum() * len(controls)
    assert design.weights[controls] == pytest.approx(expected, abs=1e-5)


def test_scipy_finds_no_smaller_distance_for_the_ate() -> None:
    sample = two_arms(30, seed=4)
    matrix, rows = sample.matrix[:, :2], [sample.treat == arm for arm in (0, 1)]
    scaled = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)
    distances, everyone = cdist(scaled, scaled), np.full(30, 1 / 30)

    def total(weights: Floats) -> tuple[float, Floats]:
        """The three energy distances and their gradient."""
        shares = [np.where(row, weights, 0.0) / row.sum() for row in rows]
        differences = [shares[0] - everyone, shares[1] - everyone, shares[0] - shares[1]]
        pulls = [distances @ difference for difference in differences]
        value = -sum(float(d @ pull) for d, pull in zip(differences, pulls, strict=True))
        slopes = [-2 * (pulls[0] + pulls[2]), -2 * (pulls[1] - pulls[2])]
        gradient = sum(
            np.where(row, slope / row.sum(), 0.0) for row, slope in zip(rows, slopes, strict=True)
        )
        return value, np.asarray(gradient)

    design = energy_balance(sample.treat, matrix, estimand="ATE")
    found = minimize(
        total,
        np.ones(30),
        jac=True,
        bounds=[(0.0, None)] * 30,
        constraints=[
            {
                "type": "eq",
                "fun": lambda weights, row=row: weights @ row / row.sum() - 1.0,
                "jac": lambda weights, row=row: row / row.sum(),
            }
            for row in rows
        ],
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    assert design.details["Energy distance"] <= found.fun + 1e-10
    assert design.details["Energy distance"] == pytest.approx(found.fun, abs=1e-7)
    assert design.weights == pytest.approx(found.x, abs=1e-3)


def test_the_certificate_bounds_the_distance_from_the_minimum() -> None:
    sample = two_arms(150)
    design = energy_balance(sample.treat, sample.matrix, estimand="ATE")
    details = design.details
    assert 0 <= details["Certified distance from the minimum"]
    assert details["Certified distance from the minimum"] < 1e-6 * details[
        "Energy distance without weights"
    ]  # fmt: skip


def test_several_arms_approach_the_focal_arm() -> None:
    sample = three_arms(150)
    design = energy_balance(sample.treat, sample.matrix, focal="b")
    focal = sample.treat == "b"
    assert (design.weights[focal] == 1).all()
    for label in "ac":
        rows = sample.treat == label
        before, after = (
            energy_distance(sample.matrix, shares_of(weights, rows), focal / focal.sum())
            for weights in (np.ones(150), design.weights)
        )
        assert after < before
        alone = rows | focal
        two = energy_balance(np.where(focal, 1, 0)[alone], sample.matrix[alone])
        # Columns are scaled by other rows there, so that the weights agree only roughly.
        assert np.corrcoef(two.weights, design.weights[alone])[0, 1] > 0.9


def test_equal_distributions_keep_their_weights() -> None:
    matrix = np.tile(np.random.default_rng(1).normal(size=(20, 2)), (2, 1))
    design = energy_balance(np.repeat([0, 1], 20), matrix)
    assert design.weights == pytest.approx(np.ones(40), abs=1e-5)
    assert design.details["Energy distance"] == pytest.approx(0.0, abs=1e-9)


def test_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ROWS", 20)
    sample = two_arms(50)
    with pytest.raises(UnusableInput, match="rows are to be weighted"):
        energy_balance(sample.treat, sample.matrix)


def test_a_missing_solver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "piqp", None)
    sample = two_arms(30)
    with pytest.raises(UnusableInput, match="energy weights need piqp") as caught:
        energy_balance(sample.treat, sample.matrix)
    assert caught.value.hint is not None and "[energy]" in caught.value.hint


@pytest.mark.parametrize(
    ("treat", "matrix", "message"),
    [
        ([0, 1, 0, 1], np.ones((4, 1)), "no covariate varies"),
        ([0, 1, 0, 1], [1.0, np.inf, 2.0, 3.0], "is infinite in row 1"),
        ([0, 1, 2, 1], [1.0, 2.0, 3.0, 4.0], "needs a focal arm"),
    ],
)
def test_unusable_input_ends_in_one_line(treat: Any, matrix: Any, message: str) -> None:
    with pytest.raises(UnusableInput, match=message) as caught:
        energy_balance(treat, matrix)
    assert "\n" not in caught.value.what


def test_rows_that_are_not_needed_have_exactly_the_weight_0() -> None:
    random = np.random.default_rng(5)
    treat = np.arange(120) % 3 == 0
    X = random.normal(size=(120, 2)) + treat[:, None]
    weights = energy_balance(treat, X).weights
    assert weights.min() == 0.0
    assert weights[weights > 0].min() > 1e-9
