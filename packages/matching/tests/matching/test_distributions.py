"""Quantile-quantile differences by hand, and changes that leave them as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise_matching.matching.distributions import DifferenceSummary, Sample, qq_stats, quantiles

VALUES = st.lists(st.integers(-20, 20), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("treated", "control", "options", "differences"),
    [
        # At 1, 2, 3, 4: treated 1/2, 1/2, 1, 1; controls 0, 1/2, 1/2, 1.
        ([1, 3], [2, 4], {"standardize": True}, DifferenceSummary(0.25, 0.25, 0.5)),
        ([5, 1, 2], [2, 2, 9], {}, DifferenceSummary(5 / 3, 1.0, 4.0)),
        # Places 0, 4/2 = 2 and 4 of five values.
        ([0, 1, 2, 3, 4], [0, 0, 0], {}, DifferenceSummary(2.0, 2.0, 4.0)),
        ([7.0], [3.0, 1.0, 2.0], {}, DifferenceSummary(6.0, 6.0, 6.0)),
        # Treated 0 up to 3/4, then 4; controls 0 up to 1/2, then 4: a quarter differs, by 4.
        ([0, 4], [0, 4], {"weights_treated": [3, 1]}, DifferenceSummary(1.0, 0.0, 4.0)),
    ],
    ids=["functions", "one by one", "thinned", "one value with the smallest", "weights"],
)
def test_distributions_are_compared_by_their_quantiles(
    treated: list[float],
    control: list[float],
    options: dict[str, Any],
    differences: DifferenceSummary,
) -> None:
    assert qq_stats(treated, control, **{"standardize": False, **options}) == differences


@settings(max_examples=60, deadline=None)
@given(VALUES, VALUES, st.sampled_from([0.5, 1.0, 3.0]))
def test_equal_weights_change_nothing(first: list[int], second: list[int], weight: float) -> None:
    for standardize in (True, False):
        assert qq_stats(
            first,
            second,
            standardize=standardize,
            weights_treated=[weight] * len(first),
            weights_control=[weight] * len(second),
        ) == qq_stats(first, second, standardize=standardize)


@settings(max_examples=60, deadline=None)
@given(VALUES, st.data())
def test_a_weight_counts_as_so_many_rows(values: list[int], data: st.DataObject) -> None:
    same_length = st.lists(st.integers(-20, 20), min_size=len(values), max_size=len(values))
    other = data.draw(same_length)
    weights = data.draw(st.lists(st.integers(1, 3), min_size=len(values), max_size=len(values)))
    for standardize in (True, False):
        weighted = qq_stats(
            values,
            other,
            standardize=standardize,
            weights_treated=weights,
            weights_control=weights,
        )
        repeated = qq_stats(
            np.repeat(values, weights), np.repeat(other, weights), standardize=standardize
        )
        assert weighted.mean == pytest.approx(repeated.mean, abs=1e-12)
        assert weighted.max == pytest.approx(repeated.max, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(VALUES, VALUES, st.sampled_from([2.0**-40, 1.0, 2.0**40]))
def test_order_changes_nothing_and_scale_only_the_raw_differences(
    first: list[int], second: list[int], scale: float
) -> None:
    scaled = (np.array(first[::-1]) * scale, np.array(second[::-1]) * scale)
    assert qq_stats(*scaled) == qq_stats(first, second)
    raw = qq_stats(first, second, standardize=False)
    assert qq_stats(*scaled, standardize=False).max == raw.max * scale


def test_the_quantile_function_is_a_step_function() -> None:
    result = quantiles(
        Sample(np.array([3.0, 1.0]), np.array([1.0, 3.0])), np.array([0.1, 0.7, 0.8])
    )
    assert result.tolist() == [1.0, 1.0, 3.0]


def test_r_misses_whole_places_by_a_rounding_error_and_we_do_not() -> None:
    # R adds up equal steps: some sums fall short of a whole number.
    differing = 0
    for length in range(60, 160):
        for shorter in (10, 31, 50):
            long, short = np.arange(float(length)), np.zeros(shorter)
            ours = qq_stats(long, short, standardize=False)
            r = qq_stats(long, short, standardize=False, r_compatible=True)
            places = np.arange(shorter) * (length - 1) // (shorter - 1)
            assert ours.mean == pytest.approx(places.mean(), rel=1e-12)
            assert ours.mean - 1 < r.mean <= ours.mean
            differing += r != ours
    assert differing > 0
