"""Where a sample crowds: the half-sample mode."""

from __future__ import annotations

import numpy as np

from equipoise.stats.arrays import FloatArray


def half_sample_mode(ordered: FloatArray) -> float:
    """The half-sample mode (Bickel and Frühwirth 2006): the shortest half, again and again.

    Parameters
    ----------
    ordered
        Shape (n,), n at least 1: ascending.
    """
    remaining = ordered
    while len(remaining) > 3:
        half = (len(remaining) + 1) // 2
        widths = remaining[half - 1 :] - remaining[: len(remaining) - half + 1]
        start = int(np.argmin(widths))
        remaining = remaining[start : start + half]
    if len(remaining) == 3:
        left, right = remaining[1] - remaining[0], remaining[2] - remaining[1]
        if left != right:
            remaining = remaining[:2] if left < right else remaining[1:]
    return float(np.mean(remaining))
