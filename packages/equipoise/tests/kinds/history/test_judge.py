"""Campaigns of a history on a scripted clock: a series of nights, failures, kills."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.kinds.history.judge import HistoryJudge, campaigns_of_series, read_history
from equipoise.kinds.history.terms import STUDY, HistoryPlan, history_terms
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.plan import Measure, Plan, Stopping
from equipoise.model.record import RunRecord
from equipoise.model.revisions import Revision
from equipoise.revisions.judging import NOT_BUILT, withdrawals_of
from packages.equipoise.tests.commits import Killed, Stage, commits_made, steps
from packages.equipoise.tests.plans import plan_of


def plan_of_history(
    count: int,
    earlier: Sequence[RunRecord] = (),
    *,
    only_new: bool = False,
    era: str = "gcc 14",
    stopping: Stopping | None = None,
) -> Plan:
    """Return the plan of a campaign over a baseline and this many commits after it."""
    commits = commits_made(count)
    plan = plan_of(
        *(commit.hash for commit in commits),
        stopping=stopping or Stopping(budget_s=1e6, min_seconds=0.0),
        measure=Measure(working_folder="/"),
    )
    terms = HistoryPlan(
        commits=commits,
        baseline=Revision("v1", commits[0].hash),
        latest=Revision("main", commits[-1].hash),
        selected=tuple(range(count + 1)),
        series="5e1e5",
        era=era,
        earlier_ids=tuple(record.id for record in earlier),
        only_new=only_new,
    )
    return replace(plan, study=STUDY, ranking=False, terms=terms, seed=len(earlier))


def night(stage: Stage, plan: Plan) -> RunRecord:
    """Return one campaign after those that its plan names."""
    assert isinstance(plan.terms, HistoryPlan)
    earlier = stage.ledger.read_campaigns(plan.terms.earlier_ids)
    return stage.start(plan, partial(HistoryJudge, builds=stage.builds, earlier=earlier))


def changes(records: Sequence[RunRecord]) -> list[tuple[int, int, bool]]:
    """Return the last commit without each change, the first with it, and whether it is certain."""
    named_changes = read_history(records).state().changes
    return [
        (int(change.pair.earlier_hash, 16), int(change.pair.later_hash, 16), change.is_confirmed)
        for change in named_changes
    ]


def test_a_campaign_names_the_changes_and_can_be_read_back(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(8, 3, 6))
    judges: list[HistoryJudge] = []

    class Remembered(HistoryJudge):
        def __init__(self, plan: Plan, stopping: Stopping) -> None:
            super().__init__(plan, stopping, stage.builds)
            judges.append(self)

    record = stage.start(plan_of_history(8), Remembered)
    assert record.segments[-1].stopped_because == "verdict"
    assert changes([record]) == [(2, 3, True), (5, 6, True)]
    assert read_history([record]).state() == judges[0].history.state()
    assert sorted(stage.builds.made) == list(range(9))
    last = stage.heard[-1].statuses
    assert [status.search_status for status in last] == [
        f"8 commits measured, changes at {'0' * 10} and {'0' * 10}"
    ]
    assert stage.names_built[0][0] == f"{0:040x}"


def test_the_next_campaign_goes_on_where_the_series_was(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(10, 3, 9))
    short = Stopping(blocks=4, budget_s=1e6, min_seconds=0.0)
    first = night(stage, plan_of_history(8, stopping=short))
    assert changes([first]) == []
    second = night(stage, plan_of_history(8, [first]))
    assert changes([first, second]) == [(2, 3, True)]
    before = read_history([first, second]).state()
    third = night(stage, plan_of_history(10, [first, second]))
    series = campaigns_of_series(third)
    assert [campaign.id for campaign in series] == [first.id, second.id, third.id]
    assert changes(series) == [(2, 3, True), (8, 9, True)]
    after = read_history(series).state()
    ranks = [pair.pair_number for pair in after.pairs]
    assert ranks == list(range(1, len(ranks) + 1)) and len(ranks) > len(before.pairs)
    assert after.pairs[: len(before.pairs)] == before.pairs
    # Decided pairs are not measured again.
    ran = {trial.condition for trial in third.trials if trial.phase == "measured"}
    assert ran <= {0, 8, 9, 10}
    # Nothing is left to measure.
    again = plan_of_history(10, series)
    judge = HistoryJudge(again, again.stopping, stage.builds, series)
    assert judge.stop_reason() == "verdict"


def test_only_new_commits_are_measured(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(10, 3, 9))
    short = Stopping(blocks=30, budget_s=1e6, min_seconds=0.0)
    first = night(stage, plan_of_history(8, stopping=short))
    second = night(stage, plan_of_history(10, [first], only_new=True))
    assert (8, 9, True) in changes([first, second])
    ran = {trial.condition for trial in second.trials if trial.phase == "measured"}
    assert {9, 10} < ran <= {0, 8, 9, 10}


def test_another_era_opens_pairs_of_its_own_and_keeps_what_is_named(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(8, 3, 8))
    first = night(stage, plan_of_history(6))
    second = night(stage, plan_of_history(8, [first], era="gcc 15"))
    before, after = (read_history(campaigns).state() for campaigns in ([first], [first, second]))
    assert (before.eras, after.eras) == (1, 2)
    assert changes([first, second]) == [(2, 3, True), (7, 8, True)]
    assert after.pairs[: len(before.pairs)] == before.pairs
    assert {pair.era for pair in after.pairs[len(before.pairs) :]} == {2}


@pytest.mark.parametrize("moment", [3, 40, 150])
def test_a_killed_campaign_loses_nothing_and_goes_on(tmp_path: Path, moment: int) -> None:
    stage = Stage(tmp_path, steps(8, 5), broken=frozenset({2}))
    first = night(stage, plan_of_history(4, stopping=Stopping(blocks=20, min_seconds=0.0)))
    stage.kill_at(moment)
    with pytest.raises(Killed):
        night(stage, plan_of_history(8, [first]))
    before = stage.ledger.read_run()
    judge = partial(HistoryJudge, builds=stage.builds, earlier=[first])
    after = stage.resume(judge_factory=judge)
    assert after.id == before.id
    assert after.trials[: len(before.trials)] == before.trials
    assert changes([first, after]) == [(4, 5, True)]
    state = read_history([first, after]).state()
    assert state.withdrawn == (f"{2:040x}",)


def test_a_change_across_failed_builds_belongs_to_all_of_them(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(8, 5), broken=frozenset({4, 5}), failing=frozenset({8}))
    record = night(stage, plan_of_history(8))
    (change,) = read_history([record]).state().changes
    assert (int(change.pair.earlier_hash, 16), int(change.pair.later_hash, 16)) == (3, 6)
    assert change.is_confirmed
    assert [int(name, 16) for name in change.not_built] == [4, 5]
    codes = [warning.code for warning in record.warnings]
    assert codes.count(NOT_BUILT) == 2 and codes.count("not_run") == 1
    # The last commit does not run, so the one before it takes its place.
    assert {withdrawal.commit for withdrawal in withdrawals_of(record)} == {4, 5, 8}


def test_failed_builds_are_tried_once_more_in_the_next_campaign(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(8, 5), broken=frozenset({4, 5}))
    first = night(stage, plan_of_history(8))
    assert changes([first]) == [(3, 6, True)]
    # It still does not build.
    second = night(stage, plan_of_history(8, [first]))
    assert [withdrawal.commit for withdrawal in withdrawals_of(second)] == [4, 5]
    assert changes([first, second]) == [(3, 6, True)]
    # Now its dependencies are installed.
    stage.builds.broken = frozenset()
    third = night(stage, plan_of_history(8, [first, second]))
    series = (first, second, third)
    assert changes(series) == [(4, 5, True)]
    assert read_history(series).state().withdrawn == ()


def test_a_baseline_that_fails_ends_the_campaign(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(4), failing=frozenset({0}), fails_from=3)
    with pytest.raises(ConditionFailed, match="failed: exit status 1"):
        night(stage, plan_of_history(4))
    assert withdrawals_of(stage.ledger.read_run()) == ()


def test_a_ledger_without_an_earlier_campaign_is_reported(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(2))
    record = night(stage, plan_of_history(2))
    terms = history_terms(record.plan)
    gone = replace(terms, earlier_ids=("20260101-000000-abcd",))
    judge = partial(HistoryJudge, builds=stage.builds)
    with pytest.raises(UnusableInput, match="lacks campaign 20260101-000000-abcd") as error:
        stage.start(replace(record.plan, terms=gone), judge)
    assert "--ledger FILE" in str(error.value.hint)


def test_the_ledger_has_the_campaigns_of_a_series(tmp_path: Path) -> None:
    stage = Stage(tmp_path, steps(2))
    short = Stopping(blocks=2, budget_s=1e6, min_seconds=0.0)
    first = night(stage, plan_of_history(2, stopping=short))
    other = plan_of_history(2, stopping=short)
    night(stage, replace(other, terms=replace(history_terms(other), series="another")))
    third = night(stage, plan_of_history(2, [first], stopping=short))
    assert stage.ledger.runs_of_series("5e1e5", STUDY) == (first.id, third.id)
    assert stage.ledger.runs_of_series("5e", STUDY) == ()
