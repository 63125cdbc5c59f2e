"""A bisection as a campaign: its judge, and what is read back of it.

Each block runs two commits. All of the search is a function of the recorded blocks and of the
commits that are left out (`read_search`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from equipoise.campaign.blocks import BlockRead
from equipoise.campaign.commits import (
    FIRST,
    Builds,
    CommitSearch,
    CommitsJudge,
    Withdrawal,
    withdrawals_of,
)
from equipoise.campaign.progress import ComparisonStatus
from equipoise.model.plan import Plan, Stopping
from equipoise.model.quantities import joined
from equipoise.model.record import RunRecord
from equipoise.stats.bisection import Bisection
from equipoise.stats.bisection_branches import Branch, BranchingBisection


def read_search(record: RunRecord) -> BranchingBisection:
    """Return the search of a recorded bisection, after its last complete block."""
    search = _Search(record.plan, withdrawals_of(record))
    search.replay(record)
    return search.bisection


class _Search(CommitSearch):
    """The search for the commits that made a difference, in pairs of commits."""

    def __init__(self, plan: Plan, withdrawals: Sequence[Withdrawal]) -> None:
        super().__init__(plan, withdrawals)
        judgement, terms = plan.judgement, plan.bisected
        assert terms is not None, "only the plan of a bisection is searched"
        self._last = terms.last
        line = Bisection(
            terms.last,
            alpha=judgement.alpha,
            min_effect=judgement.min_effect,
            prior=terms.prior or None,
            engine=judgement.engine,
        )
        branches = [Branch(one.merge, one.commits) for one in terms.branches]
        self.bisection = BranchingBisection(line, branches)

    def add_costs(self, block: BlockRead) -> None:
        if block.resolution is not None:
            self.bisection.set_resolution(block.resolution)
        earlier, later = self.bisection.in_order(block.costs)
        costs = (block.costs[earlier], block.costs[later])
        self.bisection.add((earlier, later), costs, block.order(earlier, later))

    def withdraw(self, commit: int) -> None:
        self.bisection.withdraw(commit)

    def next_block(self, built: Collection[int], build_trials: float) -> tuple[int, ...]:
        return self.bisection.next_pair(built, build_trials) or ()

    def status(self) -> ComparisonStatus:
        """Return the gap until it is confirmed, then how many commits are left."""
        state = self.bisection.state()
        names = [condition.name for condition in self.plan.conditions]
        gap = state.gap
        left = sum(not excluded for excluded in state.excluded)
        search = f"{left} of {self._last} commits are left"
        if state.named:
            search = f"{joined([names[one.last] for one in state.named])} made a difference"
        merge = self.bisection.searched_merge
        if merge is not None:
            search += f", and the branch of {names[merge]} is searched"
        return ComparisonStatus(
            names[self._last],
            gap.verdict if state.verdict == "no difference" else "undecided",
            gap.ratio,
            gap.ratio_ci,
            baseline=names[FIRST],
            blocks=state.blocks,
            search="" if state.verdict in ("confirming", "no difference") else search,
        )


class BisectionJudge(CommitsJudge):
    """The judge of a bisection: what the search asks next, until nothing is left to ask.

    Parameters
    ----------
    withdrawals
        Commits that earlier segments left out.
    """

    def __init__(
        self,
        plan: Plan,
        stopping: Stopping,
        builds: Builds,
        withdrawals: Sequence[Withdrawal] = (),
    ) -> None:
        search = _Search(plan, withdrawals)
        super().__init__(search, builds)
        self.search = search.bisection
        """The search after the blocks so far."""
