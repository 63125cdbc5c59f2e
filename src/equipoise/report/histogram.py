"""A distribution in one line of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

BARS = " ▁▂▃▄▅▆▇█"


def text_histogram(values: Sequence[float], low: float, high: float, width: int = 20) -> str:
    """Draw how often values fall into ``width`` equal bins between ``low`` and ``high``.

    A bin that holds anything shows at least the lowest bar: a rare value is seen.
    """
    found = np.asarray(values, dtype=np.float64)
    found = found[np.isfinite(found)]
    places = (found - low) / (high - low) if high > low else np.full(len(found), 0.5)
    bins = np.clip((places * width).astype(np.int64), 0, width - 1)
    counts = np.bincount(bins, minlength=width).tolist()
    most = max(counts)
    if most == 0:
        return " " * width
    return "".join(
        BARS[math.ceil(count / most * (len(BARS) - 1))] if count else BARS[0] for count in counts
    )
