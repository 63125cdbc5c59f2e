"""The result of ``equipoise observe``: an effect estimated from a log by matching.

``observe --json`` writes these fields, in this order, as the schema ``equipoise.observed/1``.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from equipoise_matching.warning import AnalysisWarning

OBSERVED_SCHEMA = "equipoise.observed/1"

Bounds = tuple[float, float] | None
"""Ends of a 95 % interval; ``None`` if the interval cannot be estimated."""


class ObservationQuestion(Struct, frozen=True):
    """The question, with every default filled in."""

    source: str
    """Name of the log."""
    treatment: str
    """Column that names the version that ran."""
    candidate: str
    baseline: str
    """The two values of ``treatment`` that are compared."""
    outcome: str
    covariates: tuple[str, ...]
    exact: tuple[str, ...]
    """Columns in which matched rows are equal."""
    method: str
    """The requested method of matching; ``MatchingSummary.method`` is the used one."""
    seed: int
    unit: str = "rows"
    """Plural noun for the rows in sentences: ``rows``, ``runs``, ``people``."""


class RowCounts(Struct, frozen=True):
    """Numbers of rows: read, used for each version, and left out."""

    read: int
    candidate: int
    baseline: int
    left_out: dict[str, int]
    """Number of unused rows by reason."""


class Effect(Struct, frozen=True):
    """Candidate compared with baseline: as a ratio, and as a difference.

    ``ratio`` is ``None`` if some outcomes are not above 0 or the question wants no ratio.
    """

    ratio: float | None
    ratio_ci: Bounds
    difference: float
    difference_ci: Bounds
    """Interval of the difference, in the unit of the outcome."""

    @property
    def interval(self) -> Bounds:
        """Interval of the ratio; without a ratio, interval of the difference."""
        return self.difference_ci if self.ratio is None else self.ratio_ci

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval excludes "no difference"."""
        no_effect = 0.0 if self.ratio is None else 1.0
        return self.interval is not None and not self.interval[0] <= no_effect <= self.interval[1]


class ErrorEstimate(Struct, frozen=True):
    """Standard errors of ln(ratio) and of the difference by one method, with their intervals."""

    name: str
    """``abadie-imbens`` or ``clusters``."""
    log_error: float | None
    ratio_ci: Bounds
    difference_error: float | None
    difference_ci: Bounds


class Clustering(Struct, frozen=True):
    """Clusters: groups of rows that are not independent of each other."""

    by: str
    """The column, or a description of the windows of time, that forms the clusters."""
    clusters: int
    with_candidate: int
    """Number of clusters with matched rows of the candidate."""
    with_baseline: int


class MatchedEffect(Struct, frozen=True):
    """The effect among comparable rows."""

    effect: Effect
    """The estimate, with the interval by the method ``interval_method``."""
    interval_method: str
    """Name of the method of standard errors that gives the interval of ``effect``."""
    errors: tuple[ErrorEstimate, ...]


class MatchingSummary(Struct, frozen=True):
    """The method of the match, and the numbers of rows with and without a match."""

    method: str
    """The method with the best balance: the requested method or the genetic search."""
    caliper: float | None
    """Largest distance of a match in standard deviations; ``None`` without a caliper."""
    caliper_on: tuple[str, ...]
    """Columns that the caliper limits."""
    weights: dict[str, float]
    """Weight of each standardised column; empty unless the genetic search found weights."""
    pairs: int
    candidate_matched: int
    candidate_dropped: int
    baseline_used: int
    has_regression: bool
    """Whether a regression removed the rest of the imbalance (Abadie and Imbens 2011)."""
    model: str = ""
    """A sentence: how the columns act in the regression, and how many rows were left out."""


class DroppedMean(Struct, frozen=True):
    """Means of one column among the matched and among the dropped rows of the candidate."""

    column: str
    matched_mean: float
    dropped_mean: float
    """Mean among the candidate's rows without a match."""


class ColumnBalance(Struct, frozen=True):
    """Means of one column in both versions, and their difference in standard deviations."""

    column: str
    candidate_before: float
    baseline_before: float
    difference_before: float | None
    candidate_after: float | None
    baseline_after: float | None
    difference_after: float | None
    """Difference after matching; ``None`` if infinite: each version has a different constant."""
    ks_before: float | None = None
    ks_after: float | None = None
    """Largest distance between the distributions in both versions (Kolmogorov-Smirnov), 0 to 1."""
    term: str | None = None
    """The square or other term of this column that differs most after matching."""
    term_after: float | None = None
    """Difference of ``term`` in standard deviations."""


class MissingRows(Struct, frozen=True):
    """A range of one column in which the log has too few baseline rows for a comparison."""

    column: str
    difference: float | None
    """Difference of the means after matching, in standard deviations; ``None`` if infinite."""
    low: float
    high: float
    candidate_rows: int
    baseline_rows: int
    """Number of baseline rows with values between ``low`` and ``high``."""


