"""Newton's method on convex functions with known minima."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from equipoise_matching.weights.newton import Evaluation, minimize_convex
from packages.matching.tests.weights.samples import Floats

MATRIX = np.array([[4.0, 1.0], [1.0, 3.0]])
VECTOR = np.array([1.0, 2.0])


def quadratic(point: Floats) -> Evaluation:
    return Evaluation(
        float(point @ MATRIX @ point / 2 - VECTOR @ point), MATRIX @ point - VECTOR, MATRIX
    )


def steep(point: Floats) -> Evaluation:
    """The sum of exp(x) + exp(-2x) over two variables: a full step from far away overflows."""
    up, down = np.exp(point), np.exp(-2 * point)
    return Evaluation(float((up + down).sum()), up - 2 * down, np.diag(up + 4 * down))


def test_a_quadratic_needs_one_step() -> None:
    minimum = minimize_convex(quadratic, np.zeros(2), tolerance=1e-12, lower_bound=-np.inf)
    assert minimum.point == pytest.approx(np.linalg.solve(MATRIX, VECTOR), rel=1e-14)
    assert (minimum.iterations, minimum.converged, minimum.unbounded) == (1, True, False)


@pytest.mark.parametrize("start", [[0.0, 0.0], [30.0, -30.0], [-60.0, 60.0]])
def test_the_line_search_reaches_the_minimum_from_afar(start: list[float]) -> None:
    minimum = minimize_convex(steep, np.array(start), tolerance=1e-12, lower_bound=0.0)
    assert minimum.converged
    assert minimum.point == pytest.approx(np.full(2, np.log(2) / 3), abs=1e-12)


def test_a_function_without_a_minimum_ends_at_the_lower_bound() -> None:
    def softened(point: Floats) -> Evaluation:
        tail = np.exp(point)
        return Evaluation(float(point.sum() + tail.sum()), 1 + tail, np.diag(tail))

    minimum = minimize_convex(softened, np.zeros(1), tolerance=1e-12, lower_bound=-1e3)
    assert minimum.unbounded and not minimum.converged


def test_dependent_variables_do_not_stop_the_search() -> None:
    both = np.array([1.0, 1.0])

    def function(point: Floats) -> Evaluation:
        value = quadratic(np.array([both @ point, 0.0]))
        return Evaluation(
            value.value, value.gradient[0] * both, value.hessian[0, 0] * np.outer(both, both)
        )

    minimum = minimize_convex(function, np.zeros(2), tolerance=1e-12, lower_bound=-np.inf)
    assert minimum.converged
    assert minimum.point.sum() == pytest.approx(0.25)


def test_scipy_finds_the_same_minimum() -> None:
    random = np.random.default_rng(5)
    rows = random.normal(size=(40, 3))

    def softplus(point: Floats) -> Evaluation:
        odds = np.exp(rows @ point)
        share = odds / (1 + odds)
        return Evaluation(
            float(np.log1p(odds).sum() - rows[:20].sum(axis=0) @ point),
            share @ rows - rows[:20].sum(axis=0),
            rows.T @ (rows * (share * (1 - share))[:, np.newaxis]),
        )

    ours = minimize_convex(softplus, np.zeros(3), tolerance=1e-12, lower_bound=-np.inf)
    theirs = minimize(
        lambda point: softplus(point).value, np.zeros(3), jac=lambda point: softplus(point).gradient
    )
    assert ours.converged
    assert ours.point == pytest.approx(theirs.x, abs=1e-5)
