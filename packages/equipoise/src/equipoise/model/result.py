"""The result document (docs/reference/document.md), as frozen data.

Field names and their order are the outward form ``equipoise.result/1``: others build on
them. An interval is ``[low, high]``; a bound that is not known yet (an interval that is
still infinite) is null.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct, field

from equipoise.model.iterations import IterationShape
from equipoise.model.kinds import ORDINARY, TAG, Kind, kind_of
from equipoise.model.plan import (
    PRIMARY_METRIC,
    Layout,
)
from equipoise.model.quantities import Interval
from equipoise.model.record import CampaignWarning, FailureKind, Phase
from equipoise.model.reference import ReferenceComparison
from equipoise.model.why import Explanation, ExtraTime

TrialColumn = tuple[str, Literal["text", "integer", "number"], tuple[Any, ...]]
"""Name, kind of cells, and a cell for each trial."""
SCHEMA = "equipoise.result/1"

Verdict = Literal["faster", "slower", "equivalent", "mixed", "undecided"]


class Mode(Struct, frozen=True):
    """A distinct value that a metric clusters at, and its ``share`` of the trials."""

    at: float
    share: float


class ModeAssociation(Struct, frozen=True):
    """A mode, and a covariate or drawn factor that goes with it."""

    mode: int
    """Index of the mode among ``modes``, from 0."""
    covariate: str
    value: float | None
    """The value it goes with, of a covariate of names such as ``cpu``; null for an amount."""
    correlation: float
    """Correlation with having that value, or with the ranks of the amount."""
    p_value: float
    """Adjusted for all covariates and modes together."""


class State(Struct, frozen=True):
    """A stretch of trials on one level; a campaign that changed its state has several."""

    begin: int
    """Index of its first trial among the analysed trials of the condition, from 0."""
    level: float
    """The mean of its trials, extremes drawn in."""


class Drift(Struct, frozen=True):
    """Change over the campaign: last third over first third of the trials, as a ratio."""

    ratio: float | None
    ratio_ci: Interval
    chance: float | None = None
    """Chance of ranks as unequal as those of the two thirds, if trials were independent."""


class Component(Struct, frozen=True):
    """The variance that one level adds."""

    level: str
    """``iteration``, ``trial``, ``layout``, ``boot``, ``host`` …"""
    units: int
    """Number of units in all."""
    variance: float
    """Unbiased, so that it may be below 0 where the level adds next to nothing."""
    variance_ci: tuple[float, float]
    share: float
    """Fraction of the total variance; a negative variance counts as none."""


class Advice(Struct, frozen=True):
    """How much narrower the interval gets if one level is measured for one minute more."""

    level: str
    more_units: float
    """Units of this level, each with as many parts as now."""
    narrower: float
    """The share by which the interval across the highest level narrows, from 0 to 1."""


class VarianceByLevel(Struct, frozen=True):
    """The variance of a logarithm by level, and one claim in two scopes (rule 2).

    Of a condition the logarithm is that of its cost, of a comparison that of the ratio within a
    block. Where a level has too few units, all is null and empty but for the reason.
    """

    mean: float | None
    """e to the mean over the highest units, each alike: a cost, or a ratio."""
    these: str
    """The scope of ``these_ci``: ``these 12 layouts``."""
    these_ci: Interval
    across: str
    """The scope of ``across_ci``: ``across layouts``."""
    across_ci: Interval
    """Student's t over the highest units; for one look, at the end. Of a comparison over layouts
    the interval of its verdict, which holds at each analysis, at the level of the comparison."""
    level: float
    """1 minus the coverage of each interval."""
    components: tuple[Component, ...]
    """Components of the logarithm's variance, the highest level first."""
    advice: tuple[Advice, ...]
    """The best first; empty where the seconds that a unit takes are not known."""
    advice_summary: str | None
    unknown_because: str | None = None


class MetricSummary(Struct, frozen=True):
    """The distribution of one metric over the analysed trials of one condition."""

    median: float
    median_ci: Interval
    mean: float
    sd: float | None
    min: float
    p05: float
    p25: float
    p75: float
    p95: float
    max: float
    modes: tuple[Mode, ...]
    """Modes from the lowest up; at least one."""
    drift: Drift | None = None
    log_evidence: float | None = None
    """For several modes against one, about the natural logarithm of the Bayes factor; null where
    the sample shows no valley at all."""
    companions: tuple[ModeAssociation, ...] = ()
    """Covariates and drawn factors that the modes go with, the strongest first."""
    tail: float | None = None
    """Distance from median to 95th percentile over that from 5th to median: 1 if symmetric."""
    autocorrelation: float | None = None
    """Autocorrelation of the ranks of neighbouring trials."""
    states: tuple[State, ...] | None = None
    """States of the primary metric; null where nobody looked for them.

    See docs/methods/statistics.md.
    """
    by_level: VarianceByLevel | None = None
    """Variance of the primary metric by level; null where trials are the only level."""


