"""Where a logarithmic axis is labelled."""

from __future__ import annotations

import math

_MOST = 9
_NARROW = 4.0
"""Over less than this factor a logarithmic axis is nearly linear, and labelled like one."""

_WITHIN_A_DECADE = ((1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9), (1, 2, 5), (1, 3), (1,))


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers between two positive ones, as many as can be told apart."""
    if high < _NARROW * low:
        return _even(low, high)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in _WITHIN_A_DECADE:
        places = [_short(step * 10.0**power) for power in powers for step in steps]
        ticks = [place for place in places if low <= place <= high]
        if len(ticks) <= _MOST:
            return ticks
    every = math.ceil(len(powers) / _MOST)
    places = [10.0**power for power in powers if power % every == 0]
    return [place for place in places if low <= place <= high]


def _even(low: float, high: float) -> list[float]:
    power = 10.0 ** math.floor(math.log10((high - low) / _MOST))
    width = next(s * power for s in (1, 2, 5, 10, 20) if (high - low) / (s * power) < _MOST)
    first, last = math.ceil(low / width), math.floor(high / width)
    return [_short(number * width) for number in range(first, last + 1)]


def _short(value: float) -> float:
    return float(f"{value:.6g}")
