"""The p-values of distributions that fitness is made of, against scipy and enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise_matching import _native


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
