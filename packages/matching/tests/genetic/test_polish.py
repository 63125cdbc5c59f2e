"""Numerical gradients, compared with the true ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise_matching.genetic.polish import (
    Box,
    central_differences,
    difference_steps,
    rounding_error,
)

Floats = NDArray[np.float64]
Many = Callable[[Floats], Floats]

POINT = np.array([0.3, -1.7, 12.0])
ANYWHERE = Box(np.full(3, -np.inf), np.full(3, np.inf))


def slope_of(function: Many, point: Floats = POINT, box: Box = ANYWHERE) -> Floats:
    value = float(function(point[np.newaxis])[0])
    steps = difference_steps(function, point, value, box)
    return central_differences(function, point, steps, box)


@pytest.mark.parametrize(
    ("function", "slope", "error"),
    [
        (lambda x: np.exp(x / 5).sum(axis=1), lambda x: np.exp(x / 5) / 5, 1e-7),
        (lambda x: np.sin(x).prod(axis=1), lambda x: np.sin(x).prod() / np.tan(x), 1e-6),
        (lambda x: x @ [1.0, 2.0, -3.0], lambda x: np.array([1.0, 2.0, -3.0]), 1e-8),
        (lambda x: (x**2).sum(axis=1), lambda x: 2 * x, 1e-7),
        (lambda x: 1e8 + (x**4).sum(axis=1), lambda x: 4 * x**3, 1e-3),
        (lambda x: np.full(len(x), 7.0), lambda x: np.zeros(3), 1e-12),
    ],
)
def test_differences_come_close_to_the_true_gradient(
    function: Many, slope: Callable[[Floats], Floats], error: float
) -> None:
    true = slope(POINT)
    assert slope_of(function) == pytest.approx(true, rel=error, abs=error * np.abs(true).max())


def test_a_rough_function_is_differenced_over_wider_intervals() -> None:
    def rough(x: Floats) -> Floats:
        return np.asarray(np.round((x**2).sum(axis=1), 5))

    assert slope_of(rough) == pytest.approx(2 * POINT, rel=0.1)


def test_the_rounding_error_of_a_rough_function_is_estimated() -> None:
    source = np.random.default_rng(1)

    def noisy(x: Floats) -> Floats:
        return np.asarray((x**2).sum(axis=1) + 1e-6 * source.standard_normal(len(x)))

    error = rounding_error(noisy, POINT, float((POINT**2).sum()), ANYWHERE)
    assert 1e-7 < error < 1e-5


def test_a_gradient_never_looks_outside_its_box() -> None:
    box = Box(np.array([0.3, -2.0, 11.0]), np.array([0.3, -1.7, 12.0]))
    batches: list[Floats] = []

    def watched(x: Floats) -> Floats:
        batches.append(x.copy())
        return np.asarray(np.exp(x / 5).sum(axis=1))

    slope = slope_of(watched, POINT, box)
    points = np.concatenate(batches)
    assert np.all((points >= box.lower) & (points <= box.upper))
    assert slope[0] == 0.0
    assert slope[1:] == pytest.approx(np.exp(POINT[1:] / 5) / 5, rel=1e-3)


def test_all_parameters_are_tried_in_one_batch() -> None:
    batches = 0

    def counted(x: Floats) -> Floats:
        nonlocal batches
        batches += 1
        return np.asarray((x**2).sum(axis=1))

    for nvars in (2, 200):
        batches = 0
        point = np.linspace(1.0, 2.0, nvars)
        box = Box(np.full(nvars, -np.inf), np.full(nvars, np.inf))
        difference_steps(counted, point, float((point**2).sum()), box)
        assert batches < 22
