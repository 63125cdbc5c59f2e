"""Polish a candidate: local optimisation by SciPy's BFGS and L-BFGS-B, and gradients.

The cost is the value that SciPy minimises: the function's value, or its negative to maximise.
Gradients are central differences, (f(x + h) - f(x - h)) / 2h. The step h of each parameter is
chosen so that the rounding error is between 0.1 % and 10 % of the second difference,
f(x + h) - 2 f(x) + f(x - h) (Gill, Murray, Saunders & Wright 1983, SIAM Journal on Scientific and
Statistical Computing 4(2), algorithm FD). A table of higher differences gives the rounding error
(Hamming 1973, chapter 10; Gill, Murray & Wright 1981, section 8.5).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise_matching.genetic.options import SearchOptions
from equipoise_matching.genetic.worker import EvaluationFailed, Floats, point_as_code
from equipoise_matching.shared.extras import require

Function = Callable[[Floats], Floats]
"""Function of points (batch, nvars) that returns values (batch,)."""

EPS, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)
"""Distance from 1 to the next float, and the smallest normal float above 0."""
TABLE_ORDER = 9
"""Order of the difference table from which the rounding error is estimated."""
TABLE_STEP = 1e-9
"""Spacing of the difference table, relative to 1 + |x|."""
MAX_STEP_TRIALS = 20
"""Largest number of steps that are tried for each parameter."""
MIN_RELATIVE_ERROR, MAX_RELATIVE_ERROR = 1e-3, 1e-1
"""Limits of the rounding error of the second difference, relative to this difference."""
MIN_STEP = 1e-8
"""Smallest step, relative to 1 + |x|. Smaller steps suffer from the rounding of x."""

MAX_ITERATIONS = 100
"""Largest number of iterations of BFGS, the default of R's optim."""
MAX_COST = 1e300
"""Cost in place of infinity, because SciPy's line search cannot compute with infinity."""
GRADIENT_TOLERANCE = 0.0
"""Gradient at which polishing ends. With 0, polishing ends when the value no longer falls."""
GRADIENT_HINT = "return a number for each parameter from gradient, or leave gradient out"


