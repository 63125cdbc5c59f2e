"""Whether most of a difference in time is waiting for a processor.

In each block the extra time of the slower condition is split: the part by which its main thread
waited longer for a processor (run delay), and the rest. A sign test asks whether the waiting is
more than half of the extra time in most blocks (Dixon and Mood 1946). It uses no size of any
difference, so a hiccup in one block decides nothing. The sums over all blocks must agree: a sign
test alone says nothing about seconds, and many small waits are not most of a few long stretches of
work. The answer is description; its error rate is that of the sign test.
"""

from __future__ import annotations

import math

from equipoise.stats.arrays import FloatArray

HALF = 0.5
"""Part of the extra time that counts as most of it."""
_QUANTILE = 1.6448536269514722
"""Of the normal distribution, for a one-sided level of 5 %."""


def is_mostly_waiting(extra_s: FloatArray, waiting_s: FloatArray) -> bool:
    """Return whether waiting is over half of the extra time, in most blocks and in all together.

    The wall time of the slower condition less that of the other, and the same of their run delays;
    shape (n,), in seconds.
    """
    blocks = len(extra_s)
    explained = int(((extra_s > 0.0) & (waiting_s > HALF * extra_s)).sum())
    if not waiting_s.sum() > HALF * extra_s.sum() > 0.0:
        return False
    # Normal, with the correction for whole numbers; exact to a block from five blocks on.
    return explained - 0.5 > (blocks + _QUANTILE * math.sqrt(blocks)) / 2.0
