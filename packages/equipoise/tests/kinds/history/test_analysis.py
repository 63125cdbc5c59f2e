"""The result of a history follows from the recorded blocks of its campaigns alone."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.analysis.redaction import hide_values
from equipoise.analysis.result import analyse_campaign
from equipoise.kinds.history.judge import HistoryJudge
from equipoise.kinds.history.terms import HistoryDocument, HistoryPlan, HistoryResult
from equipoise.model.plan import Stopping
from equipoise.model.record import Phase, RunRecord
from equipoise.model.result import ResultDocument
from equipoise.report.json_document import encode
from packages.equipoise.tests.commits import Stage, commits_made, steps
from packages.equipoise.tests.kinds.history.test_judge import night, plan_of_history
from packages.equipoise.tests.schema import validated

SHORT = Stopping(blocks=20, budget_s=1e6, min_seconds=0.0)


def result_of(record: RunRecord) -> tuple[ResultDocument, HistoryResult]:
    """Return the document of a history, and check it by its schema."""
    document = validated(analyse_campaign(record))
    assert isinstance(document, HistoryDocument)
    return document, document.history


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunRecord, RunRecord]:
    """Two campaigns of one history; the third and the ninth commit made it slower."""
    folder = tmp_path_factory.mktemp("history")
    stage = Stage(folder, steps(10, 3, 9), broken=frozenset({6}))
    first = night(stage, plan_of_history(8, stopping=SHORT))
    return first, night(stage, plan_of_history(10, [first], era="gcc 15"))


def test_changes_are_named_with_their_step_and_their_commit(
    nights: tuple[RunRecord, RunRecord],
) -> None:
    document, result = result_of(nights[1])
    commits = commits_made(10)
    assert [
        (change.commit, change.earlier_hash, change.confirmed) for change in result.changes
    ] == [
        (commits[3].hash, commits[2].hash, True),
        (commits[9].hash, commits[8].hash, True),
    ]
    for change in result.changes:
        low, high = change.ratio_ci
        assert low is not None
        assert high is not None
        assert 1.01 < low < 1.1 < high
        assert change.threshold is not None
        assert change.e_value >= change.threshold
        assert (change.confirm, change.commit_count) == (None, 1)
        assert f"({change.subject}) made it " in change.summary
    assert result.summary == "2 changes in 10 commits since v1 (0000000000): 2 slower."
    assert result.blocks_to_go == 0
    assert document.primary_metric == result.metric == "wall_s"
    assert document.comparisons == ()


def test_the_curve_has_each_selected_commit_over_the_baseline(
    nights: tuple[RunRecord, RunRecord],
) -> None:
    _, result = result_of(nights[1])
    assert [revision.place for revision in result.revisions] == list(range(11))
    baseline, *others = result.revisions
    assert (baseline.ratio, baseline.ratio_ci) == (1.0, (1.0, 1.0))
    assert [revision.place for revision in others if revision.status == "not built"] == [6]
    for revision in others:
        low, high = revision.ratio_ci
        if revision.place == 6:
            assert (revision.ratio, revision.blocks) == (None, 0)
            continue
        assert low is not None
        assert high is not None
        assert low < 1.1 ** sum(step <= revision.place for step in (3, 9)) < high
        assert revision.significance_level is not None
        assert revision.blocks > 0
    assert (
        sum(
            revision.significance_level
            for revision in others
            if revision.significance_level is not None
        )
        <= result.alpha
    )


def test_all_earlier_campaigns_count(nights: tuple[RunRecord, RunRecord]) -> None:
    first, second = nights
    (_, alone), (_, both) = result_of(first), result_of(second)
    assert [campaign.run for campaign in alone.campaigns] == [first.id]
    assert [campaign.run for campaign in both.campaigns] == [first.id, second.id]
    assert alone.trials < both.trials == sum(campaign.trials for campaign in both.campaigns)
    assert both.pairs[: len(alone.pairs)] == alone.pairs
    assert [pair.pair_number for pair in both.pairs] == list(range(1, len(both.pairs) + 1))
    assert alone.blocks_to_go > 0
    assert [campaign.latest_hash for campaign in both.campaigns] == [
        commits_made(8)[8].hash,
        both.latest.commit,
    ]
    assert both.commit_count == 10


def test_an_era_has_the_differences_of_its_environment(nights: tuple[RunRecord, RunRecord]) -> None:
    first, second = nights

    def differences(before: str, after: str) -> list[tuple[str, ...]]:
        campaign = replace(on_kernel(second, after), earlier_runs=(on_kernel(first, before),))
        _, result = result_of(campaign)
        assert [campaign.era for campaign in result.campaigns] == [1, 2]
        return [era.differences for era in result.eras]

    assert differences("5.10", "6.1") == [(), ("kernel: 6.1 instead of 5.10",)]
    # The ledger does not have the versions of all tools.
    assert differences("6.1", "6.1") == [(), ("the tools that build the commits",)]


def test_a_range_has_the_line_that_finds_its_commit(tmp_path: Path) -> None:
    class Coarse(HistoryJudge):
        def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
            return (0, 4, 8)

    stage = Stage(tmp_path, steps(8, 6))
    plan = plan_of_history(8, stopping=SHORT)
    assert isinstance(plan.terms, HistoryPlan)
    words = ("equipoise", "history", "--from", "v1", "--", "./bench", "--size", "9")
    plan = replace(plan, terms=replace(plan.terms, build="make -j2"), command_line=words)
    _, result = result_of(stage.start(plan, partial(Coarse, builds=stage.builds)))
    (change,) = result.changes
    assert not change.confirmed
    assert change.commit is None
    assert change.commit_count == 4
    assert change.confirm == (
        f"equipoise bisect --good {change.earlier_hash} --bad {change.later_hash} "
        "--build 'make -j2' -- ./bench --size 9"
    )
    assert change.summary.startswith(
        f"The {change.commit_count} commits after {change.earlier_hash[:10]}, up"
    )


def test_the_same_records_give_the_same_document(nights: tuple[RunRecord, RunRecord]) -> None:
    assert encode(analyse_campaign(nights[1])) == encode(analyse_campaign(nights[1]))


def test_a_campaign_without_a_block_is_a_history_without_a_change(
    nights: tuple[RunRecord, RunRecord],
) -> None:
    empty = replace(nights[0], draws=(), trials=(), segments=(), warnings=())
    document, result = result_of(empty)
    assert (result.changes, result.pairs) == ((), ())
    assert result.summary.startswith("No change above 1 % is certain in 8 commits since v1")
    assert document.conditions == ()


def test_hidden_values_stay_hidden_in_all_campaigns(nights: tuple[RunRecord, RunRecord]) -> None:
    first, second = (with_secret(night) for night in nights)
    (record,) = hide_values([replace(second, earlier_runs=(first,))])
    assert [campaign.id for campaign in record.earlier_runs] == [first.id]
    for campaign in (record, *record.earlier_runs):
        values = {condition.environment["TOKEN"] for condition in campaign.plan.conditions}
        assert values == {"$TOKEN"}
    assert b"hunter2-hunter2" not in encode(analyse_campaign(record))


def on_kernel(record: RunRecord, kernel: str) -> RunRecord:
    """Return the record as if it had run on another kernel."""
    segments = tuple(
        replace(segment, environment={"kernel": kernel}) for segment in record.segments
    )
    return replace(record, segments=segments)


def with_secret(record: RunRecord) -> RunRecord:
    """Return the record with a variable in the environment of each commit."""
    secret = {"TOKEN": "hunter2-hunter2"}
    conditions = tuple(
        replace(condition, environment=secret) for condition in record.plan.conditions
    )
    return replace(record, plan=replace(record.plan, conditions=conditions))
