"""Find covariates, such as the CPU, that are associated with a mode or with an amount.

A mode is one of several distinct times of a program; each trial belongs to one mode. An amount is a
number of each trial, such as its cost. Modes and amounts are correlated with each value of a
categorical covariate, such as the CPU, and with the ranks of each numeric covariate.

If the mode and a covariate change slowly, their correlation has a larger variance than 1/n. The
correlations at all circular shifts of the series estimate this variance (Bartlett 1946). Holm's
(1979) method adjusts the p-values for the number of tests.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise._native import student_p_value
from equipoise.model.result import ModeAssociation
from equipoise.stats.arrays import LEVEL, FloatArray, IntArray, shared_ranks
from equipoise.stats.spread import holm

MIN_TRIALS = 20
"""Minimum number of trials for associations of modes."""
MIN_MEMBERS = 4
"""Minimum number of trials of a mode, and of trials with one value of a categorical covariate."""
MIN_CORRELATION = 0.3
"""Minimum size of a correlation with a mode that is worth a report."""
MIN_TRIALS_FOR_AMOUNTS = 7
"""Minimum number of trials for associations of amounts."""


class Covariate(Struct, frozen=True):
    """Values of one covariate, one for each trial."""

    name: str
    values: FloatArray
    """Shape (n,), in the order in which the trials ran; NaN where unknown."""
    is_categorical: bool
    """Whether a value is the number of a category, such as a CPU, and not a quantity."""
    is_independent: bool
    """Whether the values count as independent: a coin drew them, or they are the time."""
    draw_count: int | None = None
    """Number of values that the coin drew; ``None`` if it drew a value for each trial."""


class Association(Struct, frozen=True):
    """A covariate that is associated with an amount."""

    covariate: str
    value: float | None
    """Number of the associated category, such as a CPU; ``None`` for a numeric covariate."""
    correlation: float
    """Correlation of the ranks with the covariate's ranks, or with membership of the category."""
    p_value: float
    """P-value, adjusted for all covariates together."""


def strongest_association(
    values: FloatArray, covariates: Sequence[Covariate]
) -> Association | None:
    """Return the association with the smallest p-value; ``None`` if it may be chance.

    The chance of a false association is at most 5 % (Bonferroni's bound). ``values``, shape (n,),
    are in the order in which the trials ran; their ranks are used. Covariates with unknown or
    constant values are left out.
    """
    count = len(values)
    rank_column = _standardise(shared_ranks(values), 0) if count >= MIN_TRIALS_FOR_AMOUNTS else None
    if rank_column is None:
        return None
    tested_associations = [
        Association(name, value, correlation, _t_test_p_value(correlation, trials))
        for name, value, correlation, trials in _correlate(rank_column, covariates, min_members=2)
    ]
    possible_associations = [
        association
        for association in tested_associations
        if association.value is None or association.correlation > 0
    ]
    if not possible_associations:
        return None
    strongest = min(possible_associations, key=lambda association: association.p_value)
    adjusted = min(1.0, strongest.p_value * len(tested_associations))
    return replace(strongest, p_value=adjusted) if adjusted <= LEVEL else None


def mode_associations(
    modes: IntArray, covariates: Sequence[Covariate]
) -> tuple[ModeAssociation, ...]:
    """Return the associations of each mode with covariates, the strongest first.

    ``modes``, shape (n,), has the mode of each trial, from 0, in the order in which the trials ran.
    Of two modes only the higher is reported. All else is as in ``strongest_association``.
    """
    if len(modes) < MIN_TRIALS:
        return ()
    tested_associations: list[ModeAssociation] = []
    mode_numbers = np.unique(modes)
    for mode in mode_numbers[1:] if len(mode_numbers) == 2 else mode_numbers:
        indicator = _standardise((modes == mode).astype(np.float64), MIN_MEMBERS)
        if indicator is not None:
            tested_associations += [
                ModeAssociation(
                    int(mode), name, value, correlation, _fisher_p_value(correlation, trials)
                )
                for name, value, correlation, trials in _correlate(
                    indicator, covariates, MIN_MEMBERS
                )
            ]
    tested_associations.sort(key=lambda association: association.p_value)
    adjusted = holm([association.p_value for association in tested_associations])
    associations = [
        replace(association, p_value=p_value)
        for association, p_value in zip(tested_associations, adjusted, strict=True)
        if p_value <= LEVEL
        and (association.value is None or association.correlation > 0)
        and abs(association.correlation) >= MIN_CORRELATION
    ]
    return tuple(sorted(associations, key=lambda association: -abs(association.correlation)))


