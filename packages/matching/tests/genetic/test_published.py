"""The quick part of the table of Mebane & Sekhon (2011): benchmarks/genoud runs all of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.genoud.functions import functions
from benchmarks.genoud.run import DIGITS, PUBLISHED, one_run

QUICK = ("f1", "f6", "f11", "f14", "f16", "f17", "f18", "f19")
RUNS = 2

OPTIMA: dict[str, tuple[list[float], float]] = {
    "f1": ([0.0] * 30, 0.0),
    "f2": ([0.0] * 30, 0.0),
    "f3": ([0.0] * 30, 0.0),
    "f4": ([0.0] * 30, 0.0),
    "f5": ([1.0] * 30, 0.0),
    "f6": ([0.4] * 30, 0.0),
    "f8": ([420.968746] * 30, -418.982887 * 30),
    "f9": ([0.0] * 30, 0.0),
    "f10": ([0.0] * 30, 0.0),
    "f11": ([0.0] * 30, 0.0),
    "f12": ([-1.0] * 30, 0.0),
    "f13": ([1.0] * 30, 0.0),
    "f14": ([-31.97833, -31.97833], 0.998004),
    "f15": ([0.192833, 0.190836, 0.123117, 0.135766], 3.07486e-4),
    "f16": ([0.08984201, -0.7126564], -1.0316285),
    "f17": ([math.pi, 2.275], 0.397887),
    "f18": ([0.0, -1.0], 3.0),
    "f19": ([0.114614, 0.555649, 0.852547], -3.86278),
    "f20": ([0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573], -3.32237),
    "f21": ([4.00004, 4.00013, 4.00004, 4.00013], -10.1532),
    "f22": ([4.00057, 4.00069, 3.99949, 3.99961], -10.4029),
    "f23": ([4.00075, 4.00059, 3.99966, 3.99951], -10.5364),
}
"""Known optima: the point and the value of each function."""


@pytest.mark.parametrize("name", QUICK)
def test_the_published_mean_is_met(name: str) -> None:
    values = [float(one_run(functions(seed)[name], 5000, 30, seed).value) for seed in range(RUNS)]
    published = PUBLISHED[name][0]
    assert np.mean(values) <= published + DIGITS * abs(published)


@pytest.mark.parametrize("name", OPTIMA)
def test_the_functions_have_their_known_optima(name: str) -> None:
    point, value = OPTIMA[name]
    result = float(functions(0)[name].of(np.array([point]))[0])
    assert result == pytest.approx(value, rel=2e-5, abs=1e-12)
