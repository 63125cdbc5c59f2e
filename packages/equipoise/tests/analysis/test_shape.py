"""The result of a campaign has its modes, their associations, and its states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec.structs
import numpy as np
import pytest
from msgspec.structs import replace

from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.conduct import Interrupted, resume, start
from equipoise.campaign.progress import ProgressListener
from equipoise.campaign.segment import Runner
from equipoise.design.limits import CampaignLimits
from equipoise.ledger import open_for_writing
from equipoise.model.plan import Contrast, Judgement, Plan
from equipoise.model.record import Draw, RunRecord, Trial
from equipoise.model.result import ConditionResult, MetricSummary, ResultDocument
from equipoise.report.json_document import encode
from equipoise_studies.primitives.rows import BANDWIDTH, LATENCY_METRIC
from packages.equipoise.tests.plans import plan_of, trial_of
from packages.equipoise.tests.schema import validated
from packages.equipoise.tests.stats.planted import FloatArray
from packages.studies.tests.primitives.campaigns import (
    ROWS,
    TYPICAL,
    ProbeRunner,
    plan_of_rows,
    record_of,
)

BLOCKS = 60


def synthetic_record(times: FloatArray, cpus: FloatArray, paddings: FloatArray) -> RunRecord:
    """A campaign in which both trials of a block take the same time on the same CPU."""
    draws = tuple(
        Draw("measured", block + 1, (block % 2, 1 - block % 2), int(paddings[block]))
        for block in range(len(times))
    )
    trials: list[Trial] = []
    for draw, wall_s, cpu in zip(draws, times.tolist(), cpus.tolist(), strict=True):
        for place in range(2):
            made = trial_of(draw, place, wall_s * (1.0 + 1e-4 * place))
            trials.append(msgspec.structs.replace(made, covariates={"cpu": cpu, "load": 0.1}))
    return RunRecord(
        id="r",
        plan=plan_of(),
        started_at=0.0,
        segments=(),
        draws=draws,
        trials=tuple(trials),
        warnings=(),
    )


def wall_of(record: RunRecord) -> MetricSummary:
    """The summary of the times of the baseline."""
    return analyse_campaign(record).conditions[0].metrics["wall_s"]


def generator_and_times(seed: int) -> tuple[np.random.Generator, FloatArray, FloatArray]:
    """A generator, CPUs and paddings."""
    generator = np.random.default_rng(seed)
    cpus = generator.integers(0, 2, BLOCKS).astype(np.float64)
    return generator, cpus, generator.integers(0, 4096, BLOCKS).astype(np.float64)


def test_the_slow_mode_is_associated_with_its_cpu() -> None:
    generator, cpus, paddings = generator_and_times(1)
    times = np.where(cpus == 1.0, 0.0096, 0.0081) * np.exp(generator.normal(0.0, 0.01, BLOCKS))
    wall = wall_of(synthetic_record(times, cpus, paddings))
    assert [mode.value for mode in wall.modes] == pytest.approx([0.0081, 0.0096], rel=0.02)
    assert [mode.share for mode in wall.modes] == pytest.approx([1 - cpus.mean(), cpus.mean()])
    (association,) = wall.mode_associations
    assert (association.covariate, association.value, association.mode) == ("cpu", 1.0, 1)


def test_the_slow_mode_is_associated_with_a_large_environment() -> None:
    generator, cpus, paddings = generator_and_times(2)
    times = np.where(paddings > 2048, 1.2, 1.0) * np.exp(generator.normal(0.0, 0.01, BLOCKS))
    (association,) = wall_of(synthetic_record(times, cpus, paddings)).mode_associations
    assert (association.covariate, association.value) == ("environment_bytes", None)
    assert association.correlation > 0


def test_a_single_mode_has_no_associations() -> None:
    generator, cpus, paddings = generator_and_times(3)
    wall = wall_of(synthetic_record(np.exp(generator.normal(0.0, 0.01, BLOCKS)), cpus, paddings))
    assert len(wall.modes) == 1
    assert wall.mode_associations == ()
    assert wall.states is not None
    assert len(wall.states) == 1


def test_a_change_of_state_is_named_by_its_first_trial() -> None:
    generator, cpus, paddings = generator_and_times(4)
    times = np.exp(generator.normal(0.0, 0.01, BLOCKS)) * (1.0 + 0.2 * (np.arange(BLOCKS) >= 40))
    wall = wall_of(synthetic_record(times, cpus, paddings))
    assert wall.states is not None
    assert [state.first_trial for state in wall.states] == pytest.approx([0, 40], abs=1)
    assert [association.covariate for association in wall.mode_associations] == ["time"]


def test_every_comparison_has_the_answer_of_each_statistic() -> None:
    generator, cpus, paddings = generator_and_times(6)
    record = synthetic_record(np.exp(generator.normal(0.0, 0.01, BLOCKS)), cpus, paddings)
    (comparison,) = analyse_campaign(record).comparisons
    assert [answer.statistic for answer in comparison.answers][::10] == ["minimum", "mean"]
    assert comparison.disagreement is None


NO_SECOND_CPU = "it needs two CPUs, and this process may use [0] only"


def document(runner: ProbeRunner) -> ResultDocument:
    return validated(analyse_campaign(record_of(runner)))


def condition(found: ResultDocument, name: str) -> ConditionResult:
    return next(condition for condition in found.conditions if condition.name == name)


def test_every_row_is_a_condition_with_its_class_and_placement() -> None:
    found = document(ProbeRunner(plan_of_rows()))
    assert [condition.name for condition in found.conditions] == [row.name for row in ROWS]
    assert condition(found, "pipe_across_cpus").levels == {
        "class": "ipc",
        "probe": "pipe",
        "placement": "across_cpus",
    }
    for summary in found.conditions:
        assert summary.trials == 7
        assert summary.unknown == {} and summary.spread_because == {}


def test_a_metric_that_is_better_when_higher_is_described_as_reported() -> None:
    found = document(ProbeRunner(plan_of_rows()))
    summary = condition(found, "memory_read").metrics[BANDWIDTH]
    assert summary.median == pytest.approx(TYPICAL["memory_read"], rel=0.02)
    low, high = summary.median_ci
    assert low is not None and high is not None and low < summary.median < high


def test_a_row_that_the_machine_forbids_has_no_number_and_the_reason() -> None:
    failures = {"pipe_across_cpus": NO_SECOND_CPU}
    found = document(ProbeRunner(plan_of_rows(), failures=failures))
    forbidden = condition(found, "pipe_across_cpus")
    assert forbidden.metrics == {}
    assert forbidden.unknown == {LATENCY_METRIC: NO_SECOND_CPU}
    rows = [row for row in found.trials if row.condition == "pipe_across_cpus"]
    assert {row.unknown[LATENCY_METRIC] for row in rows} == {NO_SECOND_CPU}
    assert all(row.metrics == {} for row in rows)
    assert LATENCY_METRIC in condition(found, "pipe_same_cpu").metrics


def test_a_probe_that_is_broken_loses_its_row_and_no_other() -> None:
    found = document(ProbeRunner(plan_of_rows(), failures={"fork": "exit status 1"}))
    assert condition(found, "fork").unknown == {LATENCY_METRIC: "exit status 1"}
    assert LATENCY_METRIC in condition(found, "null_call").metrics


def test_a_workload_that_the_machine_forbids_is_never_the_faster_one() -> None:
    plan = replace(
        plan_of_rows(ROWS[0], ROWS[1], blocks=12),
        judgement=Judgement(),
        chosen_contrasts=(Contrast(0, 1),),
    )
    found = document(ProbeRunner(plan, failures={"fork": "no child for you"}))
    (comparison,) = found.comparisons
    assert comparison.verdict == "slower" and comparison.probability_slower == 1.0


def test_a_row_reports_its_drift() -> None:
    def drifting(name: str, block: int, usual: float) -> float:
        return usual * 1.1**block if name == "fork" else usual

    found = document(ProbeRunner(plan_of_rows(), value=drifting))
    assert list(condition(found, "fork").spread_because) == [LATENCY_METRIC]
    words = condition(found, "fork").spread_because[LATENCY_METRIC]
    assert "it drifts" in words and "between batches of one" in words
    assert condition(found, "null_call").spread_because == {}


def test_a_row_that_spreads_with_a_covariate_names_it() -> None:
    steal = [0.0, 0.4, 0.1, 0.6, 0.2, 0.5, 0.3, 0.05, 0.55]
    found = document(
        ProbeRunner(
            plan_of_rows(ROWS[0], blocks=9),
            value=lambda name, block, usual: usual * (1.0 + steal[block - 1]),
            covariates=lambda block: {"steal_s": steal[block - 1], "load_1_minute": 0.1},
        )
    )
    assert (
        "higher with more steal_s" in condition(found, "null_call").spread_because[LATENCY_METRIC]
    )


def test_a_spread_without_observed_causes_is_reported() -> None:
    up_and_down = [1.0, 1.5, 0.9, 1.4, 1.5, 0.8, 1.2]
    found = document(
        ProbeRunner(
            plan_of_rows(ROWS[0]),
            value=lambda name, block, usual: usual * up_and_down[block - 1],
        )
    )
    words = condition(found, "null_call").spread_because[LATENCY_METRIC]
    assert "no observed factor explains it" in words


def test_an_interrupted_campaign_of_rows_continues_with_the_same_result(
    tmp_path: Path,
) -> None:
    plan = plan_of_rows(blocks=6)
    runner = ProbeRunner(plan, failures={"fork": "seccomp forbids it"})

    def interrupt(draw: Draw, place: int) -> None:
        if (draw.block, place) == (3, 2):
            raise KeyboardInterrupt

    @contextmanager
    def runner_factory(hired: Plan, on_wait: Callable[[], None]) -> Iterator[Runner]:
        yield runner

    runner.before_trial = interrupt
    with open_for_writing(tmp_path / "ledger.db", durable=False) as ledger:
        with pytest.raises(Interrupted) as caught:
            start(
                plan, ledger, ProgressListener(), runner_factory=runner_factory, clock=runner.clock
            )
        runner.before_trial = lambda draw, place: None
        run_id = resume(
            caught.value.run_id,
            CampaignLimits(),
            ledger,
            ProgressListener(),
            runner_factory=runner_factory,
            clock=runner.clock,
        )
        record = ledger.read_run(run_id)
    found = validated(analyse_campaign(record))
    assert found.run.blocks == 6
    assert condition(found, "fork").unknown == {LATENCY_METRIC: "seccomp forbids it"}
    assert condition(found, "null_call").trials == 6
    assert encode(found) == encode(analyse_campaign(record))
