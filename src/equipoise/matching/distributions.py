"""Two samples: their empirical distribution functions, and quantile-quantile differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.units import row_numbers
from equipoise.model.errors import UnusableInput

Values = NDArray[np.float64]


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
    first, second = sample(treated, "treated"), sample(control, "control")
    return qq_of(
        first,
        second,
        sample_weights(weights_treated, first, "weights_treated"),
        sample_weights(weights_control, second, "weights_control"),
        standardize=standardize,
        r_compatible=r_compatible,
    )


def qq_of(
    treated: Values,
    control: Values,
    weights_treated: Values | None,
    weights_control: Values | None,
    *,
    standardize: bool,
    r_compatible: bool = False,
) -> QQ:
    """Return what ``qq_stats`` does, from checked samples."""
    weights_treated, weights_control = _uneven(weights_treated), _uneven(weights_control)
    if standardize:
        samples = two_samples(treated, control, weights_treated, weights_control)
        return _summary(samples.distances)
    if weights_treated is None and weights_control is None:
        return _summary(np.abs(np.subtract(*matched_quantiles(treated, control, r_compatible))))
    return _between_quantile_functions(treated, control, weights_treated, weights_control)


def matched_quantiles(
    treated: Values, control: Values, r_compatible: bool = False
) -> tuple[Values, Values]:
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


def _summary(differences: Values) -> QQ:
    return QQ(
        float(np.mean(differences)), float(np.median(differences)), float(np.max(differences))
    )


def _uneven(weights: Values | None) -> Values | None:
    return None if weights is None or np.ptp(weights) == 0.0 else weights


def _between_quantile_functions(
    treated: Values,
    control: Values,
    weights_treated: Values | None,
    weights_control: Values | None,
) -> QQ:
    first, ends_first = _quantile_steps(treated, weights_treated)
    second, ends_second = _quantile_steps(control, weights_control)
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


def _quantile_steps(values: Values, weights: Values | None) -> tuple[Values, Values]:
    """Return the sorted values that count, and where in (0, 1] each one's step ends."""
    order = np.argsort(values, kind="stable")
    own = np.ones(len(values)) if weights is None else weights[order]
    counting = own > 0.0
    ends = np.cumsum(own[counting])
    ends = ends / ends[-1]
    ends[-1] = 1.0
    return values[order][counting], ends


def quantiles(values: Values, weights: Values | None, levels: Values) -> Values:
    """Return the quantile function, a step function, at levels in (0, 1)."""
    steps, ends = _quantile_steps(values, weights)
    return np.asarray(steps[np.searchsorted(ends, levels)], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class TwoSamples:
    """Two samples at the sorted distinct values of both.

    ``place`` gives for each row, the treated first, the index of its value; ``treated`` and
    ``control`` are the empirical distribution functions there.
    """

    values: Values
    place: NDArray[np.intp]
    treated: Values
    control: Values

    @property
    def distances(self) -> Values:
        """The distances ``|F_treated - F_control|`` at every distinct value."""
        return np.abs(self.treated - self.control)


def two_samples(
    treated: Values,
    control: Values,
    weights_treated: Values | None = None,
    weights_control: Values | None = None,
) -> TwoSamples:
    """Return both empirical distribution functions; without weights all rows count the same."""
    values, place = np.unique(np.concatenate([treated, control]), return_inverse=True)
    split = len(treated)
    return TwoSamples(
        values,
        place,
        _distribution(place[:split], len(values), weights_treated),
        _distribution(place[split:], len(values), weights_control),
    )


def _distribution(place: NDArray[np.intp], count: int, weights: Values | None) -> Values:
    mass = np.bincount(place, weights=weights, minlength=count)
    cumulated = np.cumsum(mass)
    return np.asarray(cumulated / cumulated[-1], dtype=np.float64)


def sample(values: Any, name: str) -> Values:
    """Return one sample as finite float64 numbers.

    Raises
    ------
    UnusableInput
        It is no list of numbers, is empty, or has missing or infinite values.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UnusableInput(f"{name}: not numbers ({error})", hint="give numbers") from error
    if array.ndim != 1 or not len(array):
        raise UnusableInput(
            f"{name}: a list of at least one number is needed, not shape {array.shape}",
            hint="give one column",
        )
    check_finite(array, name)
    return array


def sample_weights(weights: Any, values: Values, name: str) -> Values | None:
    """Return the weights of a sample; ``None`` where there are none.

    Raises
    ------
    UnusableInput
        They are not as many as the values, negative, not finite, or all zero.
    """
    if weights is None:
        return None
    array = sample(weights, name)
    if len(array) != len(values):
        raise UnusableInput(
            f"{name}: {len(array)} weights for {len(values)} values",
            hint="give one weight for each value",
        )
    if np.any(array < 0):
        raise UnusableInput(
            f"{name}: negative in {row_numbers(array < 0)}", hint="weights are zero or more"
        )
    if not np.any(array > 0):
        raise UnusableInput(f"{name}: every weight is zero", hint="some row must count")
    return array


def check_finite(array: Values, name: str) -> None:
    """Refuse a column with missing or infinite values.

    Raises
    ------
    UnusableInput
        Naming the column and its rows, counted from 0.
    """
    bad = ~np.isfinite(array)
    if np.any(bad):
        kind = "missing" if np.all(np.isnan(array[bad])) else "missing or infinite"
        raise UnusableInput(
            f"{name}: {kind} in {row_numbers(bad)}",
            hint="drop these rows or fill them in first; rows are counted from 0",
        )
