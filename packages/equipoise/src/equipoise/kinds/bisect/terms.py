"""Additions of a bisection to the plan of a campaign (its terms) and to the result document.

A line of commits goes from good to bad, or is the branch of a merge. The gap is the difference
between its two ends. The step of a commit is the difference from its parent, or from the latest
ancestor that builds. The search names a commit as a culprit if it is certain of the step.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct, field

from equipoise.model.kinds import TAG
from equipoise.model.plan import Contrast, Plan
from equipoise.model.quantities import Interval
from equipoise.model.result import ResultDocument
from equipoise.model.revisions import Commit, NamedCommit, Revision
from equipoise.revisions.commits import MergedBranch
from equipoise.revisions.terms import CommitsPlan

STUDY = "bisect"
"""Name of the study in the plan of every bisection."""


class LayoutSpread(Struct, frozen=True):
    """Spread of a program's cost over memory layouts of the same build."""

    percent: float
    """Standard deviation of the cost, in percent."""
    run: str
    """Id of the campaign that measured the spread."""


class BisectPlan(CommitsPlan, frozen=True, kw_only=True, tag_field=TAG, tag="bisect"):
    """Terms of a bisection: the commits to search, from the good revision to the bad revision."""

    noun: ClassVar[str] = "bisection"
    not_adjustable_because: ClassVar[str | None] = "a bisection is never adjusted"
    restart_hint: ClassVar[str] = "bisect again"
    good: Revision
    bad: Revision
    likely: tuple[str, ...] = ()
    """Paths of ``--likely``: the user suspects commits that change them."""
    prior: tuple[float, ...] = ()
    """Initial weight of each commit after the good commit; empty for equal weights. Weights decide
    which commits run, but not which commit is named."""
    branch_commits: tuple[Commit, ...] = ()
    """Commits of branches; their conditions follow the conditions of ``commits``."""
    branches: tuple[MergedBranch, ...] = ()
    """Branches of the merges among ``commits`` and ``branch_commits``."""
    why: Literal["observe", "test"] | None = None
    """How a culprit is explained: ``observe`` collects evidence; ``test`` also tests the causes."""
    layout_spread: LayoutSpread | None = None
    """Spread over memory layouts that an earlier campaign of this repository measured."""
    documentation_commits: tuple[int, ...] = ()
    """Indices of the commits that change only documentation."""

    @property
    def bad_index(self) -> int:
        """Index of the bad commit; the good commit has index 0."""
        return len(self.commits) - 1

    @property
    def needed_commits(self) -> tuple[int, ...]:
        """Indices of the good and the bad commit, which must build and run."""
        return (0, self.bad_index)

    @property
    def commits_with_branches(self) -> tuple[Commit, ...]:
        """Commits in the order of their conditions."""
        return (*self.commits, *self.branch_commits)

    def contrasts(self, plan: Plan) -> tuple[Contrast, ...]:
        """Return the contrast of the bad commit with the good commit."""
        return (Contrast(0, self.bad_index),)


def bisection_terms(plan: Plan) -> BisectPlan:
    """Return the terms of a bisection."""
    assert isinstance(plan.terms, BisectPlan), "the plan is not of a bisection"
    return plan.terms


BisectVerdict = Literal["culprit", "several", "set", "no difference", "undecided"]
"""``culprit``: one commit is named. ``several``: no single commit made the whole difference.
``set``: the difference is certain, but several commits may have made it. ``no difference``: both
ends are equivalent. ``undecided``: a difference is neither certain nor excluded."""
CommitStatus = Literal["culprit", "suspect", "excluded"]
"""``suspect``: the commit may have made the whole difference. ``excluded``: the commit did not."""
GapStatus = Literal["slower", "faster", "equivalent", "undecided"]


class BisectGap(Struct, frozen=True):
    """The difference between two commits. The ratio is the later cost over the earlier cost."""

    earlier_hash: str = field(name="after")
    later_hash: str = field(name="until")
    ratio: float | None
    ratio_ci: Interval
    significance_level: float
    """1 minus the coverage of ``ratio_ci``."""
    blocks: int
    """Number of blocks in which both commits ran."""
    status: GapStatus