def _correlate(
    tested_column: FloatArray, covariates: Sequence[Covariate], min_members: int
) -> Iterator[tuple[str, float | None, float, float]]:
    """Yield name, category, correlation and number of independent trials of each column."""
    for covariate in covariates:
        for value, covariate_column in _usable_columns(covariate, min_members):
            spectrum = np.fft.rfft(tested_column) * np.conj(np.fft.rfft(covariate_column))
            correlations = np.fft.irfft(spectrum, n=len(tested_column))
            trials = float(covariate.draw_count or len(tested_column))
            if not covariate.is_independent:
                trials = _independent_trials(correlations)
            yield covariate.name, value, float(correlations[0]), trials


def _usable_columns(
    covariate: Covariate, min_members: int
) -> Iterator[tuple[float | None, FloatArray]]:
    """Yield the standardised columns of a covariate, each with its category.

    A categorical covariate has a column of ones and zeros for each category. A numeric covariate
    has one column of ranks, with the category ``None``.
    """
    values = covariate.values
    if np.isnan(values).any():
        return
    columns: list[tuple[float | None, FloatArray, int]] = [(None, shared_ranks(values), 0)]
    if covariate.is_categorical:
        columns = [
            (float(value), (values == value).astype(np.float64), min_members)
            for value in np.unique(values)
        ]
    for value, unscaled_column, min_count in columns:
        column = _standardise(unscaled_column, min_count)
        if column is not None:
            yield value, column


def _standardise(column: FloatArray, min_members: int) -> FloatArray | None:
    """Return the column with mean 0 and sum of squares 1; ``None`` if all values are equal.

    Unless ``min_members`` is 0, also return ``None`` for fewer ones or zeros than ``min_members``.
    """
    if min_members and min(column.sum(), len(column) - column.sum()) < min_members:
        return None
    centred = column - column.mean()
    norm = float(np.sqrt(np.sum(centred**2)))
    return None if norm == 0.0 else centred / norm


def _independent_trials(correlations: FloatArray) -> float:
    """Return how many independent trials would give correlations that vary as much.

    ``correlations`` has the correlation at each circular shift. The first, at shift 0, is the
    tested correlation and is left out.
    """
    variance = float(np.mean(correlations[1:] ** 2))
    return min(float(len(correlations)), 1.0 + 1.0 / max(variance, 1e-12))


def _t_test_p_value(correlation: float, trials: float) -> float:
    """Return the two-sided p-value by Student's t, which also holds for under 20 trials."""
    degrees = math.floor(trials) - 2
    if degrees < 1:
        return 1.0
    strength = min(abs(correlation), 1.0 - 1e-12)
    return student_p_value(strength * math.sqrt(degrees / (1.0 - strength**2)), degrees)


def _fisher_p_value(correlation: float, trials: float) -> float:
    """Return the two-sided p-value by Fisher's (1921) transformation."""
    if trials <= 4.0:
        return 1.0
    # Imported late: it imports decimals and fractions, which most campaigns do not need.
    from statistics import NormalDist

    standardised = math.atanh(min(abs(correlation), 1.0 - 1e-12)) * math.sqrt(trials - 3.0)
    return 2.0 * NormalDist().cdf(-standardised)