class ConditionResult(Struct, frozen=True):
    """One condition: how often it ran and how its metrics are distributed."""

    name: str
    levels: dict[str, str]
    command: tuple[str, ...]
    trials: int
    """Analysed trials."""
    failures: int
    metrics: dict[str, MetricSummary]
    unknown: dict[str, str] = field(default_factory=dict)
    """The metrics that its workload reports elsewhere and not here, each with the reason."""
    spread_because: dict[str, str] = field(default_factory=dict)
    """Reason why a metric that the workload reports spreads widely, as far as observed."""
    iterations: dict[str, IterationShape] = field(default_factory=dict)
    """Class of each trial's iterations and of the condition, for each metric that has them."""


class CarryOver(Struct, frozen=True):
    """How much more a trial takes if the candidate, not the baseline, ran before it."""

    ratio: float
    ratio_ci: Interval
    trials: int
    """Trials that stood first in their block, which the estimate rests on."""


class SlowRuns(Struct, frozen=True):
    """Runs of both conditions that took far longer than the median of their own condition."""

    factor: float
    """Multiple of the median that a slow run exceeds."""
    baseline: int
    """Slow runs of the baseline."""
    candidate: int
    runs: int
    """Runs of each condition."""
    unseen_share: float
    """A kind of run that comes in this share of runs, or more, had a chance of at least 1 - alpha
    to be among these runs: 1 - alpha^(1/runs)."""
    more_often: Literal["baseline", "candidate"] | None = None
    """Condition that has slow runs more often, by a sequential test of the coin; null where the
    test names none, and where the typical runs differ."""
    e_value: float | None = None
    """E-value of that test; null where the typical runs differ."""
    level: float | None = None
    """Level of that test: a fifth of the level of the comparison, apart from it."""
    summary: str = ""


class CarryOverCheck(Struct, frozen=True):
    """Whether carry-over could make a difference that was called, from blocks without washouts.

    The difference and the carry-over are fitted together to these blocks.
    """

    could_make: Literal["nothing", "part", "all"]
    """How much of the difference carry-over could make."""
    carry_over: float
    """Ratio of a trial after the candidate to one after the baseline."""
    carry_over_ci: Interval
    """Its 95 % interval, for one analysis."""
    ratio: float
    """Ratio of candidate and baseline with the carry-over taken out."""
    ratio_ci: Interval
    """Its 95 % interval, for one analysis."""
    blocks: int
    """Blocks without washouts that both conditions ran in."""
    went_on: bool
    """Whether the campaign went on with washouts, and only these decide."""
    verdict: Verdict
    """Verdict of the blocks without washouts."""
    called_ratio: float | None
    """Typical ratio of the blocks without washouts."""
    summary: str


class StatisticAnswer(Struct, frozen=True):
    """Verdict that one statistic alone would have given."""

    statistic: str
    """``minimum``, ``p10`` … ``p90`` (``p50`` is the median), ``p99``, ``maximum`` or ``mean``;
    ``p99`` and ``maximum`` from 100 runs of each condition on."""
    ratio: float | None
    says: Literal["faster", "slower", "equivalent"]
    """Verdict by ``min_effect``, as if there were no chance in the statistic."""
    certain: bool = False
    """Whether the interval of the ratio leaves out "no difference". The interval of a decile rests
    on order statistics of each condition; the minimum, the maximum and the mean have none, and are
    never certain."""


class TheseLayouts(Struct, frozen=True):
    """The claim about the very layouts of a campaign; exact, and silent on other layouts."""

    verdict: Verdict
    ratio: float | None
    ratio_ci: Interval
    """Confidence sequence, at the level of the comparison."""
    scope: str
    summary: str


class RatioSegment(Struct, frozen=True):
    """Stretch of a campaign in which the ratio of a comparison kept its level."""

    first_block: int
    """Number of the first complete block of the stretch in which both conditions ran."""
    ratio: float
    """e to the mean of the log ratios within its blocks, extremes clipped."""


