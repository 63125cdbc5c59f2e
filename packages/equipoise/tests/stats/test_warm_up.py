"""Change points, and whether a process warms up."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import ruptures

from equipoise.model.errors import UnusableInput
from equipoise.stats.arrays import part_medians
from equipoise.stats.changes import (
    MIN_SEGMENT_VALUES,
    _running_median,
    best_cuts,
    find_changes,
    long_run_variance,
    states,
)
from equipoise.stats.warm_up import MIN_ITERATIONS, WorkloadShape, classify_trial, workload_of
from packages.equipoise.tests.stats.planted import ITERATIONS, SERIES, autoregressive
from packages.equipoise.tests.stats.simulated import FloatArray, at_least, at_most

SIMULATIONS = 60


@pytest.mark.parametrize("series", SERIES)
def test_a_series_has_its_class(series: str) -> None:
    kind, draw = SERIES[series]
    generator = np.random.default_rng(1)
    found = [classify_trial(draw(generator, ITERATIONS)) for _ in range(SIMULATIONS)]
    right = sum(shape is not None and shape.kind == kind for shape in found)
    assert right >= at_least(SIMULATIONS, 0.95 if kind == "flat" else 0.90)


def stepped(*levels: tuple[int, float], seed: int = 2) -> FloatArray:
    """A series with this number of values at each level, and an sd of 1."""
    steps = np.concatenate([np.full(count, level) for count, level in levels])
    return steps + np.random.default_rng(seed).normal(0.0, 1.0, len(steps))


def classify_workload(trials: Sequence[FloatArray]) -> WorkloadShape | None:
    """Classify a workload by the iterations of its trials."""
    return workload_of([shape for trial in trials if (shape := classify_trial(trial)) is not None])


def test_the_steady_state_begins_after_the_last_change_and_leaves_the_warm_up_out() -> None:
    shape = classify_trial(stepped((40, 130.0), (160, 100.0)))
    assert shape is not None
    assert shape.kind == "warm-up"
    assert shape.steady_from == pytest.approx(40, abs=1)
    assert shape.steady_mean == pytest.approx(100.0, abs=0.3)


def test_a_trial_without_a_steady_state_has_no_steady_value() -> None:
    shape = classify_trial(stepped((160, 100.0), (40, 110.0)))
    assert shape is not None
    assert shape.kind == "no steady state"
    assert shape.steady_mean is None
    workload = classify_workload(
        [stepped((160, 100.0), (40, 110.0), seed=seed) for seed in range(5)]
    )
    assert workload is not None
    assert (workload.kind, workload.final_means) == ("no steady state", None)


def test_levels_within_a_hundredth_are_one_level() -> None:
    quiet = 0.001 * stepped((100, 0.0), (100, 0.0)) + np.repeat([100.0, 100.5], 100)
    shape = classify_trial(quiet)
    assert shape is not None
    assert len(shape.segmentation.segments) > 1
    assert shape.kind == "flat"


def test_trials_that_disagree_make_a_workload_inconsistent() -> None:
    flat = [stepped((100, 100.0), seed=seed) for seed in range(5)]
    warming = [stepped((30, 110.0), (70, 100.0), seed=seed) for seed in range(5)]
    both = classify_workload([*flat, *warming])
    assert both is not None
    assert both.kind == "inconsistent"
    assert both.summary == "inconsistent: flat in 5, warm-up in 5"
    assert both.final_means is not None
    assert len(both.final_means) == 10


def test_a_fifth_of_the_trials_may_have_been_disturbed_and_is_named() -> None:
    warming = [stepped((30, 110.0), (70, 100.0), seed=seed) for seed in range(8)]
    disturbed = [stepped((90, 100.0), (10, 110.0), seed=seed) for seed in range(3)]
    shape = classify_workload([*warming, *disturbed[:2]])
    assert shape is not None
    assert (shape.kind, shape.has_steady_state) == ("warm-up", True)
    assert shape.summary == (
        "warm-up in 8 of 10 trials, steady from iteration 31 on (median); no steady state in 2"
    )
    assert shape.trials[-1].steady_mean is None
    assert shape.final_means is not None
    assert shape.final_means[-1] == pytest.approx(104.0, abs=0.5)
    shape = classify_workload([*warming, *disturbed])
    assert shape is not None
    assert (shape.kind, shape.has_steady_state) == ("inconsistent", False)


@pytest.mark.parametrize(
    ("mixed", "disturbed", "least"), [(0.0, 0.05, 0.95), (0.0, 0.10, 0.90), (0.5, 0.0, 0.0)]
)
def test_how_often_15_trials_have_one_class(mixed: float, disturbed: float, least: float) -> None:
    """150 iterations, and processes that the machine disturbs, as in the quick form of `warmup`.

    If only a tenth might dissent instead of a fifth, and 10 % of processes were disturbed, 0.55 of
    workloads would have a class, not 0.94. The cost: a workload that warms up in half of its
    processes has a class in 0.035 of cases, not in 0.001.
    """
    generator = np.random.default_rng(8)
    # The series are drawn only once, since drawing them takes the most time.
    warming, flat, late = (
        [classify_trial(stepped(*levels, seed=seed)) for seed in range(40)]
        for levels in (
            ((15, 120.0), (135, 100.0)),
            ((150, 100.0),),
            ((130, 100.0), (20, 108.0)),
        )
    )
    simulations, classed = 400, 0
    for _ in range(simulations):
        kinds = [
            late if generator.random() < disturbed else flat if generator.random() < mixed else None
            for _ in range(15)
        ]
        drawn = [generator.choice(np.array(kind or warming, dtype=object)) for kind in kinds]
        workload = workload_of(drawn)
        classed += workload is not None and workload.kind != "inconsistent"
    if mixed:
        assert classed <= at_most(simulations, 2 * (1 + 15 + 105 + 455) / 2**15)
    else:
        assert classed >= at_least(simulations, least)


def test_a_series_of_any_length_is_classed_by_at_most_2000_medians() -> None:
    shape = classify_trial(stepped((5_000, 105.0), (45_000, 100.0)))
    assert shape is not None
    assert shape.kind == "warm-up"
    assert shape.steady_from == pytest.approx(5_000, abs=50)
    assert shape.segmentation.segments[-1].end == 50_000


@pytest.mark.parametrize("series", SERIES)
def test_the_unit_of_a_series_changes_only_its_numbers(series: str) -> None:
    """If all iterations have the same ratio, so do the numbers that are compared."""
    values = SERIES[series][1](np.random.default_rng(11), ITERATIONS)
    first, second = classify_trial(values), classify_trial(1.07 * values)
    assert first is not None and second is not None
    assert (second.kind, second.steady_from) == (first.kind, first.steady_from)
    assert second.final_mean == pytest.approx(1.07 * first.final_mean, rel=1e-12)


def test_a_few_iterations_are_not_classed() -> None:
    assert classify_trial(np.ones(MIN_ITERATIONS - 1)) is None
    assert classify_workload([np.ones(3), np.ones(4)]) is None


def test_iterations_that_never_vary_are_flat() -> None:
    shape = classify_trial(np.full(50, 0.25))
    assert shape is not None
    assert (shape.kind, shape.steady_mean) == ("flat", 0.25)


def test_spikes_of_a_collector_are_not_a_change() -> None:
    spiked = stepped((200, 100.0))
    spiked[::17] += 50.0
    assert len(find_changes(spiked).segments) == 1


@pytest.mark.parametrize("dependence", [0.0, 0.3, 0.6])
def test_the_long_run_variance_is_independent_of_the_level(dependence: float) -> None:
    series = autoregressive(np.random.default_rng(3), 4000, dependence)
    truth = (1.0 + dependence) / (1.0 - dependence)
    assert long_run_variance(series) == pytest.approx(truth, rel=0.25)
    shifted = series + 20.0 * (np.arange(4000) > 2000)
    assert long_run_variance(shifted) == pytest.approx(long_run_variance(series), rel=0.05)


def test_a_campaign_names_the_time_of_a_change_of_state() -> None:
    found = states(stepped((60, 100.0), (40, 112.0)))
    assert [segment.first_trial for segment in found] == pytest.approx([0, 60], abs=1)
    assert [segment.mean for segment in found] == pytest.approx([100.0, 112.0], abs=0.5)
    assert len(states(stepped((100, 100.0)))) == 1


def test_the_states_of_many_trials_are_found_from_medians() -> None:
    found = states(stepped((30_000, 100.0), (10_000, 103.0)))
    assert [segment.first_trial for segment in found] == pytest.approx([0, 30_000], abs=40)


@pytest.mark.parametrize("values", [[], [1.0, math.inf], [math.nan] * 30])
def test_values_that_are_not_finite_are_refused(values: list[float]) -> None:
    with pytest.raises(UnusableInput):
        find_changes(np.array(values))


@pytest.mark.parametrize("seed", range(20))
def test_the_cuts_are_those_of_ruptures(seed: int) -> None:
    generator = np.random.default_rng(seed)
    levels = np.repeat(generator.normal(size=4), generator.integers(6, 60, 4))
    series = levels + generator.normal(size=len(levels))
    penalty = 3.0 * math.log(len(series))
    reference = ruptures.KernelCPD(kernel="linear", min_size=5).fit(series[:, None])
    assert best_cuts(series, penalty) == reference.predict(pen=penalty)


@pytest.mark.parametrize("count", [1, 2, 5, 11, 12, 40, 401])
def test_a_running_median_is_the_median_of_each_window(count: int) -> None:
    series = np.random.default_rng(count).normal(size=count)
    windows = [
        series[max(0, at - MIN_SEGMENT_VALUES) : at + MIN_SEGMENT_VALUES + 1] for at in range(count)
    ]
    assert _running_median(series).tolist() == [float(np.median(window)) for window in windows]


@pytest.mark.parametrize(("count", "parts"), [(1, 1), (7, 7), (10, 3), (100, 100), (1234, 100)])
def test_the_medians_of_parts_are_those_of_an_even_split(count: int, parts: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    expected = [float(np.median(part)) for part in np.array_split(values, parts)]
    assert part_medians(values, parts).tolist() == expected


def test_a_state_begins_at_a_trial_even_if_trials_were_grouped() -> None:
    generator = np.random.default_rng(5)
    values = generator.normal(1.0, 0.01, size=30_001)
    values[20_000:] += 0.2
    first, second = states(values)
    assert first.first_trial == 0
    assert abs(second.first_trial - 20_000) < 200
