"""The result document (docs/reference/document.md), as frozen data.

The field names and their order are the public format ``equipoise.result/1``. An interval (``…_ci``)
is ``[low, high]``; an end is null if the interval has no limit on that side. The significance level
of an interval is 1 minus its coverage. ``summary`` is a sentence for readers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct, field

from equipoise.model.iterations import IterationShape
from equipoise.model.kinds import ORDINARY, TAG, Kind, kind_of
from equipoise.model.plan import PRIMARY_METRIC, Layout
from equipoise.model.quantities import Interval
from equipoise.model.record import CampaignWarning, FailureKind, Phase
from equipoise.model.reference import ReferenceComparison
from equipoise.model.why import Explanation, ExtraTime

TrialColumn = tuple[str, Literal["text", "integer", "number"], tuple[Any, ...]]
"""Column of a table of trials: name, type of the cells, and a cell for each trial."""
SCHEMA = "equipoise.result/1"

Verdict = Literal["faster", "slower", "equivalent", "mixed", "undecided"]
"""Verdict on the candidate of a comparison (docs/methods/verdict.md)."""


class Mode(Struct, frozen=True):
    """A distinct value around which a metric clusters, and the share of such trials."""

    value: float = field(name="at")
    share: float


class ModeAssociation(Struct, frozen=True):
    """A covariate or drawn factor that is associated with a mode."""

    mode: int
    """Index of the mode among ``modes``, from 0."""
    covariate: str
    value: float | None
    """Associated value of a categorical covariate such as ``cpu``; null for a numeric covariate."""
    correlation: float
    """Correlation of the mode with this value, or with the ranks of a numeric covariate."""
    p_value: float
    """P-value, adjusted for all covariates and modes together."""


class State(Struct, frozen=True):
    """Consecutive trials with about the same mean; a change of the mean begins a new state."""

    first_trial: int
    """Index of the first trial among the condition's analysed trials, from 0."""
    mean: float
    """Mean of the trials, with extremes clipped."""


class Drift(Struct, frozen=True):
    """Median of the last third of the trials over the median of the first third."""

    ratio: float | None
    ratio_ci: Interval
    p_value: float | None = None
    """P-value of the ranks of both thirds, if the trials are independent."""


class VarianceComponent(Struct, frozen=True):
    """The part of the variance that comes from one level, such as the boot."""

    level: str
    """``iteration``, ``trial``, ``layout``, ``boot``, ``host`` …"""
    units: int
    """Total number of units of the level."""
    variance: float
    """Unbiased estimate, which may be below 0 if the true variance is near 0."""
    variance_ci: tuple[float, float]
    share: float
    """Fraction of the total variance; negative estimates count as 0."""


class Advice(Struct, frozen=True):
    """How much narrower the interval becomes with one more minute of measuring on one level."""

    level: str
    more_units: float
    """Number of new units of this level, each with as many parts as the measured units."""
    narrowed_fraction: float
    """Fraction, from 0 to 1, by which ``VarianceByLevel.across_ci`` narrows."""


class VarianceByLevel(Struct, frozen=True):
    """The variance of log costs or log ratios by level, and the mean in two scopes (rule 2).

    A condition has costs; a comparison has a ratio in each block. If a level has too few units,
    only ``unknown_because`` and the scopes are known.
    """

    geometric_mean: float | None
    """Mean cost or ratio over the units of the highest level, with equal weights."""
    within_scope: str
    """Scope of ``within_ci``, such as ``these 12 layouts``."""
    within_ci: Interval
    across_scope: str
    """Scope of ``across_ci``, such as ``across layouts``."""
    across_ci: Interval
    """Interval by Student's t over the units of the highest level, for a single analysis at the
    end. For a comparison over layouts, it is the interval of the verdict."""
    significance_level: float
    components: tuple[VarianceComponent, ...]
    """Parts of the variance, the highest level first."""
    advice: tuple[Advice, ...]
    """Advice, the most useful first; empty if the time for a unit is unknown."""
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
    """Modes from the lowest up; at least one, unless they were not searched."""
    drift: Drift | None = None
    log_bayes_factor: float | None = None
    """Approximate log Bayes factor of several modes against one; null with a single peak."""
    mode_associations: tuple[ModeAssociation, ...] = ()
    """Covariates and drawn factors associated with the modes, the strongest first."""
    tail_ratio: float | None = None
    """(95th percentile - median) / (median - 5th percentile)."""
    autocorrelation: float | None = None
    """Autocorrelation of the ranks of neighbouring trials."""
    states: tuple[State, ...] | None = None
    """States of the primary metric (docs/methods/distribution.md); null if not computed."""
    by_level: VarianceByLevel | None = None
    """Variance of the primary metric by level; null if trials are the only level."""


