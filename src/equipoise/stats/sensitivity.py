"""The smallest effect that a host can see in a given time."""

from __future__ import annotations

import math

import numpy as np

from equipoise._native import smallest_effects
from equipoise.model.plan import LATEST_ENGINE
from equipoise.stats.arrays import FloatArray

CAMPAIGNS = 60
FOUND_IN = 0.9
MOST_SIMULATED = 100_000
"""Blocks of the longest campaign that is simulated; a longer one sees at least as much."""
LARGEST_EFFECT = 1.0
LEAST_BLOCKS = 8


def smallest_effect(
    differences: FloatArray, blocks: int, *, alpha: float, seed: int, engine: int = LATEST_ENGINE
) -> float | None:
    """Return the smallest log ratio that nine of ten campaigns of this length tell from none.

    The engine itself judges simulated campaigns of that length, at most 100,000 blocks, which are
    resampled, with fresh coins, from the block differences of campaigns without an effect:
    ln(candidate) - ln(baseline), shape (n,), finite. Nothing is extrapolated to lengths that were
    not simulated. ``None`` if the effect exceeds ln 2, or there are fewer than 8 blocks.
    """
    if min(blocks, len(differences)) < LEAST_BLOCKS:
        return None
    effects = smallest_effects(
        np.asarray(differences - np.median(differences), dtype=np.float64),
        math.log1p(LARGEST_EFFECT),
        blocks=min(blocks, MOST_SIMULATED),
        level=alpha,
        engine=engine,
        campaigns=CAMPAIGNS,
        seed=seed,
    )
    found = effects[math.ceil(FOUND_IN * CAMPAIGNS) - 1]
    return found if math.isfinite(found) else None
