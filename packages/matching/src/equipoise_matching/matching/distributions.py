"""Two samples: their empirical distribution functions, QQ differences, Kolmogorov-Smirnov tests.

The tests are exact with ties, asymptotic, and bootstrapped as by Abadie (2002, Journal of the
American Statistical Association 97, 284-292), which is right where the distribution has atoms.
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
"""The exact p-value is computed if the product of the sizes is smaller, as R does since 4.2."""
BOOTSTRAP_TOLERANCE = math.sqrt(np.finfo(np.float64).eps)
"""A bootstrapped distance that is smaller by no more than this counts as reaching."""
_MAX_DRAWS_AT_ONCE = 1_000_000

MAX_BOOT_SAMPLES = 1_000_000
"""Largest number of bootstrap samples: it gives a p-value to three digits."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The values of one group, and the weight of each (``None`` if all weigh the same)."""

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
class QQ:
    """Mean, median and largest difference of two samples."""

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
) -> QQ:
    """Return the distance of two samples: mean, median and largest difference.

    Standardized: ``|F_treated - F_control|`` at every distinct value of both (0 to 1). Raw:
    the differences of the sorted samples in the unit of the data; if one is longer, every
    k-th of its values is taken, at or below the place of the shorter one's (Sekhon 2011,
    Journal of Statistical Software 42(7), section 3). With weights that differ: the distance
    of the two quantile functions over the unit interval, its mean and median over that
    interval; for samples of one length without weights both are the same.

    With ``r_compatible`` a place that is whole may be missed by a rounding error, as in R.

    Raise `UnusableInput` if a sample or its weights cannot be used.

    Examples
    --------
    >>> from equipoise_matching import qq_stats
    >>> qq_stats([1, 2, 3], [2, 3, 5], standardize=False).max
    2.0
    >>> round(qq_stats([1, 2, 3], [2, 3, 5]).max, 3)
    0.333
    """
    first = sample(treated, "treated", weights_treated)
    second = sample(control, "control", weights_control)
    return qq_of(first, second, standardize=standardize, r_compatible=r_compatible)


def qq_of(treated: Sample, control: Sample, *, standardize: bool, r_compatible: bool = False) -> QQ:
    """Return the result of ``qq_stats`` from checked samples."""
    treated, control = _without_even_weights(treated), _without_even_weights(control)
    if standardize:
        return _summary(two_samples(treated, control).distances)
    if treated.weights is None and control.weights is None:
        pair = matched_quantiles(treated.values, control.values, r_compatible)
        return _summary(np.abs(np.subtract(*pair)))
    return _between_quantile_functions(treated, control)


def matched_quantiles(
    treated: Floats, control: Floats, r_compatible: bool = False
) -> tuple[Floats, Floats]:
    """Return both samples sorted, the longer one thinned to the length of the shorter one."""
    first, second = np.sort(treated), np.sort(control)
    shorter = min(len(first), len(second))
    thinned = _thinned_as_in_r if r_compatible else _thinned
    return first[thinned(len(first), shorter)], second[thinned(len(second), shorter)]


def _thinned_as_in_r(length: int, count: int) -> Any:
    # R counts places from 1, and adds up equal steps in floating point.
    return np.floor(np.linspace(1.0, float(length), count)).astype(np.int64) - 1


def _thinned(length: int, count: int) -> Any:
    if length == count:
        return slice(None)
    if count == 1:
        return slice(0, 1)
    # In integers: a place that is whole must not be missed by a rounding error.
    return np.arange(count, dtype=np.int64) * (length - 1) // (count - 1)


def _summary(differences: Floats) -> QQ:
    return QQ(*(float(part(differences)) for part in (np.mean, np.median, np.max)))


def _without_even_weights(group: Sample) -> Sample:
    return group.unweighted if group.weights is not None and np.ptp(group.weights) == 0.0 else group


def _between_quantile_functions(treated: Sample, control: Sample) -> QQ:
    first, ends_first = _quantile_steps(treated)
    second, ends_second = _quantile_steps(control)
    ends = np.union1d(ends_first, ends_second)
    widths = np.diff(ends, prepend=0.0)
    middles = ends - widths / 2.0
    differences = np.abs(
        first[np.searchsorted(ends_first, middles)] - second[np.searchsorted(ends_second, middles)]
    )
    # Ends that differ by rounding alone leave slivers, which must not decide the largest.
    real = widths > 1e-12
    order = np.argsort(differences, kind="stable")
    half = int(np.searchsorted(np.cumsum(widths[order]), 0.5))
    return QQ(
        float(np.sum(widths * differences)),
        float(differences[order[min(half, len(order) - 1)]]),
        float(np.max(differences[real])),
    )