class ConditionResult(Struct, frozen=True):
    """One condition: its trials, and the distributions of its metrics."""

    name: str
    levels: dict[str, str]
    command: tuple[str, ...]
    trials: int
    """Number of analysed trials."""
    failures: int
    metrics: dict[str, MetricSummary]
    unknown: dict[str, str] = field(default_factory=dict)
    """Reason for each metric that the workload should report but did not, by metric."""
    spread_because: dict[str, str] = field(default_factory=dict)
    """Observed reasons why metrics of the workload spread widely, by metric."""
    iterations: dict[str, IterationShape] = field(default_factory=dict)
    """Warm-up classes of each trial and of the condition, by metric."""


class CarryOver(Struct, frozen=True):
    """How much longer a trial takes if the candidate, not the baseline, ran before it."""

    ratio: float
    ratio_ci: Interval
    trials: int
    """Number of first trials of blocks that the estimate uses."""


class SlowRuns(Struct, frozen=True):
    """Slow runs: runs that took far longer than the median of their own condition."""

    factor: float
    """Multiple of the median that a slow run exceeds."""
    baseline_count: int
    """Number of slow runs of the baseline."""
    candidate_count: int
    run_count: int
    """Number of all runs of each condition."""
    unseen_share: float
    """1 - alpha^(1/run_count): runs of a rarer kind may all be missed, with chance above alpha."""
    more_often: Literal["baseline", "candidate"] | None = None
    """Condition that has slow runs more often, by a sequential test. Null if the test names no
    condition, or if the typical runs differ."""
    e_value: float | None = None
    """E-value of the test; null if the typical runs differ."""
    significance_level: float | None = None
    """Significance level of the test, a fifth of the comparison's and in addition to it."""
    summary: str = ""


class CarryOverCheck(Struct, frozen=True):
    """Whether carry-over could explain a difference in the blocks without washouts."""

    explainable_part: Literal["nothing", "part", "all"]
    """How much of the difference carry-over could explain."""
    carry_over: float
    """Cost of a trial after the candidate over the cost of a trial after the baseline."""
    carry_over_ci: Interval
    """95 % interval of ``carry_over``, for one analysis."""
    ratio: float
    """Candidate over baseline, after the estimated carry-over is removed."""
    ratio_ci: Interval
    """95 % interval of ``ratio``, for one analysis."""
    blocks: int
    """Number of blocks without washouts in which both conditions ran."""
    added_washouts: bool
    """Whether the campaign continued with washouts; then only the blocks with washouts decide."""
    verdict: Verdict
    """Verdict from the blocks without washouts."""
    ratio_without_washouts: float | None
    """Typical ratio in the blocks without washouts."""
    summary: str


class StatisticAnswer(Struct, frozen=True):
    """Verdict by one statistic alone."""

    statistic: str
    """``minimum``, ``p10`` … ``p90`` (``p50`` is the median), ``p99``, ``maximum`` or ``mean``;
    ``p99`` and ``maximum`` from 100 runs of each condition on."""
    ratio: float | None
    verdict: Literal["faster", "slower", "equivalent"]
    """Comparison of ``ratio`` with ``min_effect``, as if chance had no influence."""
    certain: bool = False
    """Whether the interval of the ratio does not contain 1. The minimum, the maximum and the mean
    have no interval, and are never certain."""


class DrawnLayouts(Struct, frozen=True):
    """The verdict for only the drawn layouts: exact, but not valid for other layouts."""

    verdict: Verdict
    ratio: float | None
    ratio_ci: Interval
    """Confidence sequence, at the level of the comparison."""
    scope: str
    summary: str


class RatioSegment(Struct, frozen=True):
    """Blocks in a row in which the ratio of a comparison stayed about constant."""

    first_block: int
    """Number of the first of these blocks, complete and with both conditions."""
    ratio: float
    """e to the mean of the log ratios within its blocks, with extremes clipped."""


