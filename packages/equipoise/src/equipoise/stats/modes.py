"""Distinct times of one program: the modes of a sample (docs/methods/distribution.md).

Does a sample have one peak, or several? A *law* is a probability distribution.

1. Fit a mixture of two normal laws. Its *valley* is the value with the least density between them.
2. Fit shapes with one peak, such as Student's t.
3. Split the sample at the valley, if the valley is clear and the two laws fit much better.
4. Split each side of the valley in the same way.

The *log evidence* for a split is half of this difference: the least BIC of a shape with one peak
minus the BIC of two laws (`least_bic_with_one_peak`). It is about the logarithm of the Bayes factor
for two modes. This module uses only NumPy, so that the base install can find modes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from equipoise.stats.arrays import NORMAL_MAD, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.polynomial import Chebyshev

MIN_VALUES = 10
"""Minimum number of values of a sample that can be split."""
MAX_VALLEY_DENSITY = 0.9
"""Maximum density in the valley, as a fraction of the density of the lower peak."""
MIN_LOG_EVIDENCE = 0.5
"""Minimum log evidence for splitting a whole sample."""
MIN_LOG_EVIDENCE_TIMES_VALUES = 40.0
"""Minimum product of log evidence and number of values: small samples need more evidence."""
MIN_LOG_EVIDENCE_OF_SIDE = 6.0
"""Minimum log evidence for splitting a side of a valley again."""
MIN_SHARE, MIN_MEMBERS = 0.05, 4
"""Minimum share of the values, and minimum number of values, of one mode."""
MAX_VALUES = 1000
"""Number of quantiles to which a larger sample is reduced."""


class Modes(Struct, frozen=True):
    """The modes of one sample, from the lowest up."""

    locations: tuple[float, ...]
    """Value at which each mode is densest (`half_sample_mode`)."""
    shares: tuple[float, ...]
    """Share of the values that belongs to each mode."""
    valleys: tuple[float, ...]
    """Values that separate the modes: n - 1 valleys for n modes."""
    log_evidence: float | None
    """Least log evidence of all splits that were made, or log evidence of a rejected first split.

    ``None`` for too few values, or no valley."""

    def indices_of(self, values: FloatArray) -> IntArray:
        """Return the index of each value's mode, from 0; shape (n,)."""
        return np.asarray(np.searchsorted(np.array(self.valleys), values), dtype=np.int64)


def find_modes(values: FloatArray, *, resolution: float = 0.0) -> Modes:
    """Return the modes of a sample, at least one.

    ``values``, shape (n,), has at least one value; all are finite. ``resolution`` is the smallest
    step of the measuring instrument, in the unit of the values, or 0. Two values with one step
    between them are not two modes.
    """
    ordered = np.sort(values)
    count = len(ordered)
    resolution = max(resolution, _printed_resolution(ordered))
    sample = ordered
    if count > MAX_VALUES:
        sample = np.quantile(ordered, (np.arange(MAX_VALUES) + 0.5) / MAX_VALUES)
    min_members = max(MIN_SHARE * len(sample), MIN_MEMBERS * len(sample) / count)
    valleys, log_evidence = _find_valleys(
        _spread_ties(sample, resolution), min_members, resolution, MIN_LOG_EVIDENCE
    )
    # Leave out the valleys between values that were equal before `_spread_ties`.
    begins = [0, *np.searchsorted(ordered, valleys).tolist()]
    valleys = [
        valley
        for valley, (begin, end) in zip(valleys, pairwise(begins), strict=True)
        if begin < end < count
    ]
    sides = np.split(ordered, np.searchsorted(ordered, valleys))
    return Modes(
        locations=tuple(half_sample_mode(side) for side in sides),
        shares=tuple(len(side) / count for side in sides),
        valleys=tuple(valleys),
        log_evidence=log_evidence,
    )


