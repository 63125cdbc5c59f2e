"""How much a hidden factor could change: Rosenbaum's bounds for the signed-rank statistic.

Rosenbaum 2002, Observational Studies, 2nd edition, §4.3. If a hidden factor multiplies the odds of
being the candidate by at most Γ within a pair, the chance that a pair's difference is positive lies
between 1/(1+Γ) and Γ/(1+Γ), independently of the others, when there is no effect. The sum of the
ranks of the positive differences then lies between two sums of independent terms. Their
distribution is exact up to ``EXACT`` pairs and normal beyond. The interval at Γ is all effects that
the two tests do not refuse. Neither scipy nor statsmodels has these bounds; at Γ = 1 they are
Wilcoxon's test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.frames import require
from equipoise.observation.scores import LEVEL, Indices, Pairs, Values

EXACT = 60
_TAIL = (1.0 - LEVEL) / 2.0
_STEPS = 34
MOST_GAMMA = 100.0
"""Beyond it no factor is looked for."""


def interval_at(differences: Values, gamma: float) -> tuple[float | None, float | None]:
    """The effects that a hidden factor of strength ``gamma`` leaves possible, at 95 %.

    Parameters
    ----------
    differences
        Shape (pairs,), independent pairs, candidate less baseline.
    gamma
        1 or more.

    Returns
    -------
    tuple
        An end is ``None`` where so few pairs cannot give one.
    """
    return _end(differences, gamma), _negative(_end(-differences, gamma))


def gamma_to_change(differences: Values) -> float | None:
    """The least factor of the odds at which the interval holds 0; ``None`` if it does at 1.

    At most ``MOST_GAMMA``.
    """

    def is_shown(gamma: float) -> bool:
        return min(_chance(differences, gamma), _chance(-differences, gamma)) <= _TAIL

    if not is_shown(1.0):
        return None
    if is_shown(MOST_GAMMA):
        return MOST_GAMMA
    low, high = 1.0, MOST_GAMMA
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_shown(middle) else (low, middle)
    return low


def cluster_differences(pairs: Pairs, left: Values, code: Indices) -> Values:
    """One difference for each cluster of the candidate, against one cluster of the baseline.

    Clusters are the strata: within one the rows went to an arm together, so each gives a single
    difference, the mean over those of its pairs whose other row is in the one cluster that it
    shares most of them with. No cluster of the baseline serves twice, so that the differences are
    of independent pairs.

    Parameters
    ----------
    left
        Shape (rows,), outcomes less what the covariates explain (Rosenbaum 2002, Statistical
        Science 17(3): ranks of residuals).
    """
    of_treated, of_control = code[pairs.treated_index], code[pairs.control_index]
    differences = left[pairs.treated_index] - left[pairs.control_index]
    count = int(code.max()) + 1
    together, place = np.unique(of_treated * count + of_control, return_inverse=True)
    sizes = np.bincount(place)
    means = np.bincount(place, differences) / sizes
    taken_treated, taken_control = set[int](), set[int]()
    kept: list[float] = []
    # Of equals the first in the order of the clusters.
    for which in np.argsort(-sizes, kind="stable").tolist():
        first, second = divmod(int(together[which]), count)
        if first in taken_treated or second in taken_control:
            continue
        taken_treated.add(first)
        taken_control.add(second)
        kept.append(float(means[which]))
    return np.array(kept)


def pair_differences(pairs: Pairs, left: Values) -> Values:
    """The difference of each pair, where rows are independent."""
    return np.asarray(left[pairs.treated_index] - left[pairs.control_index], dtype=np.float64)


def _end(differences: Values, gamma: float) -> float | None:
    """The least effect that is not refused for being too small."""
    if not len(differences):
        return None
    low, high = float(differences.min()), float(differences.max())
    margin = max(high - low, abs(low), 1e-12)
    low -= margin

    def is_refused(effect: float) -> bool:
        return _chance(differences - effect, gamma) <= _TAIL

    if not is_refused(low):
        return None
    return _border(is_refused, low, high)


def _border(is_refused: Callable[[float], bool], low: float, high: float) -> float:
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if is_refused(middle) else (low, middle)
    return low


def _negative(end: float | None) -> float | None:
    return None if end is None else -end


def _chance(differences: Values, gamma: float) -> float:
    """At most: the chance of a sum of positive ranks as large as this one without an effect."""
    stats: Any = require("scipy.stats", "bounds")
    different = differences[differences != 0.0]
    count = len(different)
    if not count:
        return 1.0
    ranks = stats.rankdata(np.abs(different))
    observed = float(ranks[different > 0.0].sum())
    likely = gamma / (1.0 + gamma)
    if count <= EXACT:
        return _exact_chance(ranks, observed, likely)
    mean = likely * float(ranks.sum())
    spread = math.sqrt(likely * (1.0 - likely) * float((ranks**2).sum()))
    return float(stats.norm.sf((observed - mean) / spread))


def _exact_chance(ranks: Values, observed: float, likely: float) -> float:
    """The same by adding up the distribution; tied ranks are halves, so all is counted twice."""
    doubled: NDArray[np.int64] = np.rint(2.0 * ranks).astype(np.int64)
    chances = np.zeros(int(doubled.sum()) + 1)
    chances[0] = 1.0
    reach = 0
    for rank in doubled.tolist():
        moved = chances[: reach + 1] * likely
        chances[: reach + 1] *= 1.0 - likely
        chances[rank : rank + reach + 1] += moved
        reach += rank
    return float(chances[round(2.0 * observed) :].sum())
