"""The 23 functions of Yao, Liu & Lin (1999), and the two claws.

IEEE Transactions on Evolutionary Computation 3(2), "Evolutionary programming made faster", table I
and appendix. Each takes shape (batch, nvars) and returns shape (batch,); f7 has noise, of its own
seeded source.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Many = Callable[[Floats], Floats]

SHEKEL_A = np.array(
    [
        [4, 4, 4, 4],
        [1, 1, 1, 1],
        [8, 8, 8, 8],
        [6, 6, 6, 6],
        [3, 7, 3, 7],
        [2, 9, 2, 9],
        [5, 5, 3, 3],
        [8, 1, 8, 1],
        [6, 2, 6, 2],
        [7, 3.6, 7, 3.6],
    ]
)
SHEKEL_C = np.array([0.1, 0.2, 0.2, 0.4, 0.4, 0.6, 0.3, 0.7, 0.5, 0.5])
HARTMAN_C = np.array([1.0, 1.2, 3.0, 3.2])
HARTMAN_3_A = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
HARTMAN_3_P = np.array(
    [
        [0.3689, 0.1170, 0.2673],
        [0.4699, 0.4387, 0.7470],
        [0.1091, 0.8732, 0.5547],
        [0.038150, 0.5743, 0.8828],
    ]
)
HARTMAN_6_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
HARTMAN_6_P = np.array(
    [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
)
KOWALIK_A = np.array(
    [0.1957, 0.1947, 0.1735, 0.1600, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246]
)
KOWALIK_B = 1.0 / np.array([0.25, 0.5, 1, 2, 4, 6, 8, 10, 12, 14, 16])
FOXHOLES = np.array(
    [
        np.tile([-32.0, -16.0, 0.0, 16.0, 32.0], 5),
        np.repeat([-32.0, -16.0, 0.0, 16.0, 32.0], 5),
    ]
)


@dataclass(frozen=True, slots=True)
class Function:
    """A function, its number of parameters and its domain."""

    name: str
    of: Many
    bounds: tuple[tuple[float, float], ...]
    smooth: bool = True

    @property
    def nvars(self) -> int:
        """How many parameters it has."""
        return len(self.bounds)


def f1(x: Floats) -> Floats:
    """Sphere."""
    return np.asarray((x**2).sum(axis=1))


def f2(x: Floats) -> Floats:
    """Schwefel 2.22."""
    size = np.abs(x)
    return np.asarray(size.sum(axis=1) + size.prod(axis=1))


def f3(x: Floats) -> Floats:
    """Schwefel 1.2."""
    return np.asarray((np.cumsum(x, axis=1) ** 2).sum(axis=1))


def f4(x: Floats) -> Floats:
    """Schwefel 2.21."""
    return np.asarray(np.abs(x).max(axis=1))


def f5(x: Floats) -> Floats:
    """Rosenbrock."""
    ahead, here = x[:, 1:], x[:, :-1]
    return np.asarray((100.0 * (ahead - here**2) ** 2 + (here - 1.0) ** 2).sum(axis=1))


def f6(x: Floats) -> Floats:
    """Step."""
    return np.asarray((np.floor(x + 0.5) ** 2).sum(axis=1))


def f7(seed: int) -> Many:
    """Quartic with noise."""
    source = np.random.default_rng(seed)

    def noisy(x: Floats) -> Floats:
        places = np.arange(1, x.shape[1] + 1)
        return np.asarray((places * x**4).sum(axis=1) + source.random(len(x)))

    return noisy


def f8(x: Floats) -> Floats:
    """Schwefel 2.26."""
    return np.asarray(-(x * np.sin(np.sqrt(np.abs(x)))).sum(axis=1))


def f9(x: Floats) -> Floats:
    """Rastrigin."""
    return np.asarray((x**2 - 10.0 * np.cos(2.0 * np.pi * x) + 10.0).sum(axis=1))


def f10(x: Floats) -> Floats:
    """Ackley."""
    near = -20.0 * np.exp(-0.2 * np.sqrt((x**2).mean(axis=1)))
    return np.asarray(near - np.exp(np.cos(2.0 * np.pi * x).mean(axis=1)) + 20.0 + np.e)


def f11(x: Floats) -> Floats:
    """Griewank."""
    places = np.sqrt(np.arange(1, x.shape[1] + 1))
    return np.asarray((x**2).sum(axis=1) / 4000.0 - np.cos(x / places).prod(axis=1) + 1.0)


def penalty(x: Floats, a: float, k: float, m: int) -> Floats:
    """What lies beyond a costs its m-th power."""
    return np.asarray((k * np.maximum(np.abs(x) - a, 0.0) ** m).sum(axis=1))


def f12(x: Floats) -> Floats:
    """Generalised penalised function 1."""
    y = 1.0 + (x + 1.0) / 4.0
    inner = ((y[:, :-1] - 1.0) ** 2 * (1.0 + 10.0 * np.sin(np.pi * y[:, 1:]) ** 2)).sum(axis=1)
    ends = 10.0 * np.sin(np.pi * y[:, 0]) ** 2 + (y[:, -1] - 1.0) ** 2
    return np.asarray(np.pi / x.shape[1] * (ends + inner) + penalty(x, 10.0, 100.0, 4))


def f13(x: Floats) -> Floats:
    """Generalised penalised function 2."""
    inner = ((x[:, :-1] - 1.0) ** 2 * (1.0 + np.sin(3.0 * np.pi * x[:, 1:]) ** 2)).sum(axis=1)
    first = np.sin(3.0 * np.pi * x[:, 0]) ** 2
    last = (x[:, -1] - 1.0) ** 2 * (1.0 + np.sin(2.0 * np.pi * x[:, -1]) ** 2)
    return np.asarray(0.1 * (first + inner + last) + penalty(x, 5.0, 100.0, 4))


def f14(x: Floats) -> Floats:
    """Shekel's foxholes."""
    distances = ((x[:, :, np.newaxis] - FOXHOLES) ** 6).sum(axis=1)
    holes = (1.0 / (np.arange(1, 26) + distances)).sum(axis=1)
    return np.asarray(1.0 / (1.0 / 500.0 + holes))