def _find_valleys(
    ordered: FloatArray, min_members: float, resolution: float, min_log_evidence: float
) -> tuple[list[float], float | None]:
    """Return the valleys of a sample, the lowest first, and `Modes.log_evidence`."""
    valley, log_evidence = _supported_valley(ordered, min_members, resolution, min_log_evidence)
    if valley is None:
        return [], log_evidence
    index = int(np.searchsorted(ordered, valley))
    (below, evidence_below), (above, evidence_above) = (
        _find_valleys(side, min_members, resolution, MIN_LOG_EVIDENCE_OF_SIDE)
        for side in (ordered[:index], ordered[index:])
    )
    # A side without a valley was not split.
    of_splits = (log_evidence, evidence_below if below else None, evidence_above if above else None)
    return [*below, valley, *above], min(known for known in of_splits if known is not None)


def _supported_valley(
    ordered: FloatArray, min_members: float, resolution: float, min_log_evidence: float
) -> tuple[float | None, float | None]:
    """Return the valley if its log evidence suffices, and the log evidence if there is a valley."""
    count = len(ordered)
    if count < max(MIN_VALUES, 2 * min_members) or ordered[-1] - ordered[0] <= resolution:
        return None, None
    mixture = fit_two_normals(ordered)
    below_count = int(np.searchsorted(ordered, mixture.valley))
    smaller_count = min(below_count, count - below_count, mixture.shares.min() * count)
    if mixture.valley_density > MAX_VALLEY_DENSITY or smaller_count < min_members:
        return None, None
    sides = (ordered[:below_count], ordered[below_count:])
    bic_with_two_peaks = min(mixture.bic, _bic_of_sides(sides))
    log_evidence = 0.5 * (least_bic_with_one_peak(ordered) - bic_with_two_peaks)
    is_enough = log_evidence >= max(min_log_evidence, MIN_LOG_EVIDENCE_TIMES_VALUES / count)
    return mixture.valley if is_enough else None, log_evidence


def _bic_of_sides(sides: tuple[FloatArray, FloatArray]) -> float:
    """Return the BIC of a fit in which each side of a valley has one or two normal laws.

    Two normal laws alone would explain three equal modes no better than a uniform law.
    """
    count = sum(len(side) for side in sides)
    bic = math.log(count)
    for side in sides:
        if len(side) < MIN_VALUES or np.var(side) == 0.0:
            return math.inf
        normal = 2.0 * math.log(len(side)) + len(side) * (
            math.log(2.0 * math.pi * float(np.var(side))) + 1.0
        )
        bic += min(normal, fit_two_normals(side).bic) - 2.0 * len(side) * math.log(
            len(side) / count
        )
    return bic


def _spread_ties(ordered: FloatArray, resolution: float) -> FloatArray:
    """Spread equal values evenly over the step of the instrument, to which they were rounded."""
    if resolution == 0.0:
        return ordered
    _, first_indices, tie_counts = np.unique(ordered, return_index=True, return_counts=True)
    ranks = np.arange(len(ordered)) - np.repeat(first_indices, tie_counts)
    offsets = (ranks + 0.5) / np.repeat(tie_counts, tie_counts) - 0.5
    return np.sort(ordered + resolution * offsets)


def _printed_resolution(ordered: FloatArray) -> float:
    """Return the largest power of ten that divides every value; 0 if no values repeat."""
    # ``np.unique`` would import masked arrays first.
    distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    if len(distinct) == len(ordered):
        return 0.0
    largest_size = max(abs(float(ordered[0])), abs(float(ordered[-1])))
    first_exponent = 0 if largest_size == 0.0 else math.floor(math.log10(largest_size))
    for exponent in range(first_exponent, first_exponent - 12, -1):
        resolution = 10.0**exponent
        if resolution == 0.0:
            return 0.0
        multiples = distinct / resolution
        if np.all(np.abs(multiples - np.round(multiples)) <= 1e-9 * np.maximum(1.0, multiples)):
            return resolution
    return 0.0


EM_ROUNDS = 300
"""Maximum number of rounds of EM (expectation-maximisation)."""
ROUNDS_WITH_ALL_STARTS = 30
"""Number of rounds of EM after which only the best start continues."""
START_COUNT = 4
"""Number of starts of EM; each start splits the sample into a lower and an upper part."""
MIN_LIKELIHOOD_GAIN = 1e-6
"""EM stops if the log likelihood grows by less than this amount for each value."""
MIN_SD_SHARE = 0.01
"""Minimum sd of one law over the sd of the sample, so that a law cannot shrink onto one trial."""
VALLEY_POINTS = 101
"""Number of points between the two means at which the density is computed."""


