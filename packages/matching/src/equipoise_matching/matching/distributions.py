"""Compare two samples: distribution functions, quantiles (QQ), Kolmogorov-Smirnov (KS) tests.

F_treated and F_control are the empirical distribution functions of the samples: F(x) is the share
of the weight of values up to x. The KS statistic is the largest distance of both functions. Its
p-value is exact given the ties (equal values), asymptotic, or bootstrapped (Abadie 2002, Journal of
the American Statistical Association 97, 284-292). The bootstrap allows many ties.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise_matching import _native
from equipoise_matching.matching.units import Floats, refuse_non_finite, refuse_rows
from equipoise_matching.shared.errors import UnusableInput

EXACT_BELOW = 10_000
"""Product of the sample sizes below which the p-value is exact, as in R 4.2; else asymptotic."""
BOOTSTRAP_TOLERANCE = math.sqrt(np.finfo(np.float64).eps)
"""Rounding error by which a bootstrapped distance may be below the observed distance."""
_MAX_DRAWS_PER_BATCH = 1_000_000
"""Largest number of drawn rows or values in memory at a time."""
MIN_BOOT_SAMPLES = 10
"""Smallest number of bootstrap samples that gives a p-value."""
NARROW_STEP = 1e-12
"""Width, in levels, up to which a step of a quantile function is a rounding error."""
MAX_BOOT_SAMPLES = 1_000_000
"""Largest number of bootstrap samples, which gives a p-value to three digits."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The values of one group, and their weights; ``None`` for weights of 1."""

    values: Floats
    weights: Floats | None = None

    @property
    def unweighted(self) -> Sample:
        """The same values without weights."""
        return Sample(self.values)

    @property
    def weights_or_ones(self) -> Floats:
        """Weight of each value, 1 without weights."""
        return np.ones(len(self.values)) if self.weights is None else self.weights


@dataclass(frozen=True, slots=True)
class DifferenceSummary:
    """Mean, median and largest of the differences between two samples."""

    mean: float
    median: float
    max: float


def qq_stats(
    treated: Any,
    control: Any,
    *,
    standardize: bool = True,
    weights_treated: Any = None,
    weights_control: Any = None,
    r_compatible: bool = False,
) -> DifferenceSummary:
    """Return the mean, the median and the largest difference between two samples.

    With ``standardize``, the differences are ``|F_treated - F_control|`` at every distinct value.
    Without it, the differences are between the sorted samples, in the unit of the data. The longer
    sample is reduced to values at equally spaced positions, rounded down (Sekhon 2011, Journal of
    Statistical Software 42(7), section 3). If weights are unequal, the differences are between both
    quantile functions. With ``r_compatible``, rounding errors may lower a position by 1, as in R.

    Raise `UnusableInput` if a sample or its weights cannot be used.

    Examples
    --------
    >>> from equipoise_matching import qq_stats
    >>> qq_stats([1, 2, 3], [2, 3, 5], standardize=False).max
    2.0
    >>> round(qq_stats([1, 2, 3], [2, 3, 5]).max, 3)
    0.333
    """
    treated = checked_sample(treated, "treated", weights_treated)
    control = checked_sample(control, "control", weights_control)
    return qq_of_samples(treated, control, standardize=standardize, r_compatible=r_compatible)


def qq_of_samples(
    treated: Sample, control: Sample, *, standardize: bool, r_compatible: bool = False
) -> DifferenceSummary:
    """Return the result of ``qq_stats``, from checked samples."""
    treated, control = _without_equal_weights(treated), _without_equal_weights(control)
    if standardize:
        return _summarize_differences(two_samples(treated, control).distances)
    if treated.weights is None and control.weights is None:
        pair = matched_quantiles(treated.values, control.values, r_compatible)
        return _summarize_differences(np.abs(np.subtract(*pair)))
    return _between_quantile_functions(treated, control)


def matched_quantiles(
    treated: Floats, control: Floats, r_compatible: bool = False
) -> tuple[Floats, Floats]:
    """Return both samples sorted, the longer sample reduced to the length of the shorter."""
    treated, control = np.sort(treated), np.sort(control)
    count = min(len(treated), len(control))
    indices_of = _thinned_indices_of_r if r_compatible else _thinned_indices
    return treated[indices_of(len(treated), count)], control[indices_of(len(control), count)]


