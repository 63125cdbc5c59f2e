"""Judge a bisection while it runs: add each block, and choose the next pairs of commits.

Each benchmark has its own search. A command may measure several benchmarks, whose searches then
share the blocks of this command.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

from equipoise.campaign.blocks import CostsOfBlock
from equipoise.campaign.progress import ComparisonStatus
from equipoise.kinds.bisect.layout import DEFAULT_LAYOUT_SPREAD
from equipoise.kinds.bisect.search import Bisection, BranchingBisection
from equipoise.kinds.bisect.shared_blocks import SharedBlocks, next_pairs
from equipoise.kinds.bisect.stretch import OwnPairs
from equipoise.kinds.bisect.terms import bisection_terms
from equipoise.model.plan import Plan, Stopping
from equipoise.model.quantities import joined
from equipoise.model.record import RunRecord
from equipoise.model.revisions import BENCHMARK
from equipoise.revisions.judging import REFERENCE_COMMIT, Builds, CommitsJudge
from equipoise.revisions.terms import CommitBenchmark, benchmarks_of


class BenchmarkSearch(Struct, frozen=True):
    """The search of one benchmark."""

    benchmark: CommitBenchmark
    bisection: BranchingBisection
    blocks: list[int]
    """Numbers of the blocks that count for this benchmark, in the order of their runs."""


def read_searches(record: RunRecord) -> tuple[BenchmarkSearch, ...]:
    """Return the search of each benchmark after all complete blocks of a bisection."""
    plan = record.plan
    judge = BisectionJudge(plan, plan.stopping)
    judge.replay(record)
    return judge.searches


class BisectionJudge(CommitsJudge):
    """Interim analysis of a bisection, which also chooses the next pairs of commits."""

    def __init__(self, plan: Plan, stopping: Stopping, builds: Builds | None = None) -> None:
        super().__init__(plan, stopping, builds)
        judgement, terms, own_pairs = plan.judgement, bisection_terms(plan), OwnPairs()
        layout_spread = DEFAULT_LAYOUT_SPREAD
        if terms.layout_spread is not None:
            layout_spread = max(layout_spread, terms.layout_spread.percent / 100.0)
        self._bad_index = terms.bad_index
        self.searches = tuple(
            BenchmarkSearch(
                benchmark,
                BranchingBisection(
                    Bisection(
                        terms.bad_index,
                        alpha=judgement.alpha,
                        min_effect=judgement.min_effect,
                        prior=terms.prior or None,
                        own_pairs=own_pairs,
                        documentation_commits=[
                            commit
                            for commit in terms.documentation_commits
                            if 0 < commit <= terms.bad_index
                        ],
                        layout_spread=layout_spread,
                    ),
                    terms.branches,
                    terms.documentation_commits,
                ),
                [],
            )
            for benchmark in benchmarks_of(plan)
        )
        benchmarks = benchmarks_of(plan)
        self._benchmarks_by_command = tuple(
            tuple(
                index
                for index, benchmark in enumerate(benchmarks)
                if benchmark.command_index == command
            )
            for command in range(1 + max(benchmark.command_index for benchmark in benchmarks))
        )
        """Indices of the benchmarks that each command measures."""
        self._shared_blocks = tuple(
            SharedBlocks([self.searches[index].bisection for index in indices])
            for indices in self._benchmarks_by_command
        )
        """For each command, the searches that share its blocks."""

    def _add_costs(self, number: int, blocks: Mapping[int, CostsOfBlock]) -> None:
        for index, block in blocks.items():
            if block.resolution is not None:
                self.searches[index].bisection.set_resolution(block.resolution)
        for shared_blocks, indices in zip(
            self._shared_blocks, self._benchmarks_by_command, strict=True
        ):
            # All benchmarks of a command have the same positions of the commits.
            positions = next(
                (blocks[index].positions for index in indices if index in blocks), None
            )
            if positions is None:
                continue
            first_commit = min(positions, key=positions.__getitem__)
            costs = [blocks[index].costs if index in blocks else None for index in indices]
            counted_flags = shared_blocks.add(costs, first_commit)
            for index, is_counted in zip(indices, counted_flags, strict=True):
                if is_counted:
                    self.searches[index].blocks.append(number)

    def _withdraw_from_search(self, commit: int, benchmark: int) -> None:
        self.searches[benchmark].bisection.withdraw(commit)

    def _choose_conditions(self, built: Collection[int], build_trials: float) -> tuple[int, ...]:
        pairs = next_pairs(self._shared_blocks, built, build_trials)
        return tuple(
            self.terms.condition_of(command, commit)
            for command, pair in pairs.items()
            for commit in pair
        )

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return the status of each benchmark: its gap, and the number of commits that are left."""
        return tuple(map(self._comparison_status, self.searches))

    def _comparison_status(self, search: BenchmarkSearch) -> ComparisonStatus:
        bisection, benchmark = search.bisection, search.benchmark
        state = bisection.state()
        gap = state.gap
        remaining_count = sum(not excluded for excluded in state.excluded)
        progress = f"{remaining_count} of {self._bad_index} commits are left"
        if state.named_steps:
            culprits = [self._condition_name(benchmark, step.last) for step in state.named_steps]
            progress = f"{joined(culprits)} made a difference"
        elif benchmark.name:
            progress = f"{benchmark.name}: {progress}"
        merge = bisection.searched_merge
        if merge is not None:
            progress += f", and the branch of {self._condition_name(benchmark, merge)} is searched"
        return ComparisonStatus(
            self._condition_name(benchmark, self._bad_index),
            gap.verdict if state.verdict == "no difference" else "undecided",
            gap.ratio,
            gap.ratio_ci,
            baseline=self._condition_name(benchmark, REFERENCE_COMMIT),
            blocks=state.blocks,
            search_status="" if state.verdict in ("confirming", "no difference") else progress,
        )

    def _condition_name(self, benchmark: CommitBenchmark, commit: int) -> str:
        """Return the name of a commit, and of the benchmark if there are several benchmarks."""
        condition = self.plan.conditions[self.terms.condition_of(benchmark.command_index, commit)]
        if not benchmark.name or BENCHMARK in condition.levels:
            return condition.name
        return f"{benchmark.name}: {condition.name}"
