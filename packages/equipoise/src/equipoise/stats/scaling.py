"""Growth of a cost with size N: c N^a (log N)^b, with intervals.

Over the sizes of one study log N and log log N are almost on one line, so that many pairs of a and
b fit. The exponent a is therefore given for each power b separately. Which simple laws fit is
decided from size to size.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import Interval
from equipoise.shared.spelling import option
from equipoise.stats.arrays import (
    LEVEL,
    RESAMPLES,
    FloatArray,
    circular_block_indices,
    percentile_interval,
)
from equipoise.stats.describe import median_interval

MIN_BLOCKS = 5
"""Minimum number of blocks that show the spread of an exponent."""
LOG_POWERS = (0, 1, 2)
"""Powers of log N for which the exponent of N is given."""
SIMPLE_EXPONENTS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
"""Exponents of N that are tried with each power of log N."""
_ROUNDING = 1e-9


class Exponent(Struct, frozen=True):
    """The exponent of N for a given power of log N."""

    log_power: int
    """Power b of log N."""
    power: float
    """Exponent a of N."""
    power_ci: Interval
    """Interval of the exponent; ``None`` with fewer than five blocks."""
    largest_miss: float
    """Deviation of the law at the size that it fits worst, as a fraction of the cost there."""


class Growth(Struct, frozen=True):
    """The cost at one size over that at the next smaller one."""

    smaller: float
    larger: float
    ratio: float
    ratio_ci: Interval
    """Interval; those of all sizes hold together. ``None`` if there are too few blocks for a
    bound."""
    blocks: int
    """Number of blocks in which both sizes ran."""


class ScalingLaw(Struct, frozen=True):
    """Law by which a cost grows with size."""

    sizes: tuple[float, ...]
    medians: tuple[float, ...]
    exponents: tuple[Exponent, ...]
    """Exponent for each power of log N; the first is the plain power law. With two sizes all fit
    exactly."""
    growth: tuple[Growth, ...]
    simple: tuple[tuple[float, int], ...]
    """Simple laws (a, b) that no growth interval excludes."""
    can_tell: bool
    """Whether every growth has an interval; without one no law can be excluded."""

    @property
    def power_law(self) -> Exponent:
        """Exponent of the law without a logarithm."""
        return self.exponents[0]


def scaling_law(sizes: Sequence[float], costs: FloatArray, *, seed: int) -> ScalingLaw:
    """Fit c N^a (log N)^b to costs.

    Raise `UnusableInput` if there are fewer than two sizes, or if a size is not above 1 or has no
    positive finite median.

    Parameters
    ----------
    sizes
        Shape (k,), k at least 2: different sizes above 1.
    costs
        Shape (n, k): the cost at each size in each of n blocks, in the order in which they ran;
        NaN where a size was left out of a block, +inf where a trial timed out.
    seed
        Seed of the resampling of blocks.

    Returns
    -------
    For each b, the slope of the least-squares line of the log cost − b ln ln N on ln N, with equal
    weights. The log cost rises from size to size by the median of the within-block log ratios. The
    interval is the percentile interval of circular block resamples (Politis and Romano 1992). The
    growth from a size to the next is that median, with its exact binomial interval (David and
    Nagaraja 2003, §7.1) at 0.05 over the number of growths (Bonferroni). A law fits if it lies
    within all these intervals.
    """
    order = np.argsort(np.asarray(sizes, dtype=np.float64))
    ordered = np.asarray(sizes, dtype=np.float64)[order]
    if len(ordered) < 2 or not (ordered > 1).all() or not (np.diff(ordered) > 0).all():
        raise UnusableInput(
            f"the sizes {', '.join(f'{size:g}' for size in sizes)} give no scaling law",
            hint="give at least two different sizes above 1",
        )
    with np.errstate(divide="ignore"):
        logs = np.log(costs[:, order])
    medians = _medians(logs[None])[0]
    if not np.isfinite(medians).all():
        worst = ordered[np.flatnonzero(~np.isfinite(medians))[0]]
        raise UnusableInput(
            f"the size {worst:g} has no positive, finite median cost: too many of its trials timed "
            "out, cost 0 or were left out",
            hint=f"leave the size out, or give a longer {option('timeout')}",
        )
    growth = tuple(_growths(ordered, logs))
    profile, resampled = _profiles(logs[None])[0], _resampled(logs, seed)
    return ScalingLaw(
        sizes=tuple(ordered.tolist()),
        medians=tuple(np.exp(medians).tolist()),
        exponents=tuple(
            _exponent(np.log(ordered), profile, resampled, power) for power in LOG_POWERS
        ),
        growth=growth,
        simple=tuple(
            (exponent, power)
            for power in LOG_POWERS
            for exponent in SIMPLE_EXPONENTS
            if all(_agrees(step, exponent, power) for step in growth)
        ),
        can_tell=all(step.ratio_ci != (None, None) for step in growth),
    )


def describe_law(exponent: float, log_power: int) -> str:
    """Return a law as it is written: ``N^2 log N``."""
    size = {0.0: "", 1.0: "N"}.get(exponent, f"N^{exponent:g}")
    logarithm = {0: "", 1: "log N"}.get(log_power, f"(log N)^{log_power}")
    return f"{size} {logarithm}".strip() or "constant"


def _medians(logs: FloatArray) -> FloatArray:
    """Return the medians of r samples of shape (n, k), shape (r, k); NaN where all are unknown."""
    unknown = np.asarray(np.isnan(logs).all(axis=1))
    # NumPy would warn of a column without a known value.
    medians = np.nanmedian(np.where(unknown[:, None], 0.0, logs), axis=1)
    return np.asarray(np.where(unknown, np.nan, medians), dtype=np.float64)


def _profiles(logs: FloatArray) -> FloatArray:
    """Return the rise of the log cost from the smallest size, shape (r, k), of r samples (n, k).

    From size to size it is the median of the differences within blocks, which share their drift; if
    no block has both sizes, the difference of the medians.
    """
    with np.errstate(invalid="ignore"):
        within = _medians(np.diff(logs, axis=2))
        between = np.diff(_medians(logs), axis=1)
    steps = np.where(np.isfinite(within), within, between)
    start = np.zeros((len(logs), 1))
    return np.concatenate([start, np.cumsum(steps, axis=1)], axis=1)


def _resampled(logs: FloatArray, seed: int) -> FloatArray | None:
    """Return the profiles of resamples of whole blocks, shape (r, k)."""
    if len(logs) < MIN_BLOCKS:
        return None
    indices = circular_block_indices(len(logs), RESAMPLES, np.random.default_rng(seed))
    profiles = _profiles(logs[indices])
    return profiles[np.isfinite(profiles).all(axis=1)]


def _exponent(
    log_sizes: FloatArray,
    profile: FloatArray,
    resampled: FloatArray | None,
    power: int,
) -> Exponent:
    offsets = power * np.log(log_sizes)
    centred = log_sizes - log_sizes.mean()
    weights = centred / (centred**2).sum()
    exponent = float((profile - offsets) @ weights)
    residuals = profile - offsets - exponent * log_sizes
    residuals -= residuals.mean()
    interval: Interval = (None, None)
    if resampled is not None and len(resampled):
        interval = percentile_interval((resampled - offsets) @ weights)
    return Exponent(power, exponent, interval, float(np.expm1(np.abs(residuals).max())))


def _growths(sizes: FloatArray, logs: FloatArray) -> Iterator[Growth]:
    pairs = list(itertools.pairwise(sizes.tolist()))
    for place, (smaller, larger) in enumerate(pairs):
        both = np.isfinite(logs[:, place : place + 2]).all(axis=1)
        differences = np.sort(logs[both, place + 1] - logs[both, place])
        middle, low, high = math.nan, None, None
        if len(differences):
            middle = float(np.median(differences))
            low, high = median_interval(differences, LEVEL / len(pairs))
        yield Growth(
            smaller=smaller,
            larger=larger,
            ratio=math.exp(middle),
            ratio_ci=(
                None if low is None else math.exp(low),
                None if high is None else math.exp(high),
            ),
            blocks=len(differences),
        )


def _agrees(growth: Growth, exponent: float, power: int) -> bool:
    low, high = growth.ratio_ci
    logs = math.log(growth.larger) / math.log(growth.smaller)
    predicted = float((growth.larger / growth.smaller) ** exponent * logs**power)
    above = low is None or low <= predicted * (1.0 + _ROUNDING)
    return above and (high is None or predicted <= high * (1.0 + _ROUNDING))
