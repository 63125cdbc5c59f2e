"""The p-values that fitness is made of, against scipy and against enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise_matching import _native


def density(freedom: float) -> float:
    """Of Student's t at 0, of which scipy's tail near 0 knows nothing."""
    return float(stats.t.pdf(0.0, freedom))


@pytest.mark.parametrize("freedom", [0.3, 1.0, 2.5, 7.0, 63.0, 128.5, 444.0, 1e5, 3e8])
@pytest.mark.parametrize("t", [1e-9, 1e-3, 0.4, 1.0, 1.8, 3.0, 8.0, 25.0, -25.0])
def test_student_p_values_are_those_of_scipy_far_into_the_tails(t: float, freedom: float) -> None:
    expected = (
        2 * stats.t.sf(abs(t), freedom) if abs(t) > 1e-4 else 1 - 2 * abs(t) * density(freedom)
    )
    # scipy's own error grows with the exponent of what it raises to a power.
    p_value = _native.student_p_value(t, freedom)
    assert p_value == pytest.approx(expected, rel=1e-12 * max(1.0, abs(np.log(expected))), abs=0)


def test_student_p_values_at_the_ends() -> None:
    assert _native.student_p_value(0.0, 5.0) == 1.0
    assert _native.student_p_value(np.inf, 5.0) == 0.0
    assert np.isnan(_native.student_p_value(1.0, 0.0))
    assert np.isnan(_native.student_p_value(np.nan, 5.0))


@settings(max_examples=200, deadline=None)
@given(st.floats(0.0, 60.0), st.floats(0.1, 1e4))
def test_student_p_values_fall_as_t_grows(t: float, freedom: float) -> None:
    near, far = (_native.student_p_value(at, freedom) for at in (t, t * 1.01 + 0.01))
    assert 0.0 <= far <= near <= 1.0


@pytest.mark.parametrize(
    "x",
    [0.0, 0.02, 0.05, 0.2, 0.3, 0.5, 0.7, 0.8, 0.999, 1.0, 1.3, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0],
)
def test_asymptotic_p_values_are_those_of_kolmogorovs_distribution(x: float) -> None:
    p_value = _native.kolmogorov_p_value(x, False)
    assert p_value == pytest.approx(stats.kstwobign.sf(x), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("x", [0.3, 0.75, 0.99, 1.0, 1.6, 4.0])
def test_r_ends_the_series_within_the_fourth_decimal(x: float) -> None:
    p_value = _native.kolmogorov_p_value(x, True)
    assert p_value == pytest.approx(stats.kstwobign.sf(x), abs=4e-5)


@pytest.mark.parametrize("size", [1, 2, 7, 40, 99])
def test_exact_p_values_without_ties_are_those_of_scipy(size: int) -> None:
    ends = list(range(1, 2 * size + 1))
    assert _native.smirnov_p_value(size, size, size, ends) == pytest.approx(1.0, abs=1e-14)
    for reach in {size // 3 + 1, size // 2 + 1, size}:
        first = np.arange(size, dtype=float)
        expected = stats.ks_2samp(first, first + reach - 0.5, method="exact")
        assert expected.statistic == pytest.approx(reach / size)
        p_value = _native.smirnov_p_value(reach * size, size, size, ends)
        assert p_value == pytest.approx(expected.pvalue, rel=1e-10)


EVEN = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(EVEN)
def test_exact_p_values_with_ties_are_the_share_of_all_splits(rows: list[tuple[int, int]]) -> None:
    pooled = [value for pair in rows for value in pair]
    size = len(rows)
    values = sorted(set(pooled))
    ends = [sum(row <= value for row in pooled) for value in values]

    def reach(chosen: tuple[int, ...]) -> int:
        largest = 0
        for value in values:
            below = sum(pooled[row] <= value for row in chosen)
            all_rows = sum(row <= value for row in pooled)
            largest = max(largest, abs(2 * below - all_rows))
        return largest

    reaches = [reach(chosen) for chosen in combinations(range(2 * size), size)]
    for observed in set(reaches):
        share = sum(other >= observed for other in reaches) / len(reaches)
        p_value = _native.smirnov_p_value(observed * size, size, size, ends)
        assert p_value == pytest.approx(share, abs=1e-13)
