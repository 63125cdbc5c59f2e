"""A bisection as a campaign, on a scripted clock: builds, warm-ups, failures, kills."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.campaign.blocks import complete_blocks
from equipoise.campaign.conduct import Interrupted, start
from equipoise.campaign.progress import ProgressListener
from equipoise.design.limits import CampaignLimits
from equipoise.kinds.bisect.judge import BisectionJudge, read_searches
from equipoise.kinds.bisect.terms import STUDY, BisectPlan, bisection_terms
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Contrast, Measure, Plan, Stopping
from equipoise.model.record import RunRecord
from equipoise.model.revisions import Revision
from equipoise.revisions.commits import MergedBranch
from equipoise.revisions.judging import (
    NOT_BUILT,
    NOT_RUN,
    CommitsSegment,
    Withdrawal,
    withdrawals_of,
)
from packages.equipoise.tests.commits import Killed, Stage, commits_made, steps
from packages.equipoise.tests.plans import plan_of


def plan_of_bisection(count: int, *, warmup: int = 1, stopping: Stopping | None = None) -> Plan:
    """A search among this many commits after the good one."""
    commits = commits_made(count)
    plan = plan_of(
        *(commit.hash for commit in commits),
        stopping=stopping or Stopping(budget_s=1e6, min_seconds=0.0),
        measure=Measure(working_folder="/", warmup=warmup),
    )
    good, bad = (Revision(name, commits[at].hash) for name, at in (("old", 0), ("new", -1)))
    return replace(
        plan,
        study=STUDY,
        chosen_contrasts=(Contrast(0, count),),
        ranking=False,
        terms=BisectPlan(good=good, bad=bad, commits=commits, build="make"),
    )


def named_steps(record: RunRecord) -> list[tuple[int, int]]:
    """Return the first and the last commit of each step that the recorded search names."""
    return sorted(
        (step.first, step.last) for step in read_searches(record)[0].bisection.state().named_steps
    )


def test_the_culprit_is_named_and_few_commits_are_built(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(32, 21))
    record = stage.start(plan_of_bisection(32))
    assert named_steps(record) == [(21, 21)]
    assert record.segments[-1].stopped_because == "verdict"
    assert len(stage.builds.made) < 16
    assert len(set(stage.builds.made)) == len(stage.builds.made)
    draws = [draw for draw in record.draws if draw.phase == "measured"]
    assert all(len(draw.order) == 2 for draw in draws)
    # Both orders of the coin.
    assert {draw.order[0] < draw.order[1] for draw in draws} == {True, False}
    last = stage.heard[-1].statuses
    assert [status.search_status for status in last] == [f"{21:040x} made a difference"]
    searches = {status.search_status for event in stage.heard for status in event.statuses}
    assert "32 of 32 commits are left" in searches
    assert stage.names_built[0] == (f"{0:040x}", f"{32:040x}")


def test_a_single_commit_is_named_by_blocks_of_its_own(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(1, 1))
    record = stage.start(plan_of_bisection(1))
    (step,) = read_searches(record)[0].bisection.state().named_steps
    assert (step.first, step.last) == (1, 1)
    # The blocks that confirmed the gap are not evidence for the name.
    assert step.blocks < read_searches(record)[0].bisection.state().blocks


def test_each_commit_is_warmed_up_before_its_first_block(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(16, 9))
    record = stage.start(plan_of_bisection(16, warmup=2))
    seen: dict[int, list[str]] = {}
    for trial in record.trials:
        seen.setdefault(trial.condition, []).append(trial.phase)
    for phases in seen.values():
        assert phases[:2] == ["warmup", "warmup"]
        assert phases.count("warmup") == 2
    assert sorted(seen) == sorted(stage.builds.made)


def test_without_a_difference_nothing_is_searched_and_nothing_else_built(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(8))
    record = stage.start(plan_of_bisection(8))
    assert read_searches(record)[0].bisection.verdict == "no difference"
    assert sorted(stage.builds.made) == [0, 8]


def test_the_budget_ends_a_search_and_resume_goes_on(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(32, 21))
    plan = plan_of_bisection(32, stopping=Stopping(budget_s=12.0, min_seconds=0.0))
    record = stage.start(plan)
    assert record.segments[-1].stopped_because == "budget"
    assert named_steps(record) == []
    blocks, built = len(record.draws), list(stage.builds.made)
    record = stage.resume(CampaignLimits(budget=1e6))
    assert named_steps(record) == [(21, 21)]
    assert len(record.draws) > blocks
    assert stage.builds.made[: len(built)] == built
    assert len(set(stage.builds.made)) == len(stage.builds.made)


def test_commits_that_do_not_build_form_a_group_with_the_next_that_does(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(16, 8), broken=frozenset({7, 8, 9}))
    record = stage.start(plan_of_bisection(16))
    assert named_steps(record) == [(7, 10)]
    warnings = [warning for warning in record.warnings if warning.code == NOT_BUILT]
    assert {warning.summary[:47] for warning in warnings} == {
        f"commit {commit:040x}" for commit in (7, 8, 9)
    }
    assert "make: *** no such file" in warnings[0].summary
    ran = {trial.condition for trial in record.trials}
    assert not ran & {7, 8, 9}
    read = withdrawals_of(record)
    assert {withdrawal.commit for withdrawal in read} == {7, 8, 9}
    assert [withdrawal.first_block for withdrawal in read] == sorted(
        withdrawal.first_block for withdrawal in read
    )


@pytest.mark.parametrize("fails_from", [0, 1, 4])
def test_a_commit_whose_command_fails_is_left_out_and_its_block_counts_for_nothing(
    tmp_path: Path, fails_from: int
) -> None:
    failing = frozenset({7, 8, 9})
    stage = Stage(tmp_path, steps(16, 8), failing=failing, fails_from=fails_from)
    record = stage.start(plan_of_bisection(16))
    assert named_steps(record) == [(7, 10)]
    read = withdrawals_of(record)
    assert {withdrawal.commit for withdrawal in read} == failing
    failed = [trial for trial in record.trials if trial.failure is not None]
    assert {trial.phase for trial in failed} == {"warmup" if fails_from == 0 else "measured"}
    assert len(failed) == 3
    assert sum(warning.code == NOT_RUN for warning in record.warnings) == 3
    blocks = complete_blocks(record.draws, record.trials)
    lost = {trial.block for trial in failed if trial.phase == "measured"}
    assert read_searches(record)[0].bisection.state().blocks == len(blocks) - len(lost)


def test_a_failed_trial_leaves_its_commit_out_even_if_no_warning_was_written(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path, steps(16, 8), failing=frozenset({8}), fails_from=1)
    record = stage.start(plan_of_bisection(16))
    assert withdrawals_of(replace(record, warnings=())) == withdrawals_of(record)


@pytest.mark.parametrize("end", [0, 8])
def test_an_end_that_fails_ends_the_campaign(tmp_path: Path, end: int) -> None:
    stage = Stage(tmp_path, steps(8, 4), failing=frozenset({end}), fails_from=3)
    with pytest.raises(ConditionFailed, match="failed: exit status 1"):
        stage.start(plan_of_bisection(8))
    record = stage.ledger.read_run()
    assert withdrawals_of(record) == ()
    assert read_searches(record)[0].bisection.verdict == "confirming"
    with pytest.raises(ConditionFailed):
        stage.resume()


@pytest.mark.parametrize("moment", [1, 2, 5, 13, 34, 55, 60, 70, 75, 80])
def test_a_killed_search_loses_nothing_and_ends_at_the_same_commit(
    tmp_path: Path, moment: int
) -> None:
    script: dict[str, object] = {"broken": frozenset({5, 12}), "failing": frozenset({13})}
    stage = Stage(tmp_path, steps(16, 11), **script)
    stage.kill_at(moment, in_builds=True)
    with pytest.raises(Killed):
        stage.start(plan_of_bisection(16))
    before = stage.ledger.read_run()
    built = list(stage.builds.made)
    state_before = read_searches(before)[0].bisection.state()
    after = stage.resume()
    assert after.trials[: len(before.trials)] == before.trials
    assert after.draws[: len(before.draws)] == before.draws
    assert stage.builds.made[: len(built)] == built
    assert len(set(stage.builds.made)) == len(stage.builds.made)
    assert named_steps(after) == [(11, 11)]
    state = read_searches(after)[0].bisection.state()
    assert state.blocks >= state_before.blocks
    for earlier, later in zip(state_before.excluded_at, state.excluded_at, strict=True):
        assert earlier in (None, later)


def test_a_search_that_is_read_back_equals_the_one_that_ran(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(16, 5, 11), broken=frozenset({8}), failing=frozenset({3}))
    judges: list[BisectionJudge] = []

    class Remembered(BisectionJudge):
        def __init__(self, plan: Plan, stopping: Stopping, **more: object) -> None:
            super().__init__(plan, stopping, **more)  # type: ignore[arg-type]
            judges.append(self)

    run_id = start(
        plan_of_bisection(16),
        stage.ledger,
        ProgressListener(),
        judge_factory=partial(Remembered, builds=stage.builds),
        segment_factory=partial(CommitsSegment, builds=stage.builds),
        runner_factory=stage.hire,
        clock=stage.clock,
        now=stage.now,
    )
    record = stage.ledger.read_run(run_id)
    assert read_searches(record)[0].bisection.state() == judges[0].searches[0].bisection.state()
    assert named_steps(record) == [(5, 5), (11, 11)]


def test_an_interrupted_search_can_be_read(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(8, 4))

    def interrupt() -> None:
        raise KeyboardInterrupt

    stage.builds.before = lambda: interrupt() if len(stage.builds.made) > 2 else None
    with pytest.raises(Interrupted):
        stage.start(plan_of_bisection(8))
    assert stage.ledger.read_run().segments[-1].stopped_because == "interrupted"
    stage.builds.before = lambda: None
    assert named_steps(stage.resume()) == [(4, 4)]


def test_a_commit_left_out_after_a_block_that_was_cut_is_left_out_when_read_back(
    tmp_path: Path,
) -> None:
    plan = plan_of_bisection(16)
    record = Stage(tmp_path, steps(16, 8), broken=frozenset({8})).start(plan)
    (left_out,) = withdrawals_of(record)
    measured = (trial for trial in record.trials if trial.phase == "measured")
    earlier = [trial for trial in measured if trial.block < left_out.first_block]
    assert earlier[-1].block == left_out.first_block - 1
    killed = replace(record, trials=tuple(earlier[:-1]))
    judge = BisectionJudge(plan, plan.stopping)
    judge.replay(killed)
    assert judge.withdrawn == {(8, 0)}


def test_another_warning_does_not_leave_out_a_commit(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(8, 4), broken=frozenset({4}))
    record = stage.start(plan_of_bisection(8))
    (warning,) = (warning for warning in record.warnings if warning.code == NOT_BUILT)
    forged = (
        replace(warning, code="left_processes"),
        replace(warning, condition=None),
        replace(warning, absent_from=None),
    )
    assert withdrawals_of(replace(record, warnings=forged)) == ()
    assert withdrawals_of(record) == (Withdrawal(4, withdrawals_of(record)[0].first_block),)


def plan_with_a_branch() -> Plan:
    """Eight commits, of which the fifth merges a branch of four, 9 to 12, that began at the second;
    a tenth slower from 11 on."""
    plan = plan_of_bisection(12)
    terms = bisection_terms(plan)
    return replace(
        plan,
        chosen_contrasts=(Contrast(0, 8),),
        terms=replace(
            terms,
            bad=Revision("new", terms.commits[8].hash),
            commits=terms.commits[:9],
            branch_commits=terms.commits[9:],
            branches=(MergedBranch(5, (2, 9, 10, 11, 12)),),
        ),
    )


@pytest.mark.parametrize("moment", [150, 190, 230, 270])
def test_a_search_goes_on_in_a_branch_after_a_kill(tmp_path: Path, moment: int) -> None:
    medians = [0.011 if place in (5, 6, 7, 8, 11, 12) else 0.010 for place in range(13)]
    stage = Stage(tmp_path, tuple(medians), broken=frozenset({10}))
    stage.kill_at(moment)
    with pytest.raises(Killed):
        stage.start(plan_with_a_branch())
    record = stage.resume()
    line, branch = read_searches(record)[0].bisection.lines()
    assert [(step.first, step.last) for step in line.state.named_steps] == [(5, 5)]
    assert branch.merge == 5
    assert [(step.first, step.last) for step in branch.state.named_steps] == [(2, 3)]
    assert record.segments[-1].stopped_because == "verdict"
