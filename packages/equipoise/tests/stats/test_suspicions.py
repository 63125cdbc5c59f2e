"""Commits at which the level of a series may have changed."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.model.errors import UnusableInput
from equipoise.stats.arrays import FloatArray
from equipoise.stats.changes import MAX_EXTRA_LOSS, level_changes

COUNT, STEP, SD = 60, 0.05, 0.01


def stable(rng: np.random.Generator, count: int = COUNT, dependence: float = 0.0) -> FloatArray:
    """Logarithms without a change: an AR(1) process."""
    noise = rng.normal(0.0, SD * np.sqrt(1.0 - dependence**2), count)
    for place in range(1, count):
        noise[place] += dependence * noise[place - 1]
    return noise


@pytest.mark.parametrize(("dependence", "at_most"), [(0.0, 0.05), (0.5, 0.10)])
def test_a_series_without_a_change_rarely_has_a_suspicion(
    dependence: float, at_most: float
) -> None:
    rng = np.random.default_rng(7)
    runs = 200
    false = sum(bool(level_changes(np.exp(stable(rng, 30, dependence)), 1.0)) for _ in range(runs))
    # benchmarks/series: 0.3 % and 4 %; the bound is more than three standard errors higher.
    assert false / runs <= at_most


def test_a_step_is_found_and_is_in_its_range() -> None:
    rng = np.random.default_rng(8)
    runs, found, held, widths = 100, 0, 0, []
    for _ in range(runs):
        begin = int(rng.integers(15, 45))
        logs = stable(rng)
        logs[begin:] += STEP
        changes = level_changes(np.exp(logs), 1.0)
        if len(changes) == 1:
            found += 1
            (change,) = changes
            held += change.first < begin <= change.last
            widths.append(change.last - change.first)
            assert change.first < change.place <= change.last
            assert change.ratio == pytest.approx(np.exp(STEP), rel=0.02)
    assert found >= 95
    assert held >= found - 5
    assert np.median(widths) <= 4


def test_a_change_below_the_smallest_effect_is_not_a_suspicion() -> None:
    logs = stable(np.random.default_rng(9))
    logs[30:] += STEP
    assert len(level_changes(np.exp(logs), 4.0)) == 1
    assert not level_changes(np.exp(logs), 8.0)


def test_the_change_of_an_exact_count_is_found_at_its_place() -> None:
    values = np.full(40, 1000.0)
    values[20:] = 1030.0
    (change,) = level_changes(values, 1.0)
    assert (change.first, change.place, change.last) == (19, 20, 20)
    assert change.before == pytest.approx(1000.0)
    assert change.ratio == pytest.approx(1.03)
    values[30] = 1200.0
    assert [change.place for change in level_changes(values, 1.0)] == [20, 30, 31]


def test_fewer_than_ten_values_have_no_changes_and_a_nan_is_refused() -> None:
    assert not level_changes(np.array([1.0] * 4 + [2.0] * 5), 1.0)
    with pytest.raises(UnusableInput, match="not finite"):
        level_changes(np.array([1.0, np.nan] + [2.0, 3.0] * 10), 1.0)


def test_the_largest_loss_is_that_of_two_exponential_maxima() -> None:
    assert MAX_EXTRA_LOSS == pytest.approx(7.35, abs=0.01)
    rng = np.random.default_rng(10)
    losses = 2.0 * np.max(rng.exponential(1.0, (100_000, 2)), axis=1)
    assert np.mean(losses > MAX_EXTRA_LOSS) == pytest.approx(0.05, abs=0.003)