class Adjustment(Struct, frozen=True):
    """The effect of the adjustment of costs by a covariate, and the result without adjustment."""

    covariate: str
    """Covariate by which most blocks were adjusted."""
    blocks: int
    """Number of adjusted blocks; a block is adjusted only if past blocks showed that it helps."""
    spread_ratio: float
    """Spread of the block differences with adjustment over the spread without."""
    unadjusted_ratio: float | None
    """Typical ratio without adjustment."""
    unadjusted_ratio_ci: Interval
    """Interval of ``unadjusted_ratio``, at the level of the comparison."""
    summary: str
    """Sentence on the adjustment; empty if it saved less than 1 % of the blocks."""


class Comparison(Struct, frozen=True):
    """One candidate against its baseline on one metric; ratios of costs.

    With layouts, verdict, ratio, intervals and summary are about layouts in general; the e-value is
    about the drawn layouts.
    """

    baseline: str
    candidate: str
    metric: str
    estimand: str
    """Quantity that ``ratio`` estimates, in words."""
    ratio: float | None
    ratio_ci: Interval
    e_value: float
    """E-value against "no difference"."""
    verdict: Verdict
    min_effect: float
    """Smallest effect that matters, in percent."""
    alpha: float
    blocks: int
    mean_ratio: float | None
    mean_ratio_ci: Interval
    probability_slower: float | None
    """Share of the blocks without a tie in which the candidate was slower."""
    probability_slower_ci: Interval
    minimum_misleads: bool
    """Whether a ranking by minimum contradicts the verdict."""
    scope: str
    """Processes, layouts or hosts to which the verdict generalises (rule 2)."""
    summary: str
    significance_level: float
    """1 minus the coverage of ``ratio_ci``: alpha, or less among several comparisons."""
    equivalence_ci: Interval
    """Interval that decides on ``equivalent``; each side alone has its error rate."""
    equivalence_level: float
    """1 minus the coverage of ``equivalence_ci``."""
    means_forbid_equivalence: bool = False
    """Whether the verdict would be ``equivalent`` without the ratio of means and slow runs."""
    ratio_is_constant: bool = True
    """False if no constant ratio fits all blocks; ``ratio_ci`` is then valid only at the stop."""
    ratio_segments: tuple[RatioSegment, ...] = ()
    """Segments with different ratios, if no constant ratio fits all blocks."""
    blocks_to_go: int | None = None
    """Forecast of the blocks until an undecided comparison is decided; null if there is none."""
    carry_over: CarryOver | None = None
    carry_over_check: CarryOverCheck | None = None
    """Whether carry-over could explain the difference; null without a difference."""
    stratum: dict[str, str] = field(default_factory=dict)
    """Levels of the other factors of a study, equal in both conditions."""
    slow_runs: SlowRuns | None = None
    """Observed slow runs, and how frequent unobserved slow runs may be; null for a fleet."""
    answers: tuple[StatisticAnswer, ...] = ()
    """Verdicts by single statistics; ``verdict`` does not use them."""
    disagreement: str | None = None
    """Sentence about statistics with contradicting verdicts, faster and slower."""
    by_level: VarianceByLevel | None = None
    """Variance of the primary metric by level; null if trials are the only level."""
    in_drawn_layouts: DrawnLayouts | None = None
    """Verdict for the layouts that the coin drew; null without layouts."""
    adjusted_by: Adjustment | None = None
    """Adjustment of costs by a covariate; null without adjustment."""

    def additional_values(self) -> dict[str, Any]:
        """Return the fields that a kind of campaign adds, with ratios of values, not of costs."""
        return {}


class TypicalValue(Struct, frozen=True):
    """Typical value of the only condition of a campaign without a comparison."""

    condition: str
    metric: str
    median: float
    """Median, in which trials that timed out count as worst."""
    median_ci: Interval
    """Confidence sequence of the median: for independent runs it is valid at any stop."""
    significance_level: float
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
    """Comparison by one mean for each trial; null unless both conditions have a steady state."""
    summary: str
    """Sentence on the result, or on the reason why there is no comparison."""


class ControlResult(Struct, frozen=True):
    """The second run of the baseline in each block, which checks the tool; no verdict uses it."""

    condition: ConditionResult
    comparison: Comparison
    """The control against the baseline, at the same alpha."""
    excludes_one: bool
    """Whether the interval does not contain 1; this happens in at most alpha of all campaigns."""
    summary: str

    @property
    def noise_floor(self) -> float | None:
        """Largest change within the interval of the comparison, as a ratio above 1.

        A smaller change may be noise in this campaign. ``None`` while an end of the interval is
        unlimited.
        """
        low, high = self.comparison.ratio_ci
        return max(high, 1 / low) if low and high else None


