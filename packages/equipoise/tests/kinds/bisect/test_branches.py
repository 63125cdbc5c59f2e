"""A bisection continues in the branch of each named merge, with the same counter k."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.kinds.bisect.search import Bisection, BranchingBisection, LineState
from equipoise.kinds.bisect.stretch import OwnPairs
from equipoise.revisions.commits import MergedBranch
from packages.equipoise.tests.kinds.bisect.bisected import search
from packages.equipoise.tests.stats.simulated import white

ALPHA = 0.05
LAST = 8
"""The line has eight commits after the good one, 0 to 8. Commit 5 merges a branch that began at 2,
with the commits 9 to 12; of those, 11 merges a branch with the commits 13 to 15."""
OUTER = MergedBranch(5, (2, 9, 10, 11, 12))
INNER = MergedBranch(11, (9, 13, 14, 15))


def levels(**slow: set[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Log costs: commits with the step take a tenth longer."""
    costs = np.zeros(16)
    costs[list(slow["slow"])] = 0.1
    return costs


def lines_of(
    slow: set[int],
    broken: frozenset[int] = frozenset(),
    branches: tuple[MergedBranch, ...] = (OUTER, INNER),
    own_pairs: OwnPairs | None = None,
) -> tuple[LineState, ...]:
    """Search to the end; return each line."""
    line = Bisection(LAST, alpha=ALPHA, min_effect=1.0, own_pairs=own_pairs)
    ran = search(
        levels(slow=slow),
        white(0.005),
        np.random.default_rng(3),
        BranchingBisection(line, branches),
        blocks=1500,
        broken=broken,
        ends=(0, LAST),
    )
    assert isinstance(ran.bisection, BranchingBisection)
    assert ran.bisection.next_pair((), 1.0) is None
    return ran.bisection.lines()


def named_commits(lines: tuple[LineState, ...]) -> list[int]:
    """Return the commits that are named, line by line."""
    return [line.commits[step.last] for line in lines for step in line.state.named_steps]


def test_the_culprit_is_searched_in_the_branch_of_a_merge() -> None:
    tried = OwnPairs()
    lines = lines_of({5, 6, 7, 8, 12, *(10, 11)}, own_pairs=tried)
    assert named_commits(lines) == [5, 10]
    assert [line.merge for line in lines] == [None, 5]
    first, branch = lines
    assert branch.state.verdict == "culprit"
    # k continues, so the name in the branch needs more evidence.
    (merge,), (culprit,) = first.state.named_steps, branch.state.named_steps
    assert merge.pair_number < culprit.pair_number <= tried.count
    assert culprit.e_value >= culprit.pair_number * (culprit.pair_number + 1) / ALPHA
    # Every block belongs to one line, in the order in which they ran.
    numbers = sorted(number for line in lines for number, _ in line.course)
    assert numbers == list(range(1, len(numbers) + 1))
    # The branch comes before the remainders of the gap on the line.
    after_branch = [number for number, _ in first.course if number > branch.course[-1][0]]
    assert after_branch and branch.course[-1][0] - branch.course[0][0] == len(branch.course) - 1


def test_the_branch_of_a_merge_in_a_branch_is_searched_too() -> None:
    lines = lines_of({5, 6, 7, 8, 11, 12, 14, 15})
    assert named_commits(lines) == [5, 11, 14]
    assert [line.merge for line in lines] == [None, 5, 11]


def test_a_merge_may_have_made_it_itself() -> None:
    lines = lines_of({5, 6, 7, 8})
    assert named_commits(lines) == [5]
    assert lines[1].state.verdict == "no difference"


def test_a_commit_that_is_not_a_merge_has_no_branch() -> None:
    lines = lines_of({6, 7, 8})
    assert named_commits(lines) == [6]
    assert len(lines) == 1


def test_an_octopus_has_a_branch_for_each_further_parent() -> None:
    lines = lines_of({5, 6, 7, 8, 14, 15}, branches=(OUTER, MergedBranch(5, (2, 13, 14, 15))))
    assert named_commits(lines) == [5, 14]
    assert [line.state.verdict for line in lines[1:]] == ["no difference", "culprit"]


@pytest.mark.parametrize("end", [12, 2])
def test_a_branch_whose_end_does_not_run_is_not_searched(end: int) -> None:
    lines = lines_of({5, 6, 7, 8, 12}, frozenset({end}))
    assert named_commits(lines) == [5]
    assert lines[1].failed_ends == (end,)
    assert lines[1].course == ()


def test_commits_of_a_branch_that_do_not_run_form_a_group() -> None:
    lines = lines_of({5, 6, 7, 8, 12, 11}, frozenset({10}), branches=(OUTER,))
    (step,) = lines[1].state.named_steps
    assert (lines[1].commits[step.first], lines[1].commits[step.last]) == (10, 11)


def test_only_pairs_of_the_line_that_is_searched_can_run() -> None:
    search_ = BranchingBisection(Bisection(LAST, alpha=ALPHA), (OUTER,))
    assert search_.ordered_pair((8, 0)) == (0, 8)
    assert search_.searched_merge is None
    for pair in ((0, 9), (9, 10), (3,)):
        with pytest.raises(ValueError, match="not a pair that can run now"):
            search_.ordered_pair(pair)
    with pytest.raises(ValueError, match="not the pair that runs now"):
        search_.add((9, 10), (1.0, 1.0), 1)
