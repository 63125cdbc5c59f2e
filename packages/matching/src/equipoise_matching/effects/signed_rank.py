"""Rosenbaum's bounds for the signed-rank statistic of pairs.

Within a pair, a hidden factor multiplies the odds of being the treated one by at most Γ. Without an
effect, the difference of a pair is then positive with a chance between 1/(1+Γ) and Γ/(1+Γ). This
bounds the p-value of the sum of the ranks of the positive differences. The interval at Γ has the
effects that neither one-sided test rejects (Rosenbaum 2002, Observational Studies, 2nd edition,
§4.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from equipoise_matching.matching.units import Floats, Indices
from equipoise_matching.shared.extras import require

EXACT_PAIRS = 60
"""Largest number of pairs with an exact p-value."""
MAX_GAMMA = 100.0
"""Largest factor of the odds that the search tries."""
TAIL_CHANCE = 0.025
"""P-value below which a one-sided test rejects an effect, for intervals at 95 %."""
_BISECTIONS = 34
"""Bisection rounds for an effect or a factor of the odds."""


def interval_at(
    differences: Floats, gamma: float, tail_chance: float = TAIL_CHANCE
) -> tuple[float | None, float | None]:
    """Return the effects that a hidden factor of strength ``gamma`` leaves possible.

    ``differences`` (pairs,) has treated minus control for independent pairs. An end of the interval
    is ``None`` if there are too few pairs. The interval has the chance 1 − 2 ``tail_chance``.
    """
    high = _lower_end(-differences, gamma, tail_chance)
    return _lower_end(differences, gamma, tail_chance), None if high is None else -high


def gamma_to_change(differences: Floats, tail_chance: float = TAIL_CHANCE) -> float | None:
    """Return the smallest factor of the odds at which the interval includes 0.

    Return at most ``MAX_GAMMA``, and ``None`` if the interval at a factor of 1 includes 0.
    """

    def smaller_p_value(gamma: float) -> float:
        return min(
            signed_rank_p_value(differences, gamma), signed_rank_p_value(-differences, gamma)
        )

    return largest_gamma(smaller_p_value, tail_chance)


def largest_gamma(p_value: Callable[[float], float], tail_chance: float) -> float | None:
    """Return the factor of the odds up to which a p-value stays below ``tail_chance``.

    Return at most ``MAX_GAMMA``, and ``None`` if the p-value at 1 is larger.
    """
    if not p_value(1.0) <= tail_chance:
        return None
    if p_value(MAX_GAMMA) <= tail_chance:
        return MAX_GAMMA
    log_gamma, _ = bisect(
        lambda value: p_value(math.exp(value)) <= tail_chance, 0.0, math.log(MAX_GAMMA)
    )
    return math.exp(log_gamma)


def bisect(
    holds: Callable[[float], bool], low: float, high: float, rounds: int = _BISECTIONS
) -> tuple[float, float]:
    """Return two close values: the condition holds at the first, but not at the second."""
    for _ in range(rounds):
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def signed_rank_p_value(differences: Floats, gamma: float) -> float:
    """Return the largest chance, without an effect, of a rank sum of at least this size.

    The chance is exact up to ``EXACT_PAIRS`` differences that are not 0, else a normal one.
    """
    is_different = differences != 0.0
    different = differences[is_different]
    count = len(different)
    if not count:
        return 1.0
    # Differences of 0 have ranks, as in Rosenbaum 2002, but no sign.
    ranks = _mean_ranks(np.abs(differences))[is_different]
    rank_sum = float(ranks[different > 0.0].sum())
    chance_positive = gamma / (1.0 + gamma)
    if count <= EXACT_PAIRS:
        return _exact_p_value(ranks, rank_sum, chance_positive)
    return normal_p_value(ranks, rank_sum, chance_positive)


def normal_p_value(ranks: Floats, rank_sum: float, chance_positive: float) -> float:
    """Return the normal approximation of the chance of a rank sum of at least this size."""
    special: Any = require("scipy.special", "bounds")
    mean = chance_positive * float(ranks.sum())
    spread = math.sqrt(chance_positive * (1.0 - chance_positive) * float((ranks**2).sum()))
    return float(special.ndtr((mean - rank_sum) / spread))


def _lower_end(differences: Floats, gamma: float, tail_chance: float) -> float | None:
    """Return the smallest effect that the test does not reject as too small."""
    if not len(differences):
        return None
    low, high = float(differences.min()), float(differences.max())
    low -= max(high - low, abs(low), 1e-12)

    def is_rejected(effect: float) -> bool:
        return signed_rank_p_value(differences - effect, gamma) <= tail_chance

    return bisect(is_rejected, low, high)[0] if is_rejected(low) else None


def _mean_ranks(values: Floats) -> Floats:
    """Return the rank of each value, from 1; equal values get their mean rank."""
    _, groups, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean_ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2.0)[groups]
    return mean_ranks


def _exact_p_value(ranks: Floats, rank_sum: float, chance_positive: float) -> float:
    # The ranks of ties end in .5, so all ranks are doubled to whole numbers.
    doubled_ranks: Indices = np.rint(2.0 * ranks).astype(np.int64)
    chances = np.zeros(int(doubled_ranks.sum()) + 1)
    chances[0] = 1.0
    max_sum = 0
    for rank in doubled_ranks.tolist():
        chances_if_positive = chances[: max_sum + 1] * chance_positive
        chances[: max_sum + 1] *= 1.0 - chance_positive
        chances[rank : rank + max_sum + 1] += chances_if_positive
        max_sum += rank
    return float(chances[round(2.0 * rank_sum) :].sum())