class SampleComparison(Struct, frozen=True):
    """Comparison of two imported conditions by an ordinary interval, without a verdict."""

    baseline: str
    candidate: str
    metric: str
    method: Literal["Welch", "paired"]
    estimand: str
    ratio: float | None
    ratio_ci: Interval
    """Interval for a single analysis of independent trials; whether they are is unknown."""
    unknown: str | None
    """Reason why there is no ratio, or no interval."""
    significance_level: float
    """1 minus the nominal coverage of ``ratio_ci``."""
    baseline_trials: int
    candidate_trials: int
    scope: str
    summary: str
    stratum: dict[str, str] = field(default_factory=dict)
    """Levels that the two conditions share, if several pairs are compared."""


class RunInfo(Struct, frozen=True):
    """Facts about a campaign, and how it ended."""

    id: str
    study: str
    started: str
    """Start, in ISO 8601, UTC."""
    ended: str | None
    seed: int
    blocks: int
    stopped_because: str | None
    layouts: tuple[Layout, ...] = ()
    """Memory layouts, of which each block has one; empty if layout is not a factor."""
    command_line: str | None = None
    """Command line that repeats the campaign with the same seed; null if there is none."""


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
    """Number of the trial's layout in the campaign, from 1."""
    host: str | None = None
    """Name of the host that measured it, in a fleet; blocks count from 1 on each host."""

    @property
    def timed_out(self) -> bool:
        """Whether the trial took too long."""
        return self.failure_kind == "timed out"

    def value_of(self, metric: str) -> float | None:
        """Return the trial's value of a metric, from the workload or else from the launcher."""
        value: Any = self.metrics.get(metric, getattr(self, metric, None))
        # A field such as ``analysed`` is a truth value, not a number.
        return float(value) if type(value) in (int, float) else None

    @property
    def cpu_s(self) -> float | None:
        """User and system time together, in seconds."""
        return None if self.user_s is None or self.sys_s is None else self.user_s + self.sys_s


class DuetPilot(Struct, frozen=True):
    """Pilot of one comparison whose trials run at once; no verdict uses its trials."""

    baseline: str
    candidate: str
    pairs: int
    """Number of blocks in turns, and of blocks at once."""
    slowdown: float | None
    """Typical time of a trial at once over its time in turns; null with too few finite times."""
    slowdown_low: float | None
    """Lower bound of ``slowdown``."""
    gain: float | None
    """Seconds in turns over seconds at once, for intervals of the same width; null if unknown."""
    gain_ci: Interval
    """Interval of ``gain`` (95 %)."""


class DuetResult(Struct, frozen=True):
    """How trials ran at once (``--duet``)."""

    cpus: tuple[tuple[int, ...], ...]
    """CPUs of the trials at even and at odd positions of a block."""
    pilots: tuple[DuetPilot, ...]
    """Pilot of each comparison; empty if the campaign ended before the pilot did."""
    summary: str


class RankedPair(Struct, frozen=True):
    """Comparison of two candidates on the primary metric; ratios of costs."""

    baseline: str
    candidate: str
    ratio: float | None
    ratio_ci: Interval
    e_value: float
    significance_level: float
    verdict: Verdict
    blocks: int


class RankedCondition(Struct, frozen=True):
    """One condition in a ranking."""

    name: str
    ratio: float | None
    """Cost of the condition over the cost of the baseline; 1 for the baseline."""
    slower_than: tuple[str, ...]
    """Conditions that are faster by their verdict. The verdicts share a false-discovery rate, so a
    condition can be slower than another condition and still be a contender."""
    faster_than: tuple[str, ...]
    """Conditions that are slower by their verdict."""
    tied_with: tuple[str, ...]
    """Conditions with the verdict ``equivalent``."""
    undecided: tuple[str, ...]
    """Conditions with the verdict ``undecided`` or ``mixed``."""


