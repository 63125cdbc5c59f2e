"""The result document (docs/reference/document.md), as frozen data.

Field names and their order are the public format ``equipoise.result/1``, on which other programs
rely. An interval is ``[low, high]``; a bound that is not known yet (the interval is still infinite)
is null.
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
"""Name, type of cells, and a cell for each trial."""
SCHEMA = "equipoise.result/1"

Verdict = Literal["faster", "slower", "equivalent", "mixed", "undecided"]


class Mode(Struct, frozen=True):
    """A distinct value that a metric clusters at, and its ``share`` of the trials."""

    at: float
    share: float


class ModeAssociation(Struct, frozen=True):
    """A covariate or drawn factor that is associated with a mode."""

    mode: int
    """Index of the mode among ``modes``, from 0."""
    covariate: str
    value: float | None
    """Associated value of a covariate of names such as ``cpu``; null for an amount."""
    correlation: float
    """Correlation of the mode with that value, or with the ranks of the amount."""
    p_value: float
    """P-value, adjusted for all covariates and modes together."""


class State(Struct, frozen=True):
    """A stretch of trials on one level; a campaign that changed its state has several."""

    begin: int
    """Index of its first trial among the analysed trials of the condition, from 0."""
    level: float
    """Mean of its trials, with extremes clipped."""


class Drift(Struct, frozen=True):
    """Change over the campaign: last third over first third of the trials, as a ratio."""

    ratio: float | None
    ratio_ci: Interval
    chance: float | None = None
    """Chance that independent trials have ranks as unequal as those of the two thirds."""


class Component(Struct, frozen=True):
    """The variance that one level adds."""

    level: str
    """``iteration``, ``trial``, ``layout``, ``boot``, ``host`` …"""
    units: int
    """Total number of units."""
    variance: float
    """Unbiased estimate, which may be below 0 if the level adds almost nothing."""
    variance_ci: tuple[float, float]
    share: float
    """Fraction of the total variance; a negative variance counts as none."""


class Advice(Struct, frozen=True):
    """How much narrower the interval becomes with one more minute of measuring on one level."""

    level: str
    more_units: float
    """Number of new units of this level, each with as many parts as now."""
    narrower: float
    """Share by which the interval across the highest level narrows, from 0 to 1."""


class VarianceByLevel(Struct, frozen=True):
    """The variance of a logarithm by level, and one claim in two scopes (rule 2).

    For a condition, the logarithm is that of its cost; for a comparison, that of the ratio within a
    block. If a level has too few units, all fields but the reason are null or empty.
    """

    mean: float | None
    """e to the mean over the highest units, with equal weights: a cost, or a ratio."""
    these: str
    """Scope of ``these_ci``: ``these 12 layouts``."""
    these_ci: Interval
    across: str
    """Scope of ``across_ci``: ``across layouts``."""
    across_ci: Interval
    """Interval by Student's t over the highest units, for a single analysis at the end. For a
    comparison over layouts it is the interval of the verdict, valid at each analysis, at the level
    of the comparison."""
    level: float
    """1 minus the coverage of each interval."""
    components: tuple[Component, ...]
    """Components of the logarithm's variance, the highest level first."""
    advice: tuple[Advice, ...]
    """Advice, the best first; empty if the seconds of a unit are unknown."""
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
    """Evidence for several modes against one, about the natural logarithm of the Bayes factor; null
    if the sample has no valley."""
    companions: tuple[ModeAssociation, ...] = ()
    """Covariates and drawn factors associated with the modes, the strongest first."""
    tail: float | None = None
    """Distance from median to 95th percentile over that from 5th percentile to median."""
    autocorrelation: float | None = None
    """Autocorrelation of the ranks of neighbouring trials."""
    states: tuple[State, ...] | None = None
    """States of the primary metric; null if they were not computed.

    See docs/methods/distribution.md.
    """
    by_level: VarianceByLevel | None = None
    """Variance of the primary metric by level; null if trials are the only level."""


class ConditionResult(Struct, frozen=True):
    """One condition: how often it ran and how its metrics are distributed."""

    name: str
    levels: dict[str, str]
    command: tuple[str, ...]
    trials: int
    """Number of analysed trials."""
    failures: int
    metrics: dict[str, MetricSummary]
    unknown: dict[str, str] = field(default_factory=dict)
    """Metrics that the workload should report but did not, each with the reason."""
    spread_because: dict[str, str] = field(default_factory=dict)
    """Reasons why metrics of the workload spread widely, as far as observed."""
    iterations: dict[str, IterationShape] = field(default_factory=dict)
    """Classes of each trial's iterations and of the condition, by metric."""


