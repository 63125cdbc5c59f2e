"""The result document (design.md §4), as frozen data.

Field names and their order are the outward form ``equipoise.result/1``: others build on
them. An interval is ``[low, high]``; a bound that is not known yet (an interval that is
still infinite) is null.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from equipoise.model.against import Against
from equipoise.model.interval import Interval as Interval
from equipoise.model.record import Notice
from equipoise.model.trial import Phase

SCHEMA = "equipoise.result/1"

Verdict = Literal["faster", "slower", "equivalent", "mixed", "undecided"]


@dataclass(frozen=True, slots=True)
class Mode:
    """One of the distinct values that a metric clusters at; ``share`` of the trials."""

    at: float
    share: float


@dataclass(frozen=True, slots=True)
class Companion:
    """A mode, and a covariate or drawn factor that goes with it."""

    mode: int
    """Its place among ``modes``, from 0."""
    covariate: str
    value: float | None
    """The value it goes with, of a covariate of names such as ``cpu``; null for an amount."""
    correlation: float
    """With having that value, or with the ranks of the amount."""
    p_value: float
    """Adjusted for all covariates and modes together."""


@dataclass(frozen=True, slots=True)
class State:
    """A stretch of trials on one level; a campaign that changed its state has several."""

    begin: int
    """Its first trial among the analysed ones of the condition, from 0."""
    level: float
    """The mean of its trials, extremes drawn in."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Change over the campaign: last third over first third of the trials, as a ratio."""

    ratio: float | None
    ratio_ci: Interval


@dataclass(frozen=True, slots=True)
class MetricSummary:
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
    """From the lowest up; at least one."""
    drift: Drift | None = None
    log_evidence: float | None = None
    """For several modes against one, about the natural logarithm of the Bayes factor; null where
    the sample shows no valley at all."""
    companions: tuple[Companion, ...] = ()
    """What the modes go with, the strongest first."""
    tail: float | None = None
    """From the median to the 95th percentile, over from the 5th to the median: 1 if symmetric."""
    autocorrelation: float | None = None
    """Of the ranks of neighbouring trials."""
    states: tuple[State, ...] | None = None
    """Of the primary metric; null where they were not looked for (docs/shape.md)."""


@dataclass(frozen=True, slots=True)
class ConditionResult:
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
    """Of the metrics that its workload reports: why one spreads widely, as far as was seen."""


@dataclass(frozen=True, slots=True)
class CarryOver:
    """How much more a trial takes if the candidate, not the baseline, ran before it."""

    ratio: float
    ratio_ci: Interval
    trials: int
    """Trials that stood first in their block, which the estimate rests on."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one statistic alone would have said of a comparison."""

    statistic: str
    """``minimum``, ``p10`` … ``p90`` (``p50`` is the median) or ``mean``."""
    ratio: float | None
    says: Literal["faster", "slower", "equivalent"]
    """By ``min_effect``, as if there were no chance in it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One candidate against its baseline on one metric; ratios of a cost."""

    baseline: str
    candidate: str
    metric: str
    estimand: str
    ratio: float | None
    ratio_ci: Interval
    e_value: float
    verdict: Verdict
    min_effect: float
    """In percent."""
    alpha: float
    blocks: int
    mean_ratio: float | None
    mean_ratio_ci: Interval
    probability_slower: float | None
    probability_slower_ci: Interval
    minimum_misleads: bool
    scope: str
    words: str
    level: float
    """1 minus the coverage of ``ratio_ci``: alpha, or less among several comparisons."""
    blocks_to_go: int | None = None
    """For ``undecided``: about so many more blocks would decide it; null if unforeseeable."""
    carry_over: CarryOver | None = None
    stratum: dict[str, str] = field(default_factory=dict)
    """Of a study: the levels of the other factors, equal in both conditions."""
    answers: tuple[Answer, ...] = ()
    """What each statistic alone would have said; the verdict rests on none of them."""
    disagreement: str | None = None
    """In words, where some would have said faster and others slower."""


@dataclass(frozen=True, slots=True)
class ControlResult:
    """The second run of the baseline: it checks the tool and vetoes nothing."""

    condition: ConditionResult
    comparison: Comparison
    """The control against the baseline, at the same alpha."""
    excludes_one: bool
    """Whether its interval leaves out "no difference": in at most alpha of all campaigns."""
    words: str


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Which campaign, and how it ended."""

    id: str
    study: str
    started: str
    """ISO 8601, UTC."""
    ended: str | None
    seed: int
    blocks: int
    stopped_because: str | None


@dataclass(frozen=True, slots=True)
class TrialRow:
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
    unknown: dict[str, str] = field(default_factory=dict)
    covariates: dict[str, float | None] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    iterations: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResultDocument:
    """The whole document, in the order in which it is written."""

    schema: str
    run: RunInfo
    environment: dict[str, Any]
    conditions: tuple[ConditionResult, ...]
    comparisons: tuple[Comparison, ...]
    control: ControlResult | None
    why: tuple[dict[str, Any], ...]
    warnings: tuple[Notice, ...]
    trials: tuple[TrialRow, ...]
    against: Against | None = None
    """This result against another one that was asked for; in no ledger."""