def f15(x: Floats) -> Floats:
    """Kowalik."""
    x1, x2, x3, x4 = (x[:, place, np.newaxis] for place in range(4))
    b = KOWALIK_B
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        fit = x1 * (b**2 + b * x2) / (b**2 + b * x3 + x4)
        return np.asarray(np.nan_to_num(((KOWALIK_A - fit) ** 2).sum(axis=1), nan=np.inf))


def f16(x: Floats) -> Floats:
    """Six-hump camel back."""
    a, b = x[:, 0], x[:, 1]
    return np.asarray(4 * a**2 - 2.1 * a**4 + a**6 / 3 + a * b - 4 * b**2 + 4 * b**4)


def f17(x: Floats) -> Floats:
    """Branin."""
    a, b = x[:, 0], x[:, 1]
    bend = b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6
    return np.asarray(bend**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10)


def f18(x: Floats) -> Floats:
    """Goldstein and Price."""
    a, b = x[:, 0], x[:, 1]
    one = 19 - 14 * a + 3 * a**2 - 14 * b + 6 * a * b + 3 * b**2
    two = 18 - 32 * a + 12 * a**2 + 48 * b - 36 * a * b + 27 * b**2
    return np.asarray((1 + (a + b + 1) ** 2 * one) * (30 + (2 * a - 3 * b) ** 2 * two))


def hartman(a: Floats, p: Floats) -> Many:
    """Hartman's family."""

    def of(x: Floats) -> Floats:
        distances = (a * (x[:, np.newaxis, :] - p) ** 2).sum(axis=2)
        return np.asarray(-(HARTMAN_C * np.exp(-distances)).sum(axis=1))

    return of


def shekel(holes: int) -> Many:
    """Shekel's family."""

    def of(x: Floats) -> Floats:
        distances = ((x[:, np.newaxis, :] - SHEKEL_A[:holes]) ** 2).sum(axis=2)
        return np.asarray(-(1.0 / (distances + SHEKEL_C[:holes])).sum(axis=1))

    return of


def normal(x: Floats, mean: float, sd: float) -> Floats:
    return np.asarray(np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * math.sqrt(2 * math.pi)))


def claw(points: Floats) -> Floats:
    """The asymmetric double claw of Marron & Wand (1992), table 1, number 14."""
    x = points[:, 0]
    density = 0.46 * (normal(x, -1.0, 2 / 3) + normal(x, 1.0, 2 / 3))
    for place in (0.5, 1.0, 1.5):
        density = density + normal(x, -place, 0.01) / 300 + 7 * normal(x, place, 0.07) / 300
    return density


def biclaw(points: Floats) -> Floats:
    """The claw in two dimensions, moved by one."""
    x, y = points[:, 0] + 1.0, points[:, 1] + 1.0
    density = 0.5 * normal(x, 0.0, 1.0) * normal(y, 0.0, 1.0)
    for place in (-1.0, -0.5, 0.0, 0.5, 1.0):
        density = density + 0.1 * normal(x, place, 0.1) * normal(y, place, 0.1)
    return density


def cube(half: float, nvars: int = 30) -> tuple[tuple[float, float], ...]:
    """The same domain around 0 for every parameter."""
    return ((-half, half),) * nvars


def functions(seed: int) -> dict[str, Function]:
    """All of them by name; the seed is that of f7's noise."""
    everything = (
        Function("f1", f1, cube(100.0)),
        Function("f2", f2, cube(10.0)),
        Function("f3", f3, cube(100.0)),
        Function("f4", f4, cube(100.0)),
        Function("f5", f5, cube(30.0)),
        Function("f6", f6, cube(100.0), smooth=False),
        Function("f7", f7(seed), cube(1.28), smooth=False),
        Function("f8", f8, cube(500.0)),
        Function("f9", f9, cube(5.12)),
        Function("f10", f10, cube(32.0)),
        Function("f11", f11, cube(600.0)),
        Function("f12", f12, cube(50.0)),
        Function("f13", f13, cube(50.0)),
        Function("f14", f14, cube(65.536, 2)),
        Function("f15", f15, cube(5.0, 4)),
        Function("f16", f16, cube(5.0, 2)),
        Function("f17", f17, ((-5.0, 10.0), (0.0, 15.0))),
        Function("f18", f18, cube(2.0, 2)),
        Function("f19", hartman(HARTMAN_3_A, HARTMAN_3_P), ((0.0, 1.0),) * 3),
        Function("f20", hartman(HARTMAN_6_A, HARTMAN_6_P), ((0.0, 1.0),) * 6),
        Function("f21", shekel(5), ((0.0, 10.0),) * 4),
        Function("f22", shekel(7), ((0.0, 10.0),) * 4),
        Function("f23", shekel(10), ((0.0, 10.0),) * 4),
    )
    return {one.name: one for one in everything}
