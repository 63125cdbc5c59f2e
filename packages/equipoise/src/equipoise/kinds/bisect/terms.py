"""The commits of a bisection, and its part of a result document."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct

from equipoise.model.kinds import TAG
from equipoise.model.plan import Contrast, Plan
from equipoise.model.quantities import Interval
from equipoise.model.result import ResultDocument
from equipoise.model.revisions import Commit, NamedCommit, Revision
from equipoise.revisions.commits import MergedBranch
from equipoise.revisions.terms import CommitsPlan

STUDY = "bisect"
"""The study of every plan of a bisection."""


class LayoutSpread(Struct, frozen=True):
    """How far memory layouts alone move the cost of a program."""

    percent: float
    """Standard deviation over layouts."""
    run: str
    """Id of the campaign over layouts that measured it."""


class BisectPlan(CommitsPlan, frozen=True, kw_only=True, tag_field=TAG, tag="bisect"):
    """Terms of a bisection: the commits among which it searches for culprits.

    Its commits begin with the good revision and end with the bad one.
    """

    noun: ClassVar[str] = "bisection"
    not_adjustable_because: ClassVar[str | None] = "a bisection is never adjusted"
    restart_hint: ClassVar[str] = "bisect again"
    good: Revision
    bad: Revision
    likely: tuple[str, ...] = ()
    """Paths that the user suspects."""
    prior: tuple[float, ...] = ()
    """Weight of each commit after the good one before the first block; empty for equal weights.
    Weights only choose which commits run, and never make a commit a culprit."""
    branch_commits: tuple[Commit, ...] = ()
    """Commits of branches; their conditions follow those of ``commits``."""
    branches: tuple[MergedBranch, ...] = ()
    """Branches of the merges among all commits."""
    why: Literal["observe", "test"] | None = None
    """How the culprit is explained once it is named: ``observe`` collects evidence, and ``test``
    also runs interventions that test the causes."""
    layout_spread: LayoutSpread | None = None
    """Spread of layouts of this project's programs, if an earlier campaign measured it."""
    prose: tuple[int, ...] = ()
    """Places of the commits that change only files of prose, compared with their first parent."""

    @property
    def last(self) -> int:
        """Condition of the bad revision; the good one has condition 0."""
        return len(self.commits) - 1

    @property
    def indispensable(self) -> tuple[int, ...]:
        """Both ends."""
        return (0, self.last)

    @property
    def commits_with_branches(self) -> tuple[Commit, ...]:
        """The commit of each condition."""
        return (*self.commits, *self.branch_commits)

    def contrasts(self, plan: Plan) -> tuple[Contrast, ...]:
        """Return the contrast of the bad commit with the good one."""
        return (Contrast(0, self.last),)


def bisection_of(plan: Plan) -> BisectPlan:
    """Return the terms of a bisection."""
    assert isinstance(plan.terms, BisectPlan), "only a bisection has a search and culprits"
    return plan.terms


BisectVerdict = Literal["culprit", "several", "set", "no difference", "undecided"]
"""``culprit``: one commit is named. ``several``: no single commit made the whole difference.
``set``: the difference is certain, and any of several commits may have made it. ``no difference``:
both revisions are equivalent. ``undecided``: it is not known whether there is a difference."""
CommitStatus = Literal["culprit", "left", "excluded"]
"""``left``: it may have made the whole difference. ``excluded``: it did not make all of it."""
GapStatus = Literal["slower", "faster", "equivalent", "undecided"]


class BisectGap(Struct, frozen=True):
    """The difference between two commits, as the cost of the later over that of the earlier."""

    after: str
    """Whole name of the earlier commit."""
    until: str
    """Whole name of the later commit."""
    ratio: float | None
    ratio_ci: Interval
    level: float
    """1 minus the coverage of ``ratio_ci``."""
    blocks: int
    """Blocks in which both ran."""
    status: GapStatus


UnconfirmedReason = Literal["min_effect", "layouts", "prose"]
"""``min_effect``: the step is not certainly larger than the smallest effect that matters.
``layouts``: the memory layouts of single commits may explain it. ``prose``: the commit changes only
files of prose."""


class UnconfirmedCommit(NamedCommit, frozen=True):
    """A commit whose build differs from its parent's, but that is not named as a culprit."""

    parent: str
    """Whole name of the commit that it was compared with."""
    not_built: tuple[str, ...]
    """Commits between the two that do not build."""
    ratio: float | None
    """Its cost over that of its parent."""
    ratio_ci: Interval
    level: float
    """1 minus the coverage of ``ratio_ci``."""
    blocks: int
    """Blocks in which both ran."""
    reason: UnconfirmedReason
    summary: str


class StepTrend(Struct, frozen=True):
    """A step that grew or faded during the search, as a line through its blocks."""

    first_ratio: float
    """The ratio of the step in the first block that contains it."""
    last_ratio: float
    """The ratio of the step in the last block that contains it."""
    chance: float
    """Chance of a line at least as steep if the step is constant and only layouts differ."""


class Culprit(NamedCommit, frozen=True):
    """A commit that made a difference, compared with its parent."""

    parent: str
    """Whole name of the commit that it was compared with: its first parent, or the latest ancestor
    that builds."""
    not_built: tuple[str, ...]
    """Commits between the two that do not build; any of them may be the culprit instead."""
    is_merge: bool
    ratio: float | None
    """Its cost over that of its parent."""
    ratio_ci: Interval
    level: float
    """1 minus the coverage of ``ratio_ci``: less than alpha, because the search selected it."""
    e_value: float
    """Evidence that this commit makes a difference."""
    blocks: int
    """Blocks in which both ran."""
    share_of_gap: float | None
    """Fraction of the gap explained; null if it is not known."""
    share_ci: Interval
    summary: str
    trend: StepTrend | None = None
    """How its step grew or faded during the search; null if no change of the step is certain."""