class TwoNormals(Struct, frozen=True):
    """A fitted mixture of two normal laws; arrays have shape (2,), the lower law first."""

    shares: FloatArray
    means: FloatArray
    sds: FloatArray
    bic: float
    """BIC of the fit, as in `least_bic_with_one_peak`."""
    valley: float
    valley_density: float
    """Density in the valley over the density of the lower peak; 1 without a valley."""


def fit_two_normals(values: FloatArray) -> TwoNormals:
    """Fit a mixture of two normal laws by EM (Dempster, Laird and Rubin 1977).

    One fit has a common sd, another fit has a sd for each law. The result is the fit with the lower
    BIC. Each sd is at least ``MIN_SD_SHARE`` of the sample's sd. There must be at least four
    values: ascending, finite, and not all equal.
    """
    count, scale, centre = len(values), float(np.std(values)), float(np.mean(values))
    scaled = (values - centre) / scale
    starts = _starting_splits(scaled)
    fits = [
        (parameter_count * math.log(count) - 2.0 * log_likelihood, parameters)
        for parameter_count, equal_sds in ((4, True), (5, False))
        for log_likelihood, parameters in [_fit_by_em(scaled, starts, equal_sds=equal_sds)]
    ]
    bic, parameters = min(fits, key=lambda fit: fit[0])
    shares, means, variances = parameters[:, np.argsort(parameters[1])]
    sds = np.sqrt(variances)
    valley, density = _deepest_valley(shares, means, sds)
    return TwoNormals(
        shares=shares,
        means=centre + scale * means,
        sds=scale * sds,
        bic=bic + 2.0 * count * math.log(scale),
        valley=centre + scale * valley,
        valley_density=density,
    )


def _starting_splits(values: FloatArray) -> FloatArray:
    """Return the number of values in the lower part of each start of EM, shape (starts,)."""
    count = len(values)
    side_sizes = np.arange(2.0, count - 1)
    sums, squares = np.cumsum(values), np.cumsum(values**2)
    sums_below, squares_below = sums[1 : count - 2], squares[1 : count - 2]
    scores = np.zeros_like(side_sizes)
    for sizes, side_sums, side_squares in (
        (side_sizes, sums_below, squares_below),
        (count - side_sizes, sums[-1] - sums_below, squares[-1] - squares_below),
    ):
        variance = np.maximum(side_squares / sizes - (side_sums / sizes) ** 2, MIN_SD_SHARE**2)
        scores += sizes * (np.log(sizes) - 0.5 * np.log(variance))
    # Take the best split of each quarter, because neighbouring starts would give the same fit.
    quarters = np.array_split(np.arange(len(side_sizes)), min(START_COUNT, len(side_sizes)))
    return np.array([side_sizes[quarter[int(np.argmax(scores[quarter]))]] for quarter in quarters])


