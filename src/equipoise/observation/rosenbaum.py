"""Sensitivity to a hidden factor: Rosenbaum's bounds for the signed-rank statistic.

Rosenbaum 2002, Observational Studies, 2nd edition, §4.3. If a hidden factor multiplies the odds of
being the candidate by at most Γ within a pair, the chance that a pair's difference is positive lies
between 1/(1+Γ) and Γ/(1+Γ), independently of the others, when there is no effect. The sum of the
ranks of the positive differences then lies between two sums of independent terms. Their
distribution is exact up to ``EXACT_PAIRS`` and normal beyond. The interval at Γ holds all effects
that the two tests do not reject. Neither scipy nor statsmodels has these bounds; at Γ = 1 they are
Wilcoxon's test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from equipoise.matching.units import Floats, Indices
from equipoise.model.extras import require
from equipoise.model.observation_result import GammaBound, HiddenBias
from equipoise.observation.effects import LEVEL, EffectEstimate, Pairs
from equipoise.observation.matching import BalancedMatch
from equipoise.observation.sample import Sample, Scales

GAMMAS = (1.0, 1.5, 2.0, 3.0)
EXACT_PAIRS = 60
MAX_GAMMA = 100.0
"""Largest factor of the odds that is tried."""
_TAIL = (1.0 - LEVEL) / 2.0
_BISECTIONS = 34


def hidden_bias(
    sample: Sample, matched: BalancedMatch, effects: Scales[EffectEstimate]
) -> HiddenBias:
    """Return the bounds on a match in pairs without replacement, one difference for a cluster."""
    pairs = matched.without_replacement(sample.treated)
    residual = effects.main.pair_effect.regressed.residual
    clusters = sample.clusters
    version = f"{sample.question.treatment} {sample.arms.candidate}"
    if clusters is None:
        unit, alike = "pairs", sample.question.unit
        differences = residual[pairs.treated_index] - residual[pairs.control_index]
    else:
        unit, alike = "clusters", f"clusters ({clusters.by})"
        differences = cluster_differences(pairs, residual, clusters.code)
    bounds = []
    for gamma in GAMMAS:
        low, high = interval_at(differences, gamma)
        if effects.on_log is not None:
            low, high = (None if end is None else math.exp(end) for end in (low, high))
        bounds.append(GammaBound(gamma, low, high))
    gamma_needed = gamma_to_change(differences)
    summary = _summary(gamma_needed, len(differences), unit, alike, version)
    return HiddenBias(unit, len(differences), tuple(bounds), gamma_needed, summary)


def _summary(gamma: float | None, number: int, unit: str, alike: str, version: str) -> str:
    """Say what the bound means: the odds within a pair of ``alike`` to be of the ``version``."""
    if gamma is None:
        return (
            f"with each row used once, {number} {unit} show no effect, even if nothing of weight "
            "was left unmeasured"
        )
    unmeasured = f"something that was not measured made one of two comparable {alike}"
    if gamma >= MAX_GAMMA:
        return (
            f"the answer holds even if {unmeasured} {gamma:.0f} times as likely as the other to "
            f"have {version}"
        )
    return (
        f"the answer holds unless {unmeasured} more than {gamma:.3g} times as likely as the other "
        f"to have {version}"
    )


def interval_at(differences: Floats, gamma: float) -> tuple[float | None, float | None]:
    """Return the effects that a hidden factor of strength ``gamma`` leaves possible, at 95 %.

    ``differences`` (pairs,) are those of independent pairs, candidate minus baseline. An end is
    ``None`` where there are too few pairs for it.
    """
    high = _lower_end(-differences, gamma)
    return _lower_end(differences, gamma), None if high is None else -high


def gamma_to_change(differences: Floats) -> float | None:
    """Return the smallest factor of the odds, up to ``MAX_GAMMA``, whose interval includes 0.

    ``None`` if the interval at 1 includes 0 already.
    """

    def shows_effect(gamma: float) -> bool:
        return min(_chance(differences, gamma), _chance(-differences, gamma)) <= _TAIL

    if not shows_effect(1.0):
        return None
    if shows_effect(MAX_GAMMA):
        return MAX_GAMMA
    return math.exp(_bisect(lambda log: shows_effect(math.exp(log)), 0.0, math.log(MAX_GAMMA)))


def cluster_differences(pairs: Pairs, residual: Floats, code: Indices) -> Floats:
    """Return one difference for each candidate cluster, against one baseline cluster.

    Within a cluster the rows went to a version together, so each cluster gives one difference:
    the mean over its pairs with the one cluster that it shares most pairs with. No baseline
    cluster serves twice, so the differences come from independent pairs. ``residual`` (rows,) is
    the outcome minus what the covariates explain (Rosenbaum 2002, Statistical Science 17(3): ranks
    of residuals).
    """
    treated_code, control_code = code[pairs.treated_index], code[pairs.control_index]
    differences = residual[pairs.treated_index] - residual[pairs.control_index]
    count = int(code.max()) + 1
    combined, place = np.unique(treated_code * count + control_code, return_inverse=True)
    sizes = np.bincount(place)
    means = np.bincount(place, differences) / sizes
    used_treated, used_control = set[int](), set[int]()
    cluster_means: list[float] = []
    # Combinations of the same size are taken in the order of the clusters.
    for which in np.argsort(-sizes, kind="stable").tolist():
        treated, control = divmod(int(combined[which]), count)
        if treated in used_treated or control in used_control:
            continue
        used_treated.add(treated)
        used_control.add(control)
        cluster_means.append(float(means[which]))
    return np.array(cluster_means)


def _lower_end(differences: Floats, gamma: float) -> float | None:
    """Return the smallest effect that the test does not reject as too small."""
    if not len(differences):
        return None
    low, high = float(differences.min()), float(differences.max())
    low -= max(high - low, abs(low), 1e-12)

    def is_rejected(effect: float) -> bool:
        return _chance(differences - effect, gamma) <= _TAIL

    return _bisect(is_rejected, low, high) if is_rejected(low) else None


def _bisect(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the end of the range, from ``low``, in which a condition holds."""
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _chance(differences: Floats, gamma: float) -> float:
    """Return the largest chance, without an effect, of a rank sum as large as this one."""
    stats: Any = require("scipy.stats", "bounds")
    different = differences[differences != 0.0]
    count = len(different)
    if not count:
        return 1.0
    ranks = stats.rankdata(np.abs(different))
    observed = float(ranks[different > 0.0].sum())
    likely = gamma / (1.0 + gamma)
    if count <= EXACT_PAIRS:
        return _exact_chance(ranks, observed, likely)
    mean = likely * float(ranks.sum())
    spread = math.sqrt(likely * (1.0 - likely) * float((ranks**2).sum()))
    return float(stats.norm.sf((observed - mean) / spread))


def _exact_chance(ranks: Floats, observed: float, likely: float) -> float:
    """Return the exact chance; tied ranks are halves, so all ranks are doubled."""
    doubled: Indices = np.rint(2.0 * ranks).astype(np.int64)
    chances = np.zeros(int(doubled.sum()) + 1)
    chances[0] = 1.0
    reach = 0
    for rank in doubled.tolist():
        moved = chances[: reach + 1] * likely
        chances[: reach + 1] *= 1.0 - likely
        chances[rank : rank + reach + 1] += moved
        reach += rank
    return float(chances[round(2.0 * observed) :].sum())