class Refusal(Struct, frozen=True):
    """Reason why no effect is reported."""

    code: str
    """``unbalanced``, ``few-clusters``, ``few-strata`` or ``unmodelled``."""
    summary: str
    hint: str
    needed: tuple[MissingRows, ...] = ()
    """Ranges in which the log needs more baseline rows, the worst column first."""


class GammaBound(Struct, frozen=True):
    """Interval of the effect if a hidden factor multiplies the odds of the candidate by gamma."""

    gamma: float
    low: float | None
    high: float | None
    """Ends of the 95 % interval: ratios, or differences if the outcome has no logarithm."""


class HiddenBias(Struct, frozen=True):
    """Rosenbaum's bounds, for a match in pairs without replacement."""

    kind: str
    """The things whose odds are multiplied: ``pairs`` (of rows) or ``clusters``."""
    count: int
    bounds: tuple[GammaBound, ...]
    gamma_to_change: float | None
    """Smallest factor of the odds at which the interval includes "no difference"."""
    summary: str


class Robustness(Struct, frozen=True):
    """Strength that a hidden factor needs to remove the effect (Cinelli and Hazlett 2020)."""

    value: float | None
    """Share of the residual variance of treatment and outcome that the factor must explain."""
    strongest_column: str | None
    """The covariate with the smallest ``multiple``."""
    multiple: float | None
    """Strength of a factor that removes the whole effect, relative to ``strongest_column``."""
    summary: str


class Placebo(Struct, frozen=True):
    """Estimate of an effect where the candidate cannot have one: a placebo outcome or period."""

    kind: str
    """``outcome`` or ``period``."""
    name: str
    ratio: float | None
    ratio_ci: Bounds
    difference: float | None
    difference_ci: Bounds
    shows_effect: bool | None
    """Whether the interval excludes "no difference"; ``None`` without an interval."""
    summary: str


class Period(Struct, frozen=True):
    """The effect in one period of time."""

    begins: str
    ends: str
    candidate_rows: int
    ratio: float | None
    ratio_ci: Bounds
    difference: float
    difference_ci: Bounds


class Contribution(Struct, frozen=True):
    """Part of the naive difference that one column explains, by regression (Gelbach 2016)."""

    column: str
    log_ratio: float | None
    """Part of ln(ratio); ``None`` without a ratio."""
    difference: float


class StratumResult(Struct, frozen=True):
    """The effect in one stratum: the rows with one value of the strata column."""

    name: str
    candidate_rows: int
    baseline_rows: int
    reason: str | None
    """Reason why the stratum has no answer; then every later field is ``None``."""
    matched_rows: int | None
    """Number of matched rows of the candidate: the weight of the stratum."""
    ratio: float | None
    difference: float | None
    method: str | None
    caliper: float | None
    worst_column: str | None
    """The column that differs most after matching."""
    worst_difference: float | None
    gamma_to_change: float | None
    """Smallest factor of the odds that changes the answer; ``None`` without an effect to change."""


class Strata(Struct, frozen=True):
    """All strata of the log, each matched and estimated alone."""

    column: str
    results: tuple[StratumResult, ...]
    """The strata in the order of the log."""
    worst_stratum: str
    """Name of the stratum in the answer with the worst balanced column."""
    shared_clusters: int | None
    """Number of clusters with rows in several strata; ``None`` without clusters."""


class ObservationResult(Struct, frozen=True, kw_only=True):
    """The result of an observation; its JSON document has the fields in this order."""

    schema: str = OBSERVED_SCHEMA
    summary: str = ""
    question: ObservationQuestion
    rows: RowCounts
    naive: Effect
    """Comparison of all rows, without matching."""
    refusal: Refusal | None = None
    matched: MatchedEffect | None = None
    """The answer; ``None`` with a refusal."""
    clustering: Clustering | None
    matching: MatchingSummary
    scope: str
    """A description of the rows that the answer is about."""
    dropped_means: tuple[DroppedMean, ...]
    """Means of each covariate among the candidate's rows with and without a match."""
    balance: tuple[ColumnBalance, ...]
    contributions: tuple[Contribution, ...] = ()
    """Part of the naive difference that each covariate explains."""
    hidden_bias: HiddenBias | None = None
    robustness: Robustness | None = None
    placebos: tuple[Placebo, ...] = ()
    periods: tuple[Period, ...] = ()
    strata: Strata | None = None
    """``None`` if all rows were matched together."""
    warnings: tuple[AnalysisWarning, ...]

    @property
    def effects(self) -> Iterator[tuple[str, str, Effect | Period | Placebo]]:
        """Name, kind and estimate of every effect, in the order of the report."""
        yield "naive", "naive", self.naive
        if self.matched is not None:
            yield "comparable", "comparable", self.matched.effect
        yield from ((f"from {period.begins}", "by time", period) for period in self.periods)
        for placebo in self.placebos:
            yield f"placebo {placebo.kind} {placebo.name}", "placebo", placebo
