"""The result of a bisection follows from its recorded blocks alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.analysis.levels import layout_spread
from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.conduct import start
from equipoise.campaign.progress import ProgressListener
from equipoise.design.coin import draw_layouts
from equipoise.kinds.bisect.judge import BisectionJudge
from equipoise.kinds.bisect.terms import (
    STUDY,
    BisectDocument,
    BisectPlan,
    BisectResult,
    LayoutSpread,
    bisection_terms,
)
from equipoise.model.kinds import ORDINARY
from equipoise.model.plan import Contrast, Plan, Stopping
from equipoise.model.record import Draw, RunRecord
from equipoise.model.result import ResultDocument
from equipoise.model.revisions import Commit, Revision
from equipoise.report.json_document import encode
from equipoise.revisions.commits import MergedBranch
from equipoise.revisions.judging import CommitsSegment
from equipoise.why.gap import gaps_of
from packages.equipoise.tests.campaign.test_conduct import Stage
from packages.equipoise.tests.plans import plan_of
from packages.equipoise.tests.schema import validated

COUNT = 16
"""Commits after the good one."""
NOISE = 0.005


def commit_of(place: int) -> Commit:
    parents = () if place == 0 else (f"{place - 1:040x}",)
    return Commit(f"{place:040x}", f"Change {place}", "Ada", "2026-03-01T10:15:00+00:00", parents)


def search_plan(blocks: int | None = None, **terms: object) -> Plan:
    """A plan to search among sixteen commits."""
    commits = tuple(map(commit_of, range(COUNT + 1)))
    plan = plan_of(
        *(commit.short + str(place) for place, commit in enumerate(commits)),
        stopping=Stopping(blocks=blocks, budget_s=1e9, min_seconds=0.0),
    )
    good, bad = Revision("v1.0", commits[0].hash), Revision("HEAD", commits[-1].hash)
    bisected = BisectPlan(good=good, bad=bad, commits=commits, build="make")
    bisected = replace(bisected, **terms)
    return replace(plan, study=STUDY, terms=bisected)


class Builds:
    """Builds that take no time; some commits do not build."""

    def __init__(self, broken: Collection[int] = ()) -> None:
        self.broken = broken
        self.made: set[int] = set()

    def built_commits(self) -> Collection[int]:
        """Return the requested commits that build."""
        return self.made

    def typical_seconds(self) -> float:
        """Return 0: a build takes no time."""
        return 0.0

    def build_commits(self, commits: tuple[int, ...]) -> Mapping[int, str]:
        """Build all commits but the broken ones."""
        self.made |= {*commits} - {*self.broken}
        return {commit: "make failed: exit status 2" for commit in commits if commit in self.broken}


def with_steps(**steps: float) -> tuple[float, ...]:
    """Median time of each commit; ``at_9=0.05`` makes all from the ninth on 5 % slower."""
    times = [0.01]
    for place in range(1, COUNT + 1):
        times.append(times[-1] * (1.0 + steps.get(f"at_{place}", 0.0)))
    return tuple(times)


def record_of(
    folder: Path,
    plan: Plan,
    times: tuple[float, ...],
    *,
    broken: Collection[int] = (),
    fails_at: tuple[str, int, int] | None = None,
    noise: float = NOISE,
    times_at: Callable[[int], tuple[float, ...]] | None = None,
) -> RunRecord:
    """Conduct a search as a whole campaign, on a scripted clock.

    ``times_at`` gives the times in each block, if they change.
    """

    def before_trial(draw: Draw, _: int) -> None:
        if times_at is not None and draw.phase == "measured":
            stage.runner.medians = times_at(draw.block)

    stage = Stage(folder, medians=times, noise=noise, fails_at=fails_at, before_trial=before_trial)
    builds = Builds(broken)
    run = start(
        plan,
        stage.ledger,
        ProgressListener(),
        judge_factory=partial(BisectionJudge, builds=builds),
        segment_factory=partial(CommitsSegment, builds=builds),
        runner_factory=stage.hire,
        clock=stage.clock,
        now=stage.now,
    )
    return stage.ledger.read_run(run)


def result_of(record: RunRecord) -> tuple[ResultDocument, BisectResult]:
    """Return the document of a search, and check it by its schema."""
    document = validated(analyse_campaign(record))
    assert isinstance(document, BisectDocument)
    assert document.bisect is not None
    return document, document.bisect


def statuses(result: BisectResult) -> dict[str, list[int]]:
    """Return the commits of each status."""
    return {
        status: [
            place
            for place, candidate in enumerate(result.searched_commits, 1)
            if candidate.status == status
        ]
        for status in ("culprit", "suspect", "excluded")
    }


def test_the_commit_that_made_it_slower_is_named_with_its_step(tmp_path: Path) -> None:
    document, result = result_of(record_of(tmp_path, search_plan(), with_steps(at_11=0.05)))
    assert result.verdict == "culprit"
    (culprit,) = result.culprits
    assert (culprit.commit, culprit.parent) == (commit_of(11).hash, commit_of(10).hash)
    low, high = culprit.ratio_ci
    assert low is not None
    assert high is not None
    assert 1.0 < low < 1.05 < high
    assert culprit.significance_level < result.alpha
    assert culprit.e_value >= 2.0 / result.alpha
    assert result.summary.startswith("0000000000 (Change 11) made it ")
    assert result.summary.endswith(
        "If one commit made the whole difference, it is this one (95 %)."
    )
    assert statuses(result) == {
        "culprit": [11],
        "suspect": [],
        "excluded": [place for place in range(1, 17) if place != 11],
    }
    assert result.gap.status == "slower"
    assert result.margin is not None
    assert 0.0 < result.margin < 1.0
    assert document.primary_metric == result.metric == "wall_s"


def test_only_commits_that_ran_are_conditions_and_the_gap_is_the_one_comparison(
    tmp_path: Path,
) -> None:
    record = record_of(tmp_path, search_plan(), with_steps(at_11=0.05))
    document, result = result_of(record)
    ran = {record.plan.conditions[trial.condition].name for trial in record.trials}
    assert {condition.name for condition in document.conditions} == ran
    assert len(ran) < COUNT
    (comparison,) = document.comparisons
    assert comparison.candidate == record.plan.conditions[-1].name
    assert comparison.ratio == result.gap.ratio


def test_every_exclusion_is_at_a_block_and_every_trial_is_counted(tmp_path: Path) -> None:
    record = record_of(tmp_path, search_plan(), with_steps(at_11=0.05))
    _, result = result_of(record)
    numbers = [block.block for block in result.course]
    draws = {draw.block: draw.order for draw in record.draws if draw.phase == "measured"}
    assert numbers == sorted(draws)
    assert all({at.earlier, at.later} == {*draws[at.block]} for at in result.course)
    # The pair of the block that excludes a commit does not contain its step.
    pairs = {block.block: (block.earlier, block.later) for block in result.course}
    for place, candidate in enumerate(result.searched_commits, start=1):
        if candidate.excluded_at is not None:
            earlier, later = pairs[candidate.excluded_at]
            assert not earlier < place <= later
        assert (candidate.e_value or 0.0) >= 20.0 or candidate.status != "excluded"
    assert result.trials == 2 * len(numbers)
    searches = [block.search for block in result.course]
    assert searches[0] == 1
    assert searches == sorted(searches)
    assert sum(candidate.trials for candidate in result.searched_commits) < result.trials
    assert result.tried_commits == len({trial.condition for trial in record.trials})


def test_a_search_that_its_limit_ends_leaves_a_set_with_the_culprit_in_it(tmp_path: Path) -> None:
    _, whole = result_of(record_of(tmp_path / "whole", search_plan(), with_steps(at_11=0.05)))
    first = min(
        candidate.excluded_at
        for candidate in whole.searched_commits
        if candidate.excluded_at is not None
    )
    record = record_of(tmp_path / "part", search_plan(blocks=first), with_steps(at_11=0.05))
    _, part = result_of(record)
    assert part.verdict == "set"
    left = statuses(part)["suspect"]
    assert 11 in left
    assert 1 < len(left) < COUNT
    assert part.culprits == ()
    assert part.blocks_to_go is not None
    # A search that stopped is the beginning of the one that did not.
    assert part.course == whole.course[:first]


def test_two_steps_are_several_and_each_is_named_in_the_order_of_the_commits(
    tmp_path: Path,
) -> None:
    _, result = result_of(record_of(tmp_path, search_plan(), with_steps(at_4=0.05, at_12=0.05)))
    assert result.verdict == "several"
    assert [culprit.commit for culprit in result.culprits] == [
        commit_of(4).hash,
        commit_of(12).hash,
    ]
    assert result.summary.startswith("No single commit made the whole difference: ")
    assert all(gap.status != "slower" for gap in result.remaining_gaps)
    assert result.course[-1].search > 1


def test_equal_ends_leave_nothing_to_search_for(tmp_path: Path) -> None:
    _, result = result_of(record_of(tmp_path, search_plan(), with_steps()))
    assert result.verdict == "no difference"
    assert result.gap.status == "equivalent"
    assert result.summary.startswith("There is no difference to search for: v1.0 (0000000000) and ")
    assert {candidate.e_value for candidate in result.searched_commits} == {None}
    assert result.margin is None


def test_too_few_blocks_for_a_gap_are_undecided(tmp_path: Path) -> None:
    _, result = result_of(record_of(tmp_path, search_plan(blocks=3), with_steps(at_11=0.05)))
    assert result.verdict == "undecided"
    assert result.summary == (
        "Whether v1.0 (0000000000) and HEAD (0000000000) differ is not known after 3 blocks."
    )


def test_a_culprit_behind_a_commit_that_does_not_build_is_a_group(tmp_path: Path) -> None:
    record = record_of(tmp_path, search_plan(), with_steps(at_11=0.05), broken={10})
    _, result = result_of(record)
    (culprit,) = result.culprits
    assert culprit.not_built == (commit_of(10).hash,)
    assert culprit.parent == commit_of(9).hash
    assert statuses(result)["culprit"] == [10, 11]
    assert [
        place for place, candidate in enumerate(result.searched_commits, 1) if candidate.not_built
    ] == [10]
    assert result.searched_commits[9].e_value == result.searched_commits[10].e_value
    assert result.tried_commits == len({trial.condition for trial in record.trials}) + 1


def test_a_block_with_a_failed_command_is_not_in_the_course(tmp_path: Path) -> None:
    _, smooth = result_of(record_of(tmp_path / "smooth", search_plan(), with_steps(at_11=0.05)))
    at = next(block for block in smooth.course if 0 < block.earlier < block.later < COUNT)
    record = record_of(
        tmp_path / "failed",
        search_plan(),
        with_steps(at_11=0.05),
        fails_at=("measured", at.block, at.earlier),
    )
    _, result = result_of(record)
    assert at.block not in {block.block for block in result.course}
    assert result.searched_commits[at.earlier - 1].not_built
    blocks = {block.block for block in result.course}
    assert {candidate.excluded_at for candidate in result.searched_commits} - {None} <= blocks


def test_the_working_tree_as_the_bad_end_has_a_name_of_its_own(tmp_path: Path) -> None:
    plan = search_plan()
    assert isinstance(plan.terms, BisectPlan)
    head, changed = plan.terms.commits[-2], plan.terms.commits[-1]
    changed = replace(changed, hash=head.hash, uncommitted=True)
    terms = replace(plan.terms, commits=(*plan.terms.commits[:-1], changed))
    _, result = result_of(record_of(tmp_path, replace(plan, terms=terms), with_steps(at_16=0.05)))
    assert [culprit.commit for culprit in result.culprits] == [f"{head.hash}+"]
    assert result.culprits[0].parent == head.hash


def test_a_metric_that_repeats_exactly_needs_no_statistics(tmp_path: Path) -> None:
    noisy = analyse_campaign(record_of(tmp_path / "noisy", search_plan(blocks=20), with_steps()))
    exact = record_of(tmp_path / "exact", search_plan(blocks=20), with_steps(), noise=0.0)
    assert "repeatable_metric" not in [warning.code for warning in noisy.warnings]
    (warning,) = analyse_campaign(exact).warnings
    assert warning.summary == "each commit gave the same wall_s in all of its runs"
    assert warning.hint.startswith("use git bisect run")


def test_the_same_record_gives_the_same_document_byte_for_byte(tmp_path: Path) -> None:
    record = record_of(tmp_path, search_plan(blocks=40), with_steps(at_11=0.05))
    assert encode(analyse_campaign(record)) == encode(analyse_campaign(record))


def test_a_segment_that_was_killed_counts_until_its_last_trial(tmp_path: Path) -> None:
    record = record_of(tmp_path, search_plan(blocks=40), with_steps(at_11=0.05))
    segment, last = record.segments[0], record.trials[-1]
    assert last.accounting.wall_s is not None
    until_last = last.started_at + last.accounting.wall_s - segment.started_at
    ends = {"killed": None, "in its eighth second after": last.started_at + 8.0}
    seconds = {
        how: result_of(replace(record, segments=(replace(segment, ended_at=end),)))[1].seconds
        for how, end in ends.items()
    }
    assert seconds["killed"] == pytest.approx(until_last)
    assert 0.0 < seconds["killed"] < seconds["in its eighth second after"]


def test_another_campaign_has_a_document_of_another_kind(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.start(plan_of(stopping=Stopping(blocks=5)))
    assert analyse_campaign(stage.ledger.read_run("last")).kind.name == ORDINARY


@pytest.mark.parametrize("order", [(0, COUNT), (COUNT, 0)])
def test_a_search_without_a_complete_block_has_no_result_yet(
    tmp_path: Path, order: tuple[int, int]
) -> None:
    stage = Stage(tmp_path)
    run = stage.ledger.begin_run(search_plan(), {}, 1.7e9)
    stage.ledger.record_draw(run, Draw("measured", 1, order, 0))
    document = analyse_campaign(stage.ledger.read_run(run))
    assert isinstance(document, BisectDocument) and document.bisect is None


def with_a_branch() -> Plan:
    """Return a plan in which the eighth commit merges a branch of six from the third."""
    plan = search_plan()
    terms = bisection_terms(plan)
    merge = replace(terms.commits[8], parents=(terms.commits[7].hash, terms.commits[16].hash))
    line = (*terms.commits[:8], merge, *terms.commits[9:11])
    return replace(
        plan,
        chosen_contrasts=(Contrast(0, 10),),
        terms=replace(
            terms,
            commits=line,
            branch_commits=terms.commits[11:],
            branches=(MergedBranch(8, (3, 11, 12, 13, 14, 15, 16)),),
        ),
    )


def test_a_merge_is_named_with_the_commit_of_its_branch(tmp_path: Path) -> None:
    slow = {8, 9, 10, 14, 15, 16}
    times = tuple(0.0106 if place in slow else 0.01 for place in range(COUNT + 1))
    record = record_of(tmp_path, with_a_branch(), times)
    _, result = result_of(record)
    assert (result.verdict, len(result.searched_commits)) == ("culprit", 10)
    (merge,), (branch,) = result.culprits, result.branches
    assert merge.is_merge and branch.merge == merge.commit == commit_of(8).hash
    assert (branch.fork_hash, branch.tip_hash) == (commit_of(3).hash, commit_of(16).hash)
    assert (branch.verdict, branch.failed_ends) == ("culprit", ())
    (culprit,) = branch.culprits
    assert (culprit.commit, culprit.parent) == (commit_of(14).hash, commit_of(13).hash)
    assert branch.gap.status == "slower"
    assert branch.summary in result.summary
    assert branch.summary.startswith("In the branch of 0000000000, 0000000000 (Change 14) made it")
    assert [candidate.commit for candidate in branch.searched_commits] == [
        commit_of(place).hash for place in range(11, 17)
    ]
    numbers = [cours.block for cours in (*result.course, *branch.course)]
    assert len(set(numbers)) == len(numbers)
    assert result.trials == 2 * len(numbers)
    # The commit is explained, not the merge.
    (gap,) = gaps_of(record)
    assert gap.contrast.pair == (13, 14)


def test_a_merge_whose_branch_makes_no_difference_made_it_itself(tmp_path: Path) -> None:
    times = tuple(0.0106 if place in (8, 9, 10) else 0.01 for place in range(COUNT + 1))
    _, result = result_of(record_of(tmp_path, with_a_branch(), times))
    (branch,) = result.branches
    assert (branch.verdict, branch.culprits) == ("no difference", ())
    assert branch.summary.endswith(": the merge itself made it.")


def test_a_branch_whose_tip_does_not_build_cannot_be_searched(tmp_path: Path) -> None:
    times = tuple(0.0106 if place in (8, 9, 10) else 0.01 for place in range(COUNT + 1))
    _, result = result_of(record_of(tmp_path, with_a_branch(), times, broken={16}))
    (branch,) = result.branches
    assert branch.failed_ends == (commit_of(16).hash,)
    assert (branch.course, branch.margin, branch.gap.ratio) == ((), None, None)
    assert branch.summary == (
        "The branch of 0000000000 cannot be searched: 0000000000 does not build or run."
    )


@pytest.mark.parametrize(
    ("first", "last", "verb"), [(0.02, 0.12, "grew"), (0.12, 0.02, "faded")], ids=["grew", "faded"]
)
def test_a_warning_names_a_step_that_changes_during_the_search(
    tmp_path: Path, first: float, last: float, verb: str
) -> None:
    def times_at(block: int) -> tuple[float, ...]:
        return with_steps(at_11=first + (last - first) * min(1.0, block / 30))

    plan = search_plan()
    document, result = result_of(record_of(tmp_path, plan, times_at(0), times_at=times_at))
    (culprit,) = result.culprits
    assert culprit.commit == commit_of(11).hash
    assert culprit.trend is not None and culprit.trend.chance < 0.01
    (warning,) = (warning for warning in document.warnings if warning.code == "no_constant_ratio")
    assert warning.summary.startswith(f"the step of 0000000000 {verb} while the search ran, from ")
    assert warning.summary.endswith(": no single ratio describes it")
    assert warning.hint.endswith("--good 0000000000 --bad 0000000000")


def test_a_constant_step_has_no_warning(tmp_path: Path) -> None:
    document, result = result_of(record_of(tmp_path, search_plan(), with_steps(at_11=0.05)))
    assert [culprit.trend for culprit in result.culprits] == [None]
    assert "no_constant_ratio" not in [warning.code for warning in document.warnings]


def layout_warnings(folder: Path, step: float) -> list[str]:
    plan = search_plan(layout_spread=LayoutSpread(0.5, "20261123-010101-abcd"))
    document, _ = result_of(record_of(folder, plan, with_steps(at_11=step)))
    return [warning.summary for warning in document.warnings if warning.code == "step_of_layout"]


def test_a_warning_names_a_step_below_ten_spreads_of_layouts(tmp_path: Path) -> None:
    (warning,) = layout_warnings(tmp_path, 0.03)
    assert warning.startswith("the step of 0000000000, ")
    assert "the spread of memory layouts, 0.5 % in campaign 20261123-010101-abcd" in warning


def test_a_step_of_more_spreads_has_no_warning(tmp_path: Path) -> None:
    assert layout_warnings(tmp_path, 0.12) == []


def test_over_layouts_each_block_has_one_and_the_spread_is_known_afterwards(tmp_path: Path) -> None:
    spread = LayoutSpread(0.5, "20261123-010101-abcd")
    plan = replace(search_plan(layout_spread=spread), layouts=draw_layouts(1, 3, "drawn"))
    record = record_of(tmp_path, plan, with_steps(at_11=0.03))
    document, result = result_of(record)
    assert [culprit.commit for culprit in result.culprits] == [commit_of(11).hash]
    drawn = {draw.layout for draw in record.draws if draw.phase == "measured"}
    assert drawn == {1, 2, 3}
    assert [warning for warning in document.warnings if warning.code == "step_of_layout"] == []
    known = layout_spread(record)
    # All of the noise is of trials.
    assert known is not None
    assert known < 100.0 * NOISE
    assert layout_spread(replace(record, plan=replace(plan, layouts=()))) is None
    assert layout_spread(replace(record, trials=())) is None
