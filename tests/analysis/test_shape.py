"""The result of a campaign tells its modes, what they go with, and its states."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from equipoise.analysis.result import analyse_campaign
from equipoise.model.record import Draw, RunRecord, Trial
from equipoise.model.result import MetricSummary
from tests.plans import plan_of, trial_of
from tests.stats.planted import FloatArray

BLOCKS = 60


def record_of(times: FloatArray, cpus: FloatArray, paddings: FloatArray) -> RunRecord:
    """A campaign in which each block's two trials take the same time on the same CPU."""
    draws = tuple(
        Draw("measured", block + 1, (block % 2, 1 - block % 2), int(paddings[block]))
        for block in range(len(times))
    )
    trials: list[Trial] = []
    for draw, wall_s, cpu in zip(draws, times.tolist(), cpus.tolist(), strict=True):
        for place in range(2):
            made = trial_of(draw, place, wall_s * (1.0 + 1e-4 * place))
            trials.append(dataclasses.replace(made, covariates={"cpu": cpu, "load": 0.1}))
    return RunRecord(
        id="r",
        plan=plan_of(),
        started_at=0.0,
        segments=(),
        draws=draws,
        trials=tuple(trials),
        notices=(),
    )


def wall_of(record: RunRecord) -> MetricSummary:
    """The times of the baseline."""
    return analyse_campaign(record).conditions[0].metrics["wall_s"]


def drawn(seed: int) -> tuple[np.random.Generator, FloatArray, FloatArray]:
    """A generator, CPUs and paddings."""
    generator = np.random.default_rng(seed)
    cpus = generator.integers(0, 2, BLOCKS).astype(np.float64)
    return generator, cpus, generator.integers(0, 4096, BLOCKS).astype(np.float64)


def test_the_slow_mode_goes_with_the_cpu_it_ran_on() -> None:
    generator, cpus, paddings = drawn(1)
    times = np.where(cpus == 1.0, 0.0096, 0.0081) * np.exp(generator.normal(0.0, 0.01, BLOCKS))
    wall = wall_of(record_of(times, cpus, paddings))
    assert [one.at for one in wall.modes] == pytest.approx([0.0081, 0.0096], rel=0.02)
    assert [one.share for one in wall.modes] == pytest.approx([1 - cpus.mean(), cpus.mean()])
    (one,) = wall.companions
    assert (one.covariate, one.value, one.mode) == ("cpu", 1.0, 1)


def test_the_slow_mode_goes_with_a_large_environment() -> None:
    generator, cpus, paddings = drawn(2)
    times = np.where(paddings > 2048, 1.2, 1.0) * np.exp(generator.normal(0.0, 0.01, BLOCKS))
    (one,) = wall_of(record_of(times, cpus, paddings)).companions
    assert (one.covariate, one.value) == ("environment_bytes", None)
    assert one.correlation > 0


def test_one_mode_goes_with_nothing() -> None:
    generator, cpus, paddings = drawn(3)
    wall = wall_of(record_of(np.exp(generator.normal(0.0, 0.01, BLOCKS)), cpus, paddings))
    assert len(wall.modes) == 1
    assert wall.companions == ()
    assert wall.states is not None
    assert len(wall.states) == 1


def test_a_change_of_state_is_told_by_its_first_trial() -> None:
    generator, cpus, paddings = drawn(4)
    times = np.exp(generator.normal(0.0, 0.01, BLOCKS)) * (1.0 + 0.2 * (np.arange(BLOCKS) >= 40))
    wall = wall_of(record_of(times, cpus, paddings))
    assert wall.states is not None
    assert [one.begin for one in wall.states] == pytest.approx([0, 40], abs=1)
    assert [one.covariate for one in wall.companions] == ["time"]


def test_every_comparison_says_what_each_statistic_would_have_said() -> None:
    generator, cpus, paddings = drawn(6)
    record = record_of(np.exp(generator.normal(0.0, 0.01, BLOCKS)), cpus, paddings)
    (comparison,) = analyse_campaign(record).comparisons
    assert [one.statistic for one in comparison.answers][::10] == ["minimum", "mean"]
    assert comparison.disagreement is None
