"""Where a logarithmic axis is labelled."""

from __future__ import annotations

import math
from collections.abc import Callable

_MOST = 9
_STEPS: tuple[Callable[[int], tuple[float, ...]], ...] = (
    lambda power: tuple(place / 10 for place in range(10, 100)),
    lambda power: (1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9),
    lambda power: (1, 2, 5),
    lambda power: (1, 3),
    lambda power: (1,),
    lambda power: (1,) if power % 3 == 0 else (),
)


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers between two positive ones, as many as can be told apart."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for steps in _STEPS:
        ticks = [
            float(f"{step * 10.0**power:.6g}")
            for power in powers
            for step in steps(power)
            if low <= step * 10.0**power <= high
        ]
        if len(ticks) <= _MOST:
            break
    return ticks