class Adjustment(Struct, frozen=True):
    """What adjusting costs by a covariate, read before each trial, did; the numbers without it."""

    covariate: str
    """Covariate that adjusted most blocks."""
    blocks: int
    """Blocks that were adjusted; none before past blocks showed that it pays."""
    spread_ratio: float
    """Spread of the adjusted block differences over that of the differences."""
    unadjusted_ratio: float | None
    """Typical ratio without an adjustment."""
    unadjusted_ratio_ci: Interval
    """Its interval, at the level of the comparison."""
    summary: str
    """Sentence on it; empty where it saved under 1 % of the blocks."""


class Comparison(Struct, frozen=True):
    """One candidate against its baseline on one metric; ratios of a cost.

    Over layouts, verdict, ratio, intervals and summary are about layouts in general; the
    e-value is about the layouts that were drawn.
    """

    baseline: str
    candidate: str
    metric: str
    estimand: str
    ratio: float | None
    ratio_ci: Interval
    e_value: float
    verdict: Verdict
    min_effect: float
    """Smallest effect that matters, in percent."""
    alpha: float
    blocks: int
    mean_ratio: float | None
    mean_ratio_ci: Interval
    probability_slower: float | None
    probability_slower_ci: Interval
    minimum_misleads: bool
    scope: str
    summary: str
    level: float
    """1 minus the coverage of ``ratio_ci``: alpha, or less among several comparisons."""
    equivalence_ci: Interval
    """Interval that decides on ``equivalent``: each side of it stands for itself, so it covers
    with 1 minus two levels."""
    equivalence_level: float
    """1 minus the coverage of ``equivalence_ci``."""
    means_veto: bool = False
    """Whether a typical run takes the same, and the ratio of means or slow runs alone forbid
    ``equivalent``."""
    ratio_is_constant: bool = True
    """False where no constant ratio agrees with all blocks: ``ratio_ci`` is that of the end."""
    ratio_segments: tuple[RatioSegment, ...] = ()
    """Stretches with a ratio of their own, where none fits all blocks; found by change-points."""
    blocks_to_go: int | None = None
    """Blocks that would probably decide an undecided comparison; null if unforeseeable."""
    carry_over: CarryOver | None = None
    carry_over_check: CarryOverCheck | None = None
    """Whether carry-over could make the difference; null where none was called."""
    stratum: dict[str, str] = field(default_factory=dict)
    """Levels of the other factors of a study, equal in both conditions."""
    slow_runs: SlowRuns | None = None
    """Slow runs that were seen, and how rare one must be to stay unseen; null for a fleet."""
    answers: tuple[StatisticAnswer, ...] = ()
    """Verdicts of single statistics; the verdict rests on none of them."""
    disagreement: str | None = None
    """Sentence on statistics of which some say faster and others slower."""
    by_level: VarianceByLevel | None = None
    """Variance of the primary metric by level; null where trials are the only level."""
    in_these_layouts: TheseLayouts | None = None
    """Null where the verdict is not about layouts in general."""
    adjusted_by: Adjustment | None = None
    """Covariate that costs were adjusted by; null where none paid."""

    def own_parts_of_values(self) -> dict[str, Any]:
        """Return the parts that only its kind of campaign has, with ratios of values."""
        return {}


class TypicalValue(Struct, frozen=True):
    """Typical value of the one condition of a campaign that compares nothing."""

    condition: str
    metric: str
    median: float
    """Trials that timed out count as worst."""
    median_ci: Interval
    """Confidence sequence of the median: if runs are independent of each other, it holds after
    every trial at once, so at any stop."""
    level: float
    """1 minus the coverage of ``median_ci``."""
    trials: int
    scope: str
    summary: str
    other_metrics: tuple[str, ...] = ()
    """Metrics that were asked for beside ``metric``; ``conditions`` has their distributions."""


class SteadyComparison(Struct, frozen=True):
    """One candidate against its baseline in the steady state of what their trials repeat."""

    baseline: str
    candidate: str
    metric: str
    comparison: Comparison | None
    """Comparison of one number for each trial; null unless both conditions have a steady state."""
    summary: str
    """Sentence on the result, or on why there is no comparison."""


class ControlResult(Struct, frozen=True):
    """The second run of the baseline: it checks the tool and vetoes nothing."""

    condition: ConditionResult
    comparison: Comparison
    """The control against the baseline, at the same alpha."""
    excludes_one: bool
    """Whether its interval leaves out "no difference": in at most alpha of all campaigns."""
    summary: str

    @property
    def noise_floor(self) -> float | None:
        """The largest change that its interval leaves open, as a ratio above 1.

        A smaller one may be noise in this campaign; ``None`` while an end of the interval is
        unlimited.
        """
        low, high = self.comparison.ratio_ci
        return max(high, 1 / low) if low and high else None