def _quantile_steps(group: Sample) -> tuple[Floats, Floats]:
    """Return the sorted values that count, and where in (0, 1] each one's step ends."""
    order = np.argsort(group.values, kind="stable")
    weights = group.weights_or_ones[order]
    counting = weights > 0.0
    ends = np.cumsum(weights[counting])
    ends = ends / ends[-1]
    ends[-1] = 1.0
    return group.values[order][counting], ends


def quantiles(group: Sample, levels: Floats) -> Floats:
    """Return the quantile function, a step function, at levels in (0, 1)."""
    steps, ends = _quantile_steps(group)
    return np.asarray(steps[np.searchsorted(ends, levels)], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class TwoSamples:
    """Two samples at the sorted distinct values of both.

    ``place`` gives for each row, the treated first, the index of its value; the distributions
    are the empirical distribution functions at ``values``.
    """

    treated: Sample
    control: Sample
    values: Floats
    place: NDArray[np.intp]
    distribution_treated: Floats
    distribution_control: Floats

    @property
    def distances(self) -> Floats:
        """The distances ``|F_treated - F_control|`` at every distinct value."""
        return np.abs(self.distribution_treated - self.distribution_control)


def two_samples(treated: Sample, control: Sample) -> TwoSamples:
    """Return both empirical distribution functions; without weights all rows count the same."""
    both = np.concatenate([treated.values, control.values])
    values, place = np.unique(both, return_inverse=True)
    split = len(treated.values)
    return TwoSamples(
        treated,
        control,
        values,
        place,
        _distribution(place[:split], len(values), treated.weights),
        _distribution(place[split:], len(values), control.weights),
    )


def _distribution(place: NDArray[np.intp], count: int, weights: Floats | None) -> Floats:
    mass = np.bincount(place, weights=weights, minlength=count)
    cumulated = np.cumsum(mass)
    return np.asarray(cumulated / cumulated[-1], dtype=np.float64)


def sample(values: Any, name: str, weights: Any = None) -> Sample:
    """Return one sample as finite numbers, with its weights; errors call it by its name."""
    array = _numbers(values, name)
    return Sample(array, sample_weights(weights, len(array), f"weights_{name}"))


def sample_weights(weights: Any, count: int, name: str) -> Floats | None:
    """Return the weights of ``count`` values; ``None`` without weights."""
    if weights is None:
        return None
    array = _numbers(weights, name)
    if len(array) != count:
        raise UnusableInput(
            f"{name}: {len(array)} weights for {count} values",
            hint="give one weight for each value",
        )
    refuse_rows(array < 0, name, "is negative", "weights are zero or more")
    if not np.any(array > 0):
        raise UnusableInput(f"{name}: every weight is zero", hint="some row must count")
    return array


def _numbers(values: Any, name: str) -> Floats:
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
    """A two-sided test.

    ``statistic`` is the largest ``|F_treated - F_control|``; ``p_value`` the naive one, which
    takes rows to be independent; ``boot_p_value`` is ``None`` without a bootstrap.
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
    """Test whether two samples have one distribution.

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
        Number of bootstrap samples; 0 for none, else at least 10.
    weights_treated, weights_control
        Weight of each row; their sums stand for the sizes of the samples. Weights that
        are not all 1 leave only the asymptotic p-value.
    r_compatible
        Stop the asymptotic series where R does, which shows in the sixth decimal.
    """
    check_boot(boot)
    first = sample(treated, "treated", weights_treated)
    second = sample(control, "control", weights_control)
    (test,) = ks_tests(
        [(first, second)], boot=boot, random=generator(seed), r_compatible=r_compatible
    )
    return test


def ks_tests(
    columns: Sequence[tuple[Sample, Sample]],
    *,
    boot: int,
    random: np.random.Generator,
    r_compatible: bool,
    progress: Callable[[int], None] | None = None,
) -> list[KSTest]:
    """Test several columns of the same rows, bootstrapped together."""
    samples = [two_samples(_effective(first), _effective(second)) for first, second in columns]
    boots = boot_p_values(samples, boot, random, progress) if boot else [None] * len(samples)
    return [
        KSTest(ks_statistic(pair), naive_p_value(pair, r_compatible=r_compatible), boot_p, boot)
        for pair, boot_p in zip(samples, boots, strict=True)
    ]


def check_boot(boot: int) -> None:
    """Refuse a number of bootstrap samples that is too small or too large."""
    if boot and boot < 10:
        raise UnusableInput(
            f"boot={boot}: too few bootstrap samples", hint="give 0 for none, or 10 and more"
        )
    if boot > MAX_BOOT_SAMPLES:
        raise UnusableInput(
            f"boot={boot}: too many bootstrap samples", hint=f"give at most {MAX_BOOT_SAMPLES}"
        )


def generator(seed: int | np.random.Generator | None) -> np.random.Generator:
    """Return the random numbers of the bootstrap."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise UnusableInput(f"seed is {seed!r}", hint="give a whole number from 0 up") from error


def _effective(group: Sample) -> Sample:
    """Return the sample without its weights if all are 1."""
    return group.unweighted if np.all(group.weights_or_ones == 1.0) else group


def ks_statistic(samples: TwoSamples) -> float:
    """Return the largest distance of the two empirical distribution functions."""
    return float(np.max(samples.distances))


def naive_p_value(samples: TwoSamples, *, r_compatible: bool) -> float:
    """Return the exact p-value given the ties; the asymptotic one of large or weighted samples."""
    treated, control = samples.treated, samples.control
    count_treated, count_control = len(treated.values), len(control.values)
    is_weighted = treated.weights is not None or control.weights is not None
    if not is_weighted and count_treated * count_control < EXACT_BELOW:
        steps_treated = np.rint(samples.distribution_treated * count_treated).astype(np.int64)
        steps_control = np.rint(samples.distribution_control * count_control).astype(np.int64)
        reach = np.max(np.abs(steps_treated * count_control - steps_control * count_treated))
        ends = np.cumsum(np.bincount(samples.place, minlength=len(samples.values))).tolist()
        return _native.smirnov_p_value(int(reach), count_treated, count_control, ends)
    sizes = [float(group.weights_or_ones.sum()) for group in (treated, control)]
    root = math.sqrt(sizes[0] * sizes[1] / (sizes[0] + sizes[1]))
    return _native.kolmogorov_p_value(root * ks_statistic(samples), r_compatible)


def boot_p_values(
    columns: list[TwoSamples],
    boot: int,
    random: np.random.Generator,
    progress: Callable[[int], None] | None = None,
) -> list[float]:
    """Return the share of bootstrap samples whose distance reaches the observed one, by column.

    Rows are drawn from both samples together, with replacement and the same ones for every
    column; the first ones stand for the treated. With weights, rows are drawn in proportion
    to them and as many as they add up to.
    """
    if not columns:
        return []
    rows = len(columns[0].place)
    first, second = columns[0].treated, columns[0].control
    size_treated, size_control = (
        max(1, round(float(group.weights_or_ones.sum()))) for group in (first, second)
    )
    chances = None
    if first.weights is not None or second.weights is not None:
        cumulated = np.cumsum(np.concatenate([first.weights_or_ones, second.weights_or_ones]))
        chances = (cumulated / cumulated[-1])[:-1]
    reached = np.zeros(len(columns), dtype=np.int64)
    observed = [ks_statistic(column) - BOOTSTRAP_TOLERANCE for column in columns]
    size = size_treated + size_control
    # The draws come one bootstrap sample after the other, however many are handled at once.
    at_once = max(1, _MAX_DRAWS_AT_ONCE // max(size, *(len(column.values) for column in columns)))
    for start in range(0, boot, at_once):
        number = min(at_once, boot - start)
        if chances is None:
            draws = random.integers(0, rows, size=(number, size))
        else:
            draws = np.searchsorted(chances, random.random((number, size)), side="right")
        for index, column in enumerate(columns):
            place = column.place[draws]
            treated = _distributions(place[:, :size_treated], len(column.values))
            control = _distributions(place[:, size_treated:], len(column.values))
            distances = np.abs(treated - control).max(axis=1)
            reached[index] += int(np.count_nonzero(distances >= observed[index]))
        if progress is not None:
            progress(start + number)
    return [float(count) / boot for count in reached]


def _distributions(place: NDArray[np.intp], count: int) -> Floats:
    """Return the empirical distribution functions of several samples, a row each."""
    number, size = place.shape
    offset = np.arange(number, dtype=np.intp)[:, np.newaxis] * count
    counts = np.bincount((place + offset).ravel(), minlength=number * count)
    return np.asarray(np.cumsum(counts.reshape(number, count), axis=1) / size, dtype=np.float64)
