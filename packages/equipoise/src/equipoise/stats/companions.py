"""What a mode or an amount goes with: the CPU, the place in the block, the environment, time.

Each mode is held against each value of a covariate of names and against the ranks of each amount
by their correlation. What is only observed may change as slowly as the modes do; then neighbours
are alike and the correlation of two series that have nothing to do with each other varies more
than 1/n. How much more is read off their correlations at all circular shifts against each other
(the effective number of trials: Bartlett 1946). Holm's (1979) step-down holds the level over all
that is tested.
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
MIN_MEMBERS = 4
"""Trials in a mode, and trials with a value: fewer cannot be distinguished from chance."""
MIN_STRENGTH = 0.3
"""Least correlation that is worth reporting."""
MIN_TRIALS_FOR_AMOUNTS = 7
"""Trials; and of each name of a covariate at least two."""


class Covariate(Struct, frozen=True):
    """Values that are known of each trial beside its cost."""

    name: str
    values: FloatArray
    """Shape (n,), in the order in which the trials ran; NaN where it is not known."""
    named: bool
    """Whether a value is a name (a CPU, a position), not an amount."""
    drawn: bool
    """Whether a coin drew it, or it is the time itself: no dependence of its own to allow for."""
    units: int | None = None
    """Number of draws, if it was not drawn anew for each trial."""


class Association(Struct, frozen=True):
    """A covariate that an amount goes with."""

    covariate: str
    value: float | None
    """The name it goes with, such as a CPU; ``None`` for an amount."""
    correlation: float
    """Correlation of the ranks, or of the ranks with having that name."""
    p_value: float
    """Adjusted for all covariates together."""


def strongest_association(
    values: FloatArray, covariates: Sequence[Covariate]
) -> Association | None:
    """Return what an amount goes with most surely; ``None`` where that can be chance.

    The chance that anything is named where nothing goes with it is 5 % (Bonferroni's bound).

    Parameters
    ----------
    values
        Shape (n,), in the order in which the trials ran; their ranks are used.
    covariates
        Each with n values. One that is not known everywhere, or never changes, is left out.
    """
    count = len(values)
    column = _standard(shared_ranks(values), 0) if count >= MIN_TRIALS_FOR_AMOUNTS else None
    if column is None:
        return None
    tested = [
        Association(name, value, correlation, _of_few(correlation, trials))
        for name, value, correlation, trials in _correlations(column, covariates, minimum=2)
    ]
    likely = [
        association
        for association in tested
        if association.value is None or association.correlation > 0
    ]
    if not likely:
        return None
    surest = min(likely, key=lambda association: association.p_value)
    adjusted = min(1.0, surest.p_value * len(tested))
    return replace(surest, p_value=adjusted) if adjusted <= LEVEL else None


def companions(modes: IntArray, covariates: Sequence[Covariate]) -> tuple[ModeAssociation, ...]:
    """Return which covariates go with which mode.

    Parameters
    ----------
    modes
        Shape (n,): the mode of each trial, from 0, in the order in which they ran.
    covariates
        As for ``strongest_association``, and with the same chance of naming any.

    Returns
    -------
    The strongest first. Of two modes only the higher is reported: the lower goes with the opposite.
    """
    if len(modes) < MIN_TRIALS:
        return ()
    tested: list[ModeAssociation] = []
    labels = np.unique(modes)
    for mode in labels[1:] if len(labels) == 2 else labels:
        member = _standard((modes == mode).astype(np.float64), MIN_MEMBERS)
        if member is not None:
            tested += [
                ModeAssociation(int(mode), name, value, size, _p_value(size, trials))
                for name, value, size, trials in _correlations(member, covariates, MIN_MEMBERS)
            ]
    tested.sort(key=lambda association: association.p_value)
    adjusted = holm([association.p_value for association in tested])
    named = [
        replace(association, p_value=p_value)
        for association, p_value in zip(tested, adjusted, strict=True)
        if p_value <= LEVEL
        and (association.value is None or association.correlation > 0)
        and abs(association.correlation) >= MIN_STRENGTH
    ]
    return tuple(sorted(named, key=lambda association: -abs(association.correlation)))


def _correlations(
    column: FloatArray, covariates: Sequence[Covariate], minimum: int
) -> Iterator[tuple[str, float | None, float, float]]:
    """Yield name, value, correlation and number of independent trials of each column tested."""
    for covariate in covariates:
        for value, other in _columns(covariate, minimum):
            # The correlation at every circular shift.
            spectrum = np.fft.rfft(column) * np.conj(np.fft.rfft(other))
            shifts = np.fft.irfft(spectrum, n=len(column))
            draws = float(covariate.units or len(column))
            trials = draws if covariate.drawn else _effective(shifts)
            yield covariate.name, value, float(shifts[0]), trials


def _columns(covariate: Covariate, minimum: int) -> Iterator[tuple[float | None, FloatArray]]:
    """Yield each column that the modes are held against, standardised."""
    values = covariate.values
    if np.isnan(values).any():
        return
    candidates: list[tuple[float | None, FloatArray, int]] = [(None, shared_ranks(values), 0)]
    if covariate.named:
        candidates = [
            (float(value), (values == value).astype(np.float64), minimum)
            for value in np.unique(values)
        ]
    for value, unscaled, fewest in candidates:
        column = _standard(unscaled, fewest)
        if column is not None:
            yield value, column


def _standard(column: FloatArray, minimum: int) -> FloatArray | None:
    """Scale to mean 0 and length 1; ``None`` if it never changes, or has too few ones or zeros."""
    if minimum and min(column.sum(), len(column) - column.sum()) < minimum:
        return None
    centred = column - column.mean()
    length = float(np.sqrt(np.sum(centred**2)))
    return None if length == 0.0 else centred / length


def _effective(correlations: FloatArray) -> float:
    """Return how many independent trials would let the correlation vary as much as the shifts do.

    The shift by nothing, which is what is tested, is left out.
    """
    variance = float(np.mean(correlations[1:] ** 2))
    return min(float(len(correlations)), 1.0 + 1.0 / max(variance, 1e-12))


def _of_few(correlation: float, trials: float) -> float:
    """Return the two-sided p-value by Student's t.

    Fisher's transformation is too sure of under 20 trials.
    """
    freedom = math.floor(trials) - 2
    if freedom < 1:
        return 1.0
    size = min(abs(correlation), 1.0 - 1e-12)
    return student_p_value(size * math.sqrt(freedom / (1.0 - size**2)), freedom)


def _p_value(correlation: float, trials: float) -> float:
    """Return the two-sided p-value by Fisher's (1921) transformation."""
    if trials <= 4.0:
        return 1.0
    # It imports decimals and fractions, and most campaigns have too few trials for it.
    from statistics import NormalDist

    standardised = math.atanh(min(abs(correlation), 1.0 - 1e-12)) * math.sqrt(trials - 3.0)
    return 2.0 * NormalDist().cdf(-standardised)