class CarryOver(Struct, frozen=True):
    """How much longer a trial takes if the candidate, not the baseline, ran before it."""

    ratio: float
    ratio_ci: Interval
    trials: int
    """Number of trials, each the first of its block, that the estimate uses."""


class SlowRuns(Struct, frozen=True):
    """Runs of both conditions that took far longer than the median of their own condition."""

    factor: float
    """Multiple of the median that a slow run exceeds."""
    baseline: int
    """Number of slow runs of the baseline."""
    candidate: int
    runs: int
    """Runs of each condition."""
    unseen_share: float
    """Share of runs, 1 - alpha^(1/runs): a kind of run at least this frequent had a chance of at
    least 1 - alpha to be among these runs."""
    more_often: Literal["baseline", "candidate"] | None = None
    """Condition that has slow runs more often, by a sequential test of the coin; null if the test
    names neither, and if the typical runs differ."""
    e_value: float | None = None
    """E-value of that test; null if the typical runs differ."""
    level: float | None = None
    """Level of that test: a fifth of the level of the comparison, in addition to it."""
    summary: str = ""


class CarryOverCheck(Struct, frozen=True):
    """Whether carry-over could explain a difference that was called in blocks without washouts.

    The difference and the carry-over are fitted together to these blocks.
    """

    could_make: Literal["nothing", "part", "all"]
    """How much of the difference carry-over could explain."""
    carry_over: float
    """Ratio of a trial after the candidate to one after the baseline."""
    carry_over_ci: Interval
    """Its 95 % interval, for one analysis."""
    ratio: float
    """Ratio of candidate and baseline without the carry-over."""
    ratio_ci: Interval
    """Its 95 % interval, for one analysis."""
    blocks: int
    """Number of blocks without washouts in which both conditions ran."""
    went_on: bool
    """Whether the campaign continued with washouts; then only blocks with washouts decide."""
    verdict: Verdict
    """Verdict from the blocks without washouts."""
    called_ratio: float | None
    """Typical ratio in the blocks without washouts."""
    summary: str


class StatisticAnswer(Struct, frozen=True):
    """Verdict by one statistic alone."""

    statistic: str
    """``minimum``, ``p10`` … ``p90`` (``p50`` is the median), ``p99``, ``maximum`` or ``mean``;
    ``p99`` and ``maximum`` from 100 runs of each condition on."""
    ratio: float | None
    says: Literal["faster", "slower", "equivalent"]
    """Verdict by ``min_effect``, ignoring chance."""
    certain: bool = False
    """Whether the interval of the ratio leaves out "no difference". The interval of a decile comes
    from order statistics of each condition; the minimum, the maximum and the mean have no interval,
    and are never certain."""


class TheseLayouts(Struct, frozen=True):
    """The claim about the layouts of a campaign alone: exact, but not valid for other layouts."""

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
    """The effect of adjusting costs by a covariate, and the numbers without adjustment."""

    covariate: str
    """Covariate by which most blocks were adjusted."""
    blocks: int
    """Number of adjusted blocks; a block is adjusted only if past blocks showed that it helps."""
    spread_ratio: float
    """Spread of the block differences with adjustment over that without."""
    unadjusted_ratio: float | None
    """Typical ratio without an adjustment."""
    unadjusted_ratio_ci: Interval
    """Its interval, at the level of the comparison."""
    summary: str
    """Sentence on the adjustment; empty if it saved less than 1 % of the blocks."""