class Polisher:
    """Local optimisation and gradients for a search with one criterion.

    ``evaluate`` takes points (batch, nvars) and returns values (batch, 1). ``gradient_function``
    takes a point (nvars,) and returns the gradient (nvars,); ``None`` to use differences.
    """

    def __init__(
        self,
        options: SearchOptions,
        evaluate: Callable[[Floats], Floats],
        gradient_function: Callable[[Floats], Any] | None,
    ) -> None:
        self._minimize = require("scipy.optimize", "polished searches").minimize
        self._sign = -1.0 if options.maximize else 1.0
        self._evaluate = evaluate
        self._gradient_function = gradient_function
        self._bounds = Box(options.lower, options.upper)
        infinity = np.full(options.nvars, np.inf)
        self._boundary = options.boundary_enforcement
        # BFGS may leave the bounds unless boundary enforcement is 2.
        self._evaluation_box = self._bounds if self._boundary == 2 else Box(-infinity, infinity)

    def polish(self, start: Floats) -> tuple[Floats, Floats]:
        """Return the local minimum or maximum from ``start``, and its value, shape (1,).

        With boundary enforcement 0, the optimiser has no bounds. With 1, it starts again with
        bounds if the result is outside of them. With 2, it always has bounds.
        """
        if self._boundary < 2:
            point, value = self._run(start, "BFGS")
            is_outside = np.any((point < self._bounds.lower) | (point > self._bounds.upper))
            if self._boundary == 0 or not is_outside:
                return point, value
        return self._run(start, "L-BFGS-B")

    def gradient(self, point: Floats) -> Floats:
        """Return the gradient of the function itself, shape (nvars,)."""
        return self._sign * self._cost_gradient(point, self._steps_at(point))

    def _run(self, start: Floats, method: str) -> tuple[Floats, Floats]:
        """Minimise by SciPy. Return the best evaluated point; SciPy's own result may be worse."""
        best_point, best_value = start, float(self._costs(start[np.newaxis])[0])
        steps = self._steps_at(start)
        box = self._evaluation_box if method == "BFGS" else self._bounds

        def cost(point: Floats) -> float:
            nonlocal best_point, best_value
            point = np.clip(point, box.lower, box.upper)
            value = float(self._costs(point[np.newaxis])[0])
            if value < best_value:
                best_point, best_value = point, value
            return value

        bounds = None if method == "BFGS" else np.column_stack((box.lower, box.upper))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            # SciPy warns about flat, rough and steep regions, which a search expects.
            warnings.simplefilter("ignore")
            self._minimize(
                cost,
                start,
                jac=lambda point: self._cost_gradient(np.clip(point, box.lower, box.upper), steps),
                method=method,
                bounds=bounds,
                options={"maxiter": MAX_ITERATIONS, "gtol": GRADIENT_TOLERANCE},
            )
        return best_point, np.array([self._sign * best_value])

    def _costs(self, points: Floats) -> Floats:
        """Return the costs of the points, which are finite."""
        values = self._sign * self._evaluate(points)[:, 0]
        return np.where(np.isnan(values), MAX_COST, np.clip(values, -MAX_COST, MAX_COST))

    def _steps_at(self, point: Floats) -> Floats:
        """Return the steps of the differences; none are needed with the caller's gradient."""
        if self._gradient_function is not None:
            return np.empty(0)
        value = float(self._costs(point[np.newaxis])[0])
        return difference_steps(self._costs, point, value, self._evaluation_box)

    def _cost_gradient(self, point: Floats, steps: Floats) -> Floats:
        if self._gradient_function is None:
            return central_differences(self._costs, point, steps, self._evaluation_box)
        try:
            slopes = np.asarray(self._gradient_function(point.copy()), dtype=np.float64)
        except Exception as error:
            raise EvaluationFailed(
                f"the gradient raised {type(error).__name__}: {error} at {point_as_code(point)}",
                GRADIENT_HINT,
            ) from error
        if slopes.shape != point.shape:
            raise EvaluationFailed(
                f"the gradient has shape {slopes.shape}, not {point.shape}, at "
                f"{point_as_code(point)}",
                GRADIENT_HINT,
            )
        if np.isnan(slopes).any() and self._costs(point[np.newaxis])[0] < MAX_COST:
            raise EvaluationFailed(
                f"the gradient returned NaN at {point_as_code(point)}", GRADIENT_HINT
            )
        # Where the function is infinite, its gradient may be NaN.
        return self._sign * np.nan_to_num(slopes, nan=0.0, posinf=MAX_COST, neginf=-MAX_COST)


@dataclass(frozen=True, slots=True)
class Box:
    """Lower and upper bounds of evaluated points, shape (nvars,); infinite without a bound."""

    lower: Floats
    upper: Floats


