"""The commits of one campaign of a history, and their curve in a result document.

A history is a curve over the commits, and the changes that are certain. It is a series of
campaigns: the result of each counts the blocks of all campaigns of its series until then. A series
of another tool has a value for each commit, not measured side by side, and suspicions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import TAG
from equipoise.model.metrics import inverted
from equipoise.model.plan import Contrast, Plan
from equipoise.model.quantities import Interval
from equipoise.model.result import ResultDocument
from equipoise.model.revisions import NamedCommit, Revision, ShortTexts
from equipoise.model.series import ImportedSeries
from equipoise.revisions.terms import CommitsPlan
from equipoise.shared.spelling import option

if TYPE_CHECKING:
    from equipoise.model.record import RunRecord

STUDY = "history"
"""The study of every campaign of a history."""


class HistoryPlan(CommitsPlan, frozen=True, kw_only=True, tag_field=TAG, tag="history"):
    """Terms of one campaign of a history: the commits whose curve it draws.

    See docs/methods/statistics.md.

    Its commits begin with the baseline. The campaigns of one series are one history: what they
    claim is a function of the blocks of all of them, in the order in which they began.
    """

    noun: ClassVar[str] = "history"
    not_adjustable_because: ClassVar[str | None] = "a history is never adjusted"
    restart_hint: ClassVar[str] = "begin another campaign of the history"
    baseline: Revision
    latest: Revision
    """The last of the commits, as the user asked for it."""
    selected: tuple[int, ...]
    """Conditions that the curve shows; the first and the last always, others only where something
    changes between two of them."""
    series: str
    """Digest of what makes campaigns one history: the host, the baseline, the command, the build,
    the metric and the terms of judgement."""
    era: str
    """Digest of what numbers of different campaigns share if they can be compared: the toolchain,
    the kernel, the processor."""
    earlier: tuple[str, ...] = ()
    """Run ids of the earlier campaigns of the series in the ledger, in the order in which they
    began."""
    only_new: bool = False
    """Whether it asks only about commits that no earlier campaign of the series knew."""

    def contrasts(self, plan: Plan) -> tuple[Contrast, ...]:
        """Return nothing: its claims rest on all campaigns of its series."""
        return ()

    def check_explainable(self, record: RunRecord) -> None:
        """Refuse to explain: a bisection explains a change."""
        raise UnusableInput(
            f"run {record.id} is a campaign of a history, whose commits are not explained",
            hint="explain a change by its two commits: equipoise bisect --good PARENT --bad COMMIT "
            f"--why, with the same {option('build')} and command",
        )


def history_of(plan: Plan) -> HistoryPlan:
    """Return the terms of a campaign of a history."""
    assert isinstance(plan.terms, HistoryPlan), "only a campaign of a history belongs to a series"
    return plan.terms


PairStatus = Literal["changed", "equivalent", "open"]
"""``changed``: named as a change. ``equivalent``: its own interval at 1 - alpha lies within the
smallest effect that matters; no claim is made of it, it says why nothing more is asked. ``open``:
not known yet."""
RevisionStatus = Literal["measured", "waiting", "not built"]
"""``measured``: it ran, if not always beside the baseline. ``waiting``: the curve wants it, and it
did not run yet. ``not built``: it does not build or run."""


class HistoryRevision(NamedCommit, frozen=True):
    """One commit of the curve; ratios of a cost, the commit over the baseline."""

    place: int
    """Place among the commits along first parents, of which 0 is the baseline."""
    status: RevisionStatus
    ratio: float | None
    """1 for the baseline; null for a commit that never ran beside it."""
    ratio_ci: Interval
    level: float | None
    """1 minus the coverage of ``ratio_ci``: the levels of all revisions add up to alpha, so all
    intervals hold together."""
    blocks: int
    """Blocks with the baseline that the interval is from."""
    era: int | None
    """Number of the era of these blocks; null before the first one."""


class HistoryChange(ShortTexts, frozen=True):
    """A change that is certain; ratios of a cost, the later commit over the earlier one."""

    commit: str | None
    """Whole name of the commit that made it; null for a range of several commits."""
    after: str
    """Whole name of the last commit before it: the parent of ``commit``, if that one builds."""
    until: str
    """Whole name of the first commit that has it."""
    subject: str
    """Of the commit ``until``, as are ``author`` and ``date``."""
    author: str
    date: str
    commits: int
    """Commits after ``after``, to ``until``."""
    not_built: tuple[str, ...]
    """Commits between the two that do not build; each of them may have made it as well."""
    is_merge: bool
    """Whether ``until`` is a merge."""
    ratio: float | None
    ratio_ci: Interval
    level: float
    """1 minus the coverage of ``ratio_ci``: less than alpha, because the pair was chosen."""
    e_value: float
    threshold: float | None
    """E-value from which on the pair was named; by the number of pairs and of changes then."""
    pair: int
    """Number of the pair in the series, from 1."""
    confirmed: bool
    """Whether it is one commit against its parent, or against the latest ancestor that builds."""
    blocks: int
    """Blocks in which both ran."""
    summary: str
    confirm: str | None = None
    """Shell line that finds the commit of a range; null if it is confirmed."""


class HistoryPair(Struct, frozen=True):
    """Two commits that were run side by side to see whether something changes between them."""

    pair: int
    """Number of the pair in the series, from 1."""
    after: str
    """Whole name of the earlier commit."""
    until: str
    """Whole name of the later commit."""
    status: PairStatus
    ratio: float | None
    """Cost of the later commit over that of the earlier one; null where it is not finite."""
    ratio_ci: Interval
    level: float
    """1 minus the coverage of ``ratio_ci``: alpha/(t(t + 1)) of the t-th pair, so that all hold
    together."""
    e_value: float
    """Against "the difference is at most the smallest effect that matters"; of a named pair when it
    was named."""
    blocks: int
    """Blocks in which both ran since the pair was opened."""
    era: int
    """Number of the era in the series, from 1."""


class HistoryEra(Struct, frozen=True):
    """Campaigns with one toolchain, kernel, processor and baseline."""

    era: int
    """Number of the era in the series, from 1."""
    started: str
    """Start of its first campaign: ISO 8601, UTC."""
    differences: tuple[str, ...]
    """What of the environment differs from the era before: ``kernel: 6.1 instead of 5.10``."""


class HistoryCampaign(Struct, frozen=True):
    """One campaign of the series."""

    run: str
    """Id of the campaign."""
    started: str
    """ISO 8601, UTC."""
    ended: str | None
    stopped_because: str | None
    era: int
    """Number of its era."""
    blocks: int
    """Complete blocks."""
    trials: int
    """Trials in complete blocks."""
    builds: int
    """Commits that ran, or were to run and did not build."""
    seconds: float
    """Time that it took, builds included."""
    until: str
    """Whole name of the last commit that it looked at."""


class HistoryResult(Struct, frozen=True):
    """Revisions side by side, and what changed between them."""

    baseline: Revision
    """The commit that each revision of the curve is divided by."""
    latest: Revision
    """The last commit that the campaign looked at."""
    revisions: tuple[HistoryRevision, ...]
    """Commits of the curve, in the order of the commits; the baseline first."""
    changes: tuple[HistoryChange, ...]
    """In the order of the commits. A range in which a confirmed change was found is left out."""
    pairs: tuple[HistoryPair, ...]
    """All pairs of the series, in the order in which they were opened."""
    eras: tuple[HistoryEra, ...]
    campaigns: tuple[HistoryCampaign, ...]
    """Campaigns of the series until this one, in order."""
    commits: int
    """Commits along first parents after the baseline, measured or not."""
    metric: str
    min_effect: float
    """Smallest effect that matters, in percent: smaller changes count as none."""
    alpha: float
    """False-discovery rate of the changes; the chance that some interval of the curve is wrong."""
    trials: int
    """Trials in complete blocks, over all campaigns."""
    builds: int
    """Builds over all campaigns."""
    seconds: float
    """Time that all campaigns took, builds included."""
    blocks_to_go: int
    """Blocks that are probably left, by a rule of thumb; 0 if nothing is left to ask until there
    are new commits."""
    build: str | None
    """Line for a shell that built each commit."""
    summary: str
    series: tuple[ImportedSeries, ...] = ()
    """Series of other tools, shown beside: no claim of ours rests on them."""


def history_of_values(result: HistoryResult, more_is_better: Collection[str]) -> HistoryResult:
    """Return a history as a reader sees it: with ratios of values if its metric is among these."""
    if result.metric not in more_is_better:
        return result
    return replace(
        result,
        revisions=tuple(map(inverted, result.revisions)),
        changes=tuple(map(inverted, result.changes)),
        pairs=tuple(map(inverted, result.pairs)),
    )


class HistoryDocument(ResultDocument, frozen=True, kw_only=True, tag="history"):
    """The result document of a campaign of a history."""

    measured_below: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"control": "condition", "history": "series"}
    )
    history: HistoryResult

    @property
    def own_metric(self) -> str:
        """The metric that the history compares."""
        return self.history.metric

    @property
    def own_summary(self) -> str:
        """What the history found."""
        return self.history.summary