def _fit_by_em(
    values: FloatArray, lower_counts: FloatArray, *, equal_sds: bool
) -> tuple[float, FloatArray]:
    """Return the log likelihood of the best fit from all starts, and its parameters.

    ``lower_counts`` are as in `_starting_splits`. The parameters have the shape (3, 2): shares,
    means and variances of the two laws. Memberships have the shape (starts, laws, values).
    """
    count = len(values)
    in_lower = (np.arange(count)[None, :] < lower_counts[:, None]).astype(np.float64)
    memberships = np.stack([in_lower, 1.0 - in_lower], axis=1)
    squares = values**2
    previous_log_likelihoods = np.full(len(lower_counts), -math.inf)
    for round_number in range(EM_ROUNDS):
        law_sizes = np.maximum(memberships.sum(axis=2), 1e-9)
        shares = law_sizes / count
        means = memberships @ values / law_sizes
        variances = memberships @ squares / law_sizes - means**2
        if equal_sds:
            pooled_variance = np.sum(shares * variances, axis=1, keepdims=True)
            variances = np.broadcast_to(pooled_variance, variances.shape)
        variances = np.maximum(variances, MIN_SD_SHARE**2)
        log_densities = (
            np.log(shares / np.sqrt(2.0 * math.pi * variances))[:, :, None]
            - 0.5 * (values - means[:, :, None]) ** 2 / variances[:, :, None]
        )
        max_log_densities = log_densities.max(axis=1, keepdims=True)
        memberships = np.exp(log_densities - max_log_densities)
        density_sum = memberships.sum(axis=1, keepdims=True)
        memberships /= density_sum
        log_likelihoods = (max_log_densities + np.log(density_sum)).sum(axis=(1, 2))
        if np.all(log_likelihoods - previous_log_likelihoods < MIN_LIKELIHOOD_GAIN * count):
            break
        previous_log_likelihoods = log_likelihoods
        if round_number == ROUNDS_WITH_ALL_STARTS and len(log_likelihoods) > 1:
            best_start = [int(np.argmax(log_likelihoods))]
            memberships = memberships[best_start]
            previous_log_likelihoods = previous_log_likelihoods[best_start]
    best = int(np.argmax(log_likelihoods))
    return float(log_likelihoods[best]), np.array([shares[best], means[best], variances[best]])


def _deepest_valley(shares: FloatArray, means: FloatArray, sds: FloatArray) -> tuple[float, float]:
    """Return the valley, and its density as a fraction of the lower peak's density."""
    grid = np.linspace(means[0], means[1], VALLEY_POINTS)[:, None]
    density = (shares / sds * np.exp(-0.5 * ((grid - means) / sds) ** 2)).sum(axis=1)
    left_peak = np.maximum.accumulate(density)
    right_peak = np.maximum.accumulate(density[::-1])[::-1]
    fractions = density / np.minimum(left_peak, right_peak)
    valley_index = int(np.argmin(fractions))
    return float(grid[valley_index, 0]), float(fractions[valley_index])


def half_sample_mode(ordered: FloatArray) -> float:
    """Return the half-sample mode (Bickel and Frühwirth 2006).

    Each round keeps half of the values with the smallest range. The values are ascending.
    """
    narrowest = ordered
    while len(narrowest) > 3:
        half_length = (len(narrowest) + 1) // 2
        widths = narrowest[half_length - 1 :] - narrowest[: len(narrowest) - half_length + 1]
        start = int(np.argmin(widths))
        narrowest = narrowest[start : start + half_length]
    if len(narrowest) == 3:
        left, right = narrowest[1] - narrowest[0], narrowest[2] - narrowest[1]
        if left != right:
            narrowest = narrowest[:2] if left < right else narrowest[1:]
    return float(np.mean(narrowest))


STUDENT_DEGREES = np.array([1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0])
"""Degrees of freedom with which Student's t is fitted."""
STUDENT_ROUNDS, SPIKE_ROUNDS, GUMBEL_ROUNDS = 40, 40, 30
"""Numbers of rounds of EM, for Student's t and for spikes, and of bisection, for Gumbel laws."""
MAX_SEARCH_ROUNDS, MIN_SEARCH_STEP = 60, 0.01
"""Maximum number of rounds of a pattern search, and the step below which it stops."""
BETA_END_DISTANCES = (0.5, 2.0, 8.0)
"""Distances from the largest value to the upper end of a beta law, and from the smallest value to
its lower end. The unit is the range of the n values over n."""
SPIKE_SHARES = (0.02, 0.1)
"""Shares of spikes from which EM starts."""
MAX_SPIKE_SHARE = 0.15
"""Maximum share of spikes; more frequent distant values are not spikes."""
_MIN_POSITIVE = 1e-300
"""Smallest number of which a logarithm is taken."""
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def least_bic_with_one_peak(values: FloatArray) -> float:
    """Return the least BIC among the fits of shapes with one peak.

    For p parameters, n values and the likelihood L, the BIC is p·ln n - 2·ln L (Schwarz 1978). The
    shapes are normal, both Gumbels, uniform, beta and Student's t. Three shapes have one tail, on
    the side of the sample's longer tail: exponentially modified normal, shifted lognormal, and
    normal with rare spikes. The values are ascending. Functions ``_fit_…`` return log likelihoods.
    """
    count = len(values)
    # In units of the sd, the starts of the searches are near their results.
    scale = float(np.std(values))
    scaled = (values - np.mean(values)) / scale
    right_tailed = scaled if np.mean(scaled**3) >= 0 else -scaled[::-1]
    log_likelihoods = (
        (2, -0.5 * count * (math.log(2.0 * math.pi * float(np.var(scaled))) + 1.0)),
        (2, _fit_gumbel(scaled)),
        (2, _fit_gumbel(-scaled)),
        # Each end counts as two parameters, because its error is about 1/n, not 1/√n.
        (4, -count * math.log(float(scaled[-1] - scaled[0]))),
        (6, _fit_beta(scaled)),
        (3, _fit_student(scaled)),
        (3, _fit_exponentially_modified_normal(right_tailed)),
        (3, _fit_shifted_lognormal(right_tailed)),
        (4, _fit_normal_with_spikes(right_tailed)),
    )
    bic = min(
        parameter_count * math.log(count) - 2.0 * log_likelihood
        for parameter_count, log_likelihood in log_likelihoods
    )
    return bic + 2.0 * count * math.log(scale)


