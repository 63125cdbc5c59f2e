"""The typical value of one command, and when its interval is too narrow."""

from __future__ import annotations

import msgspec.structs
import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.interim import DescribingAnalysis
from equipoise.model.plan import Judgement, Stopping
from equipoise.model.record import Draw, RunRecord, Sample, Segment, Trial
from equipoise.model.result import ResultDocument
from packages.equipoise.tests.plans import plan_of, trial_of

RUNS = 100


def series(generator: np.random.Generator, coefficient: float) -> NDArray[np.float64]:
    """Times whose logarithms are a stationary AR(1) series."""
    logs = generator.normal(0.0, 0.02, RUNS)
    logs[0] /= (1.0 - coefficient**2) ** 0.5
    for run in range(1, RUNS):
        logs[run] += coefficient * logs[run - 1]
    return np.exp(logs)


def record_of(trials: list[Trial], metric: str = "wall_s") -> RunRecord:
    return RunRecord(
        id="r",
        plan=plan_of("a", judgement=Judgement(primary_metric=metric)),
        started_at=0.0,
        segments=(Segment(0.0, {}, ended_at=10.0, stopped_because="budget"),),
        draws=tuple(Draw("measured", trial.block, (0,), 0) for trial in trials),
        trials=tuple(trials),
        warnings=(),
    )


def timed(times: NDArray[np.float64]) -> ResultDocument:
    trials = [
        trial_of(Draw("measured", block, (0,), 0), 0, float(time))
        for block, time in enumerate(times, start=1)
    ]
    return analyse_campaign(record_of(trials))


def warned(document: ResultDocument) -> bool:
    return "dependent_runs" in [warning.code for warning in document.warnings]


def test_dependent_runs_give_a_warning_and_independent_ones_seldom() -> None:
    generator, campaigns = np.random.default_rng(6), 40
    dependent = sum(warned(timed(series(generator, 0.6))) for _ in range(campaigns))
    independent = sum(warned(timed(series(generator, 0.0))) for _ in range(campaigns))
    assert dependent >= binom.ppf(0.001, campaigns, 0.95)
    assert independent <= binom.ppf(0.999, campaigns, 0.02)


def test_the_warning_and_the_scope_name_what_the_interval_needs() -> None:
    document = timed(series(np.random.default_rng(1), 0.9))
    (warning,) = [warning for warning in document.warnings if warning.code == "dependent_runs"]
    assert "the interval of the median is too narrow" in warning.summary
    assert document.typical is not None
    assert "runs are independent of each other" in document.typical.scope


def rate(block: int, value: float, *, timed_out: bool = False) -> Trial:
    """A trial that reports a rate, unless it times out."""
    failure = "timed out" if timed_out else None
    draw = Draw("measured", block, (0,), 0)
    trial = trial_of(draw, 0, 0.1, failure=failure, timed_out=timed_out)
    samples = () if timed_out else (Sample("rate", value, better="higher"),)
    return msgspec.structs.replace(trial, samples=samples)


def test_a_timeout_is_the_worst_of_a_metric_of_which_more_is_better() -> None:
    trials = [rate(block, 100.0 + block) for block in range(1, 16)]
    trials += [rate(block, 0.0, timed_out=True) for block in range(16, 26)]
    record = record_of(trials, "rate")
    typical = analyse_campaign(record).typical
    assert typical is not None
    # The thirteenth smallest of 25 values: ten timed out.
    assert typical.median == 103.0
    low, high = typical.median_ci
    assert low == 0.0
    assert high is not None and 103.0 < high < 115.0


def test_the_interval_that_is_shown_is_the_one_that_stops_the_campaign() -> None:
    trials = [rate(block, 100.0 + block) for block in range(1, 31)]
    trials += [rate(block, 0.0, timed_out=True) for block in range(31, 34)]
    record = record_of(trials, "rate")
    document = analyse_campaign(record)
    assert document.typical is not None
    low, high = document.typical.median_ci
    assert low and high
    wide = 100.0 * (high / low - 1.0)
    for precision, reason in ((wide * 1.001, "precision"), (wide * 0.999, None)):
        judge = DescribingAnalysis(record.plan, Stopping(precision=precision, min_seconds=0.0))
        for trial in trials:
            judge.add((trial,))
        assert judge.stop_reason() == reason


def test_the_document_has_one_interval_of_the_median_with_timeouts_too() -> None:
    trials = [
        trial_of(
            Draw("measured", block, (0,), 0),
            0,
            float(block),
            failure="timed out" if block > 20 else None,
            timed_out=block > 20,
        )
        for block in range(1, 26)
    ]
    document = analyse_campaign(record_of(trials))
    assert document.typical is not None
    (condition,) = document.conditions
    assert condition.metrics["wall_s"].median_ci == document.typical.median_ci
