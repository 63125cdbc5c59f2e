"""Rosenbaum's bounds by M-statistics for matched sets of one treated and several controls.

A set i has a row of one arm, the focal row, and k_i rows of the other arm. Each row j of a set has
the score

    q_ij = Σ_{l ≠ j} ψ((R_ij − R_il)/h) / k_i,   ψ(d) = sign(d) min(|d|, trim),

where R is the outcome, and h is the median of |R_ij − R_il| over treated and controls of all sets.
The statistic is T = Σ_i q_i of the treated row. A hidden factor multiplies the odds of treatment of
two rows of a set by at most Γ. The largest distribution of T gives the b rows with the highest
scores the chance Γ/(b Γ + J − b) each, the others 1/(b Γ + J − b). For each set we take the b with
the largest mean, and of several the one with the largest variance (asymptotic separability:
Gastwirth, Krieger and Rosenbaum 2000, JRSS B 62(3); M-statistics: Rosenbaum 2007, Biometrics
63(2)). If the focal row is a control, Γ is about its chance to be the only control.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from equipoise_matching.effects.signed_rank import bisect
from equipoise_matching.matching.units import Floats, Indices, Truths
from equipoise_matching.shared.extras import require

TRIM = 2.5
"""Multiple of the median difference from which a difference counts no more than this."""
_EFFECT_BISECTIONS = 45
"""Bisection rounds for an effect."""


class SetBlock(Struct, frozen=True):
    """The m matched sets with J rows each."""

    rows: Indices
    """Shape (m, J), the rows of each set, the focal row first."""
    signs: Floats
    """Shape (m,), 1 if the focal row is treated, -1 if it is the only control of several rows."""


def set_blocks(treated: Truths, sets: Indices) -> tuple[SetBlock, ...]:
    """Return the rows of the matched sets by size; ``sets`` (n,) has the set of each row.

    Each set has a single row of one arm, and rows of the other arm.
    """
    counts = np.bincount(sets)
    treated_counts = np.bincount(sets, treated)
    focal_is_treated = treated_counts == 1
    is_focal = treated == focal_is_treated[sets]
    # Focal rows come first in their sets.
    order = np.lexsort((np.arange(len(sets)), ~is_focal, sets))
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    blocks = []
    for size in np.unique(counts[counts > 0]).tolist():
        chosen = np.flatnonzero(counts == size)
        rows = order[starts[chosen][:, None] + np.arange(size)]
        blocks.append(SetBlock(rows, np.where(focal_is_treated[chosen], 1.0, -1.0)))
    return tuple(blocks)


def m_p_value(
    outcome: Floats,
    treated: Truths,
    blocks: tuple[SetBlock, ...],
    gamma: float,
    effect: float = 0.0,
) -> float:
    """Return the largest chance, at a constant effect, of a statistic of at least this size.

    ``outcome`` and ``treated`` have shape (n,).
    """
    special = require("scipy.special", "bounds")
    adjusted = outcome - effect * treated
    values = [adjusted[block.rows] for block in blocks]
    statistic = mean = variance = 0.0
    for block, scores in zip(blocks, set_scores(values), strict=True):
        signed = block.signs[:, None] * scores
        means, variances = largest_moments(signed, gamma)
        statistic += float(signed[:, 0].sum())
        mean += float(means.sum())
        variance += float(variances.sum())
    if variance <= 0.0:
        return 1.0
    return float(special.ndtr((mean - statistic) / math.sqrt(variance)))


def set_scores(values: list[Floats], trim: float = TRIM) -> list[Floats]:
    """Return the scores q (m, J) of the sets of each size from their outcomes (m, J)."""
    differences = np.concatenate([np.abs(block[:, [0]] - block[:, 1:]).ravel() for block in values])
    height = float(np.median(differences))
    if height == 0.0:
        # At least half of the differences are 0, so the sizes of the others are compared.
        positive = differences[differences > 0.0]
        height = float(np.median(positive)) if len(positive) else 1.0
    scores = []
    for block in values:
        gaps = np.clip((block[:, :, None] - block[:, None, :]) / height, -trim, trim)
        scores.append(gaps.sum(axis=2) / (block.shape[1] - 1))
    return scores


def largest_moments(scores: Floats, gamma: float) -> tuple[Floats, Floats]:
    """Return mean and variance (m,) of the focal score under the worst hidden factor of each set.

    ``scores`` has shape (m, J).
    """
    descending = -np.sort(-scores, axis=1)
    count = scores.shape[1]
    high = np.arange(1, count)
    total = high * gamma + (count - high)
    sums, squares = np.cumsum(descending, axis=1), np.cumsum(descending**2, axis=1)
    means = (gamma * sums[:, :-1] + (sums[:, [-1]] - sums[:, :-1])) / total
    seconds = (gamma * squares[:, :-1] + (squares[:, [-1]] - squares[:, :-1])) / total
    largest = means.max(axis=1)
    is_largest = means >= (largest - 1e-12 * (1.0 + np.abs(largest)))[:, None]
    variances = np.where(is_largest, seconds - means**2, 0.0).max(axis=1)
    return largest, np.maximum(0.0, variances)


def m_interval_at(
    outcome: Floats,
    treated: Truths,
    blocks: tuple[SetBlock, ...],
    gamma: float,
    tail_chance: float,
) -> tuple[float | None, float | None]:
    """Return the constant effects that neither one-sided test rejects at ``gamma``."""
    spread = float(np.ptp(outcome)) or 1.0

    def end(sign: float) -> float | None:
        start = -sign * 2.0 * spread

        def is_rejected(distance: float) -> bool:
            effect = sign * (start + sign * distance)
            return m_p_value(sign * outcome, treated, blocks, gamma, effect) <= tail_chance

        if not is_rejected(0.0):
            return None
        return start + sign * bisect(is_rejected, 0.0, 4.0 * spread, _EFFECT_BISECTIONS)[0]

    return end(1.0), end(-1.0)
