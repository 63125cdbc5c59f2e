"""The derivative-based part: BFGS and L-BFGS-B of SciPy from one point."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.genoud.evaluate import Batches
from equipoise.genoud.gradient import Box, gradient, intervals
from equipoise.genoud.options import SearchOptions
from equipoise.genoud.worker import EvaluationFailed, point_text
from equipoise.model.errors import UnusableInput

Floats = NDArray[np.float64]

MOST_ITERATIONS = 100
"""Of one polish, the default of R's optim."""
WORTHLESS = 1e300
"""What the optimiser is told where the value is infinite or out of reach: SciPy's line search
interpolates and can do nothing with infinity."""
SMALL_GRADIENT = 0.0
"""Polishing ends where it gains nothing any more, not where the gradient looks small."""


class Polisher:
    """Polishes points of a scalar search, and gives its gradients.

    Parameters
    ----------
    evaluate
        Shape (batch, nvars) to (batch, 1).
    slope
        Shape (nvars,) to (nvars,), the gradient; ``None`` takes differences.
    """

    def __init__(
        self,
        options: SearchOptions,
        evaluate: Batches,
        slope: Callable[[Floats], Any] | None,
    ) -> None:
        try:
            from scipy.optimize import minimize
        except ImportError as error:
            raise UnusableInput(
                "polishing by BFGS needs SciPy",
                hint="pip install 'equipoise[matching]', or bfgs=False",
            ) from error
        self._minimize = minimize
        self._sign = -1.0 if options.maximize else 1.0
        self._evaluate = evaluate
        self._slope = slope
        self._inside = Box(options.lower, options.upper)
        everywhere = np.full(options.nvars, np.inf)
        self._allowed = self._inside if options.boundary == 2 else Box(-everywhere, everywhere)
        self._boundary = options.boundary

    def polish(self, start: Floats) -> tuple[Floats, Floats]:
        """The local minimum (or maximum) from ``start``, and its value, shape (1,).

        Boundary enforcement 0 goes anywhere; 1 goes again with bounds where it has left them; 2
        never leaves them.
        """
        if self._boundary == 2:
            return self._run(start, "L-BFGS-B")
        point, value = self._run(start, "BFGS")
        outside = np.any((point < self._inside.lower) | (point > self._inside.upper))
        if self._boundary == 1 and outside:
            return self._run(start, "L-BFGS-B")
        return point, value

    def gradient(self, point: Floats) -> Floats:
        """Shape (nvars,): the gradient of the function itself."""
        return self._sign * self._descent(point, self._intervals(point))

    def _run(self, start: Floats, method: str) -> tuple[Floats, Floats]:
        best = Best(start, self._costs(start[np.newaxis])[0])
        steps = self._intervals(start)
        box = self._allowed if method == "BFGS" else self._inside

        def cost(point: Floats) -> float:
            point = np.clip(point, box.lower, box.upper)
            value = float(self._costs(point[np.newaxis])[0])
            best.see(point, value)
            return value

        bounds = None if method == "BFGS" else np.column_stack((box.lower, box.upper))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            # SciPy warns of what the search expects: flat, rough and steep places.
            warnings.simplefilter("ignore")
            self._minimize(
                cost,
                start,
                jac=lambda point: self._descent(np.clip(point, box.lower, box.upper), steps),
                method=method,
                bounds=bounds,
                options={"maxiter": MOST_ITERATIONS, "gtol": SMALL_GRADIENT},
            )
        return best.point, np.array([self._sign * best.value])

    def _costs(self, points: Floats) -> Floats:
        values = self._sign * self._evaluate.leniently(points)[:, 0]
        return np.where(np.isnan(values), WORTHLESS, np.clip(values, -WORTHLESS, WORTHLESS))

    def _intervals(self, point: Floats) -> Floats:
        if self._slope is not None:
            return np.empty(0)
        value = float(self._costs(point[np.newaxis])[0])
        return intervals(self._costs, point, value, self._allowed)

    def _descent(self, point: Floats, steps: Floats) -> Floats:
        """The gradient of the cost."""
        if self._slope is None:
            return gradient(self._costs, point, steps, self._allowed)
        try:
            slope = np.asarray(self._slope(point.copy()), dtype=np.float64)
        except Exception as error:
            raise EvaluationFailed(
                f"the gradient raised {type(error).__name__}: {error} at {point_text(point)}"
            ) from error
        if slope.shape != point.shape:
            raise EvaluationFailed(
                f"the gradient has shape {slope.shape}, not {point.shape}, at {point_text(point)}"
            )
        if np.isnan(slope).any() and self._costs(point[np.newaxis])[0] < WORTHLESS:
            raise EvaluationFailed(f"the gradient returned NaN at {point_text(point)}")
        # Where the function has no number either, a polish has only gone too far.
        return self._sign * np.nan_to_num(slope, nan=0.0, posinf=WORTHLESS, neginf=-WORTHLESS)


class Best:
    """The best point that an optimiser has seen; SciPy may return another."""

    def __init__(self, point: Floats, value: float) -> None:
        self.point = point
        self.value = value

    def see(self, point: Floats, value: float) -> None:
        """Keeps the point if it is better."""
        if value < self.value:
            self.point, self.value = point.copy(), value
