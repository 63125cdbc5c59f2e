"""A segment runs blocks until there is a reason to stop, and stores all entries in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pytest

from equipoise.campaign.progress import CampaignProgress, ComparisonStatus, ProgressListener
from equipoise.campaign.segment import Judge, SegmentInProgress, StopReason
from equipoise.measure.trials import TrialReport
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Measure, Plan, Stopping
from equipoise.model.record import CampaignWarning, Draw, Phase, Trial
from packages.equipoise.tests.plans import plan_of, trial_of
from packages.equipoise.tests.scripted import ScriptedClock, ScriptedRunner


@dataclass
class Diary:
    """A store that keeps its entries in order."""

    entries: list[Draw | Trial | CampaignWarning] = field(default_factory=list)

    def record_draw(self, run_id: str, draw: Draw) -> None:
        self.entries.append(draw)

    def record_trial(self, run_id: str, trial: Trial) -> None:
        self.entries.append(trial)

    def record_warning(self, run_id: str, warning: CampaignWarning) -> None:
        self.entries.append(warning)


@dataclass
class ScriptedJudge(Judge):
    """Decides after this number of blocks."""

    after: int = 10**9
    reason: Literal["verdict", "precision"] = "verdict"
    seen: int = 0
    excused: frozenset[int] = frozenset()
    forecasts: tuple[int, ...] = ()

    def add(self, block: tuple[Trial, ...]) -> None:
        self.seen += 1

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        return (ComparisonStatus("b", "undecided", None, (None, None)),)

    def stop_reason(self) -> Literal["verdict", "precision"] | None:
        return self.reason if self.seen >= self.after else None

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        return (0, 1)

    def tolerates(self, trial: Trial) -> bool:
        return trial.condition in self.excused

    def earliest_block(self) -> int:
        return 1

    def blocks_to_verdict(self) -> tuple[int, ...]:
        return self.forecasts


@dataclass
class RecordingObserver(ProgressListener):
    """Keeps the events that it was sent."""

    progress_seen: list[CampaignProgress] = field(default_factory=list)
    trials: list[tuple[float, int]] = field(default_factory=list)

    def trial_ended(self, seconds: float, of: int) -> None:
        self.trials.append((seconds, of))

    def block_ended(self, progress: CampaignProgress) -> None:
        self.progress_seen.append(progress)


def run_segment(
    plan: Plan,
    *,
    judge: ScriptedJudge | None = None,
    runner: ScriptedRunner | None = None,
    diary: Diary | None = None,
    listener: ProgressListener | None = None,
    spent_before_s: float = 0.0,
    blocks_before: int = 0,
) -> StopReason:
    """Run a segment until it stops, with fakes for the omitted arguments."""
    runner = runner or ScriptedRunner(ScriptedClock())
    return SegmentInProgress(
        run_id="run",
        plan=plan,
        stopping=plan.stopping,
        store=diary or Diary(),
        judge=judge or ScriptedJudge(),
        listener=listener or ProgressListener(),
        clock=runner.clock,
        spent_before_s=spent_before_s,
        blocks_before=blocks_before,
        next_block=blocks_before + 1,
    ).run(runner)


def test_it_stops_as_soon_as_the_judge_is_settled() -> None:
    judge = ScriptedJudge(after=9)
    assert run_segment(plan_of(), judge=judge) == "verdict"
    assert judge.seen == 9


def test_every_trial_event_has_its_seconds_and_the_size_of_its_block() -> None:
    observer = RecordingObserver()
    runner = ScriptedRunner(ScriptedClock(), medians=(0.1, 0.1), noise=0.0)
    plan = plan_of(stopping=Stopping(blocks=2), measure=Measure("/", warmup=1))
    run_segment(plan, runner=runner, listener=observer)
    assert [of for _, of in observer.trials] == [2] * 6
    assert [seconds for seconds, _ in observer.trials] == pytest.approx([0.1] * 6)


def test_it_stops_at_the_block_limit_counting_earlier_blocks() -> None:
    judge = ScriptedJudge()
    plan = plan_of(stopping=Stopping(blocks=12))
    assert run_segment(plan, judge=judge, blocks_before=5) == "block limit"
    assert judge.seen == 7


def test_it_stops_at_the_budget_including_earlier_time() -> None:
    judge = ScriptedJudge()
    plan = plan_of(stopping=Stopping(budget_s=1.0), measure=Measure("/", warmup=0))
    runner = ScriptedRunner(ScriptedClock(), medians=(0.1, 0.1), noise=0.0)
    assert run_segment(plan, judge=judge, runner=runner, spent_before_s=0.55) == "budget"
    assert judge.seen == 3


def test_a_chosen_minimum_of_blocks_exceeds_the_budget() -> None:
    judge = ScriptedJudge()
    stopping = Stopping(budget_s=0.01, min_blocks=7, min_blocks_explicit=True)
    assert run_segment(plan_of(stopping=stopping), judge=judge) == "budget"
    assert judge.seen == 7


def test_the_budget_ends_before_a_default_minimum_of_blocks() -> None:
    judge = ScriptedJudge()
    plan = plan_of(stopping=Stopping(budget_s=0.01))
    assert run_segment(plan, judge=judge) == "budget"
    assert judge.seen == 1


def test_each_draw_is_in_the_ledger_before_the_trials_that_it_orders() -> None:
    diary = Diary()
    runner = ScriptedRunner(ScriptedClock())
    runner.before_trial = lambda draw, place: checked.append(draw in diary.entries)
    checked: list[bool] = []
    run_segment(plan_of(), judge=ScriptedJudge(after=3), runner=runner, diary=diary)
    assert checked == [True] * 8


def test_each_trial_is_in_the_ledger_before_the_next_one_starts() -> None:
    diary = Diary()
    runner = ScriptedRunner(ScriptedClock())
    finished: list[int] = []
    runner.before_trial = lambda draw, place: finished.append(
        sum(isinstance(entry, Trial) for entry in diary.entries)
    )
    run_segment(plan_of(), judge=ScriptedJudge(after=3), runner=runner, diary=diary)
    assert finished == list(range(8))


def test_warm_up_trials_are_run_and_marked_and_never_judged() -> None:
    diary = Diary()
    judge = ScriptedJudge(after=2)
    plan = plan_of(measure=Measure("/", warmup=3))
    run_segment(plan, judge=judge, diary=diary)
    phases = [entry.phase for entry in diary.entries if isinstance(entry, Trial)]
    assert phases == ["warmup"] * 6 + ["measured"] * 4


def test_a_failing_trial_ends_the_campaign_and_is_kept() -> None:
    diary = Diary()
    runner = ScriptedRunner(ScriptedClock(), fails_at=("measured", 2, 1))
    with pytest.raises(ConditionFailed, match="b failed: exit status 1") as caught:
        run_segment(plan_of(), runner=runner, diary=diary)
    assert "no such frobnicator" in caught.value.what
    last = diary.entries[-1]
    assert isinstance(last, Trial)
    assert last.failure == "exit status 1"


def test_a_failing_trial_that_the_judge_excuses_ends_nothing_and_its_block_is_complete() -> None:
    diary = Diary()
    runner = ScriptedRunner(ScriptedClock(), fails_at=("measured", 2, 1))
    judge = ScriptedJudge(after=4, excused=frozenset({1}))
    assert run_segment(plan_of(), runner=runner, judge=judge, diary=diary) == "verdict"
    of_block = [entry for entry in diary.entries if isinstance(entry, Trial) and entry.block == 2]
    assert sorted(trial.condition for trial in of_block) == [0, 1]


def test_a_failing_trial_counts_like_others_when_failures_are_ignored() -> None:
    runner = ScriptedRunner(ScriptedClock(), fails_at=("measured", 2, 1))
    plan = plan_of(measure=Measure("/", ignore_failure=True))
    judge = ScriptedJudge(after=4)
    assert run_segment(plan, runner=runner, judge=judge) == "verdict"


def test_a_condition_that_times_out_continues_as_the_slowest() -> None:
    runner = ScriptedRunner(ScriptedClock(), times_out=frozenset({1}))
    judge = ScriptedJudge(after=4)
    assert run_segment(plan_of(), runner=runner, judge=judge) == "verdict"


def test_a_campaign_in_which_nothing_finishes_ends_after_its_warm_up() -> None:
    runner = ScriptedRunner(ScriptedClock(), times_out=frozenset({0, 1}))
    diary = Diary()
    with pytest.raises(ConditionFailed, match="every condition timed out after 1 s"):
        run_segment(plan_of(), runner=runner, diary=diary)
    assert sum(isinstance(entry, Trial) for entry in diary.entries) == 2


def test_leftover_processes_are_reported_once() -> None:
    class LeftoverRunner(ScriptedRunner):
        def _run(self, draw: Draw, place: int) -> TrialReport:
            return TrialReport(trial_of(draw, place, 0.01), 2, "line 1 of its metrics is odd")

    diary = Diary()
    runner = LeftoverRunner(ScriptedClock())
    run_segment(plan_of(), runner=runner, judge=ScriptedJudge(after=3), diary=diary)
    warnings = [entry for entry in diary.entries if isinstance(entry, CampaignWarning)]
    assert sorted((warning.code, warning.summary[0]) for warning in warnings) == [
        ("left_processes", "a"),
        ("left_processes", "b"),
        ("own_metrics", "a"),
        ("own_metrics", "b"),
    ]


def test_observers_get_an_event_after_every_block() -> None:
    listener = RecordingObserver()
    run_segment(plan_of(), judge=ScriptedJudge(after=3), listener=listener)
    assert [progress.blocks for progress in listener.progress_seen] == [1, 2, 3]
    assert listener.progress_seen[-1].elapsed_s > listener.progress_seen[0].elapsed_s > 0
