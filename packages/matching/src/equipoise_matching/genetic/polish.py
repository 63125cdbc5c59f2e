"""The derivative-based part: BFGS and L-BFGS-B of SciPy from one point, and gradients.

Gradients are central differences at intervals that suit the function: Gill, Murray, Saunders &
Wright (1983, SIAM Journal on Scientific and Statistical Computing 4(2)), algorithm FD. The interval
of each parameter is such that the rounding error of the second difference is between a tenth of a
percent and a tenth of it. The rounding error of the function comes from a difference table of
order 9 (Hamming 1973, chapter 10; Gill, Murray & Wright 1981, section 8.5).
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
from equipoise_matching.genetic.worker import EvaluationFailed, Floats, point_text
from equipoise_matching.shared.extras import require

Scalars = Callable[[Floats], Floats]
"""Shape (batch, nvars) to shape (batch,)."""

EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)
ORDER = 9
TABLE_STEP = 1e-9
"""Spacing of the difference table, relative to 1 + |x|."""
MAX_TRIALS = 20
MIN_ERROR, MAX_ERROR = 1e-3, 1e-1
"""The window of the relative condition error of the second difference."""
MIN_STEP = 1e-8
"""Smallest interval, relative to 1 + |x|: below it x itself is rounded too coarsely."""

MAX_ITERATIONS = 100
"""Iterations of one polish at most, the default of R's optim."""
WORTHLESS = 1e300
"""Value for the optimiser where the function is infinite or out of reach: SciPy's line search
interpolates and can do nothing with infinity."""
SMALL_GRADIENT = 0.0
"""Polishing ends where it gains nothing any more, not where the gradient looks small."""


class Polisher:
    """Polisher of the points of a scalar search, with its gradients.

    ``evaluate`` takes (batch, nvars) to (batch, 1), and ``slope`` (nvars,) to the gradient
    (nvars,); without ``slope`` the polisher takes differences.
    """

    def __init__(
        self,
        options: SearchOptions,
        evaluate: Callable[[Floats], Floats],
        slope: Callable[[Floats], Any] | None,
    ) -> None:
        self._minimize = require("scipy.optimize", "polished searches").minimize
        self._sign = -1.0 if options.maximize else 1.0
        self._evaluate = evaluate
        self._slope = slope
        self._inside = Box(options.lower, options.upper)
        everywhere = np.full(options.nvars, np.inf)
        self._boundary = options.boundary_enforcement
        self._allowed = self._inside if self._boundary == 2 else Box(-everywhere, everywhere)

    def polish(self, start: Floats) -> tuple[Floats, Floats]:
        """Return the local minimum (or maximum) from ``start``, and its value, shape (1,).

        Boundary enforcement 0 goes anywhere; 1 goes again with bounds where it has left them; 2
        never leaves them.
        """
        if self._boundary < 2:
            point, value = self._run(start, "BFGS")
            outside = np.any((point < self._inside.lower) | (point > self._inside.upper))
            if self._boundary == 0 or not outside:
                return point, value
        return self._run(start, "L-BFGS-B")

    def gradient(self, point: Floats) -> Floats:
        """Return the gradient of the function itself, shape (nvars,)."""
        return self._sign * self._descent(point, self._intervals(point))

    def _run(self, start: Floats, method: str) -> tuple[Floats, Floats]:
        # The best point that the optimiser evaluates; SciPy may return another.
        best_point, best_value = start, float(self._costs(start[np.newaxis])[0])
        steps = self._intervals(start)
        box = self._allowed if method == "BFGS" else self._inside

        def cost(point: Floats) -> float:
            nonlocal best_point, best_value
            point = np.clip(point, box.lower, box.upper)
            value = float(self._costs(point[np.newaxis])[0])
            if value < best_value:
                best_point, best_value = point, value
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
                options={"maxiter": MAX_ITERATIONS, "gtol": SMALL_GRADIENT},
            )
        return best_point, np.array([self._sign * best_value])

    def _costs(self, points: Floats) -> Floats:
        values = self._sign * self._evaluate(points)[:, 0]
        return np.where(np.isnan(values), WORTHLESS, np.clip(values, -WORTHLESS, WORTHLESS))

    def _intervals(self, point: Floats) -> Floats:
        if self._slope is not None:
            return np.empty(0)
        value = float(self._costs(point[np.newaxis])[0])
        return intervals(self._costs, point, value, self._allowed)

    def _descent(self, point: Floats, steps: Floats) -> Floats:
        """Return the gradient of the cost."""
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


