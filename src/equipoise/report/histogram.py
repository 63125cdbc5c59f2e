"""A distribution in one line of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

BARS = " ▁▂▃▄▅▆▇█"


def text_histogram(values: Sequence[float], low: float, high: float, width: int = 20) -> str:
    """Draw how often values fall into ``width`` equal bins between ``low`` and ``high``.

    A bin that holds anything shows at least the lowest bar: a rare value is seen.
    """
    counts = [0] * width
    for value in values:
        if not math.isfinite(value):
            continue
        place = (value - low) / (high - low) if high > low else 0.5
        counts[min(width - 1, max(0, int(place * width)))] += 1
    most = max(counts)
    if most == 0:
        return " " * width
    return "".join(
        BARS[math.ceil(count / most * (len(BARS) - 1))] if count else BARS[0] for count in counts
    )