class SampleComparison(Struct, frozen=True):
    """Two conditions of an imported run by an ordinary fixed-n interval: no e-value, no verdict."""

    baseline: str
    candidate: str
    metric: str
    method: Literal["Welch", "paired"]
    estimand: str
    ratio: float | None
    ratio_ci: Interval
    """Holds for one look at trials that are independent, which nothing here can show."""
    unknown: str | None
    """Why there is no ratio, or no interval."""
    level: float
    """1 minus the nominal coverage of ``ratio_ci``."""
    baseline_trials: int
    candidate_trials: int
    scope: str
    summary: str
    stratum: dict[str, str] = field(default_factory=dict)
    """The levels that both conditions share, where several pairs are compared."""


class RunInfo(Struct, frozen=True):
    """Which campaign, and how it ended."""

    id: str
    study: str
    started: str
    """ISO 8601, UTC."""
    ended: str | None
    seed: int
    blocks: int
    stopped_because: str | None
    layouts: tuple[Layout, ...] = ()
    """Layouts, one for each block; none if layout is no factor."""
    command_line: str | None = None
    """The line that asks the same question again with the same coin; null if there is none."""


Resolved = Annotated[float, Meta(gt=0.0, le=sys.float_info.max)]


class TrialRow(Struct, frozen=True):
    """One finished trial as the document shows it."""

    block: int
    position: int
    condition: str
    phase: Phase
    analysed: bool
    left_out_because: str | None
    wall_s: float | None
    user_s: float | None
    sys_s: float | None
    max_rss_bytes: int | None
    minor_faults: int | None
    major_faults: int | None
    voluntary_switches: int | None
    involuntary_switches: int | None
    exit: int | None
    failure: str | None
    failure_kind: FailureKind | None = None
    unknown: dict[str, str] = field(default_factory=dict)
    covariates: dict[str, float | None] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    iterations: dict[str, list[float]] = field(default_factory=dict)
    layout: int | None = None
    """Number of the trial's layout among those of the campaign, from 1."""
    host: str | None = None
    """Name of the host that measured it, of a fleet; blocks count from 1 on each host."""

    @property
    def timed_out(self) -> bool:
        """Whether its failure was that it took too long."""
        return self.failure_kind == "timed out"

    def value_of(self, metric: str) -> float | None:
        """Return its value in a metric, as the workload reported it or else as accounted."""
        value: Any = self.metrics.get(metric, getattr(self, metric, None))
        # Whether it timed out is no number.
        return float(value) if type(value) in (int, float) else None

    @property
    def cpu_s(self) -> float | None:
        """User and system time together, in seconds."""
        return None if self.user_s is None or self.sys_s is None else self.user_s + self.sys_s


class RankedPair(Struct, frozen=True):
    """Two candidates against each other on the primary metric; ratios of a cost."""

    baseline: str
    candidate: str
    ratio: float | None
    ratio_ci: Interval
    e_value: float
    level: float
    """1 minus the coverage of ``ratio_ci``."""
    verdict: Verdict
    blocks: int


class RankedCondition(Struct, frozen=True):
    """One condition in a ranking."""

    name: str
    ratio: float | None
    """Cost of the condition over that of the baseline; 1 for the baseline."""
    slower_than: tuple[str, ...]
    """Conditions with the verdict that they are faster. The verdicts share a false-discovery rate,
    so a condition can be slower than another one and still be among the contenders."""
    faster_than: tuple[str, ...]
    """Conditions with the verdict that they are slower."""
    tied_with: tuple[str, ...]
    """Conditions with the verdict ``equivalent``."""
    undecided: tuple[str, ...]
    """Conditions to which its order is open, or differs between typical and many runs."""


class Ranking(Struct, frozen=True):
    """Which of a baseline and its candidates has the lowest cost, on the primary metric."""

    baseline: str
    contenders: tuple[str, ...]
    """Conditions that may still have the lowest cost, or tie with it, the leader first. One name
    only where every other condition is slower than another one, at a level that bounds the chance
    of a wrong name."""
    leader: str | None
    """Contender that comes first in the order of the ranking. Its lead over the other contenders is
    not certain. Null where no contender is left."""
    conditions: tuple[RankedCondition, ...]
    """Conditions in the order of the ranking, the lowest cost first."""
    pairs: tuple[RankedPair, ...]
    """All pairs of candidates. Their claims share alpha over all rankings, apart from the
    comparisons with the baseline."""
    alpha: float
    """Largest false-discovery rate among the pairs. Also the largest chance that the fastest
    condition ever leaves the contenders. This holds for each condition by itself: where several
    are equally fast, one of them may leave more often."""
    summary: str
    stratum: dict[str, str] = field(default_factory=dict)
    """Levels that all conditions share."""


