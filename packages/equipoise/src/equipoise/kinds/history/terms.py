"""Additions of a history to the plan of a campaign (its terms) and to the result document.

A history shows the cost of each commit over that of a baseline, the curve, and the changes that are
certain. It is a series of campaigns; the result of a campaign uses the blocks of all campaigns of
the series up to it. Campaigns with comparable numbers form an era. An imported series of another
tool has a value for each commit, not measured side by side, and suspicions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

from equipoise.model.errors import UnusableInput
from equipoise.model.inverse_ratios import with_inverse_ratio
from equipoise.model.kinds import TAG
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
"""Name of the study in the plan of every campaign of a history."""


class HistoryPlan(CommitsPlan, frozen=True, kw_only=True, tag_field=TAG, tag="history"):
    """Terms of one campaign of a history: the commits that it may measure, the baseline first.

    All campaigns of a series are one history. Its claims depend only on the blocks of these
    campaigns, in the order in which they began (docs/methods/history.md).
    """

    noun: ClassVar[str] = "history"
    not_adjustable_because: ClassVar[str | None] = "a history is never adjusted"
    restart_hint: ClassVar[str] = "begin another campaign of the history"
    baseline: Revision
    latest: Revision
    """Revision of the last commit, as the user named it."""
    selected: tuple[int, ...]
    """Indices of the commits that the curve shows; the first and the last always belong to it.
    Other commits run only if something changes between two selected ones."""
    series: str
    """Digest of the properties that all campaigns of one history share: host, baseline, command,
    build line, metric, smallest effect and alpha."""
    era: str
    """Digest of the properties that make numbers of two campaigns comparable: toolchain, kernel and
    processor."""
    earlier: tuple[str, ...] = ()
    """Run ids of the earlier campaigns of the series, in the order in which they began."""
    only_new: bool = False
    """Whether to measure only commits after the commits that earlier campaigns measured."""

    def contrasts(self, plan: Plan) -> tuple[Contrast, ...]:
        """Return no contrast: the claims of a history use all campaigns of the series."""
        return ()

    def check_explainable(self, record: RunRecord) -> None:
        """Refuse to explain, because a bisection explains a change."""
        raise UnusableInput(
            f"run {record.id} belongs to a history, and only a bisection can explain a change",
            hint="bisect one change: equipoise bisect --good PARENT --bad COMMIT --why, with the "
            f"same {option('build')} and command",
        )


def history_of(plan: Plan) -> HistoryPlan:
    """Return the terms of a campaign of a history."""
    assert isinstance(plan.terms, HistoryPlan), "the plan is not of a history"
    return plan.terms


PairStatus = Literal["changed", "equivalent", "open"]
"""``changed``: a certain change. ``equivalent``: the interval of this pair alone, at 1 - alpha, is
within the smallest effect that matters; the pair then gets no more blocks, but this is not a claim.
``open``: not known yet."""
RevisionStatus = Literal["measured", "waiting", "not built"]
"""``measured``: the commit ran, but not always together with the baseline. ``waiting``: the commit
belongs to the curve, but did not run yet. ``not built``: the commit does not build or run."""


class HistoryRevision(NamedCommit, frozen=True):
    """One commit of the curve; ratios are the cost of the commit over that of the baseline."""

    place: int
    """Index of the commit along first parents; the baseline has 0."""
    status: RevisionStatus
    ratio: float | None
    """1 for the baseline; null for a commit that never ran together with the baseline."""
    ratio_ci: Interval
    level: float | None
    """1 minus the coverage of ``ratio_ci``: the levels of all revisions add up to alpha, so all
    intervals hold together."""
    blocks: int
    """Number of blocks with the baseline, from which the interval is computed."""
    era: int | None
    """Number of the era of these blocks; null before the first block."""


class HistoryChange(ShortTexts, frozen=True):
    """A certain change; ratios are the cost of the later commit over that of the earlier one."""

    commit: str | None
    """Hash of the commit that made the change; null for a range of several commits."""
    after: str
    """Hash of the last commit before the change: the parent of ``commit``, if the parent builds."""
    until: str
    """Hash of the first commit with the change."""
    subject: str
    """Subject of the commit ``until``; this commit also has ``author`` and ``date``."""
    author: str
    date: str
    commits: int
    """Number of commits after ``after``, up to ``until``."""
    not_built: tuple[str, ...]
    """Hashes of the commits between ``after`` and ``until`` that do not build; each of them may
    have made the change."""
    is_merge: bool
    """Whether ``until`` is a merge."""
    ratio: float | None
    ratio_ci: Interval
    level: float
    """1 minus the coverage of ``ratio_ci``: less than alpha, because the pair was selected."""
    e_value: float
    """Evidence for the change when it was named."""
    threshold: float | None
    """E-value that the change needed in order to be named. It depended on the number of the pair
    and on the changes named before."""
    pair: int
    """Number of the pair in the series, from 1."""
    confirmed: bool
    """Whether the pair is a commit and its parent, or the latest ancestor that builds."""
    blocks: int
    """Number of blocks in which both commits ran."""
    summary: str
    confirm: str | None = None
    """Shell line that finds the commit of a range; null if the change is confirmed."""


class HistoryPair(Struct, frozen=True):
    """A commit pair that ran side by side, to find changes between its two commits."""

    pair: int
    """Number of the pair in the series, from 1."""
    after: str
    """Hash of the earlier commit."""
    until: str
    """Hash of the later commit."""
    status: PairStatus
    ratio: float | None
    """Cost of the later commit over that of the earlier one; null if it is not finite."""
    ratio_ci: Interval
    level: float
    """1 minus the coverage of ``ratio_ci``: alpha/(t(t + 1)) for pair number t, so that all
    intervals hold together."""
    e_value: float
    """Evidence against "the difference is at most the smallest effect that matters". A change keeps
    the evidence that it had when it was named."""
    blocks: int
    """Number of blocks in which both commits ran since the pair was opened."""
    era: int
    """Number of the era in the series, from 1."""


class HistoryEra(Struct, frozen=True):
    """Campaigns with one toolchain, kernel, processor and baseline."""

    era: int
    """Number of the era in the series, from 1."""
    started: str
    """Start of the first campaign of the era: ISO 8601, UTC."""
    differences: tuple[str, ...]
    """Differences from the environment of the previous era: ``kernel: 6.1 instead of 5.10``."""


class HistoryCampaign(Struct, frozen=True):
    """One campaign of the series."""

    run: str
    """Id of the campaign."""
    started: str
    """Time of the start: ISO 8601, UTC."""
    ended: str | None
    """Time of the end; null if the campaign did not end."""
    stopped_because: str | None
    era: int
    """Number of the era of the campaign."""
    blocks: int
    """Number of complete blocks."""
    trials: int
    """Number of trials in complete blocks."""
    builds: int
    """Number of commits that ran or did not build."""
    seconds: float
    """Duration, builds included."""
    until: str
    """Hash of the last commit of the campaign."""


class HistoryResult(Struct, frozen=True):
    """The result of a history: its curve and its changes."""

    baseline: Revision
    """Commit with which the curve compares every other commit."""
    latest: Revision
    """The last commit of the campaign."""
    revisions: tuple[HistoryRevision, ...]
    """Commits of the curve in order, the baseline first."""
    changes: tuple[HistoryChange, ...]
    """Changes in the order of the commits, without ranges that contain a confirmed change."""
    pairs: tuple[HistoryPair, ...]
    """All pairs of the series, in the order in which they were opened."""
    eras: tuple[HistoryEra, ...]
    campaigns: tuple[HistoryCampaign, ...]
    """Campaigns of the series up to this one, in order."""
    commits: int
    """Number of commits along first parents after the baseline, measured or not."""
    metric: str
    min_effect: float
    """Smallest effect that matters, in percent; smaller changes do not count."""
    alpha: float
    """False-discovery rate of the changes, and risk that some interval of the curve is wrong."""
    trials: int
    """Number of trials in complete blocks, over all campaigns."""
    builds: int
    """Number of builds over all campaigns."""
    seconds: float
    """Duration of all campaigns, builds included."""
    blocks_to_go: int
    """Rough forecast of the remaining blocks; 0 if nothing is left to measure until there are new
    commits."""
    build: str | None
    """Shell line that builds a commit."""
    summary: str
    series: tuple[ImportedSeries, ...] = ()
    """Series of other tools, shown next to the curve; no claim uses them."""


def history_of_values(result: HistoryResult, more_is_better: Collection[str]) -> HistoryResult:
    """Return the history with ratios of values, not of costs, if more of its metric is better."""
    if result.metric not in more_is_better:
        return result
    return replace(
        result,
        revisions=tuple(map(with_inverse_ratio, result.revisions)),
        changes=tuple(map(with_inverse_ratio, result.changes)),
        pairs=tuple(map(with_inverse_ratio, result.pairs)),
    )


class HistoryDocument(ResultDocument, frozen=True, kw_only=True, tag="history"):
    """The result document of a campaign of a history."""

    measured_below: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"control": "condition", "history": "series"}
    )
    history: HistoryResult

    @property
    def own_metric(self) -> str:
        """Metric that the history compares."""
        return self.history.metric

    @property
    def own_summary(self) -> str:
        """Summary of the history."""
        return self.history.summary