def _fit_beta(values: FloatArray) -> float:
    """Fit a beta law with one peak (both exponents at least 1) and ends beyond the extremes."""
    value_range = float(values[-1] - values[0])
    max_log_density = -math.inf
    for distance in BETA_END_DISTANCES:
        extra = distance * value_range / len(values)
        width = value_range + 2.0 * extra
        scaled = (values - values[0] + extra) / width
        # The likelihood depends on the sample only through these two means.
        mean_log, mean_log_of_rest = (
            float(np.mean(np.log(scaled))),
            float(np.mean(np.log1p(-scaled))),
        )
        mean, variance = float(np.mean(scaled)), float(np.var(scaled))
        exponent_sum = max(2.0, mean * (1.0 - mean) / variance - 1.0)
        start = (max(1.0, mean * exponent_sum), max(1.0, (1.0 - mean) * exponent_sum))
        log_density = _max_beta_log_density(mean_log, mean_log_of_rest, start, math.log(width))
        max_log_density = max(max_log_density, log_density)
    return len(values) * max_log_density


def _max_beta_log_density(
    mean_log: float, mean_log_of_rest: float, start: tuple[float, float], log_width: float
) -> float:
    """Return the maximum of the mean log density, given the means of ln x and ln(1 - x)."""

    def log_density(first: float, second: float) -> float:
        constant = math.lgamma(first + second) - math.lgamma(first) - math.lgamma(second)
        return constant + (first - 1.0) * mean_log + (second - 1.0) * mean_log_of_rest - log_width

    exponents, max_log_density, step = start, log_density(*start), 0.3
    while step > 1e-2:
        for direction in ((1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1)):
            first, second = (
                max(1.0, exponent * math.exp(step * sign))
                for exponent, sign in zip(exponents, direction, strict=True)
            )
            if (new_value := log_density(first, second)) > max_log_density:
                exponents, max_log_density = (first, second), new_value
                break
        else:
            step *= 0.5
    return max_log_density


def _fit_gumbel(values: FloatArray) -> float:
    """Fit the Gumbel law of maxima, by bisection of the likelihood equation for the scale."""
    mean, smallest = float(np.mean(values)), float(np.min(values))
    low_scale, high_scale = 1e-3, 10.0
    for _ in range(GUMBEL_ROUNDS):
        scale = math.sqrt(low_scale * high_scale)
        weight = np.exp(-(values - smallest) / scale)
        if scale - mean + float(np.sum(values * weight) / np.sum(weight)) > 0:
            high_scale = scale
        else:
            low_scale = scale
    location = smallest - scale * math.log(float(np.mean(weight)))
    standardised = (values - location) / scale
    return float(np.sum(-standardised - np.exp(-standardised))) - len(values) * math.log(scale)


