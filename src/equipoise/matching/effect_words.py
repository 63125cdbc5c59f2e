"""An effect in the unit of its outcome, and how it is said."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.distributions import Values
from equipoise.matching.match import MatchResult
from equipoise.matching.univariate import Moments, power_of_two, welch_interval
from equipoise.model.quantities import amount

_NORMAL = 1.959963984540054
"""Standard errors from the estimate to the ends of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference in the unit of the outcome, with its 95 % interval where there is one."""

    value: float
    interval: tuple[float, float] | None

    @property
    def is_shown(self) -> bool:
        """Whether the interval leaves "no difference" out."""
        return self.interval is not None and not self.interval[0] <= 0.0 <= self.interval[1]


def naive_difference(
    outcome: Values, treated: NDArray[np.bool_], weights: Values | None
) -> Difference:
    """The difference of the means of all rows, treated less untreated, with Welch's interval."""
    unit = power_of_two(outcome)
    first, second = (
        Moments.of(outcome[arm] / unit, None if weights is None else weights[arm])
        for arm in (treated, ~treated)
    )
    ends = welch_interval(first, second)
    return Difference(
        unit * (first.mean - second.mean),
        None if ends is None else (unit * ends[0], unit * ends[1]),
    )


def matched_difference(result: MatchResult) -> Difference | None:
    """The effect with a normal interval; ``None`` where no outcome was given."""
    if result.estimate is None:
        return None
    error = result.se_standard if result.se is None else result.se
    if error is None or not math.isfinite(error):
        return Difference(result.estimate, None)
    reach = _NORMAL * error
    return Difference(result.estimate, (result.estimate - reach, result.estimate + reach))


def effect_words(effect: Difference, outcome: str | None, treatment: str) -> str:
    """Whether there is an effect and how large, with its interval."""
    if effect.interval is None:
        return f"Among comparable units {outcome} is {size(effect.value)} with {treatment}."
    if not effect.is_shown:
        ends = [size(end) for end in effect.interval]
        return (
            f"Among comparable units no effect of {treatment} on {outcome} is shown "
            f"[from {ends[0]} to {ends[1]}]."
        )
    near, far = sorted(abs(end) for end in effect.interval)
    return (
        f"Among comparable units {outcome} is {size(effect.value)} with {treatment} "
        f"[{amount(near)}, {amount(far)}]."
    )


def size(value: float) -> str:
    """``1,794 higher``."""
    return f"{amount(abs(value))} {'higher' if value >= 0 else 'lower'}"


def estimate_cells(effect: Difference | None) -> tuple[str, str] | None:
    """The number and its interval, with signs."""
    if effect is None:
        return None
    if effect.interval is None:
        return signed(effect.value), "unknown"
    return signed(effect.value), " to ".join(map(signed, effect.interval))


def signed(value: float) -> str:
    """``+1,794``."""
    return f"{'+' if value >= 0 else '-'}{amount(abs(value))}"


def naively(naive: Difference) -> str:
    """What all rows would have said."""
    ends = "" if naive.interval is None else f" [{' to '.join(map(signed, naive.interval))}]"
    return f"Naively, all rows as they are: {size(naive.value)}{ends}."


def error_words(result: MatchResult) -> Iterator[str]:
    """Where the effect, its error and its interval come from."""
    if result.estimate is None:
        return
    if result.se is not None:
        yield (
            "The effect is the weighted mean of the differences in pairs; its error is that of "
            "Abadie and Imbens (2006), its interval ±1.96 errors."
        )
    elif result.se_standard is not None:
        yield (
            "The effect is the weighted mean of the differences in pairs; its error takes the "
            "pairs as independent, its interval is ±1.96 errors."
        )
