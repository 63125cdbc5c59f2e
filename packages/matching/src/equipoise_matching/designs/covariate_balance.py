"""Compare the arms of a design in one covariate: means, variances, distributions, densities.

The conventions are those that the documentation of R's package cobalt 4.5 describes for
``bal.tab``: a difference of means is divided by a standard deviation before matching, whose rows
are named; the difference of a binary covariate stays raw unless it is standardized on request.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from equipoise_matching.designs.units import effective_size
from equipoise_matching.matching.distributions import Sample, ks_statistic, two_samples
from equipoise_matching.matching.frames import distinct_texts
from equipoise_matching.matching.units import (
    Floats,
    Indices,
    check_length,
    power_of_two,
    refuse_rows,
)
from equipoise_matching.matching.univariate import Moments, quotient, variance_ratio
from equipoise_matching.shared.density import MIN_VALUES, density, silverman_bandwidth
from equipoise_matching.shared.errors import UnusableInput

if TYPE_CHECKING:
    from equipoise_matching.designs.design import Design

Denominator = Literal["treated", "controls", "pooled", "all"]
"""Rows whose standard deviation before matching divides a difference of means."""
BinaryDifference = Literal["raw", "standardized"]
"""Whether the difference of a binary covariate is one of shares, or is divided as the others."""
DENOMINATORS: dict[str, Denominator] = {"ATT": "treated", "ATC": "controls"}
"""Denominator by estimand; ``pooled`` for every other estimand, and for several arms."""
MAX_CLUSTERS = 500
"""Largest number of clusters; a column with more values has a value for nearly each row."""
OVERLAP_POINTS = 2048
"""Number of points at which two densities are compared."""
OVERLAP_MARGIN = 1.0
"""Range beyond the values, as a share of their range, in which densities are compared."""


@dataclass(frozen=True, slots=True)
class BalanceOptions:
    """The options of a balance, with the meaning that `Design.balance` documents."""

    standardize: Denominator | None = None
    binary: BinaryDifference = "raw"
    squares: bool = False
    interactions: bool = False


@dataclass(frozen=True, slots=True)
class PairBalance:
    """One covariate in two arms.

    Attributes
    ----------
    mean_treated, mean_control
        Weighted means, in the unit of the covariate; shares if the covariate is binary.
    difference
        Mean of the treated less that of the controls: in standard deviations, or raw.
    variance_ratio
        Weighted variance of the treated over that of the controls; NaN for a binary covariate.
    ks_statistic
        Largest distance of the weighted distribution functions, from 0 to 1.
    overlap
        Area that both weighted densities share, from 0 (apart) to 1 (equal). cobalt prints 1 less
        this area.
    """

    mean_treated: float
    mean_control: float
    difference: float
    variance_ratio: float
    ks_statistic: float
    overlap: float


UNKNOWN_BALANCE = PairBalance(*[math.nan] * 6)
"""Balance where an arm has no rows."""


@dataclass(frozen=True, slots=True)
class VariableBalance:
    """The balance of one covariate, before and after, in one pair of arms and one group of rows.

    ``comparison`` names the pair. ``cluster`` and ``imputation`` are ``None`` without clusters and
    imputed data sets.
    """

    variable: str
    is_binary: bool
    comparison: str
    cluster: str | None
    imputation: int | None
    before: PairBalance
    after: PairBalance

    @property
    def place(self) -> str:
        """The covariate, with its comparison, cluster and imputation as far as there are any."""
        parts = [self.variable, self.comparison, self.cluster or ""]
        if self.imputation is not None:
            parts.append(f"imputation {self.imputation}")
        return ", ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class ArmSize:
    """Rows of an arm before matching, rows that are kept, and their effective number."""

    arm: str
    cluster: str | None
    imputation: int | None
    rows: int
    kept: int
    effective: float


def checked_denominator(options: BalanceOptions, design: Design) -> Denominator:
    """Return the denominator after checking the options."""
    focal, has_two_arms = focal_arm(design), len(design.units.arms) == 2
    default = DENOMINATORS.get(design.estimand, "pooled")
    if focal is None:
        default = "pooled"
    standardize = options.standardize or default
    for name, value, allowed in (
        ("standardize", standardize, get_args(Denominator)),
        ("binary", options.binary, get_args(BinaryDifference)),
    ):
        if value not in allowed:
            raise UnusableInput(
                f"{name} is {value!r}", hint=f"choose one of {', '.join(map(repr, allowed))}"
            )
    if (standardize == "treated" and focal is None) or (
        standardize == "controls" and not has_two_arms
    ):
        raise UnusableInput(
            f"standardize={standardize!r} needs two arms, and the design has "
            f"{len(design.units.arms)}",
            hint="give standardize='pooled' or standardize='all'",
        )
    return standardize


def focal_arm(design: Design) -> int | None:
    """Return the position of the treated arm; of several arms, of the one that the design names."""
    if len(design.units.arms) == 2:
        return 1
    focal = design.details.get("Focal arm")
    return design.units.arm_names.index(focal) if focal in design.units.arm_names else None


@dataclass(frozen=True, slots=True, eq=False)
class ArmRows:
    """The rows of an arm in a group, and their weights after matching.

    The weights are scaled to add up to the effective number of rows, which `Moments` takes as the
    size of the sample. So the variance does not depend on the scale of the weights.
    """

    name: str
    rows: Indices
    weights: Floats

    def before(self, column: Floats) -> Sample:
        """Return the values of all rows."""
        return Sample(column[self.rows])

    def after(self, column: Floats) -> Sample:
        """Return the values and the weights of the rows that are kept."""
        is_kept = self.weights > 0.0
        return Sample(column[self.rows[is_kept]], self.weights[is_kept])


@dataclass(frozen=True, slots=True, eq=False)
class RowGroup:
    """The arms of a design, or of one of its clusters."""

    arms: tuple[ArmRows, ...]
    focal: int | None
    """Position of the treated arm, if there is one."""
    cluster: str | None
    imputation: int | None

    def sizes(self) -> Iterator[ArmSize]:
        """Yield the numbers of rows of each arm."""
        for arm in self.arms:
            kept, effective = int((arm.weights > 0.0).sum()), float(arm.weights.sum())
            yield ArmSize(arm.name, self.cluster, self.imputation, len(arm.rows), kept, effective)


def row_groups_of(design: Design, cluster: Any, imputation: int | None) -> Iterator[RowGroup]:
    """Yield the rows of a design by cluster and arm; without clusters, all rows by arm."""
    names = design.units.arm_names
    arm, weights = design.units.arm, design.weights
    for index, name in enumerate(names):
        if not weights[arm == index].any():
            raise UnusableInput(
                f"{design.method} keeps no row of the arm {name.lower()}, so there is no balance "
                "after matching",
                hint="widen the caliper or the tolerances of the design",
            )
    labels: list[str | None] = [None]
    group = np.zeros(len(arm), dtype=np.int64)
    if cluster is not None:
        texts, group = distinct_texts(np.asarray(cluster).reshape(-1), "cluster")
        labels = [*texts]
        check_length(len(group), "cluster", len(arm))
        if len(labels) > MAX_CLUSTERS:
            raise UnusableInput(
                f"cluster has {len(labels)} different values, which are too many for clusters",
                hint=f"give a column with at most {MAX_CLUSTERS} values",
            )
    # Rows are sorted once by group and arm, because a search per group would read all rows again.
    code = group * len(names) + arm
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(len(labels) * len(names) + 1))
    for index, label in enumerate(labels):
        arms = []
        for position, name in enumerate(names):
            first = index * len(names) + position
            rows = order[bounds[first] : bounds[first + 1]]
            # Division by the largest weight first, because a sum of large weights is infinite.
            arm_weights = weights[rows] / (weights[rows].max(initial=0.0) or 1.0)
            total = float(arm_weights.sum())
            scale = effective_size(arm_weights) / total if total else 0.0
            arms.append(ArmRows(name, rows, arm_weights * scale))
        yield RowGroup(tuple(arms), focal_arm(design), label, imputation)


def expanded_columns(
    names: Sequence[str], matrix: Floats, options: BalanceOptions
) -> Iterator[tuple[str, Floats, bool]]:
    """Yield each column with its name, and whether it is binary, then squares and products.

    A binary column becomes an indicator of its larger value, whose square it is itself. Products
    that are constant are left out.
    """
    columns = [_indicator(name, matrix[:, index]) for index, name in enumerate(names)]
    yield from columns
    if options.squares:
        for name, column, is_binary in columns:
            if not is_binary and column.min() < column.max():
                yield _product(f"{name}**2", column, column)
    if options.interactions:
        for (first, left, _), (second, right, _) in itertools.combinations(columns, 2):
            product = _product(f"{first} * {second}", left, right)
            if product[1].min() < product[1].max():
                yield product


def _indicator(name: str, column: Floats) -> tuple[str, Floats, bool]:
    low, high = float(column.min()), float(column.max())
    is_high = column == high
    if low == high or not (is_high | (column == low)).all():
        return name, column, False
    label = name if (low, high) == (0.0, 1.0) else f"{name} = {high:.6g}"
    return label, is_high.astype(np.float64), True


def _product(name: str, left: Floats, right: Floats) -> tuple[str, Floats, bool]:
    with np.errstate(over="ignore"):
        product = left * right
    refuse_rows(~np.isfinite(product), name, "is too large", "divide the covariates by a constant")
    return _indicator(name, product)


def balances_of_column(
    name: str,
    column: Floats,
    is_binary: bool,
    group: RowGroup,
    standardize: Denominator,
    options: BalanceOptions,
) -> Iterator[VariableBalance]:
    """Yield the balance of a column in each pair of arms of a group."""
    # The values are divided by a power of two, so that no square overflows.
    scale = power_of_two(column)
    scaled = column / scale
    variance = _denominator(scaled, is_binary, group, standardize)
    divisor = 1.0 / scale if is_binary and options.binary == "raw" else math.sqrt(variance)
    for control, treated in itertools.combinations(group.arms, 2):
        before = after = UNKNOWN_BALANCE
        if len(treated.rows) and len(control.rows):
            samples = two_samples(treated.before(scaled), control.before(scaled))
            before = _compare(
                samples.treated, samples.control, ks_statistic(samples), is_binary, divisor, scale
            )
            if treated.weights.any() and control.weights.any():
                after = _compare(
                    treated.after(scaled),
                    control.after(scaled),
                    ks_statistic(samples.with_weights(treated.weights, control.weights)),
                    is_binary,
                    divisor,
                    scale,
                )
        comparison = "" if len(group.arms) == 2 else f"{treated.name} vs {control.name}"
        yield VariableBalance(
            name, is_binary, comparison, group.cluster, group.imputation, before, after
        )


def _denominator(
    column: Floats, is_binary: bool, group: RowGroup, standardize: Denominator
) -> float:
    """Return the variance before matching of the rows that ``standardize`` names."""
    arms = group.arms
    if standardize in ("treated", "controls"):
        arms = (arms[0 if standardize == "controls" else group.focal or 0],)
    samples = [arm.before(column).values for arm in arms]
    if standardize == "all":
        samples = [np.concatenate(samples)]
    if not all(map(len, samples)):
        return math.nan
    return math.fsum(_variance(Moments.of(values, None), is_binary) for values in samples) / len(
        samples
    )


def _variance(moments: Moments, is_binary: bool) -> float:
    """Return the variance; that of a binary covariate with the share p is p (1 - p)."""
    return moments.population_variance if is_binary else moments.sample_variance


def _compare(
    treated: Sample, control: Sample, ks: float, is_binary: bool, divisor: float, scale: float
) -> PairBalance:
    """Compare two samples of values that were divided by ``scale``."""
    moments = [Moments.of(arm.values, arm.weights) for arm in (treated, control)]
    difference = moments[0].mean - moments[1].mean
    ratio, overlap = math.nan, 1.0 - ks
    if not is_binary:
        ratio = variance_ratio(*(_variance(arm, is_binary) for arm in moments))
        overlap = overlap_coefficient(treated, control)
    return PairBalance(
        moments[0].mean * scale,
        moments[1].mean * scale,
        quotient(difference, divisor) if difference else 0.0,
        ratio,
        ks,
        overlap,
    )


def overlap_coefficient(first: Sample, second: Sample) -> float:
    """Return the area that the densities of two samples share, from 0 to 1 (Bradley 1985).

    Both densities are Gaussian with Silverman's bandwidth of the smaller sample: with different
    bandwidths, equal samples of many equal values would differ. NaN if a sample has fewer than five
    values. Equal constants overlap wholly.
    """
    low = min(float(sample.values.min()) for sample in (first, second))
    high = max(float(sample.values.max()) for sample in (first, second))
    if low == high:
        return 1.0
    smaller = min(first, second, key=lambda sample: len(sample.values))
    if len(smaller.values) < MIN_VALUES:
        return math.nan
    bandwidth = silverman_bandwidth(smaller.values, smaller.weights)
    margin = OVERLAP_MARGIN * (high - low)
    points = np.linspace(low - margin, high + margin, OVERLAP_POINTS)
    shares = []
    for sample in (first, second):
        curve = density(sample.values, points[0], points[-1], sample.weights, bandwidth)
        if curve is None:
            return math.nan
        heights = np.interp(points, *curve, left=0.0, right=0.0)
        shares.append(heights / heights.sum())
    return float(np.minimum(*shares).sum())
