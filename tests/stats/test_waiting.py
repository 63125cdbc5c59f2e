"""Most of the extra time is waiting only where it is so in most blocks, for certain."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from equipoise.stats.shift import is_mostly_waiting

CAMPAIGNS, BLOCKS = 2000, 40


def told(waited_part: float) -> int:
    """Return how many campaigns of a gap of 10 ms say so, if this part of it is waiting."""
    generator = np.random.default_rng(5)
    count = 0
    for _ in range(CAMPAIGNS):
        # Noise that is work and noise that is waiting, each half as large as the gap.
        work, queue = generator.normal(0.0, 0.005, (2, BLOCKS))
        waiting = 0.01 * waited_part + queue
        count += is_mostly_waiting(0.01 * (1.0 - waited_part) + work + waiting, waiting)
    return count


def test_where_half_of_the_gap_is_waiting_it_is_rarely_called_most() -> None:
    assert told(0.5) <= binom.ppf(0.999, CAMPAIGNS, 0.05)


def test_a_gap_that_is_all_waiting_is_found_and_one_that_is_all_work_never() -> None:
    assert told(1.0) > 0.9 * CAMPAIGNS
    assert told(0.0) <= binom.ppf(0.999, CAMPAIGNS, 0.001)


def test_few_blocks_tell_nothing() -> None:
    gap = np.full(4, 0.01)
    assert not is_mostly_waiting(gap, gap)
    assert is_mostly_waiting(np.full(5, 0.01), np.full(5, 0.01))
    assert not is_mostly_waiting(np.zeros(0), np.zeros(0))


def test_many_small_waits_are_not_most_of_a_few_long_stretches_of_work() -> None:
    # 70 blocks wait for 1 ms, 30 work for 100 ms: 2.3 % of the extra time is waiting.
    extra = np.repeat([0.001, 0.1], [70, 30])
    waiting = np.repeat([0.001, 0.0], [70, 30])
    assert not is_mostly_waiting(extra, waiting)
    assert is_mostly_waiting(extra, extra)