def _thinned_indices_of_r(length: int, count: int) -> Any:
    # R counts positions from 1, and adds equal steps in floating point.
    return np.floor(np.linspace(1.0, float(length), count)).astype(np.int64) - 1


def _thinned_indices(length: int, count: int) -> Any:
    """Return ``count`` equally spaced indices of a list, from the first to the last."""
    if length == count:
        return slice(None)
    if count == 1:
        return slice(0, 1)
    # The arithmetic is in integers, because a rounding error must not lower a position.
    return np.arange(count, dtype=np.int64) * (length - 1) // (count - 1)


def _summarize_differences(differences: Floats) -> DifferenceSummary:
    return DifferenceSummary(
        *(float(statistic(differences)) for statistic in (np.mean, np.median, np.max))
    )


def _without_equal_weights(group: Sample) -> Sample:
    return group.unweighted if group.weights is not None and np.ptp(group.weights) == 0.0 else group


def _between_quantile_functions(treated: Sample, control: Sample) -> DifferenceSummary:
    """Return the differences of the quantiles of two weighted samples over levels from 0 to 1."""
    treated_steps, treated_ends = _quantile_steps(treated)
    control_steps, control_ends = _quantile_steps(control)
    # Between two ends of steps, both quantile functions are constant.
    ends = np.union1d(treated_ends, control_ends)
    widths = np.diff(ends, prepend=0.0)
    mid_levels = ends - widths / 2.0
    differences = np.abs(
        treated_steps[np.searchsorted(treated_ends, mid_levels)]
        - control_steps[np.searchsorted(control_ends, mid_levels)]
    )
    # Rounding makes very narrow steps, which must not decide the largest difference.
    is_wide = widths > NARROW_STEP
    order = np.argsort(differences, kind="stable")
    median_index = int(np.searchsorted(np.cumsum(widths[order]), 0.5))
    return DifferenceSummary(
        float(np.sum(widths * differences)),
        float(differences[order[min(median_index, len(order) - 1)]]),
        float(np.max(differences[is_wide])),
    )


def _quantile_steps(group: Sample) -> tuple[Floats, Floats]:
    """Return the sorted values of positive weight, and the share of the weight up to each value."""
    order = np.argsort(group.values, kind="stable")
    weights = group.weights_or_ones[order]
    has_weight = weights > 0.0
    end_levels = np.cumsum(weights[has_weight])
    end_levels = end_levels / end_levels[-1]
    end_levels[-1] = 1.0
    return group.values[order][has_weight], end_levels