class Ranking(Struct, frozen=True):
    """Ranking of a baseline and its candidates by their cost on the primary metric."""

    baseline: str
    contenders: tuple[str, ...]
    """Conditions that may still have the lowest cost, or tie with the lowest; the leader first. If
    there is a single name, it is wrong with a chance of at most ``alpha``."""
    leader: str | None
    """First contender; the order of the contenders is not certain. Null without contenders."""
    conditions: tuple[RankedCondition, ...]
    """Conditions by cost, the lowest cost first."""
    pairs: tuple[RankedPair, ...]
    """All pairs of candidates. Their claims have an alpha of their own."""
    alpha: float
    """Maximum false-discovery rate among the pairs; also the maximum chance that the fastest
    condition ever leaves the contenders."""
    summary: str
    stratum: dict[str, str] = field(default_factory=dict)
    """Levels that all conditions share."""


class FindingTable(Struct, frozen=True):
    """A table of texts, which the renderer escapes and aligns."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Rows with one text for each heading."""
    notes: tuple[str, ...] = ()
    """Notes on how the numbers are computed, a line each."""


class Findings(Struct, frozen=True):
    """Findings of a built-in study from its numbers."""

    tables: tuple[FindingTable, ...] = ()
    paragraphs: tuple[str, ...] = ()
    answer: str = ""
    """Answer of the study in one sentence, with the question; empty if there is no answer yet."""


class ResultDocument(Struct, frozen=True, tag_field=TAG, tag=ORDINARY):
    """The whole document of an ordinary comparison, in the order in which it is written.

    The documents of other kinds inherit from this class, with a tag and more fields of their own.
    """

    has_random_order: ClassVar[bool] = True
    """Whether the coin ordered the trials; if not, there are ``samples`` instead of verdicts."""

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
    """Comparison with a reference result (``--against``); never in a ledger."""
    findings: Findings | None = None
    """Tables and paragraphs of a built-in study; null for other studies."""
    steady_state: tuple[SteadyComparison, ...] = ()
    """Comparisons in the steady state, for each candidate and metric with iterations."""
    extra_time: ExtraTime | None = None
    """Extra time that ``why`` explains (docs/reference/causes.md); null before observation."""
    more_is_better: tuple[str, ...] = ()
    """Metrics of which a workload reported that more is better: their cost is the inverse."""
    ranking: tuple[Ranking, ...] = ()
    """Ranking of each baseline with its candidates; empty if the plan has no ranking."""
    resolutions: dict[str, PositiveFloat] = field(default_factory=dict)
    """Smallest step of compared and reported metrics, in their units. A metric with an unknown step
    is missing; comparisons infer its step from past values."""
    typical: TypicalValue | None = None
    """Typical value, if there is only one condition; else null."""
    duet: DuetResult | None = None
    """How trials ran at once; null if they ran in turns."""

    @property
    def primary_comparisons(self) -> tuple[Comparison, ...]:
        """Comparisons on the primary metric."""
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

    has_one_order: ClassVar[bool] = True
    """Whether all trials are in one sequence of blocks; False for several hosts."""
    measured_value_fields: ClassVar[Mapping[str, str]] = MappingProxyType({"control": "condition"})
    """Name of the field with the measured values of each part of the document, by part."""

    @property
    def shares_processes(self) -> bool:
        """Whether the conditions that were compared ran in one process."""
        return False

    @property
    def has_blocks(self) -> bool:
        """Whether trials of one block belong together."""
        return True

    @property
    def samples(self) -> tuple[SampleComparison, ...]:
        """Comparisons of trials whose order the coin did not draw."""
        return ()

    @property
    def samples_summary(self) -> str:
        """Sentence about how far ``samples`` can be trusted."""
        return ""

    @property
    def kind_summary(self) -> str | None:
        """Sentences of the kind of campaign that replace the sentences of the comparisons."""
        return None

    @property
    def kind_metric(self) -> str | None:
        """Metric by which the kind of campaign decides, if no comparison has it."""
        return None

    def check_one_host(self, what: str) -> None:
        """Raise `UnusableInput` if the trials come from several hosts.

        ``what`` begins the message: the thing that needs trials of one host.
        """

    def trial_columns(self) -> Iterator[TrialColumn]:
        """Yield the columns that the kind of campaign adds to a table of the trials."""
        yield from ()

    @property
    def primary_metric(self) -> str:
        """Metric of the typical value or of the first comparison; by default the wall time."""
        if self.kind_metric is not None:
            return self.kind_metric
        results = (self.typical, *self.comparisons)
        metrics = (result.metric for result in results if result is not None)
        return next(metrics, PRIMARY_METRIC)
