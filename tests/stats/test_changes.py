"""What change-points rest on: running medians, and medians of parts of a long series.

The change-points themselves are looked at in test_warm_up.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.stats.arrays import part_medians
from equipoise.stats.changes import LEAST_LENGTH, _running_median, states


@pytest.mark.parametrize("count", [1, 2, 5, 11, 12, 40, 401])
def test_a_running_median_is_the_median_of_each_window(count: int) -> None:
    series = np.random.default_rng(count).normal(size=count)
    windows = [series[max(0, at - LEAST_LENGTH) : at + LEAST_LENGTH + 1] for at in range(count)]
    assert _running_median(series).tolist() == [float(np.median(one)) for one in windows]


@pytest.mark.parametrize(("count", "parts"), [(1, 1), (7, 7), (10, 3), (100, 100), (1234, 100)])
def test_the_medians_of_parts_are_those_of_an_even_split(count: int, parts: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    expected = [float(np.median(part)) for part in np.array_split(values, parts)]
    assert part_medians(values, parts).tolist() == expected


def test_a_state_begins_at_a_trial_also_where_trials_were_taken_together() -> None:
    generator = np.random.default_rng(5)
    values = generator.normal(1.0, 0.01, size=30_001)
    values[20_000:] += 0.2
    first, second = states(values)
    assert first.begin == 0
    assert abs(second.begin - 20_000) < 200