def quantiles(group: Sample, levels: Floats) -> Floats:
    """Return the quantiles of a sample at levels between 0 and 1."""
    sorted_values, end_levels = _quantile_steps(group)
    return np.asarray(sorted_values[np.searchsorted(end_levels, levels)], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class TwoSamples:
    """Two samples, and their empirical distribution functions at the sorted distinct values.

    ``value_index`` has for each row the index of its value in ``values``, the treated rows first.
    """

    treated: Sample
    control: Sample
    values: Floats
    value_index: NDArray[np.intp]
    distribution_treated: Floats
    distribution_control: Floats

    @property
    def distances(self) -> Floats:
        """The distances ``|F_treated - F_control|`` at every distinct value."""
        return np.abs(self.distribution_treated - self.distribution_control)

    def with_weights(self, treated: Floats, control: Floats) -> TwoSamples:
        """Return the same values with other weights, without sorting the values again."""
        count, first_control = len(self.values), len(self.treated.values)
        return TwoSamples(
            Sample(self.treated.values, treated),
            Sample(self.control.values, control),
            self.values,
            self.value_index,
            _distribution_of(self.value_index[:first_control], count, treated),
            _distribution_of(self.value_index[first_control:], count, control),
        )


def two_samples(treated: Sample, control: Sample) -> TwoSamples:
    """Return the empirical distribution functions of two samples."""
    all_values = np.concatenate([treated.values, control.values])
    values, value_index = np.unique(all_values, return_inverse=True)
    treated_count = len(treated.values)
    return TwoSamples(
        treated,
        control,
        values,
        value_index,
        _distribution_of(value_index[:treated_count], len(values), treated.weights),
        _distribution_of(value_index[treated_count:], len(values), control.weights),
    )


def _distribution_of(value_index: NDArray[np.intp], count: int, weights: Floats | None) -> Floats:
    mass = np.bincount(value_index, weights=weights, minlength=count)
    cumulative = np.cumsum(mass)
    return np.asarray(cumulative / cumulative[-1], dtype=np.float64)


def checked_sample(values: Any, name: str, weights: Any = None) -> Sample:
    """Return a sample of finite numbers with its weights; errors call the sample ``name``."""
    array = _checked_numbers(values, name)
    return Sample(array, sample_weights(weights, len(array), f"weights_{name}"))


def sample_weights(weights: Any, count: int, name: str) -> Floats | None:
    """Return the weights of ``count`` values; ``None`` without weights."""
    if weights is None:
        return None
    array = _checked_numbers(weights, name)
    if len(array) != count:
        raise UnusableInput(
            f"{name}: {len(array)} weights for {count} values",
            hint="give one weight for each value",
        )
    refuse_rows(array < 0, name, "is negative", "give weights of 0 or more")
    if not np.any(array > 0):
        raise UnusableInput(f"{name}: every weight is zero", hint="give a weight above 0")
    return array


def _checked_numbers(values: Any, name: str) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UnusableInput(f"{name}: not numbers ({error})", hint="give numbers") from error
    if array.ndim != 1 or not len(array):
        raise UnusableInput(
            f"{name}: a list of at least one number is needed, not shape {array.shape}",
            hint="give one column",
        )
    refuse_non_finite(array, name)
    return array


@dataclass(frozen=True, slots=True)
class KSTest:
    """A two-sided Kolmogorov-Smirnov test.

    ``statistic`` is the largest ``|F_treated - F_control|``. ``p_value`` is exact or asymptotic,
    for independent rows. ``boot_p_value`` comes from ``boot`` bootstrap samples, and is ``None`` if
    ``boot`` is 0.
    """

    statistic: float
    p_value: float
    boot_p_value: float | None
    boot: int


def ks_boot(
    treated: Any,
    control: Any,
    *,
    boot: int = 1000,
    weights_treated: Any = None,
    weights_control: Any = None,
    seed: int | np.random.Generator | None = None,
    r_compatible: bool = False,
) -> KSTest:
    """Test whether two samples have the same distribution.

    Raise `UnusableInput` if a sample or its weights cannot be used, or ``boot`` is out of range.

    Examples
    --------
    >>> from equipoise_matching import ks_boot
    >>> test = ks_boot([1, 2, 3, 4], [3, 4, 5, 6, 7], boot=200, seed=1)
    >>> round(test.statistic, 3), round(test.p_value, 3), test.boot_p_value
    (0.6, 0.19, 0.21)

    Parameters
    ----------
    treated, control
        Lists of numbers, of any lengths.
    boot
        Number of bootstrap samples: 0 for none, or at least 10.
    weights_treated, weights_control
        Weight of each row. If not all weights are 1, the p-value is asymptotic.
    r_compatible
        Whether to end the asymptotic series early as in R, which changes the sixth decimal.
    """
    check_boot(boot)
    treated = checked_sample(treated, "treated", weights_treated)
    control = checked_sample(control, "control", weights_control)
    random = random_generator(seed)
    (test,) = ks_tests([(treated, control)], boot=boot, random=random, r_compatible=r_compatible)
    return test


def ks_tests(
    columns: Sequence[tuple[Sample, Sample]],
    *,
    boot: int,
    random: np.random.Generator,
    r_compatible: bool,
    progress: Callable[[int], None] | None = None,
) -> list[KSTest]:
    """Test several columns of the same rows, with the same bootstrap samples of rows."""
    pairs = [two_samples(*map(_without_unit_weights, groups)) for groups in columns]
    boot_values = boot_p_values(pairs, boot, random, progress) if boot else [None] * len(pairs)
    return [
        KSTest(ks_statistic(pair), ks_p_value(pair, r_compatible=r_compatible), boot_p_value, boot)
        for pair, boot_p_value in zip(pairs, boot_values, strict=True)
    ]


def check_boot(boot: int) -> None:
    """Raise `UnusableInput` if the number of bootstrap samples is too small or too large."""
    if boot and boot < MIN_BOOT_SAMPLES:
        hint = f"give 0 for none, or {MIN_BOOT_SAMPLES} or more"
        raise UnusableInput(f"boot={boot}: too few bootstrap samples", hint=hint)
    if boot > MAX_BOOT_SAMPLES:
        raise UnusableInput(
            f"boot={boot}: too many bootstrap samples", hint=f"give at most {MAX_BOOT_SAMPLES}"
        )


def random_generator(seed: int | np.random.Generator | None) -> np.random.Generator:
    """Return the random number generator of the bootstrap."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise UnusableInput(f"seed is {seed!r}", hint="give a whole number from 0 up") from error


def _without_unit_weights(group: Sample) -> Sample:
    return group.unweighted if np.all(group.weights_or_ones == 1.0) else group


def ks_statistic(samples: TwoSamples) -> float:
    """Return the largest distance of the two empirical distribution functions."""
    return float(np.max(samples.distances))


def ks_p_value(samples: TwoSamples, *, r_compatible: bool) -> float:
    """Return the p-value: exact given the ties, or asymptotic for large or weighted samples."""
    treated, control = samples.treated, samples.control
    count_treated, count_control = len(treated.values), len(control.values)
    is_weighted = treated.weights is not None or control.weights is not None
    if not is_weighted and count_treated * count_control < EXACT_BELOW:
        steps_treated = np.rint(samples.distribution_treated * count_treated).astype(np.int64)
        steps_control = np.rint(samples.distribution_control * count_control).astype(np.int64)
        # The largest distance times both sizes, which is a whole number.
        reach = np.max(np.abs(steps_treated * count_control - steps_control * count_treated))
        tie_sizes = np.bincount(samples.value_index, minlength=len(samples.values))
        tie_ends = np.cumsum(tie_sizes).tolist()
        return _native.smirnov_p_value(int(reach), count_treated, count_control, tie_ends)
    sizes = [float(group.weights_or_ones.sum()) for group in (treated, control)]
    root = math.sqrt(sizes[0] * sizes[1] / (sizes[0] + sizes[1]))
    return _native.kolmogorov_p_value(root * ks_statistic(samples), r_compatible)


def boot_p_values(
    columns: list[TwoSamples],
    boot: int,
    random: np.random.Generator,
    progress: Callable[[int], None] | None = None,
) -> list[float]:
    """Return for each column the share of bootstrap samples with at least the observed distance.

    Rows are drawn with replacement from both samples together, the same rows for every column. The
    first drawn rows form the treated group, the others the controls. The chance of a row is
    proportional to its weight, and the size of a group is the sum of its weights.
    """
    if not columns:
        return []
    source_rows = len(columns[0].value_index)
    groups = (columns[0].treated, columns[0].control)
    size_treated, size_control = (
        max(1, round(float(group.weights_or_ones.sum()))) for group in groups
    )
    draw_bounds = None  # Each row has an interval between bounds, as wide as its weight.
    if any(group.weights is not None for group in groups):
        cumulative = np.cumsum(np.concatenate([group.weights_or_ones for group in groups]))
        draw_bounds = (cumulative / cumulative[-1])[:-1]
    reaching_counts = np.zeros(len(columns), dtype=np.int64)
    distance_limits = [ks_statistic(column) - BOOTSTRAP_TOLERANCE for column in columns]
    row_count = size_treated + size_control
    # The size of a batch does not change the order of the draws.
    max_length = max(row_count, *(len(column.values) for column in columns))
    batch_size = max(1, _MAX_DRAWS_PER_BATCH // max_length)
    for batch_start in range(0, boot, batch_size):
        sample_count = min(batch_size, boot - batch_start)
        if draw_bounds is None:
            draws = random.integers(0, source_rows, size=(sample_count, row_count))
        else:
            chances = random.random((sample_count, row_count))
            draws = np.searchsorted(draw_bounds, chances, side="right")
        for index, column in enumerate(columns):
            value_index = column.value_index[draws]
            treated = _distribution_functions(value_index[:, :size_treated], len(column.values))
            control = _distribution_functions(value_index[:, size_treated:], len(column.values))
            distances = np.abs(treated - control).max(axis=1)
            reaching_counts[index] += int(np.count_nonzero(distances >= distance_limits[index]))
        if progress is not None:
            progress(batch_start + sample_count)
    return [float(count) / boot for count in reaching_counts]


def _distribution_functions(value_index: NDArray[np.intp], value_count: int) -> Floats:
    """Return the empirical distribution functions of several samples, one per row."""
    sample_count, size = value_index.shape
    offset = np.arange(sample_count, dtype=np.intp)[:, np.newaxis] * value_count
    counts = np.bincount((value_index + offset).ravel(), minlength=sample_count * value_count)
    cumulative = np.cumsum(counts.reshape(sample_count, value_count), axis=1)
    return np.asarray(cumulative / size, dtype=np.float64)