@dataclass(frozen=True, slots=True)
class Box:
    """Bounds of the evaluation: shape (nvars,) each; infinite where there is none."""

    lower: Floats
    upper: Floats


def rounding_error(function: Scalars, point: Floats, value: float, box: Box) -> float:
    """Estimate the rounding error of ``function`` near ``point``."""
    step = TABLE_STEP * (1.0 + np.abs(point))
    # Towards the inside, where the bounds bind.
    step = np.where(point + ORDER * step > box.upper, -step, step)
    places = np.arange(ORDER + 1)[:, np.newaxis]
    table = function(np.clip(point + places * step, box.lower, box.upper))
    smallest = EPS * abs(value) + TINY
    if not np.all(np.isfinite(table)):
        return smallest
    estimates = []
    for order in range(1, ORDER + 1):
        table = np.diff(table)
        # The k-th difference of uncorrelated errors has the variance (2k)! / (k!)^2.
        estimates.append(float(np.max(np.abs(table))) / math.sqrt(math.comb(2 * order, order)))
    return max(smallest, min(estimates[ORDER // 2 :]))


def intervals(function: Scalars, point: Floats, value: float, box: Box) -> Floats:
    """Return the interval of each parameter's central difference, shape (nvars,) (algorithm FD).

    All parameters are tried together, so a round is one batch.
    """
    error = rounding_error(function, point, value, box)
    scale = 1.0 + np.abs(point)
    smallest = np.maximum(2.0 * scale * math.sqrt(error / (1.0 + abs(value))), MIN_STEP * scale)
    step = 10.0 * smallest
    chosen = step.copy()
    simple = np.full(len(point), np.nan)  # an interval that serves a first difference
    direction = np.zeros(len(point))  # of the search: 0 not begun, 1 wider, -1 narrower
    active = np.ones(len(point), dtype=bool)
    for _ in range(MAX_TRIALS):
        places = np.flatnonzero(active)
        if not len(places):
            break
        above, below = (np.clip(point + side, box.lower, box.upper) for side in (step, -step))
        ahead, behind = differences(function, point, above, below, places)
        h = step[places]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            second = np.abs((ahead - 2.0 * value + behind) / h**2)
            slope = np.minimum(np.abs(ahead - value), np.abs(value - behind)) / h
            second_error = 4.0 * error / (h**2 * second)
            first_error = 2.0 * error / (h * slope)
        second_error = np.where(np.isnan(second_error), np.inf, second_error)
        good = (first_error <= MAX_ERROR) & np.isnan(simple[places])
        simple[places[good]] = h[good]
        for place, relative_error in zip(places, second_error, strict=True):
            if direction[place] < 0 and relative_error > MAX_ERROR:
                chosen[place] = step[place] * 10.0  # the last one that was good enough
                active[place] = False
            elif relative_error > MAX_ERROR:
                direction[place] = 1.0
                step[place] *= 10.0
            elif relative_error < MIN_ERROR and direction[place] <= 0:
                direction[place] = -1.0
                step[place] /= 10.0
            else:
                chosen[place] = step[place]
                active[place] = False
    for place in np.flatnonzero(active):
        # Constant, or as good as straight: the second difference has no meaning.
        if direction[place] > 0:
            chosen[place] = smallest[place] if math.isnan(simple[place]) else simple[place]
        else:
            chosen[place] = step[place]
    return np.maximum(chosen, MIN_STEP * scale)


def differences(
    function: Scalars, point: Floats, ahead: Floats, behind: Floats, places: NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """Return the function ahead of the point and behind it, one parameter at a time."""
    rows = np.arange(len(places))
    batch = np.tile(point, (2, len(places), 1))
    batch[0, rows, places] = ahead[places]
    batch[1, rows, places] = behind[places]
    values = function(batch.reshape(-1, len(point)))
    return values[: len(places)], values[len(places) :]


def gradient(function: Scalars, point: Floats, step: Floats, box: Box) -> Floats:
    """Return central differences, shape (nvars,); at a bound of the box one-sided ones."""
    ahead, behind = np.minimum(point + step, box.upper), np.maximum(point - step, box.lower)
    width = ahead - behind
    places = np.arange(len(point))
    values_ahead, values_behind = differences(function, point, ahead, behind, places)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slope = (values_ahead - values_behind) / width
    # A parameter whose bounds meet does not move.
    return np.where((width > 0) & np.isfinite(slope), slope, 0.0)