UnconfirmedReason = Literal["min_effect", "layouts", "documentation"]
"""``min_effect``: the step may be smaller than the smallest effect that matters. ``layouts``: the
memory layouts of single commits may explain the step. ``documentation``: the commit changes only
documentation."""


class UnconfirmedCommit(NamedCommit, frozen=True):
    """A commit that differs from its parent, but is not named as a culprit."""

    parent: str
    """Hash of the parent, or of the latest ancestor that builds."""
    not_built: tuple[str, ...]
    """Hashes of the unbuildable commits between the parent and the commit."""
    ratio: float | None
    """Cost of the commit over the cost of ``parent``."""
    ratio_ci: Interval
    significance_level: float
    """1 minus the coverage of ``ratio_ci``."""
    blocks: int
    """Number of blocks in which both commits ran."""
    reason: UnconfirmedReason
    summary: str


class StepTrend(Struct, frozen=True):
    """How a step grew or faded during the search, by a straight line fitted to the blocks."""

    first_ratio: float
    """Ratio of the step in the first block that measures the step."""
    last_ratio: float
    """Ratio of the step in the last block that measures the step."""
    chance: float
    """P-value: the chance of a line at least this steep if the step is constant."""


class Culprit(NamedCommit, frozen=True):
    """A commit that made a difference, compared with its parent."""

    parent: str
    """Hash of the first parent, or of the latest ancestor that builds."""
    not_built: tuple[str, ...]
    """Hashes of unbuildable commits between the parent and the commit; each may be the culprit."""
    is_merge: bool
    ratio: float | None
    """Cost of the commit over the cost of ``parent``."""
    ratio_ci: Interval
    significance_level: float
    """1 minus the coverage of ``ratio_ci``. It is below alpha, because the search tests several
    commits."""
    e_value: float
    """Evidence that this commit makes a difference."""
    blocks: int
    """Number of blocks in which both commits ran."""
    share_of_gap: float | None
    """Fraction of the gap that the culprit explains; null if unknown."""
    share_ci: Interval
    summary: str
    trend: StepTrend | None = None
    """How the step grew or faded during the search; null if no change is certain."""


class BisectCommit(NamedCommit, frozen=True):
    """One commit after the good commit."""

    status: CommitStatus
    e_value: float | None
    """Evidence that the commit did not make the whole difference; null until the gap is certain."""
    excluded_at: int | None
    """Number of the block after which the commit was excluded; null if it is not excluded."""
    trials: int
    """Number of measured trials."""
    not_built: bool
    """Whether the commit does not build or run. It has the status of the next commit that runs."""


class BisectBlock(Struct, frozen=True):
    """One block of a bisection. The first commit of a line has index 0."""

    block: int
    earlier: int
    """Index of the earlier commit along the line."""
    later: int
    search: int
    """Number of the search: search 1 covers all commits, and later searches cover parts."""


class SearchedLine(Struct, frozen=True, kw_only=True):
    """Result of searching one line of commits: from good to bad, or the branch of a merge."""

    verdict: BisectVerdict
    """``no difference`` for a branch means that the merge itself made the difference."""
    culprits: tuple[Culprit, ...]
    """Culprits in the order of the commits."""
    searched_commits: tuple[BisectCommit, ...] = field(name="candidates")
    """All commits of the line except the first."""
    gap: BisectGap
    """Difference between the first and the last commit of the line."""
    remaining_gaps: tuple[BisectGap, ...]
    """Measured gaps between commits before, between and after the culprits."""
    margin: float | None
    """Largest difference, in percent, of commits that count as equal; null before the search."""
    course: tuple[BisectBlock, ...]
    """Course of the search: its complete blocks, in the order of their runs."""
    summary: str
    unconfirmed: tuple[UnconfirmedCommit, ...] = ()
    """Commits that differ from their parents but are not named, in the order of the commits."""

    @property
    def suspects(self) -> tuple[BisectCommit, ...]:
        """Commits that may have made the whole difference."""
        return tuple(commit for commit in self.searched_commits if commit.status == "suspect")


