"""The commits of one campaign of a history, and its part of a result document.

A history is a curve over the commits, and the changes that are certain. It is a series of
campaigns. The result of a campaign uses the blocks of all campaigns of its series up to it. A
series of another tool has a value for each commit, not measured side by side, and suspicions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import TAG
from equipoise.model.metrics import invert_ratio
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

    See docs/methods/history.md.

    Its commits begin with the baseline. The campaigns of one series are one history: its claims are
    a function of the blocks of all of them, in the order in which they began.
    """

    noun: ClassVar[str] = "history"
    not_adjustable_because: ClassVar[str | None] = "a history is never adjusted"
    restart_hint: ClassVar[str] = "begin another campaign of the history"
    baseline: Revision
    latest: Revision
    """The last of the commits, as the user named it."""
    selected: tuple[int, ...]
    """Conditions that the curve shows, always with the first and the last. Other commits run only
    if something changes between two of them."""
    series: str
    """Digest of the properties that all campaigns of one history share: the host, the baseline, the
    command, the build, the metric and the terms of judgement."""
    era: str
    """Digest of the properties that make numbers of two campaigns comparable: the toolchain, the
    kernel, the processor."""
    earlier: tuple[str, ...] = ()
    """Run ids of the earlier campaigns of the series in the ledger, in the order in which they
    began."""
    only_new: bool = False
    """Whether it measures only commits after those that earlier campaigns of the series measured.
    """

    def contrasts(self, plan: Plan) -> tuple[Contrast, ...]:
        """Return no contrast: its claims use all campaigns of its series."""
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
"""``changed``: named as a change. ``equivalent``: its own interval at 1 - alpha is within the
smallest effect that matters. This is not a claim; it is the reason why the pair gets no more
blocks. ``open``: not known yet."""
RevisionStatus = Literal["measured", "waiting", "not built"]
"""``measured``: it ran, but not always together with the baseline. ``waiting``: it belongs to the
curve, but did not run yet. ``not built``: it does not build or run."""


class HistoryRevision(NamedCommit, frozen=True):
    """One commit of the curve; ratios are the cost of the commit over that of the baseline."""

    place: int
    """Place among the commits along first parents; the baseline has place 0."""
    status: RevisionStatus
    ratio: float | None
    """1 for the baseline; null for a commit that never ran together with it."""
    ratio_ci: Interval
    level: float | None
    """1 minus the coverage of ``ratio_ci``: the levels of all revisions add up to alpha, so all
    intervals hold together."""
    blocks: int
    """Blocks with the baseline, from which the interval is computed."""
    era: int | None
    """Number of the era of these blocks; null before the first one."""


class HistoryChange(ShortTexts, frozen=True):
    """A certain change; ratios are the cost of the later commit over that of the earlier one."""

    commit: str | None
    """Whole name of the commit that made it; null for a range of several commits."""
    after: str
    """Whole name of the last commit before it: the parent of ``commit``, if that one builds."""
    until: str
    """Whole name of the first commit with the change."""
    subject: str
    """Subject of the commit ``until``, to which ``author`` and ``date`` also belong."""
    author: str
    date: str
    commits: int
    """Number of commits after ``after``, up to ``until``."""
    not_built: tuple[str, ...]
    """Commits between the two that do not build; any of them may have made the change instead."""
    is_merge: bool
    """Whether ``until`` is a merge."""
    ratio: float | None
    ratio_ci: Interval
    level: float
    """1 minus the coverage of ``ratio_ci``: less than alpha, because the pair was selected."""
    e_value: float
    threshold: float | None
    """E-value at which the pair was named; it depended on the numbers of pairs and changes."""
    pair: int
    """Number of the pair in the series, from 1."""
    confirmed: bool
    """Whether it compares a commit with its parent, or with the latest ancestor that builds."""
    blocks: int
    """Blocks in which both ran."""
    summary: str
    confirm: str | None = None
    """Shell line that finds the commit of a range; null if it is confirmed."""


class HistoryPair(Struct, frozen=True):
    """Two commits that ran side by side, to find changes between them."""

    pair: int
    """Number of the pair in the series, from 1."""
    after: str
    """Whole name of the earlier commit."""
    until: str
    """Whole name of the later commit."""
    status: PairStatus
    ratio: float | None
    """Cost of the later commit over that of the earlier one; null if it is not finite."""
    ratio_ci: Interval
    level: float
    """1 minus the coverage of ``ratio_ci``: alpha/(t(t + 1)) for pair number t, so that all
    intervals hold together."""
    e_value: float
    """Evidence against "the difference is at most the smallest effect that matters"; for a named
    pair, its value when the pair was named."""
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
    """Differences of the environment from the era before: ``kernel: 6.1 instead of 5.10``."""


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
    """Number of commits that ran or did not build."""
    seconds: float
    """Duration, builds included."""
    until: str
    """Whole name of its last commit."""


class HistoryResult(Struct, frozen=True):
    """The result of a history: its curve and its changes."""

    baseline: Revision
    """The commit by whose cost the costs of the curve are divided."""
    latest: Revision
    """The last commit of the campaign."""
    revisions: tuple[HistoryRevision, ...]
    """Commits of the curve, in the order of the commits; the baseline first."""
    changes: tuple[HistoryChange, ...]
    """Changes in the order of the commits, without ranges that contain a confirmed change."""
    pairs: tuple[HistoryPair, ...]
    """All pairs of the series, in the order in which they were opened."""
    eras: tuple[HistoryEra, ...]
    campaigns: tuple[HistoryCampaign, ...]
    """Campaigns of the series until this one, in order."""
    commits: int
    """Number of commits along first parents after the baseline, measured or not."""
    metric: str
    min_effect: float
    """Smallest effect that matters, in percent; smaller changes do not count."""
    alpha: float
    """False-discovery rate of the changes; the chance that some interval of the curve is wrong."""
    trials: int
    """Trials in complete blocks, over all campaigns."""
    builds: int
    """Builds over all campaigns."""
    seconds: float
    """Duration of all campaigns, builds included."""
    blocks_to_go: int
    """Forecast of the remaining blocks, by a rule of thumb; 0 if nothing is left to measure until
    there are new commits."""
    build: str | None
    """Shell line that builds a commit."""
    summary: str
    series: tuple[ImportedSeries, ...] = ()
    """Series of other tools, shown next to the curve; no claim uses them."""


def history_of_values(result: HistoryResult, more_is_better: Collection[str]) -> HistoryResult:
    """Return a history with ratios of values, not of costs, if its metric is ``more_is_better``."""
    if result.metric not in more_is_better:
        return result
    return replace(
        result,
        revisions=tuple(map(invert_ratio, result.revisions)),
        changes=tuple(map(invert_ratio, result.changes)),
        pairs=tuple(map(invert_ratio, result.pairs)),
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
        """The summary of the history."""
        return self.history.summary
