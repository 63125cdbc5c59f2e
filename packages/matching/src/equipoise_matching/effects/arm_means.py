"""The mean outcome of a target population under each arm, and the influence of each row on it.

Every estimator of means returns `ArmMeans`, and `compare` turns two means into a contrast.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from equipoise_matching.effects.sample import Scale
from equipoise_matching.matching.units import Floats
from equipoise_matching.shared.errors import UnusableInput


class ArmMeans(Struct, frozen=True):
    """Means under K arms, estimated from n rows."""

    values: Floats
    """Shape (K,)."""
    influence: Floats
    """Shape (n, K), the influence of each row on each mean."""
    parameters: int
    """Number of coefficients of the outcome's model."""
    method: str
    """How the means were computed, as part of a sentence."""
    correction: str = "HC0"
    """Correction of the influence for small samples, if the rows are independent."""
    largest_leverage: float = 0.0
    """Largest weight of a row in its own prediction, between 0 and 1."""
    notes: tuple[str, ...] = ()


class Contrast(Struct, frozen=True):
    """A contrast of two arms; ``value`` is the logarithm of a ratio."""

    value: float
    influence: Floats
    """Shape (n,)."""


def compare(
    means: ArmMeans, scale: Scale, first: int, second: int, arm_names: tuple[str, ...]
) -> Contrast:
    """Return the contrast of arm ``first`` with arm ``second`` (delta method).

    Raise `UnusableInput` if a ratio needs the logarithm of a mean that is 0 or less, or an odds
    ratio needs the odds of a risk of 1.
    """
    one, two = float(means.values[first]), float(means.values[second])
    by_row = means.influence[:, first], means.influence[:, second]
    if scale in ("difference", "survival difference"):
        return Contrast(one - two, by_row[0] - by_row[1])
    for index, value in ((first, one), (second, two)):
        if not value > 0.0 or (scale == "odds ratio" and not value < 1.0):
            raise UnusableInput(
                f"the mean outcome of {arm_names[index]} is {value:.4g}, so there is no {scale}",
                hint='give scale="difference"',
            )
    if scale == "odds ratio":
        value = math.log(one / (1.0 - one)) - math.log(two / (1.0 - two))
        return Contrast(value, by_row[0] / (one * (1.0 - one)) - by_row[1] / (two * (1.0 - two)))
    return Contrast(math.log(one / two), by_row[0] / one - by_row[1] / two)


def check_scale(outcome: Floats, scale: Scale, name: str = "y") -> None:
    """Raise `UnusableInput` if the outcome does not fit the scale."""
    if scale in ("risk ratio", "odds ratio") and not np.isin(outcome, (0.0, 1.0)).all():
        raise UnusableInput(
            f"{name} has other values than 0 and 1, but a {scale} needs them",
            hint='code events as 1, or give scale="difference"',
        )
    if scale == "rate ratio" and (outcome < 0.0).any():
        raise UnusableInput(
            f"{name} has negative values, but a rate ratio needs counts",
            hint='give counts of 0 or more, or scale="difference"',
        )
