"""Additions of a history to the plan of a campaign (its terms) and to the result document.

A history is a series of campaigns. The result of a campaign uses the blocks of this campaign and of
all earlier campaigns. It has the curve, which is the ratio of each commit to a baseline, and the
changes that are certain. Campaigns with comparable numbers form an era. A commit pair is opened
when both commits first run side by side, to find a change between them. A series that is imported
from another tool has values that were not measured side by side.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct, field
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
    """Terms of one campaign of a history. Its ``commits`` begin with the baseline.

    All campaigns of a series are one history (docs/methods/history.md).
    """

    noun: ClassVar[str] = "history"
    not_adjustable_because: ClassVar[str | None] = "a history is never adjusted"
    restart_hint: ClassVar[str] = "begin another campaign of the history"
    baseline: Revision
    latest: Revision
    """Revision of the last commit, as the user named it."""
    selected: tuple[int, ...]
    """Indices of the commits of the curve, including the first and the last commit. Other commits
    run only if something changes between two selected commits."""
    series: str
    """Digest of what all campaigns of a history share: host, baseline, command, build line, metric,
    smallest effect and alpha."""
    era: str
    """Digest of toolchain, kernel and processor; numbers are comparable if the digest is equal."""
    earlier_ids: tuple[str, ...] = ()
    """Run ids of the earlier campaigns of the series, in the order of their starts."""
    only_new: bool = False
    """Whether to measure only commits after the latest measured commit."""

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


def history_terms(plan: Plan) -> HistoryPlan:
    """Return the terms of a campaign of a history."""
    assert isinstance(plan.terms, HistoryPlan), "the plan is not of a history"
    return plan.terms


PairStatus = Literal["changed", "equivalent", "undecided"]
"""``changed``: a certain change. ``equivalent``: the interval is within the smallest effect that
matters, and the pair gets no more blocks; this is not a claim. ``undecided``: neither."""
RevisionStatus = Literal["measured", "waiting", "not built"]
"""``measured``: the commit ran. ``waiting``: the commit did not run yet. ``not built``: the commit
does not build or run."""


class HistoryRevision(NamedCommit, frozen=True):
    """One commit of the curve; ratios are the commit's cost over the baseline's cost."""

    place: int
    """Index of the commit along first parents; the baseline has 0."""
    status: RevisionStatus
    ratio: float | None
    """1 for the baseline; null if the commit never ran together with the baseline."""
    ratio_ci: Interval
    significance_level: float | None
    """1 minus the coverage of ``ratio_ci``. The levels of all commits add up to alpha, so all
    intervals hold together."""
    blocks: int
    """Number of blocks with the baseline in ``era``; the interval is computed from these blocks."""
    era: int | None
    """Number of the latest era with such a block, from 1; null without a block."""


class HistoryChange(ShortTexts, frozen=True):
    """A certain change; ratios are the later commit's cost over the earlier commit's cost."""

    commit: str | None
    """Hash of the commit that made the change; null for a range of several commits."""
    earlier_hash: str = field(name="after")
    """Hash of the last measured commit before the change."""
    later_hash: str = field(name="until")
    """Hash of the first measured commit with the change."""
    subject: str
    """Subject of the later commit; ``author`` and ``date`` also describe the later commit."""
    author: str
    date: str
    commit_count: int
    """Number of commits after the earlier commit, up to the later commit."""
    not_built: tuple[str, ...]
    """Hashes of unbuildable commits between both commits, which may be culprits."""
    is_merge: bool
    """Whether the later commit is a merge."""
    ratio: float | None
    ratio_ci: Interval
    significance_level: float
    """1 minus the coverage of ``ratio_ci``; less than alpha, because the pair was selected."""
    e_value: float
    """Evidence for the change when it was named."""
    threshold: float | None
    """Smallest e-value with which the change could be named."""
    pair_number: int
    """Number of the commit pair in the series, from 1."""
    confirmed: bool
    """Whether the pair is a commit and its parent, or the latest ancestor that builds."""
    blocks: int
    """Number of blocks in which both commits ran."""
    summary: str
    confirm: str | None = None
    """Shell line that finds the commit of a range; null if the change is confirmed."""


class HistoryPair(Struct, frozen=True):
    """Two commits that ran side by side, to find changes between them."""

    pair_number: int
    """Number of the pair in the series, from 1."""
    earlier_hash: str = field(name="after")
    later_hash: str = field(name="until")
    status: PairStatus
    ratio: float | None
    """Cost of the later commit over the earlier commit's cost; null if the ratio is not finite."""
    ratio_ci: Interval
    significance_level: float
    """1 minus the coverage of ``ratio_ci``: alpha/(t(t + 1)) for pair number t. All intervals hold
    together."""
    e_value: float
    """Evidence for a difference above the smallest effect that matters; final once it suffices."""
    blocks: int
    """Number of blocks with both commits, from the block that opened the pair."""
    era: int
    """Number of the era in the series, from 1."""


class HistoryEra(Struct, frozen=True):
    """Campaigns with the same toolchain, kernel, processor and baseline."""

    number: int
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
    tried_commits: int = field(name="builds")
    """Number of commits that ran or did not build."""
    seconds: float
    """Duration, builds included."""
    latest_hash: str
    """Hash of the last commit of the campaign."""


class HistoryResult(Struct, frozen=True):
    """The result of a history: its curve and its changes."""

    baseline: Revision
    """Commit with which the curve compares all other commits."""
    latest: Revision
    """The last commit of the campaign."""
    revisions: tuple[HistoryRevision, ...]
    """Commits of the curve in order, the baseline first."""
    changes: tuple[HistoryChange, ...]
    """Changes in the order of the commits. No change contains another change."""
    pairs: tuple[HistoryPair, ...]
    """All pairs of the series, in the order in which they were opened."""
    eras: tuple[HistoryEra, ...]
    campaigns: tuple[HistoryCampaign, ...]
    """Campaigns of the series up to this one, in order."""
    commit_count: int
    """Number of commits along first parents after the baseline, measured or not."""
    metric: str
    min_effect: float
    """Smallest effect that matters, in percent; smaller changes do not count."""
    alpha: float
    """False-discovery rate of the changes, and chance of any wrong interval of the curve."""
    trials: int
    """Number of trials in complete blocks, over all campaigns."""
    tried_commits: int = field(name="builds")
    """Sum of ``tried_commits`` over all campaigns."""
    seconds: float
    """Duration of all campaigns, builds included."""
    blocks_to_go: int
    """Rough forecast of the remaining blocks; 0 if nothing is left to measure."""
    build: str | None
    """Shell line that builds a commit."""
    summary: str
    imported_series: tuple[ImportedSeries, ...] = ()
    """Series of other tools, shown next to the curve; no claim uses them."""


def history_of_values(result: HistoryResult, more_is_better: Collection[str]) -> HistoryResult:
    """Return the history with ratios of values instead of costs if more of the metric is better."""
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

    measured_value_fields: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"control": "condition", "history": "series"}
    )
    history: HistoryResult

    @property
    def kind_metric(self) -> str:
        """Metric that the history compares."""
        return self.history.metric

    @property
    def kind_summary(self) -> str:
        """Summary of the history."""
        return self.history.summary
