"""What was found in a log by matching, as frozen data.

Field names and their order are the outward form ``equipoise.observed/2`` of ``observe --json``.
"""

from __future__ import annotations

from dataclasses import dataclass

OBSERVED_SCHEMA = "equipoise.observed/2"

Bounds = tuple[float, float] | None
"""The ends of a 95 % interval; ``None`` where there is none."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The question as it was understood."""

    source: str
    treatment: str
    """The column that says what ran."""
    candidate: str
    baseline: str
    """Its two values."""
    outcome: str
    covariates: tuple[str, ...]
    exact: tuple[str, ...]
    method: str
    seed: int


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows there are of what."""

    read: int
    candidate: int
    baseline: int
    left_out: dict[str, int]
    """Rows that take no part, by the reason."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Candidate against baseline: as a ratio on the log scale, and as a difference.

    ``None`` where the outcome has no logarithm (``ratio``) or no interval can be given.
    """

    ratio: float | None
    ratio_ci: Bounds
    difference: float
    difference_ci: Bounds
    """In the unit of the outcome."""


@dataclass(frozen=True, slots=True)
class ErrorOf:
    """One way to the error of the effect, and the interval that it gives."""

    name: str
    """``abadie-imbens`` or ``clusters``."""
    log_error: float | None
    ratio_ci: Bounds
    difference_error: float | None
    difference_ci: Bounds


@dataclass(frozen=True, slots=True)
class Clustering:
    """What is taken as one lot of rows that are not independent."""

    by: str
    clusters: int
    with_candidate: int
    """Clusters that hold rows of the candidate that count."""
    with_baseline: int


@dataclass(frozen=True, slots=True)
class Matched:
    """The effect among comparable rows."""

    effect: Effect
    """With the interval of ``interval_by``."""
    interval_by: str
    errors: tuple[ErrorOf, ...]


@dataclass(frozen=True, slots=True)
class Matching:
    """How rows were matched, and who found a match."""

    method: str
    """The one that was kept: the asked one, or the genetic search where that balanced better."""
    caliper: float | None
    """In standard deviations; ``None`` without one."""
    caliper_on: tuple[str, ...]
    """The columns that it is on."""
    weights: dict[str, float]
    """Of the standardised columns, where a search found them."""
    pairs: int
    candidate_matched: int
    candidate_dropped: int
    baseline_used: int
    adjusted: bool
    """Whether a regression took out what matching left (Abadie and Imbens 2011)."""


@dataclass(frozen=True, slots=True)
class DroppedMean:
    """One column among the candidate's rows that were kept and that were dropped."""

    column: str
    kept: float
    dropped: float


@dataclass(frozen=True, slots=True)
class ColumnBalance:
    """How far candidate and baseline lie apart in one column, in standard deviations."""

    column: str
    candidate_before: float
    baseline_before: float
    difference_before: float | None
    candidate_after: float | None
    baseline_after: float | None
    difference_after: float | None
    """``None`` where it is unlimited: two different constants."""


@dataclass(frozen=True, slots=True)
class Needed:
    """Rows that are missing for a comparison in one column."""

    column: str
    difference: float | None
    low: float
    high: float
    candidate_rows: int
    baseline_rows: int
    """With values between ``low`` and ``high``."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no number is given."""

    code: str
    summary: str
    hint: str
    needed: tuple[Needed, ...] = ()


@dataclass(frozen=True, slots=True)
class GammaBound:
    """What is left if a hidden factor multiplies the odds of the candidate by ``gamma``."""

    gamma: float
    low: float | None
    high: float | None
    """A 95 % interval: ratios, or differences where the outcome has no logarithm."""


@dataclass(frozen=True, slots=True)
class HiddenBias:
    """Rosenbaum's bounds, on a match in pairs without replacement."""

    of: str
    """Whose odds: "pairs" of rows, or "clusters"."""
    number: int
    bounds: tuple[GammaBound, ...]
    gamma_to_change: float | None
    """From this factor of the odds on, the interval holds "no difference"."""
    summary: str


@dataclass(frozen=True, slots=True)
class Robustness:
    """How strong a hidden factor must be (Cinelli and Hazlett 2020)."""

    value: float | None
    """The share of the variance left of both treatment and outcome that it must explain."""
    strongest: str | None
    """The observed column that the factor is measured by."""
    multiple: float | None
    """So many times as strong as that column takes the whole effect away."""
    summary: str


@dataclass(frozen=True, slots=True)
class Placebo:
    """An effect that cannot be: of an outcome, or in a period, that the candidate cannot reach."""

    kind: str
    name: str
    ratio: float | None
    ratio_ci: Bounds
    difference: float | None
    difference_ci: Bounds
    shows_effect: bool | None
    """Whether it shows one all the same; ``None`` if it could not be looked at."""
    summary: str


@dataclass(frozen=True, slots=True)
class Period:
    """The effect in one stretch of time."""

    begins: str
    ends: str
    candidate_rows: int
    ratio: float | None
    ratio_ci: Bounds
    difference: float
    difference_ci: Bounds


@dataclass(frozen=True, slots=True)
class Contribution:
    """What of the naive difference one column accounts for, by regression (Gelbach 2016)."""

    column: str
    log_ratio: float | None
    difference: float


@dataclass(frozen=True, slots=True)
class Caution:
    """A warning: what, and what to do about it."""

    code: str
    summary: str
    hint: str


@dataclass(frozen=True, slots=True)
class Stratum:
    """The effect in the rows of one value of a column, matched and judged by themselves."""

    name: str
    candidate_rows: int
    baseline_rows: int
    dropped: str | None
    """Why it takes no part in the answer; ``None`` if it does. What follows is null then."""
    matched_rows: int | None
    """The candidate's that found a match: what it weighs."""
    ratio: float | None
    difference: float | None
    method: str | None
    caliper: float | None
    worst_column: str | None
    worst_difference: float | None
    """The column least alike after matching, in standard deviations."""
    gamma_to_change: float | None
    """``None`` also where its own effect is not shown even without a hidden factor."""


@dataclass(frozen=True, slots=True)
class Strata:
    """The values of one column, each read, matched and judged alone."""

    column: str
    each: tuple[Stratum, ...]
    worst: str
    """The stratum that takes part with the column least alike."""
    shared_clusters: int | None
    """Clusters with rows in several strata; ``None`` without clusters."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The whole document, in the order in which it is written."""

    schema: str
    summary: str
    question: Asked
    rows: Rows
    naive: Effect
    refusal: Refusal | None
    matched: Matched | None
    """``None`` with a refusal."""
    clustering: Clustering | None
    matching: Matching
    about: str
    dropped: tuple[DroppedMean, ...]
    balance: tuple[ColumnBalance, ...]
    contributions: tuple[Contribution, ...]
    hidden_bias: HiddenBias | None
    robustness: Robustness | None
    placebos: tuple[Placebo, ...]
    periods: tuple[Period, ...]
    strata: Strata | None
    """``None`` if all rows were matched together."""
    warnings: tuple[Caution, ...]
