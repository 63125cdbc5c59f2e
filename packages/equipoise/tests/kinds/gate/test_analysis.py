"""A gate stops at its decision, and its result follows from the record alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import msgspec.structs
import pytest

from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.blocks import QUANTA, complete_blocks, cost_table
from equipoise.campaign.interim import ANALYSE_EVERY_BLOCK, GROWTH_DIVISOR
from equipoise.kinds.gate.terms import GateDocument, GatePlan, GateResult
from equipoise.measure.trials import TrialReport
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Contrast, Judgement, Plan, Stopping
from equipoise.model.record import Draw, Sample
from equipoise.model.revisions import BENCHMARK, Revision
from equipoise.stats.resolution import Resolution
from equipoise.why.gap import choose_gap
from packages.equipoise.tests.campaign.test_conduct import Stage
from packages.equipoise.tests.plans import plan_of
from packages.equipoise.tests.schema import validated
from packages.equipoise.tests.scripted import ScriptedRunner

OLD, NEW = Revision("main", "1" * 40), Revision("HEAD", "2" * 40)


def gate_of(
    *metrics: str, benchmarks: int = 1, blocks: int = 200, fails_undecided: bool = False
) -> Plan:
    names = [f"{number} {side}" for number in range(benchmarks) for side in ("old", "new")]
    plan = plan_of(
        *names,
        stopping=Stopping(blocks=blocks, budget_s=1e9, leave_out_decided=True, min_seconds=0.0),
        judgement=Judgement(min_effect=2.0, primary_metric=(metrics or ("wall_s",))[0]),
    )
    return msgspec.structs.replace(
        plan,
        study="gate",
        conditions=tuple(
            msgspec.structs.replace(condition, levels={BENCHMARK: condition.name[0]})
            for condition in plan.conditions
        ),
        chosen_contrasts=tuple(Contrast(2 * i, 2 * i + 1) for i in range(benchmarks)),
        terms=GatePlan(OLD, NEW, metrics or ("wall_s",), fails_undecided),
    )


def decision_of(stage: Stage) -> GateResult | None:
    document = validated(analyse_campaign(stage.ledger.read_run("last")))
    assert isinstance(document, GateDocument)
    return document.gate


def result(stage: Stage, plan: Plan) -> GateResult:
    stage.start(plan)
    judged_gate = decision_of(stage)
    assert judged_gate is not None
    return judged_gate


def outcomes(judged_gate: GateResult) -> list[str]:
    return [row.outcome for row in judged_gate.rows]


def test_a_gate_has_no_outcome_before_its_least_time(tmp_path: Path) -> None:
    plan = gate_of(blocks=1000)
    plan = msgspec.structs.replace(
        plan, stopping=msgspec.structs.replace(plan.stopping, min_seconds=1.0)
    )
    gated = result(Stage(tmp_path, medians=(0.010, 0.0125)), plan)
    assert outcomes(gated) == ["slower"]
    assert 40 < gated.rows[0].blocks < 50


def test_a_revision_that_is_much_slower_fails_soon(tmp_path: Path) -> None:
    stage = Stage(tmp_path, medians=(0.010, 0.0125))
    judged_gate = result(stage, gate_of())
    assert not judged_gate.passed
    assert judged_gate.rows[0].blocks < 20
    low, _ = judged_gate.rows[0].equivalence_ci
    assert low is not None
    assert low > 1.02
    assert judged_gate.summary == (
        "HEAD (2222222222) against main (1111111111): 0 is slower by more than 2 %, "
        f"by at least {100 * (low - 1):.3g} %."
    )


def test_it_goes_on_past_a_verdict_that_does_not_answer_its_question(tmp_path: Path) -> None:
    # 3 % slower: "slower" is certain before "by more than 2 %" is.
    plan = gate_of(blocks=1000)
    stage = Stage(tmp_path, medians=(0.010, 0.0103), noise=0.02)
    gated = result(stage, plan)
    assert outcomes(gated) == ["slower"]
    verdict = Stage(tmp_path / "other", medians=(0.010, 0.0103), noise=0.02)
    verdict.start(msgspec.structs.replace(plan, terms=None))
    (comparison,) = analyse_campaign(verdict.ledger.read_run("last")).comparisons
    assert comparison.verdict == "slower"
    assert comparison.blocks < gated.rows[0].blocks


def test_an_undecided_gate_warns_of_no_overstatement(tmp_path: Path) -> None:
    plan = gate_of(blocks=12)
    stage = Stage(tmp_path, medians=(0.010, 0.0102), noise=0.02)
    assert outcomes(result(stage, plan)) == ["undecided"]
    document = analyse_campaign(stage.ledger.read_run("last"))
    assert document.comparisons[0].verdict == "slower"
    assert [warning.code for warning in document.warnings] == []


def test_it_stops_as_soon_as_too_slow_is_excluded(tmp_path: Path) -> None:
    stage = Stage(tmp_path, medians=(0.010, 0.0097), noise=0.02)
    judged_gate = result(stage, gate_of())
    assert judged_gate.passed
    assert outcomes(judged_gate) == ["passes"]
    assert judged_gate.rows[0].summary == "0 is not slower by more than 2 %."
    assert judged_gate.rows[0].blocks < 60


def test_a_long_gate_is_analysed_less_often_and_ends_soon_after_its_decision(
    tmp_path: Path,
) -> None:
    plan = gate_of(blocks=100_000)
    stage = Stage(tmp_path, medians=(0.010, 0.0104), noise=0.18)
    judged_gate = result(stage, plan)
    record = stage.ledger.read_run("last")
    costs = cost_table(plan, complete_blocks(record.draws, record.trials), "wall_s")
    judgement, resolution = plan.judgement, Resolution(QUANTA["wall_s"])
    pairs = costs.paired_blocks(plan.contrasts[0], resolution=resolution)
    known_after = pairs.engine.blocks_to_exclude(math.log1p(0.02), 2 * judgement.alpha)
    assert known_after is not None
    assert known_after > ANALYSE_EVERY_BLOCK
    assert outcomes(judged_gate) == ["slower"]
    assert known_after <= len(pairs) <= known_after * (1 + 1 / GROWTH_DIVISOR) + 1


class PreemptedRunner(ScriptedRunner):
    """Trials on a busy host: the CPU times are given, and the waits between are random."""

    tells_system_time = True

    def trials_at(self, draw: Draw, place: int) -> tuple[Callable[[], TrialReport], ...]:
        (run,) = super().trials_at(draw, place)

        def preempted() -> TrialReport:
            ran = run()
            worked_s = (0.010, 0.0105)[ran.trial.condition]
            accounting = msgspec.structs.replace(
                ran.trial.accounting,
                user_s=0.7 * worked_s,
                sys_s=0.3 * worked_s if self.tells_system_time else None,
            )
            trial = msgspec.structs.replace(ran.trial, accounting=accounting)
            return msgspec.structs.replace(ran, trial=trial)

        return (preempted,)


def test_with_a_busy_processor_cpu_time_decides_where_wall_time_cannot(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path)
    stage.runner = PreemptedRunner(stage.clock, noise=0.8)
    judged_gate = result(stage, gate_of("cpu_s", blocks=60))
    assert outcomes(judged_gate) == ["slower"]
    assert judged_gate.rows[0].ratio == pytest.approx(1.05)
    document = analyse_campaign(stage.ledger.read_run("last"))
    assert document.conditions[1].metrics["cpu_s"].median == pytest.approx(0.0105)
    assert document.trials[-1].cpu_s in (pytest.approx(0.010), pytest.approx(0.0105))
    stage.start(gate_of(blocks=60))
    gated = decision_of(stage)
    assert gated is not None
    assert outcomes(gated) == ["undecided"]


def test_half_of_the_cpu_time_does_not_count_as_all_of_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.runner = preempted = PreemptedRunner(stage.clock)
    preempted.tells_system_time = False
    with pytest.raises(UnusableInput, match="cpu_s"):
        stage.start(gate_of("cpu_s"))


def test_an_undecided_gate_passes_except_with_fail_undecided_in_the_plan(tmp_path: Path) -> None:
    for fails_undecided in (False, True):
        stage = Stage(tmp_path / str(fails_undecided))
        judged_gate = result(stage, gate_of(blocks=3, fails_undecided=fails_undecided))
        assert outcomes(judged_gate) == ["undecided"]
        assert judged_gate.passed is not fails_undecided
        assert judged_gate.rows[0].summary == (
            "whether 0 is slower by more than 2 % is not known after 3 blocks."
        )


def test_a_decided_benchmark_gets_no_more_blocks(tmp_path: Path) -> None:
    stage = Stage(tmp_path, medians=(0.010, 0.015, 0.010, 0.0102), noise=0.02)
    judged_gate = result(stage, gate_of(benchmarks=2))
    assert judged_gate.rows[0].outcome == "slower"
    assert judged_gate.rows[0].blocks < judged_gate.rows[1].blocks
    assert judged_gate.summary.endswith(
        "1 of 2 benchmarks is slower by more than 2 %, 1 undecided."
    )


class ReportingRunner(ScriptedRunner):
    """Processes that report two benchmarks of their own; the second is slower later on."""

    def trials_at(self, draw: Draw, place: int) -> tuple[Callable[[], TrialReport], ...]:
        (run,) = super().trials_at(draw, place)

        def reporting() -> TrialReport:
            ran = run()
            wall_s = ran.trial.accounting.wall_s
            assert wall_s is not None
            slower = 1.3 if ran.trial.condition else 1.0
            samples = (
                Sample("a b time_s", wall_s, None, "s", "lower"),
                Sample("c time_s", wall_s * slower, None, "s", "lower"),
            )
            return msgspec.structs.replace(
                ran, trial=msgspec.structs.replace(ran.trial, samples=samples)
            )

        return (reporting,)


def test_the_benchmarks_of_one_process_are_judged_together(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.runner = ReportingRunner(stage.clock, noise=0.01)
    judged_gate = result(stage, gate_of("a b time_s", "c time_s"))
    assert [(row.benchmark, row.outcome) for row in judged_gate.rows] == [
        ("a b", "passes"),
        ("c", "slower"),
    ]
    comparison = analyse_campaign(stage.ledger.read_run("last")).comparisons[0]
    assert comparison.metric == "a b time_s"


def test_a_benchmark_that_one_trial_does_not_report_is_not_guessed(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    with pytest.raises(UnusableInput, match="has no a time_s: the workload did not report it"):
        stage.start(gate_of("a time_s"))


def test_a_gate_cannot_be_resumed_because_its_revisions_are_gone(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    run_id = stage.start(gate_of(blocks=2))
    with pytest.raises(
        UnusableInput, match="is a gate, and its checked-out revisions were removed"
    ):
        stage.resume(run_id)
    with pytest.raises(
        UnusableInput, match="is a gate, and its checked-out revisions were removed"
    ):
        choose_gap(stage.ledger.read_run(run_id))


def test_another_campaign_has_no_gate_result(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.start(plan_of(stopping=Stopping(blocks=2)))
    document = validated(analyse_campaign(stage.ledger.read_run("last")))
    assert not isinstance(document, GateDocument)
