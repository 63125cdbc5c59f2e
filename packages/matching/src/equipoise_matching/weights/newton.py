"""The minimum of a smooth convex function, by Newton's method with a line search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from equipoise_matching.matching.units import Floats

MAX_ITERATIONS = 200
MAX_HALVINGS = 60
_SUFFICIENT_DECREASE = 1e-4
"""Share of the decrease that the slope promises, which a step must reach (Armijo 1966)."""
_ROUNDING = 4 * np.finfo(np.float64).eps
_EIGENVALUE_FLOOR = 1e-14
"""Smallest curvature, as a share of the largest; flatter directions are dependent columns."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """A convex function of k variables at a point: value, gradient (k,) and Hessian (k, k)."""

    value: float
    gradient: Floats
    hessian: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """The end of a minimisation.

    Parameters
    ----------
    point
        Shape (k,).
    gradient
        Gradient at the point, shape (k,).
    iterations
        Number of steps.
    converged
        Whether every entry of the gradient is within the tolerance.
    unbounded
        Whether the value fell below the lower bound of functions that have a minimum.
    """

    point: Floats
    gradient: Floats
    iterations: int
    converged: bool
    unbounded: bool


def minimize_convex(
    function: Callable[[Floats], Evaluation],
    start: Floats,
    *,
    tolerance: float,
    lower_bound: float,
) -> Minimum:
    """Minimise a smooth convex function from a starting point.

    Each step goes along Newton's direction, and is halved until the value decreases enough. The
    search stops if all entries of the gradient are within ``tolerance``, if the value is below
    ``lower_bound`` (a function with a minimum never gets there), if no step decreases the value,
    or after ``MAX_ITERATIONS``.

    References
    ----------
    Boyd and Vandenberghe (2004), Convex Optimization, section 9.5.
    """
    point, iterations = start, 0
    # A step that is too long may overflow. The line search halves it.
    with np.errstate(over="ignore", invalid="ignore"):
        current = function(point)
        while iterations < MAX_ITERATIONS and current.value >= lower_bound:
            if np.abs(current.gradient).max() <= tolerance:
                break
            direction = _newton_direction(current)
            slope = float(current.gradient @ direction)
            rounding = _ROUNDING * (1.0 + abs(current.value))
            for halvings in range(MAX_HALVINGS):
                step = 0.5**halvings
                trial = function(point + step * direction)
                limit = current.value + _SUFFICIENT_DECREASE * step * slope + rounding
                if trial.value <= limit and np.isfinite(trial.hessian).all():
                    break
            else:
                break
            point, current = point + step * direction, trial
            iterations += 1
    return Minimum(
        point,
        current.gradient,
        iterations,
        bool(np.abs(current.gradient).max() <= tolerance),
        current.value < lower_bound,
    )


def _newton_direction(evaluation: Evaluation) -> Floats:
    eigenvalues, vectors = np.linalg.eigh(evaluation.hessian)
    # A direction without curvature would divide by 0.
    floor = max(_EIGENVALUE_FLOOR * float(eigenvalues[-1]), np.finfo(np.float64).tiny)
    curvatures = np.maximum(eigenvalues, floor)
    return np.asarray(-(vectors @ ((vectors.T @ evaluation.gradient) / curvatures)))
