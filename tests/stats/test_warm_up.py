"""Each class of iteration series is recovered, and a flat one is flat though autocorrelated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.model.errors import UnusableInput
from equipoise.stats import changes
from equipoise.stats.changes import find_changes, long_run_variance, states
from equipoise.stats.warm_up import LEAST_ITERATIONS, classify_trial, classify_workload
from tests.stats.planted import ITERATIONS, SERIES, autoregressive
from tests.stats.simulated import FloatArray, at_least

SIMULATIONS = 60


@pytest.mark.parametrize("series", SERIES)
def test_a_series_is_given_its_class(series: str) -> None:
    kind, draw = SERIES[series]
    generator = np.random.default_rng(1)
    found = [classify_trial(draw(generator, ITERATIONS)) for _ in range(SIMULATIONS)]
    right = sum(one is not None and one.kind == kind for one in found)
    assert right >= at_least(SIMULATIONS, 0.95 if kind == "flat" else 0.90)


def stepped(*levels: tuple[int, float], seed: int = 2) -> FloatArray:
    """Stretches of so many values on each level, with an sd of 1."""
    steps = np.concatenate([np.full(count, level) for count, level in levels])
    return steps + np.random.default_rng(seed).normal(0.0, 1.0, len(steps))


def test_the_steady_state_begins_after_the_last_change_and_leaves_the_warm_up_out() -> None:
    shape = classify_trial(stepped((40, 130.0), (160, 100.0)))
    assert shape is not None
    assert shape.kind == "warm-up"
    assert shape.steady_from == pytest.approx(40, abs=1)
    assert shape.steady == pytest.approx(100.0, abs=0.3)


def test_what_has_no_steady_state_is_given_no_steady_number() -> None:
    shape = classify_trial(stepped((160, 100.0), (40, 110.0)))
    assert shape is not None
    assert shape.kind == "no steady state"
    assert shape.steady is None
    workload = classify_workload([stepped((160, 100.0), (40, 110.0), seed=one) for one in range(5)])
    assert workload is not None
    assert (workload.kind, workload.steady) == ("no steady state", None)


def test_levels_within_a_hundredth_are_one_level() -> None:
    quiet = 0.001 * stepped((100, 0.0), (100, 0.0)) + np.repeat([100.0, 100.5], 100)
    shape = classify_trial(quiet)
    assert shape is not None
    assert len(shape.segments.segments) > 1
    assert shape.kind == "flat"


def test_trials_that_disagree_make_a_workload_inconsistent() -> None:
    flat = [stepped((100, 100.0), seed=one) for one in range(5)]
    warming = [stepped((30, 110.0), (70, 100.0), seed=one) for one in range(5)]
    both = classify_workload([*flat, *warming])
    assert both is not None
    assert both.kind == "inconsistent"
    assert both.words == "inconsistent over 10 trials: flat in 5, warm-up in 5"
    assert both.steady is not None
    assert len(both.steady) == 10
    one_of_ten = classify_workload([*warming, *warming[:4], flat[0]])
    assert one_of_ten is not None
    assert one_of_ten.kind == "warm-up"
    assert one_of_ten.words == "warm-up: steady from iteration 31 on (median, 10 trials)"


def test_a_few_iterations_are_not_classed() -> None:
    assert classify_trial(np.ones(LEAST_ITERATIONS - 1)) is None
    assert classify_workload([np.ones(3), np.ones(4)]) is None


def test_iterations_that_never_vary_are_flat() -> None:
    shape = classify_trial(np.full(50, 0.25))
    assert shape is not None
    assert (shape.kind, shape.steady) == ("flat", 0.25)


def test_spikes_of_a_collector_are_no_change() -> None:
    spiked = stepped((200, 100.0))
    spiked[::17] += 50.0
    assert len(find_changes(spiked).segments) == 1


@pytest.mark.parametrize("dependence", [0.0, 0.3, 0.6])
def test_the_long_run_variance_is_that_of_the_process_whatever_its_level(dependence: float) -> None:
    series = autoregressive(np.random.default_rng(3), 4000, dependence)
    truth = (1.0 + dependence) / (1.0 - dependence)
    assert long_run_variance(series) == pytest.approx(truth, rel=0.25)
    shifted = series + 20.0 * (np.arange(4000) > 2000)
    assert long_run_variance(shifted) == pytest.approx(long_run_variance(series), rel=0.05)


def test_a_campaign_that_changed_its_state_tells_when() -> None:
    found = states(stepped((60, 100.0), (40, 112.0)))
    assert [one.begin for one in found] == pytest.approx([0, 60], abs=1)
    assert [one.level for one in found] == pytest.approx([100.0, 112.0], abs=0.5)
    assert len(states(stepped((100, 100.0)))) == 1


def test_the_states_of_many_trials_are_told_by_medians() -> None:
    found = states(stepped((30_000, 100.0), (10_000, 103.0)))
    assert [one.begin for one in found] == pytest.approx([0, 30_000], abs=40)


@pytest.mark.parametrize("values", [[], [1.0, math.inf], [math.nan] * 30])
def test_what_has_no_finite_values_is_refused(values: list[float]) -> None:
    with pytest.raises(UnusableInput):
        find_changes(np.array(values))


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "can_find_changes", lambda: False)
    with pytest.raises(UnusableInput) as refused:
        find_changes(stepped((100, 100.0)))
    assert refused.value.mend == "pip install 'equipoise[shape]'"