class FindingTable(Struct, frozen=True):
    """A table of words; whoever shows it escapes and aligns them."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Each as long as the headings."""
    notes: tuple[str, ...] = ()
    """How its numbers are made, a line each."""


class Findings(Struct, frozen=True):
    """What the numbers of a study say."""

    tables: tuple[FindingTable, ...] = ()
    paragraphs: tuple[str, ...] = ()
    answer: str = ""
    """What the study asked and found, in one sentence; empty where nothing can be said yet."""


class ResultDocument(Struct, frozen=True, tag_field=TAG, tag=ORDINARY):
    """The whole document of an ordinary comparison, in the order in which it is written.

    The document of another kind of campaign inherits from this class, has a tag of its own, and
    the fields that are only about the kind.
    """

    has_random_order: ClassVar[bool] = True
    """Whether the coin ordered the trials; without it there are samples in place of verdicts."""

    schema: str
    run: RunInfo
    environment: dict[str, Any]
    conditions: tuple[ConditionResult, ...]
    comparisons: tuple[Comparison, ...]
    control: ControlResult | None
    why: tuple[Explanation, ...]
    warnings: tuple[CampaignWarning, ...]
    trials: tuple[TrialRow, ...]
    against: ReferenceComparison | None = None
    """This result against another one that was asked for; in no ledger."""
    findings: Findings | None = None
    """Tables and paragraphs of a built-in study; null for any other."""
    steady_state: tuple[SteadyComparison, ...] = ()
    """Comparisons in the steady state, for each candidate and metric with iterations."""
    extra_time: ExtraTime | None = None
    """Extra time that ``why`` explains; null until the comparison was observed.

    See docs/reference/causes.md.
    """
    more_is_better: tuple[str, ...] = ()
    """Metrics of which workloads said so: the cost that a ratio compares is the inverse of one."""
    ranking: tuple[Ranking, ...] = ()
    """Rankings of each baseline with its candidates; empty where none was asked."""
    resolutions: dict[str, Resolved] = field(default_factory=dict)
    """Smallest step of each compared or reported metric, in its unit; absent where none is known,
    and the comparison inferred one from past values."""
    typical: TypicalValue | None = None
    """Typical value of the condition, if there is one alone; else null."""

    @property
    def primary_comparisons(self) -> tuple[Comparison, ...]:
        """Comparisons on the metric that decides."""
        metric = self.primary_metric
        return tuple(comparison for comparison in self.comparisons if comparison.metric == metric)

    @property
    def other_comparisons(self) -> tuple[Comparison, ...]:
        """Comparisons on other metrics."""
        metric = self.primary_metric
        return tuple(comparison for comparison in self.comparisons if comparison.metric != metric)

    @property
    def kind(self) -> Kind:
        """The kind of campaign."""
        return kind_of(self)

    shares_processes: ClassVar[bool] = False
    """Whether all conditions of a block ran in one process."""
    has_one_order: ClassVar[bool] = True
    """Whether all trials stand in one order of blocks."""
    measured_below: ClassVar[Mapping[str, str]] = MappingProxyType({"control": "condition"})
    """Parts of the document that hold measured values, each with the field that does."""

    @property
    def has_blocks(self) -> bool:
        """Whether trials of one block belong together."""
        return True

    @property
    def samples(self) -> tuple[SampleComparison, ...]:
        """Comparisons of trials that no coin of ours ordered."""
        return ()

    @property
    def samples_summary(self) -> str:
        """Sentence on what comparisons of samples are worth."""
        return ""

    @property
    def own_summary(self) -> str | None:
        """What the kind found, in sentences that stand in place of those of comparisons."""
        return None

    @property
    def own_metric(self) -> str | None:
        """The metric that the kind decides by, if no comparison names it."""
        return None

    def check_one_host(self, what: str) -> None:
        """Raise `UnusableInput` if the trials are those of several hosts.

        ``what`` needs those of one, at the begin of a sentence: ``hyperfine's form``.
        """

    def trial_columns(self) -> Iterator[TrialColumn]:
        """Yield the columns of a table of the trials that only the kind has."""
        yield from ()

    @property
    def primary_metric(self) -> str:
        """Metric that was compared, or would have been."""
        if self.own_metric is not None:
            return self.own_metric
        parts = (self.typical, *self.comparisons)
        metrics = (part.metric for part in parts if part is not None)
        return next(metrics, PRIMARY_METRIC)
