"""Numerical gradients: central differences at intervals that suit the function.

Gill, Murray, Saunders & Wright (1983, SIAM Journal on Scientific and Statistical Computing 4(2)),
algorithm FD: an interval for each parameter at which the rounding error of the second difference
is between a tenth of a percent and a tenth of it. The rounding error of the function comes from a
difference table of order 9 (Hamming 1973, chapter 10; Gill, Murray & Wright 1981, section 8.5).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Scalars = Callable[[Floats], Floats]
"""Shape (batch, nvars) to shape (batch,)."""

EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)
ORDER = 9
TABLE_STEP = 1e-9
"""Spacing of the difference table, relative to 1 + |x|."""
MOST_TRIALS = 20
LEAST_ERROR, MOST_ERROR = 1e-3, 1e-1
"""The window of the relative condition error of the second difference."""
LEAST_STEP = 1e-8
"""Of an interval, relative to 1 + |x|: below it x itself is rounded too coarsely."""


@dataclass(frozen=True, slots=True)
class Box:
    """Where the function may be evaluated: shape (nvars,) each; infinite where anywhere."""

    lower: Floats
    upper: Floats


def rounding_error(function: Scalars, point: Floats, value: float, box: Box) -> float:
    """An estimate of the error of ``function`` near ``point``."""
    step = TABLE_STEP * (1.0 + np.abs(point))
    # Towards the inside, where the bounds bind.
    step = np.where(point + ORDER * step > box.upper, -step, step)
    places = np.arange(ORDER + 1)[:, np.newaxis]
    table = function(np.clip(point + places * step, box.lower, box.upper))
    least = EPS * abs(value) + TINY
    if not np.all(np.isfinite(table)):
        return least
    estimates = []
    for order in range(1, ORDER + 1):
        table = np.diff(table)
        # Of uncorrelated errors, the k-th difference has the variance (2k)! / (k!)^2.
        estimates.append(float(np.max(np.abs(table))) / math.sqrt(math.comb(2 * order, order)))
    return max(least, min(estimates[ORDER // 2 :]))


def intervals(function: Scalars, point: Floats, value: float, box: Box) -> Floats:
    """Shape (nvars,): the interval of each parameter's central difference (algorithm FD).

    All parameters are tried together, so a round is one batch.
    """
    error = rounding_error(function, point, value, box)
    scale = 1.0 + np.abs(point)
    smallest = np.maximum(2.0 * scale * math.sqrt(error / (1.0 + abs(value))), LEAST_STEP * scale)
    step = 10.0 * smallest
    chosen = step.copy()
    simple = np.full(len(point), np.nan)  # an interval that serves a first difference
    direction = np.zeros(len(point))  # of the search: 0 not begun, 1 wider, -1 narrower
    active = np.ones(len(point), dtype=bool)
    for _ in range(MOST_TRIALS):
        places = np.flatnonzero(active)
        if not len(places):
            break
        ahead, behind = differences(function, point, step, places, box)
        h = step[places]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            second = np.abs((ahead - 2.0 * value + behind) / h**2)
            slope = np.minimum(np.abs(ahead - value), np.abs(value - behind)) / h
            second_error = 4.0 * error / (h**2 * second)
            first_error = 2.0 * error / (h * slope)
        second_error = np.where(np.isnan(second_error), np.inf, second_error)
        good = (first_error <= MOST_ERROR) & np.isnan(simple[places])
        simple[places[good]] = h[good]
        for place, wrong in zip(places, second_error, strict=True):
            if direction[place] < 0 and wrong > MOST_ERROR:
                chosen[place] = step[place] * 10.0  # the last one that was good enough
                active[place] = False
            elif LEAST_ERROR <= wrong <= MOST_ERROR or (
                direction[place] > 0 and wrong < LEAST_ERROR
            ):
                chosen[place] = step[place]
                active[place] = False
            elif wrong < LEAST_ERROR:
                direction[place] = -1.0
                step[place] /= 10.0
            else:
                direction[place] = 1.0
                step[place] *= 10.0
    for place in np.flatnonzero(active):
        # Constant, or as good as straight: the second difference says nothing.
        if direction[place] > 0:
            chosen[place] = smallest[place] if math.isnan(simple[place]) else simple[place]
        else:
            chosen[place] = step[place]
    return np.maximum(chosen, LEAST_STEP * scale)


def differences(
    function: Scalars, point: Floats, step: Floats, places: NDArray[np.intp], box: Box
) -> tuple[Floats, Floats]:
    """The function a step ahead and a step behind, one parameter at a time, inside the box."""
    rows = np.arange(len(places))
    batch = np.repeat(point[np.newaxis], 2 * len(places), axis=0)
    batch[rows, places] += step[places]
    batch[rows + len(places), places] -= step[places]
    values = function(np.clip(batch, box.lower, box.upper))
    return values[: len(places)], values[len(places) :]


def gradient(function: Scalars, point: Floats, step: Floats, box: Box) -> Floats:
    """Shape (nvars,): central differences; at a bound of the box one-sided ones."""
    ahead = np.minimum(point + step, box.upper)
    behind = np.maximum(point - step, box.lower)
    width = ahead - behind
    nvars = len(point)
    batch = np.repeat(point[np.newaxis], 2 * nvars, axis=0)
    rows = np.arange(nvars)
    batch[rows, rows] = ahead
    batch[rows + nvars, rows] = behind
    values = function(batch)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slope = (values[:nvars] - values[nvars:]) / width
    # A parameter whose bounds meet does not move.
    return np.where((width > 0) & np.isfinite(slope), slope, 0.0)
