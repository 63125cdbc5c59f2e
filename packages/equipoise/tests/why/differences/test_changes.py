"""How a change is computed: its sign, its interval, and how often the interval misses."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from equipoise.stats.two_samples import sample_difference
from equipoise.why.differences.changes import (
    changes_by_key,
    count_change,
    measure_change,
    paired_count_change,
    paired_measure_change,
)
from equipoise.why.evidence.sources import Runs

REPLICATIONS = 2000


def test_a_count_that_every_run_repeats_is_exact() -> None:
    change = count_change(Runs((12.0, 12.0, 12.0), (400_012.0, 400_012.0)), "candidate")
    assert change.extra_ci == (400_000.0, 400_000.0)
    assert change.is_certain
    equal = count_change(Runs((3.0, 3.0), (3.0, 3.0)), "candidate")
    assert equal.extra_ci == (0.0, 0.0)
    assert not equal.is_certain


def test_a_measure_that_does_not_vary_has_no_interval() -> None:
    change = measure_change(Runs((0.0, 0.0), (0.001, 0.001)), "candidate")
    assert change.extra == 0.001
    assert change.extra_ci == (None, None)
    assert not change.is_certain


def test_one_run_of_a_condition_gives_no_interval() -> None:
    for compute in (count_change, measure_change):
        assert compute(Runs((1.0,), (5.0, 6.0, 7.0)), "candidate").extra_ci == (None, None)


def test_a_count_that_varies_in_one_condition_has_a_width() -> None:
    low, high = count_change(Runs((5.0, 5.0, 5.0), (9.0, 10.0, 11.0)), "candidate").extra_ci
    assert low is not None and high is not None and low < 5.0 < high


def test_the_slower_baseline_turns_the_sign_and_the_interval() -> None:
    runs = Runs((9.0, 10.0, 11.5), (5.0, 5.5, 6.0))
    forward, turned = measure_change(runs, "candidate"), measure_change(runs, "baseline")
    assert forward.extra == -turned.extra < 0
    low, high = forward.extra_ci
    assert low is not None and high is not None
    assert turned.extra_ci == (-high, -low)
    assert forward.is_certain and turned.is_certain


def test_key_missing_in_a_run_counts_as_0() -> None:
    runs: Runs[Mapping[str, float]] = Runs(({"a": 1.0}, {}), ({"b": 2.0}, {"b": 4.0}))
    by_key = changes_by_key(runs, "candidate")
    assert list(by_key) == ["b", "a"]
    assert (by_key["a"].baseline, by_key["a"].extra) == (0.5, -0.5)
    assert changes_by_key(Runs(({"a": 1.0},), ()), "candidate") == {}


@pytest.mark.parametrize(("few", "many"), [(3, 3), (3, 8)])
def test_of_repeated_runs_about_one_interval_in_twenty_misses(few: int, many: int) -> None:
    """Welch's interval with rounded degrees of freedom errs to the safe side in small samples."""
    generator = np.random.default_rng(few + many)
    missed = 0
    for _ in range(REPLICATIONS):
        runs = Runs(tuple(generator.normal(1.0, 0.1, few)), tuple(generator.normal(1.5, 0.1, many)))
        low, high = measure_change(runs, "candidate").extra_ci
        assert low is not None and high is not None
        missed += not low <= 0.5 <= high
    standard_error = math.sqrt(0.05 * 0.95 / REPLICATIONS)
    assert 0.015 < missed / REPLICATIONS < 0.05 + 4 * standard_error


def test_of_paired_trials_one_interval_in_twenty_misses() -> None:
    """An effect of a block on both of its trials is not an error of the difference."""
    generator = np.random.default_rng(4)
    missed = 0
    for _ in range(REPLICATIONS):
        blocks = generator.normal(1.0, 0.5, 6)
        runs = Runs(
            tuple(blocks + generator.normal(0.0, 0.01, 6)),
            tuple(blocks + generator.normal(0.1, 0.01, 6)),
        )
        low, high = paired_measure_change(runs, "candidate").extra_ci
        assert low is not None and high is not None
        missed += not low <= 0.1 <= high
    assert abs(missed / REPLICATIONS - 0.05) < 4 * math.sqrt(0.05 * 0.95 / REPLICATIONS)


def test_a_count_that_differs_by_the_same_in_every_block_is_exact() -> None:
    change = paired_count_change(Runs((10.0, 12.0, 11.0), (15.0, 17.0, 16.0)), "candidate")
    assert change.extra_ci == (5.0, 5.0)


@pytest.mark.parametrize(("level", "quantile"), [(0.05, 3.182446), (0.01, 5.840909)])
def test_students_t_is_exact_at_three_degrees_of_freedom(level: float, quantile: float) -> None:
    """An expansion by Cornish and Fisher gives 5.795 for 5.841."""
    differences = np.array([1.0, 2.0, 3.0, 4.0])
    low, high = sample_difference(np.zeros(4), differences, paired=True, level=level).difference_ci
    standard_error = math.sqrt(5.0 / 3.0) / 2.0
    assert low is not None and high is not None
    assert (high - low) / 2.0 / standard_error == pytest.approx(quantile, abs=1e-6)
