"""The Kolmogorov-Smirnov test of two samples: exact with ties, asymptotic, and bootstrapped.

The bootstrap is that of Abadie (2002, Journal of the American Statistical Association 97,
284-292), which is right where the distribution has atoms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise import _native
from equipoise.matching.distributions import Sample, TwoSamples, sample, two_samples
from equipoise.matching.units import Floats
from equipoise.model.errors import UnusableInput

EXACT_BELOW = 10_000
"""The exact p-value is computed if the product of the sizes is smaller, as R does since 4.2."""
BOOTSTRAP_TOLERANCE = math.sqrt(np.finfo(np.float64).eps)
"""A bootstrapped distance that is smaller by no more than this counts as reaching."""
_DRAWS_AT_ONCE = 1_000_000

MOST_BOOT = 1_000_000
"""Largest number of bootstrap samples: it gives a p-value to three digits."""


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

    Parameters
    ----------
    treated, control
        Lists of numbers, of any lengths.
    boot
        Number of bootstrap samples; 0 for none, otherwise at least 10.
    weights_treated, weights_control
        Weight of each row; their sums stand for the sizes of the samples. Weights that
        are not all 1 leave only the asymptotic p-value.
    r_compatible
        Stop the asymptotic series where R does, which shows in the sixth decimal.

    Raises
    ------
    UnusableInput
        A sample or its weights cannot be used, or ``boot`` is out of range.
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
    if boot > MOST_BOOT:
        raise UnusableInput(
            f"boot={boot}: too many bootstrap samples", hint=f"give at most {MOST_BOOT}"
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
    at_once = max(1, _DRAWS_AT_ONCE // max(size, *(len(column.values) for column in columns)))
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