class Comparison(Struct, frozen=True):
    """One candidate against its baseline on one metric; ratios of a cost.

    Over layouts, verdict, ratio, intervals and summary concern layouts in general; the e-value
    concerns the layouts that were drawn.
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
    """Interval that decides on ``equivalent``. The level holds for each side alone, so the interval
    covers with 1 minus two levels."""
    equivalence_level: float
    """1 minus the coverage of ``equivalence_ci``."""
    means_veto: bool = False
    """Whether typical runs are equivalent, and only the ratio of means or slow runs forbid the
    verdict ``equivalent``."""
    ratio_is_constant: bool = True
    """False if no constant ratio agrees with all blocks: ``ratio_ci`` is then that of the end."""
    ratio_segments: tuple[RatioSegment, ...] = ()
    """Stretches with different ratios, by change-points, if no ratio fits all blocks."""
    blocks_to_go: int | None = None
    """Number of blocks that would probably decide an undecided comparison; null if
    unforeseeable."""
    carry_over: CarryOver | None = None
    carry_over_check: CarryOverCheck | None = None
    """Whether carry-over could explain the difference; null if no difference was called."""
    stratum: dict[str, str] = field(default_factory=dict)
    """Levels of the other factors of a study, equal in both conditions."""
    slow_runs: SlowRuns | None = None
    """Observed slow runs, and the rarity of those that could be missed; null for a fleet."""
    answers: tuple[StatisticAnswer, ...] = ()
    """Verdicts by single statistics, which the verdict does not use."""
    disagreement: str | None = None
    """Sentence on statistics of which some say faster and others slower."""
    by_level: VarianceByLevel | None = None
    """Variance of the primary metric by level; null if trials are the only level."""
    in_these_layouts: TheseLayouts | None = None
    """Claim about the campaign's layouts; null if the verdict does not concern layouts in
    general."""
    adjusted_by: Adjustment | None = None
    """Adjustment of costs by a covariate; null if no covariate helped."""

    def additional_values(self) -> dict[str, Any]:
        """Return the additional fields of its kind of campaign, with ratios of values."""
        return {}


class TypicalValue(Struct, frozen=True):
    """Typical value of the single condition of a campaign without a comparison."""

    condition: str
    metric: str
    median: float
    """Median, in which trials that timed out count as worst."""
    median_ci: Interval
    """Confidence sequence of the median. If runs are independent, it holds after all trials at
    once, so at any stop."""
    level: float
    """1 minus the coverage of ``median_ci``."""
    trials: int
    scope: str
    summary: str
    other_metrics: tuple[str, ...] = ()
    """Further requested metrics; ``conditions`` has their distributions."""


class SteadyComparison(Struct, frozen=True):
    """One candidate against its baseline in the steady state of their iterations."""

    baseline: str
    candidate: str
    metric: str
    comparison: Comparison | None
    """Comparison by one number for each trial; null unless both conditions have a steady state."""
    summary: str
    """Sentence on the result, or on the reason why there is no comparison."""


class ControlResult(Struct, frozen=True):
    """The second run of the baseline: it checks the tool and does not change verdicts."""

    condition: ConditionResult
    comparison: Comparison
    """The control against the baseline, at the same alpha."""
    excludes_one: bool
    """Whether its interval leaves out "no difference": in at most alpha of all campaigns."""
    summary: str

    @property
    def noise_floor(self) -> float | None:
        """Largest change that its interval leaves open, as a ratio above 1.

        A smaller change may be noise in this campaign. ``None`` while an end of the interval is
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
    """Interval that holds for a single analysis of independent trials; independence is unknown."""
    unknown: str | None
    """Reason why there is no ratio, or no interval."""
    level: float
    """1 minus the nominal coverage of ``ratio_ci``."""
    baseline_trials: int
    candidate_trials: int
    scope: str
    summary: str
    stratum: dict[str, str] = field(default_factory=dict)
    """Levels that both conditions share, if several pairs are compared."""


class RunInfo(Struct, frozen=True):
    """Facts of a campaign, and how it ended."""

    id: str
    study: str
    started: str
    """Start, in ISO 8601, UTC."""
    ended: str | None
    seed: int
    blocks: int
    stopped_because: str | None
    layouts: tuple[Layout, ...] = ()
    """Layouts, one for each block; empty if layout is not a factor."""
    command_line: str | None = None
    """Command line that measures the same question again with the same seed; null if there is
    none."""


PositiveFloat = Annotated[float, Meta(gt=0.0, le=sys.float_info.max)]


class TrialRow(Struct, frozen=True):
    """One finished trial."""

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
    """Name of the host that measured it, in a fleet; blocks count from 1 on each host."""

    @property
    def timed_out(self) -> bool:
        """Whether it took too long."""
        return self.failure_kind == "timed out"

    def value_of(self, metric: str) -> float | None:
        """Return its value of a metric, reported by the workload or else accounted."""
        value: Any = self.metrics.get(metric, getattr(self, metric, None))
        # A truth value such as ``timed_out`` is not a number.
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
    """Conditions whose verdict is that they are faster. The verdicts share a false-discovery rate,
    so a condition can be slower than another one and still be a contender."""
    faster_than: tuple[str, ...]
    """Conditions whose verdict is that they are slower."""
    tied_with: tuple[str, ...]
    """Conditions with the verdict ``equivalent``."""
    undecided: tuple[str, ...]
    """Conditions whose order relative to it is open, or differs between typical and many runs."""