class BisectBranch(SearchedLine, frozen=True, kw_only=True):
    """Result of searching a branch: the commits that a named merge brought in."""

    merge: str
    """Hash of the merge."""
    fork_hash: str = field(name="after")
    """Hash of the commit where the branch began."""
    tip_hash: str = field(name="until")
    """Hash of the last commit of the branch, the second parent of the merge."""
    failed_ends: tuple[str, ...]
    """Hashes of ends of the branch that do not build or run; the branch then has no search."""


class DiffHunk(Struct, frozen=True):
    """A hunk of a diff that concerns a function that got slower."""

    file: str
    function: str
    lines: tuple[str, ...]
    """Lines of the patch; the first begins with ``@@``."""


class ExplainedCulprit(Struct, frozen=True):
    """A culprit, with the functions that got slower and the diff from its parent."""

    commit: str
    """Hash of the culprit."""
    parent: str
    """Hash of the parent, or of the latest ancestor that builds."""
    run: str | None
    """Id of the campaign that tested the causes; null if the causes are not tested."""
    functions: tuple[str, ...]
    """Functions in which the slower commit spends more time, the largest difference first."""
    files: tuple[str, ...]
    """One line of ``git diff --stat`` for each changed file; empty if git gave no diff."""
    hunks: tuple[DiffHunk, ...]
    """Hunks that name one of ``functions``. Hunks with the name in a changed line come first."""
    omitted: int
    """Number of further hunks that name one of ``functions``."""
    diff_is_cut: bool
    """Whether the diff was too long, and its end was not searched."""


class BisectResult(SearchedLine, frozen=True, kw_only=True):
    """Result of a bisection for one benchmark."""

    good: Revision
    bad: Revision
    metric: str
    min_effect: float
    alpha: float
    trials: int
    """Number of trials that measured the benchmark, in complete blocks, branches included."""
    tried_commits: int = field(name="builds")
    """Number of commits that ran or did not build, over all benchmarks."""
    seconds: float
    """Duration of the campaign, builds included."""
    blocks_to_go: int | None
    """Forecast number of blocks until the search ends; null without a forecast."""
    build: str | None
    """Shell line that builds a commit."""
    explained_culprit: ExplainedCulprit | None = None
    """Null if no culprit is explained."""
    branches: tuple[BisectBranch, ...] = ()
    """Searched branches of named merges, in the order of their searches."""
    benchmark: str = ""
    """Name of the benchmark; empty if the bisection searched only one."""

    @property
    def lines(self) -> tuple[BisectResult | BisectBranch, ...]:
        """Result from good to bad, then the results of the branches."""
        return (self, *self.branches)

    @property
    def every_culprit(self) -> tuple[Culprit, ...]:
        """Culprits of all lines: from good to bad, then of the branches."""
        return tuple(culprit for line in self.lines for culprit in line.culprits)

    @property
    def titled_summary(self) -> str:
        """Summary, after the name of the benchmark if there are several benchmarks."""
        return f"{self.benchmark}: {self.summary}" if self.benchmark else self.summary


class BisectDocument(ResultDocument, frozen=True, kw_only=True, tag="bisect"):
    """The result document of a bisection of one or several benchmarks."""

    bisect: BisectResult | None = None
    """Result for a single benchmark; null with several benchmarks, and before the first block."""
    bisects: tuple[BisectResult, ...] = ()
    """Results for several benchmarks; empty with a single benchmark."""

    @property
    def results(self) -> tuple[BisectResult, ...]:
        """Results for all benchmarks; empty before the first block."""
        return self.bisects or (() if self.bisect is None else (self.bisect,))

    @property
    def kind_metric(self) -> str | None:
        """Metric of the first benchmark."""
        return next((result.metric for result in self.results), None)

    @property
    def kind_summary(self) -> str | None:
        """Summaries of all benchmarks, one on each line."""
        return "\n".join(result.titled_summary for result in self.results) or None
