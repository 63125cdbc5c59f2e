"""A bisection of several benchmarks: coins, shared builds, failures, kills."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.design.limits import CampaignLimits
from equipoise.kinds.bisect.judge import read_searches
from equipoise.model.plan import Stopping
from equipoise.model.record import RunRecord
from equipoise.revisions.judging import NOT_RUN, withdrawals_of
from packages.equipoise.tests.commits import Killed
from packages.equipoise.tests.searched_suites import (
    named,
    plan_of_one_command,
    plan_of_suite,
    stage_of,
    stage_of_one_command,
)

COUNT = 16
NAMES = ("parse", "render", "sort")
CULPRITS: tuple[tuple[int, ...], ...] = ((11,), (), (4,))
FOUND: dict[str, list[int]] = {"parse": [11], "render": [], "sort": [4]}


def states(record: RunRecord) -> list[object]:
    """Return the state of each search."""
    return [search.bisection.state() for search in read_searches(record)]


def test_each_slow_benchmark_has_a_culprit_and_the_builds_are_shared(tmp_path: Path) -> None:
    stage = stage_of(tmp_path, COUNT, CULPRITS)
    record = stage.start(plan_of_suite(COUNT, *NAMES))
    assert named(record) == FOUND
    assert record.segments[-1].stopped_because == "verdict"
    verdicts = [search.bisection.verdict for search in read_searches(record)]
    assert verdicts == ["culprit", "no difference", "culprit"]
    assert len(stage.builds.made) == len(set(stage.builds.made)) < COUNT
    last = stage.heard[-1].statuses
    assert [status.search_status for status in last] == [
        f"parse: {11:040x} made a difference",
        "",
        f"sort: {4:040x} made a difference",
    ]


def test_the_trials_of_a_benchmark_are_adjacent_and_each_has_a_coin_of_its_own(
    tmp_path: Path,
) -> None:
    record = stage_of(tmp_path, COUNT, CULPRITS).start(plan_of_suite(COUNT, *NAMES))
    draws = [draw.order for draw in record.draws if draw.phase == "measured"]
    processes = [[condition // (COUNT + 1) for condition in order] for order in draws]
    for order, of in zip(draws, processes, strict=True):
        assert len(order) == 2 * len(set(of))
        assert all(of[at] == of[at + 1] for at in range(0, len(of), 2))
    assert {tuple(of[::2]) for of in processes if len(of) == 6} == {
        *((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)),
    }
    # While both confirm their gaps, their coins agree in some blocks, and differ in others.
    ends = [order for order in draws if {0, COUNT, COUNT + 1, 2 * COUNT + 1} <= set(order)]
    agree = {
        (order.index(0) < order.index(COUNT))
        == (order.index(COUNT + 1) < order.index(2 * COUNT + 1))
        for order in ends
    }
    assert agree == {True, False}


def test_names_count_over_the_whole_suite(tmp_path: Path) -> None:
    record = stage_of(tmp_path, COUNT, ((11,), (11,))).start(plan_of_suite(COUNT, "a", "b"))
    ranks = sorted(
        step.pair_number
        for search in read_searches(record)
        for step in search.bisection.named_steps
    )
    # No own pair of one benchmark has the number of one of the other.
    assert len(set(ranks)) == 2
    assert ranks[0] >= 1


@pytest.mark.parametrize("moment", [3, 40, 130, 200])
def test_a_killed_search_goes_on_with_all_benchmarks(tmp_path: Path, moment: int) -> None:
    stage = stage_of(tmp_path, COUNT, CULPRITS)
    stage.kill_at(moment)
    with pytest.raises(Killed):
        stage.start(plan_of_suite(COUNT, *NAMES))
    before = stage.ledger.read_run()
    after = stage.resume()
    assert after.trials[: len(before.trials)] == before.trials
    assert named(after) == FOUND
    assert len(set(stage.builds.made)) == len(stage.builds.made)


def test_a_command_that_fails_in_a_commit_leaves_it_out_of_its_own_benchmark_only(
    tmp_path: Path,
) -> None:
    # `sort` fails in the commit that makes `parse` slower.
    failing = frozenset({2 * (COUNT + 1) + 11})
    stage = stage_of(tmp_path, COUNT, ((11,), (), (11,)), failing=failing)
    record = stage.start(plan_of_suite(COUNT, *NAMES))
    searches = read_searches(record)
    steps = [
        (step.first, step.last) for search in searches for step in search.bisection.named_steps
    ]
    assert steps == [(11, 11), (11, 12)]
    assert {(withdrawal.commit, withdrawal.benchmark) for withdrawal in withdrawals_of(record)} == {
        (11, 2)
    }
    (warning,) = (warning for warning in record.warnings if warning.code == NOT_RUN)
    assert "sort: exit status 1" in warning.summary


def test_a_commit_that_does_not_build_is_left_out_of_all(tmp_path: Path) -> None:
    stage = stage_of(tmp_path, COUNT, CULPRITS, broken=frozenset({10, 11}))
    record = stage.start(plan_of_suite(COUNT, *NAMES))
    assert named(record) == {**FOUND, "parse": [12]}
    left_out = {(withdrawal.commit, withdrawal.benchmark) for withdrawal in withdrawals_of(record)}
    assert left_out == {(commit, at) for commit in (10, 11) for at in range(3)}


def test_the_budget_ends_all_searches_and_resume_goes_on(tmp_path: Path) -> None:
    stage = stage_of(tmp_path, COUNT, CULPRITS)
    stopping = Stopping(budget_s=9.0, min_seconds=0.0)
    record = stage.start(plan_of_suite(COUNT, *NAMES, stopping=stopping))
    assert record.segments[-1].stopped_because == "budget"
    assert named(record) != FOUND
    assert named(stage.resume(CampaignLimits(budget=1e6))) == FOUND


def test_benchmarks_of_one_command_share_its_trials(tmp_path: Path) -> None:
    culprits = {"parse": (11,), "render": (), "sort": (4,), "zip": (11,)}
    stage = stage_of_one_command(tmp_path, COUNT, culprits)
    record = stage.start(plan_of_one_command(COUNT, *culprits))
    assert named(record) == {name: list(at) for name, at in culprits.items()}
    draws = [draw.order for draw in record.draws if draw.phase == "measured"]
    assert {len(order) for order in draws} == {2}
    courses = [search.blocks for search in read_searches(record)]
    assert all(block < other for course in courses for block, other in pairwise(course))
    # They take fewer blocks together than one after the other would.
    assert len(draws) < sum(map(len, courses))
    # The record is enough to read them back.
    assert states(record) == states(replace(record, warnings=()))


def test_a_benchmark_that_a_commit_does_not_report_leaves_the_commit_out_of_it(
    tmp_path: Path,
) -> None:
    culprits = {"parse": (11,), "sort": (11,)}
    stage = stage_of_one_command(tmp_path, COUNT, culprits, frozenset({("sort", 11)}))
    record = stage.start(plan_of_one_command(COUNT, *culprits))
    assert named(record) == {"parse": [11], "sort": [12]}
    assert {(withdrawal.commit, withdrawal.benchmark) for withdrawal in withdrawals_of(record)} == {
        (11, 1)
    }
    (warning,) = (warning for warning in record.warnings if warning.code == NOT_RUN)
    assert warning.summary.endswith("it does not report sort time_s")