class BisectCommit(NamedCommit, frozen=True):
    """One commit after the good one."""

    status: CommitStatus
    e_value: float | None
    """Evidence that it did not make the whole difference; null before the search."""
    excluded_at: int | None
    """Number of the block after which it was excluded; null if it was not."""
    trials: int
    """Measured trials."""
    not_built: bool
    """Whether it does not build or run. It then has the status of the next commit that does."""


class BisectBlock(Struct, frozen=True):
    """One block of a bisection, with the places of its two commits; place 0 is the good one."""

    block: int
    earlier: int
    later: int
    search: int
    """Number of the search: 1 covers all commits, later ones a remainder of the gap."""


class SearchedLine(Struct, frozen=True, kw_only=True):
    """The search of one line of commits: from good to bad, or the branch of a merge."""

    verdict: BisectVerdict
    """For a branch, ``no difference`` says that its two ends are equivalent, so the merge itself
    made the difference."""
    culprits: tuple[Culprit, ...]
    """In the order of the commits."""
    candidates: tuple[BisectCommit, ...]
    """All commits of the line but the first."""
    gap: BisectGap
    """The last commit of the line over its first one."""
    left_over: tuple[BisectGap, ...]
    """Gaps before, between and after the culprits that were measured."""
    margin: float | None
    """Percent below which two commits count as equal; null before the search."""
    course: tuple[BisectBlock, ...]
    """Complete blocks of this search, in the order of their runs. Places count from the first
    commit of the line."""
    summary: str
    unconfirmed: tuple[UnconfirmedCommit, ...] = ()
    """Commits that differ from their parents but are not named, in the order of the commits."""


class BisectBranch(SearchedLine, frozen=True, kw_only=True):
    """The search of the branch of a named merge: of the commits that the merge brought in."""

    merge: str
    """Whole name of the merge."""
    after: str
    """Whole name of the commit at which the branch began."""
    until: str
    """Whole name of the merge's other parent."""
    missing: tuple[str, ...]
    """Ends of the branch that do not build or run; with one of them it cannot be searched."""


class DiffHunk(Struct, frozen=True):
    """A changed place of a commit that concerns a function that got slower."""

    file: str
    function: str
    lines: tuple[str, ...]
    """Lines of the patch; the first begins with ``@@``."""


class ExplainedCulprit(Struct, frozen=True):
    """Where a culprit differs from its parent; the causes are in ``why``."""

    commit: str
    """Whole name of the culprit."""
    parent: str
    """Whole name of the commit that it was compared with."""
    run: str | None
    """Id of the campaign that tested the causes; null if none did."""
    functions: tuple[str, ...]
    """Functions in which the slower commit spends more time, the largest difference first."""
    files: tuple[str, ...]
    """A line for each changed file, with its numbers of lines; empty if git gave no diff."""
    hunks: tuple[DiffHunk, ...]
    """Places of the diff that change or name these functions; changes inside them come first."""
    omitted: int
    """Number of further places that name these functions."""
    diff_is_cut: bool
    """Whether the diff was too long, so that its end was not searched."""


class BisectResult(SearchedLine, frozen=True, kw_only=True):
    """Which commits between two revisions made the difference."""

    good: Revision
    bad: Revision
    metric: str
    min_effect: float
    alpha: float
    trials: int
    """Trials in complete blocks, those of branches included. For one of several benchmarks, the
    trials that measured it."""
    builds: int
    """Number of commits that any benchmark ran, or that did not build for it."""
    seconds: float
    """Duration of the campaign, builds included."""
    blocks_to_go: int | None
    """Forecast of the blocks that the search still needs; null if it ended or has no forecast."""
    build: str | None
    """Shell line that builds a commit."""
    explained: ExplainedCulprit | None = None
    """The culprit that was explained; null if none was."""
    branches: tuple[BisectBranch, ...] = ()
    """Searched branches of named merges, in the order of their searches."""
    benchmark: str = ""
    """Name of the benchmark; empty if the bisection searched only one."""

    @property
    def lines(self) -> tuple[BisectResult | BisectBranch, ...]:
        """The search from good to bad, then those of branches."""
        return (self, *self.branches)

    @property
    def every_culprit(self) -> tuple[Culprit, ...]:
        """Culprits of all lines."""
        return tuple(culprit for line in self.lines for culprit in line.culprits)

    @property
    def titled_summary(self) -> str:
        """The summary, after the name of the benchmark if there are several."""
        return f"{self.benchmark}: {self.summary}" if self.benchmark else self.summary


class BisectDocument(ResultDocument, frozen=True, kw_only=True, tag="bisect"):
    """The result document of a bisection, of one benchmark or of several."""

    bisect: BisectResult | None = None
    """Null for a bisection of several benchmarks, and before the first block."""
    bisects: tuple[BisectResult, ...] = ()
    """Bisections of the benchmarks of a suite."""

    @property
    def searches(self) -> tuple[BisectResult, ...]:
        """Bisections of all benchmarks; empty before the first block."""
        return self.bisects or (() if self.bisect is None else (self.bisect,))

    @property
    def own_metric(self) -> str | None:
        """The metric of the first search."""
        return next((search.metric for search in self.searches), None)

    @property
    def own_summary(self) -> str | None:
        """The summary of each search, a line each."""
        return "\n".join(search.titled_summary for search in self.searches) or None
