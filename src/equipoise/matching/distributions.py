"""Two samples: their empirical distribution functions, and quantile-quantile differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.units import Floats, refuse_non_finite, refuse_rows
from equipoise.model.errors import UnusableInput


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The values of one group, and what each of them weighs (``None`` if all weigh the same)."""

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
    """Return how far apart two samples lie.

    Standardized: ``|F_treated - F_control|`` at every distinct value of both (0 to 1). Raw:
    the differences of the sorted samples in the unit of the data; if one is longer, every
    k-th of its values is taken, at or below the place of the shorter one's (Sekhon 2011,
    Journal of Statistical Software 42(7), section 3). With weights that differ: the distance
    of the two quantile functions over the unit interval, its mean and median over that
    interval; for samples of one length without weights both are the same.

    With ``r_compatible`` a place that is whole may be missed by a rounding error, as in R.

    Raises
    ------
    UnusableInput
        A sample or its weights cannot be used.
    """
    first = sample(treated, "treated", weights_treated)
    second = sample(control, "control", weights_control)
    return qq_of(first, second, standardize=standardize, r_compatible=r_compatible)


def qq_of(treated: Sample, control: Sample, *, standardize: bool, r_compatible: bool = False) -> QQ:
    """Return what ``qq_stats`` does, from checked samples."""
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
    """Return the weights of so many values; ``None`` where there are none."""
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