def _fit_student(values: FloatArray) -> float:
    """Fit Student's t by EM (Lange, Little and Taylor 1989), over a grid of degrees of freedom."""
    degrees = STUDENT_DEGREES[:, None]
    centre = np.full_like(degrees, np.median(values))
    scale = np.full_like(degrees, max(1e-3, float(np.median(np.abs(values - centre[0])))))
    for _ in range(STUDENT_ROUNDS):
        weight = (degrees + 1.0) / (degrees + ((values - centre) / scale) ** 2)
        centre = np.sum(weight * values, axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
        scale = np.sqrt(np.mean(weight * (values - centre) ** 2, axis=1, keepdims=True)) + 1e-9
    constant = [
        math.lgamma((degree + 1) / 2) - math.lgamma(degree / 2) - 0.5 * math.log(degree * math.pi)
        for degree in STUDENT_DEGREES
    ]
    tails = np.log1p(((values - centre) / scale) ** 2 / degrees).sum(axis=1)
    log_likelihoods = len(values) * (constant - np.log(scale[:, 0])) - (
        (STUDENT_DEGREES + 1) / 2 * tails
    )
    return float(log_likelihoods.max())


def _fit_exponentially_modified_normal(values: FloatArray) -> float:
    """Fit the sum of a normal and an exponential variable (Grushka 1972): a tail to the right."""

    def log_likelihood(points: FloatArray) -> FloatArray:
        location, sd, tail_mean = points[:, :1], np.exp(points[:, 1:2]), np.exp(points[:, 2:])
        standardised = (values - location) / sd
        erfc_argument = (sd / tail_mean - standardised) / math.sqrt(2.0)
        # Two formulas for one function: each overflows for one sign of the argument.
        scaled = _scaled_erfc(np.abs(erfc_argument))
        for_positive = np.log(scaled) - 0.5 * standardised**2
        with np.errstate(over="ignore"):
            for_negative = np.log(
                np.maximum(2.0 - np.exp(-(erfc_argument**2)) * scaled, _MIN_POSITIVE)
            ) + (0.5 * (sd / tail_mean) ** 2 - standardised * sd / tail_mean)
        total = np.asarray(
            np.where(erfc_argument >= 0, for_positive, for_negative).sum(axis=1), dtype=np.float64
        )
        total -= len(values) * np.log(2.0 * tail_mean[:, 0])
        return total

    # The skewness, from 0 to 2, gives the mean of the exponential variable.
    skewness = min(1.9, max(0.05, float(np.mean(values**3))))
    tail_mean_by_skewness = (skewness / 2.0) ** (1.0 / 3.0)
    starts = [
        [-tail_mean, 0.5 * math.log(1.0 - tail_mean**2), math.log(tail_mean)]
        for tail_mean in (tail_mean_by_skewness, 0.5, 0.9, 0.99)
    ]
    return _max_log_likelihood(log_likelihood, np.array(starts))


def _fit_shifted_lognormal(values: FloatArray) -> float:
    """Fit a lognormal law that begins at a shift: take the best of a grid of shifts.

    If the shift approaches the smallest value, the likelihood grows without bound. So the shift
    stays at least a hundredth of the range below the smallest value.
    """
    smallest, value_range = float(values[0]), float(values[-1] - values[0])
    shifts = smallest - value_range * np.geomspace(0.01, 100.0, 60)
    log_excesses = np.log(values[None, :] - shifts[:, None])
    variances = np.var(log_excesses, axis=1)
    log_likelihoods = -0.5 * len(values) * (np.log(2.0 * math.pi * variances) + 1.0)
    return float(np.max(log_likelihoods - log_excesses.sum(axis=1)))


def _fit_normal_with_spikes(values: FloatArray) -> float:
    """Fit a normal law with rare spikes: uniform over the range, or exponential above the mean.

    EM fits both kinds of spikes at once, from several shares. All densities are logarithms.
    """
    count = len(values)
    share = np.array(SPIKE_SHARES * 2)[:, None]
    is_exponential = (np.arange(len(share)) < len(SPIKE_SHARES))[:, None]
    median = float(np.median(values))
    mean = np.full_like(share, median)
    sd = np.full_like(share, max(1e-3, NORMAL_MAD * float(np.median(np.abs(values - median)))))
    mean_excess = np.full_like(share, 1.0)
    log_likelihoods = np.zeros(len(share))
    uniform = -math.log(float(values[-1] - values[0]))
    for _ in range(SPIKE_ROUNDS):
        normal = np.log((1.0 - share) / sd) - 0.5 * ((values - mean) / sd) ** 2 - _HALF_LOG_TWO_PI
        excess = values - mean
        exponential = np.where(excess > 0, -excess / mean_excess - np.log(mean_excess), -math.inf)
        spikes = np.log(share) + np.where(is_exponential, exponential, uniform)
        mixture = np.logaddexp(normal, spikes)
        log_likelihoods = mixture.sum(axis=1)
        membership = np.exp(normal - mixture)
        weight = membership.sum(axis=1, keepdims=True) + 1e-9
        spike_count = np.maximum(count - weight, 1e-6)
        mean_excess = np.maximum(
            ((1.0 - membership) * np.maximum(excess, 0.0)).sum(axis=1, keepdims=True) / spike_count,
            1e-3,
        )
        mean = (membership * values).sum(axis=1, keepdims=True) / weight
        variance = (membership * (values - mean) ** 2).sum(axis=1, keepdims=True) / weight
        sd = np.sqrt(np.maximum(variance, 1e-4))
        share = np.clip(1.0 - weight / count, 1e-4, MAX_SPIKE_SHARE)
    return float(log_likelihoods.max())


def _max_log_likelihood(
    log_likelihood: Callable[[FloatArray], FloatArray], starts: FloatArray
) -> float:
    """Return the maximum of a log likelihood, by pattern search (Hooke and Jeeves 1961)."""
    values = log_likelihood(starts)
    best_point, max_value = starts[int(np.argmax(values))], float(np.max(values))
    directions = np.concatenate([np.eye(3), -np.eye(3), _DIAGONALS])
    step = 0.4
    for _ in range(MAX_SEARCH_ROUNDS):
        points = best_point + step * directions
        values = log_likelihood(points)
        index = int(np.argmax(values))
        if values[index] > max_value:
            best_point, max_value = points[index], float(values[index])
        elif step < MIN_SEARCH_STEP:
            break
        else:
            step *= 0.5
    return max_value


_DIAGONALS = np.array([[1.0, 1.0, -1.0], [-1.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 0.0, 1.0]])
"""Directions of the search, as (location, ln sd, ln tail mean): if the tail grows, the location
falls, or the location and the sd; and the reverse."""


def _scaled_erfc(values: FloatArray) -> FloatArray:
    """Return exp(x²)·erfc(x) for x ≥ 0, with a relative error of 1e-9."""
    t = (values - _MIDDLE_VALUE) / (values + _MIDDLE_VALUE)
    scaled: FloatArray = _scaled_erfc_series()(t) / (1.0 + 2.0 * values)
    return scaled


@cache
def _scaled_erfc_series() -> Chebyshev:
    """Return a polynomial in t for (1 + 2x)·exp(x²)·erfc(x), with x = 3.75·(1 + t)/(1 - t)."""

    def exact(t: float) -> float:
        value = _MIDDLE_VALUE * (1.0 + t) / (1.0 - t)
        if value < _MIN_ASYMPTOTIC_VALUE:
            return (1.0 + 2.0 * value) * math.exp(value**2) * math.erfc(value)
        # The first terms of the asymptotic series (Abramowitz and Stegun 7.1.23).
        square = 2.0 * value**2
        series = 1.0 - (1.0 - 3.0 / square * (1.0 - 5.0 / square * (1.0 - 7.0 / square))) / square
        return (2.0 + 1.0 / value) / math.sqrt(math.pi) * series

    # Imported here, because a campaign with few trials never needs it.
    from numpy.polynomial import Chebyshev

    return Chebyshev.interpolate(np.vectorize(exact, otypes=[np.float64]), _SERIES_DEGREE)


_MIDDLE_VALUE = 3.75
"""The x at t = 0."""
_MIN_ASYMPTOTIC_VALUE = 25.0
"""The x from which on a series replaces the product, which would overflow."""
_SERIES_DEGREE = 14
"""Degree of the polynomial."""