class Ranking(Struct, frozen=True):
    """Ranking of a baseline and its candidates by their cost on the primary metric."""

    baseline: str
    contenders: tuple[str, ...]
    """Conditions that may still have the lowest cost, or tie with it, the leader first. There is a
    single name only if every other condition is slower than another one, at a level that bounds the
    chance of a wrong name."""
    leader: str | None
    """Contender that is first in the order of the ranking. Its lead over the other contenders is
    not certain. Null if no contender is left."""
    conditions: tuple[RankedCondition, ...]
    """Conditions in the order of the ranking, the lowest cost first."""
    pairs: tuple[RankedPair, ...]
    """All pairs of candidates. Their claims share alpha over all rankings, separately from the
    comparisons with the baseline."""
    alpha: float
    """Maximum false-discovery rate among the pairs. Also the maximum chance that the fastest
    condition ever leaves the contenders. This holds for each condition separately: if several are
    equally fast, one of them may leave more often."""
    summary: str
    stratum: dict[str, str] = field(default_factory=dict)
    """Levels that all conditions share."""


class FindingTable(Struct, frozen=True):
    """A table of texts; the renderer escapes and aligns them."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Rows, each as long as the headings."""
    notes: tuple[str, ...] = ()
    """Notes on how its numbers are computed, a line each."""


class Findings(Struct, frozen=True):
    """Findings from the numbers of a study."""

    tables: tuple[FindingTable, ...] = ()
    paragraphs: tuple[str, ...] = ()
    answer: str = ""
    """Question and answer of the study in one sentence; empty if there is no answer yet."""


class ResultDocument(Struct, frozen=True, tag_field=TAG, tag=ORDINARY):
    """The whole document of an ordinary comparison, in the order in which it is written.

    The document of another kind of campaign inherits from this class, with its own tag and
    additional fields.
    """

    has_random_order: ClassVar[bool] = True
    """Whether the coin ordered the trials; without it there are samples instead of verdicts."""

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
    """Comparison with the reference result; never in a ledger."""
    findings: Findings | None = None
    """Tables and paragraphs of a built-in study; null for any other."""
    steady_state: tuple[SteadyComparison, ...] = ()
    """Comparisons in the steady state, for each candidate and metric with iterations."""
    extra_time: ExtraTime | None = None
    """Extra time that ``why`` explains; null until the comparison is observed.

    See docs/reference/causes.md.
    """
    more_is_better: tuple[str, ...] = ()
    """Metrics that workloads reported as better if higher: their cost in a ratio is the inverse."""
    ranking: tuple[Ranking, ...] = ()
    """Rankings of each baseline with its candidates; empty if the plan has no ranking."""
    resolutions: dict[str, PositiveFloat] = field(default_factory=dict)
    """Smallest step of each compared or reported metric, in its unit. If it is unknown, the metric
    is missing and comparisons infer the step from past values."""
    typical: TypicalValue | None = None
    """Typical value of the condition, if there is only one; else null."""

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
    """Whether all trials are in one order of blocks."""
    measured_below: ClassVar[Mapping[str, str]] = MappingProxyType({"control": "condition"})
    """Parts of the document with measured values, each with its field that has them."""

    @property
    def has_blocks(self) -> bool:
        """Whether trials of one block belong together."""
        return True

    @property
    def samples(self) -> tuple[SampleComparison, ...]:
        """Comparisons of trials that our coin did not order."""
        return ()

    @property
    def samples_summary(self) -> str:
        """Sentence on how far comparisons of samples can be trusted."""
        return ""

    @property
    def own_summary(self) -> str | None:
        """Sentences of the kind that replace those of the comparisons."""
        return None

    @property
    def own_metric(self) -> str | None:
        """Metric by which the kind decides, if no comparison names it."""
        return None

    def check_one_host(self, what: str) -> None:
        """Raise `UnusableInput` if the trials are those of several hosts.

        ``what`` needs the trials of one host; it begins a sentence: ``hyperfine's form``.
        """

    def trial_columns(self) -> Iterator[TrialColumn]:
        """Yield the additional columns of the kind for a table of the trials."""
        yield from ()

    @property
    def primary_metric(self) -> str:
        """Metric of the comparison; without a comparison, the metric planned for it."""
        if self.own_metric is not None:
            return self.own_metric
        parts = (self.typical, *self.comparisons)
        metrics = (part.metric for part in parts if part is not None)
        return next(metrics, PRIMARY_METRIC)