def rounding_error(function: Function, point: Floats, value: float, box: Box) -> float:
    """Estimate the rounding error of ``function`` near ``point``."""
    step = TABLE_STEP * (1.0 + np.abs(point))
    step = np.where(point + TABLE_ORDER * step > box.upper, -step, step)
    multiples = np.arange(TABLE_ORDER + 1)[:, np.newaxis]
    table = function(np.clip(point + multiples * step, box.lower, box.upper))
    error_floor = EPS * abs(value) + TINY
    if not np.all(np.isfinite(table)):
        return error_floor
    estimates = []
    for order in range(1, TABLE_ORDER + 1):
        table = np.diff(table)
        # The k-th difference of uncorrelated errors has the variance (2k)! / (k!)^2.
        estimates.append(float(np.max(np.abs(table))) / math.sqrt(math.comb(2 * order, order)))
    # Low differences contain the function itself, and only high differences show the rounding.
    return max(error_floor, min(estimates[TABLE_ORDER // 2 :]))


def difference_steps(function: Function, point: Floats, value: float, box: Box) -> Floats:
    """Return the step of each parameter's central difference, shape (nvars,) (algorithm FD).

    Each round tries a step for every parameter, in one batch. If the relative error of the second
    difference is too large, the next step is ten times as large. If the error is too small, the
    next step is a tenth as large. If the error is within the limits, the step is chosen.
    """
    error = rounding_error(function, point, value, box)
    scale = 1.0 + np.abs(point)
    min_step = np.maximum(2.0 * scale * math.sqrt(error / (1.0 + abs(value))), MIN_STEP * scale)
    step = 10.0 * min_step
    chosen_step = step.copy()
    fallback = np.full(len(point), np.nan)  # A step with a usable first difference.
    direction = np.zeros(len(point))  # 0 at first, 1 for larger steps, -1 for smaller steps.
    is_searching = np.ones(len(point), dtype=bool)
    for _ in range(MAX_STEP_TRIALS):
        searched = np.flatnonzero(is_searching)
        if not len(searched):
            break
        above, below = (np.clip(point + shift, box.lower, box.upper) for shift in (step, -step))
        ahead, behind = values_around(function, point, above, below, searched)
        width = step[searched]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            curvature = np.abs((ahead - 2.0 * value + behind) / width**2)
            slope = np.minimum(np.abs(ahead - value), np.abs(value - behind)) / width
            second_error = 4.0 * error / (width**2 * curvature)
            first_error = 2.0 * error / (width * slope)
        second_error = np.where(np.isnan(second_error), np.inf, second_error)
        is_usable = (first_error <= MAX_RELATIVE_ERROR) & np.isnan(fallback[searched])
        fallback[searched[is_usable]] = width[is_usable]
        for index, relative_error in zip(searched, second_error, strict=True):
            if direction[index] < 0 and relative_error > MAX_RELATIVE_ERROR:
                chosen_step[index] = step[index] * 10.0  # The previous step was usable.
                is_searching[index] = False
            elif relative_error > MAX_RELATIVE_ERROR:
                direction[index] = 1.0
                step[index] *= 10.0
            elif relative_error < MIN_RELATIVE_ERROR and direction[index] <= 0:
                direction[index] = -1.0
                step[index] /= 10.0
            else:
                chosen_step[index] = step[index]
                is_searching[index] = False
    for index in np.flatnonzero(is_searching):
        # The function is nearly a straight line, so the second difference has no meaning.
        if direction[index] > 0:
            chosen_step[index] = min_step[index] if math.isnan(fallback[index]) else fallback[index]
        else:
            chosen_step[index] = step[index]
    return np.maximum(chosen_step, MIN_STEP * scale)


def values_around(
    function: Function, point: Floats, ahead: Floats, behind: Floats, indices: NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """Return the function ahead of the point and behind it, for one parameter at a time."""
    rows = np.arange(len(indices))
    batch = np.tile(point, (2, len(indices), 1))
    batch[0, rows, indices] = ahead[indices]
    batch[1, rows, indices] = behind[indices]
    values = function(batch.reshape(-1, len(point)))
    return values[: len(indices)], values[len(indices) :]


def central_differences(function: Function, point: Floats, step: Floats, box: Box) -> Floats:
    """Return central differences, shape (nvars,). At a bound of the box they are one-sided."""
    ahead, behind = np.minimum(point + step, box.upper), np.maximum(point - step, box.lower)
    width = ahead - behind
    indices = np.arange(len(point))
    values_ahead, values_behind = values_around(function, point, ahead, behind, indices)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slope = (values_ahead - values_behind) / width
    # A parameter with equal bounds is constant.
    return np.where((width > 0) & np.isfinite(slope), slope, 0.0)
