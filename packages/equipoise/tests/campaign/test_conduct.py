"""A campaign begins, is interrupted, continues and ends, on a scripted clock."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec.structs
import pytest

from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.conduct import Interrupted, resume, start
from equipoise.campaign.interim import judge_for
from equipoise.campaign.progress import CampaignProgress, ProgressListener
from equipoise.campaign.segment import Runner
from equipoise.design.limits import CampaignLimits
from equipoise.ledger import Ledger, open_for_writing
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.plan import Judgement, Plan, Stopping
from equipoise.model.record import CUT_BLOCK, Draw
from equipoise.report.json_document import encode
from packages.equipoise.tests.plans import plan_of
from packages.equipoise.tests.schema import validated
from packages.equipoise.tests.scripted import ScriptedClock, ScriptedRunner


class Stage:
    """A ledger, a scripted clock and a scripted runner."""

    def __init__(self, folder: Path, **runner: object) -> None:
        self.clock = ScriptedClock()
        self.runner = ScriptedRunner(self.clock, **runner)  # type: ignore[arg-type]
        folder.mkdir(exist_ok=True)
        self.ledger: Ledger = open_for_writing(folder / "ledger.db", durable=False)
        self.progress_seen: list[CampaignProgress] = []

    @contextmanager
    def hire(self, plan: Plan, on_wait: Callable[[], None]) -> Iterator[Runner]:
        yield self.runner

    def now(self) -> float:
        return 1.7e9 + self.clock.seconds

    def start(self, plan: Plan, listener: ProgressListener | None = None) -> str:
        return start(
            plan,
            self.ledger,
            listener or ProgressListener(),
            judge_factory=judge_for,
            runner_factory=self.hire,
            clock=self.clock,
            now=self.now,
        )

    def interrupt(self, plan: Plan, *, block: int, place: int) -> str:
        """Start a campaign that is interrupted before this measured trial; return its run."""

        def before_trial(draw: Draw, at: int) -> None:
            if at == 0:
                # The block and its layout are in the ledger before its first trial starts.
                kept = self.ledger.read_run("last").draws[-1]
                assert (kept.phase, kept.block, kept.layout) == (
                    draw.phase,
                    draw.block,
                    draw.layout,
                )
            if (draw.phase, draw.block, at) == ("measured", block, place):
                raise KeyboardInterrupt

        self.runner.before_trial = before_trial
        with pytest.raises(Interrupted) as caught:
            self.start(plan)
        self.runner.before_trial = lambda draw, at: None
        return caught.value.run_id

    def resume(self, reference: str, more: CampaignLimits | None = None) -> str:
        return resume(
            reference,
            more or CampaignLimits(),
            self.ledger,
            ProgressListener(),
            judge_factory=judge_for,
            runner_factory=self.hire,
            clock=self.clock,
            now=self.now,
        )


def test_a_true_difference_is_found_and_the_campaign_stops(tmp_path: Path) -> None:
    stage = Stage(tmp_path, medians=(0.010, 0.011), noise=0.01)
    run_id = stage.start(plan_of())
    document = validated(analyse_campaign(stage.ledger.read_run(run_id)))
    comparison = document.comparisons[0]
    assert comparison.verdict == "slower"
    low, high = comparison.ratio_ci
    assert low is not None
    assert high is not None
    assert low < 1.1 < high
    assert document.run.stopped_because == "verdict"
    assert document.run.blocks == comparison.blocks < 20


def test_the_same_ledger_gives_the_same_document_byte_for_byte(tmp_path: Path) -> None:
    stage = Stage(tmp_path, medians=(0.010, 0.0102))
    plan = plan_of(stopping=Stopping(blocks=30), judgement=Judgement(alpha=1e-9))
    run_id = stage.start(plan)
    first = encode(validated(analyse_campaign(stage.ledger.read_run(run_id))))
    again = encode(validated(analyse_campaign(stage.ledger.read_run(run_id))))
    assert first == again
    assert json.loads(first)["run"]["blocks"] == 30


def test_an_interruption_keeps_the_trials_but_the_incomplete_block_does_not_count(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path)
    run_id = stage.interrupt(plan_of(stopping=Stopping(blocks=6)), block=4, place=1)
    record = stage.ledger.read_run(stage.resume(run_id))
    assert [segment.stopped_because for segment in record.segments] == [
        "interrupted",
        "block limit",
    ]
    document = analyse_campaign(record)
    assert document.run.blocks == 6
    cut = [row for row in document.trials if row.left_out_because == CUT_BLOCK]
    assert [row.block for row in cut] == [4]
    measured = [draw.block for draw in record.draws if draw.phase == "measured"]
    assert measured == [1, 2, 3, 4, 5, 6, 7]
    assert [warning.code for warning in document.warnings] == ["cut_blocks"]


def test_a_resumed_campaign_warms_up_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    run_id = stage.start(plan_of(stopping=Stopping(blocks=2)))
    stage.resume(run_id, CampaignLimits(blocks=3))
    draws = stage.ledger.read_run(run_id).draws
    assert [(draw.phase, draw.block) for draw in draws] == [
        ("warmup", 1),
        ("measured", 1),
        ("measured", 2),
        ("warmup", 2),
        ("measured", 3),
    ]


def test_a_resumed_campaign_has_the_rest_of_its_budget(tmp_path: Path) -> None:
    stage = Stage(tmp_path, medians=(1.0, 1.0), noise=0.0)
    plan = plan_of(stopping=Stopping(budget_s=11.0, min_blocks=1))
    run_id = stage.interrupt(plan, block=3, place=0)
    # 6 s have passed, and the warm-up takes 2 s of the remaining 5 s: two more blocks.
    stage.resume(run_id)
    assert validated(analyse_campaign(stage.ledger.read_run("last"))).run.blocks == 4


def test_a_used_budget_is_granted_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path, medians=(1.0, 1.0), noise=0.0)
    run_id = stage.start(plan_of(stopping=Stopping(budget_s=6.0)))
    assert validated(analyse_campaign(stage.ledger.read_run(run_id))).run.blocks == 2
    stage.resume(run_id)
    assert validated(analyse_campaign(stage.ledger.read_run(run_id))).run.blocks == 4
    stage.resume(run_id, CampaignLimits(budget=10.0))
    assert validated(analyse_campaign(stage.ledger.read_run(run_id))).run.blocks == 8


def test_a_campaign_that_has_its_answer_is_left_as_it_is(tmp_path: Path) -> None:
    stage = Stage(tmp_path, medians=(0.01, 0.02))
    run_id = stage.start(plan_of())
    before = stage.ledger.read_run(run_id)
    assert stage.resume(run_id) == run_id
    assert stage.ledger.read_run(run_id) == before


def test_a_campaign_with_a_verdict_can_continue_to_a_precision(tmp_path: Path) -> None:
    stage = Stage(tmp_path, medians=(0.01, 0.02), noise=0.02)
    run_id = stage.start(plan_of())
    blocks = validated(analyse_campaign(stage.ledger.read_run(run_id))).run.blocks
    stage.resume(run_id, CampaignLimits(precision=2.0))
    document = validated(analyse_campaign(stage.ledger.read_run(run_id)))
    assert document.run.blocks > blocks
    assert document.run.stopped_because == "precision"
    low, high = document.comparisons[0].ratio_ci
    assert low is not None
    assert high is not None
    assert high / low <= 1.02


def test_a_campaign_with_a_tail_continues_until_such_slow_runs_would_be_seen(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path, medians=(0.01, 0.02), noise=0.02)
    run_id = stage.start(plan_of())
    assert validated(analyse_campaign(stage.ledger.read_run(run_id))).run.blocks < 59
    stage.resume(run_id, CampaignLimits(tail=5.0))
    document = validated(analyse_campaign(stage.ledger.read_run(run_id)))
    assert document.run.blocks == 59
    assert document.run.stopped_because == "verdict"
    slow = document.comparisons[0].slow_runs
    assert slow is not None
    assert slow.unseen_share <= 0.05
    # With one threshold for both, slow runs mean nothing if one of the two is slower.
    assert slow.more_often is None
    assert slow.e_value is None


def test_a_campaign_with_a_failed_condition_cannot_continue(tmp_path: Path) -> None:
    stage = Stage(tmp_path, fails_at=("measured", 3, 1))
    with pytest.raises(ConditionFailed):
        stage.start(plan_of())
    record = stage.ledger.read_run("last")
    assert record.segments[-1].stopped_because == "a condition failed"
    assert record.trials[-1].failure == "exit status 1"
    with pytest.raises(ConditionFailed, match="b failed: exit status 1"):
        stage.resume("last")


def test_a_campaign_at_its_block_limit_wants_a_higher_one(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    run_id = stage.start(plan_of(stopping=Stopping(blocks=3)))
    with pytest.raises(UnusableInput, match="already has 3 blocks, and its limit is"):
        stage.resume(run_id)


def test_timeouts_are_kept_as_slowest_to_the_verdict(tmp_path: Path) -> None:
    stage = Stage(tmp_path, times_out=frozenset({1}))
    document = validated(analyse_campaign(stage.ledger.read_run(stage.start(plan_of()))))
    comparison = document.comparisons[0]
    assert (comparison.verdict, comparison.ratio, comparison.blocks) == ("slower", None, 7)
    assert comparison.probability_slower == 1.0
    assert document.conditions[1].failures == 8
    assert document.conditions[1].metrics == {}
    assert b"Infinity" not in encode(document)


def test_several_candidates_share_one_baseline_and_one_error_rate(tmp_path: Path) -> None:
    stage = Stage(tmp_path, medians=(0.010, 0.010, 0.012, 0.008), noise=0.01)
    plan = plan_of("a", "same", "slow", "fast", stopping=Stopping(blocks=150, budget_s=1e9))
    document = validated(analyse_campaign(stage.ledger.read_run(stage.start(plan))))
    verdicts = {comparison.candidate: comparison.verdict for comparison in document.comparisons}
    assert verdicts == {"same": "equivalent", "slow": "slower", "fast": "faster"}
    assert all(
        math.isclose(comparison.significance_level, 0.05) for comparison in document.comparisons
    )


def test_a_campaign_without_an_effect_that_matters_runs_to_its_limit(tmp_path: Path) -> None:
    stage = Stage(tmp_path, noise=0.05)
    plan = plan_of(stopping=Stopping(blocks=40), judgement=Judgement(min_effect=0.0))
    document = validated(analyse_campaign(stage.ledger.read_run(stage.start(plan))))
    comparison = document.comparisons[0]
    assert comparison.verdict == "undecided"
    assert document.run.stopped_because == "block limit"
    assert "undecided after 40 blocks" in comparison.summary


def test_a_order_effect_is_taken_out_not_taken_for_a_difference(tmp_path: Path) -> None:
    stage = Stage(tmp_path, noise=0.005)

    class Slotted(ScriptedRunner):
        def trials_at(self, draw: Draw, place: int):  # type: ignore[no-untyped-def]
            self.medians = (0.010 * (1 + 0.05 * place), 0.0101 * (1 + 0.05 * place))
            return super().trials_at(draw, place)

    stage.runner = Slotted(stage.clock, noise=0.005)
    plan = plan_of(stopping=Stopping(budget_s=1e9), judgement=Judgement(min_effect=0.5))
    document = validated(analyse_campaign(stage.ledger.read_run(stage.start(plan))))
    assert document.comparisons[0].verdict == "slower"
    assert document.comparisons[0].blocks < 100


def test_a_control_is_neither_a_candidate_nor_a_condition_of_the_result(tmp_path: Path) -> None:
    plan = plan_of("a", "b", "a again", stopping=Stopping(blocks=400, budget_s=1e9))
    plan = msgspec.structs.replace(plan, control=2)
    stage = Stage(tmp_path, medians=(0.010, 0.0103, 0.010), noise=0.02)
    document = validated(analyse_campaign(stage.ledger.read_run(stage.start(plan))))
    assert [comparison.candidate for comparison in document.comparisons] == ["b"]
    assert document.comparisons[0].verdict == "slower"
    assert document.control is not None
    assert document.control.comparison.candidate == "a again"
    assert not document.control.excludes_one
    assert "control" not in [warning.code for warning in document.warnings]


def test_a_difference_of_the_control_is_reported_and_forbids_nothing(tmp_path: Path) -> None:
    plan = plan_of("a", "b", "a again", stopping=Stopping(blocks=60, budget_s=1e9))
    plan = msgspec.structs.replace(plan, control=2)
    stage = Stage(tmp_path, medians=(0.010, 0.020, 0.013), noise=0.01)
    document = validated(analyse_campaign(stage.ledger.read_run(stage.start(plan))))
    assert document.comparisons[0].verdict == "slower"
    assert document.control is not None
    assert document.control.excludes_one
    assert "control" in [warning.code for warning in document.warnings]


def test_a_campaign_that_was_never_begun_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput):
        Stage(tmp_path).resume("20010101")


def test_omitted_limits_are_unchanged(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    plan = plan_of(stopping=Stopping(blocks=2, budget_s=1e9))
    run_id = stage.start(plan)
    stage.resume(run_id, CampaignLimits(blocks=4))
    assert validated(analyse_campaign(stage.ledger.read_run(run_id))).run.blocks == 4
    assert stage.ledger.read_run(run_id).plan == plan
