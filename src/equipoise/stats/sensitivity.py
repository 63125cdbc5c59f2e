"""The smallest effect that a host can see in a given time."""

from __future__ import annotations

import math

import numpy as np

from equipoise.stats.arrays import FloatArray, OrderArray
from equipoise.stats.sequence import PairedBlocks

CONTINUATIONS = 60
FOUND_IN = 0.9
MOST_SIMULATED = 2000
"""Beyond, effects shrink with the square root of the blocks."""
LARGEST_EFFECT = 1.0
STEPS = 16


def smallest_effect(
    differences: FloatArray, blocks: int, *, alpha: float, seed: int
) -> float | None:
    """Return the smallest log ratio that nine of ten campaigns of this length tell from none.

    Campaigns are resampled, with fresh coins, from the block differences of campaigns without
    an effect; campaigns of over 2,000 blocks are scaled from that many.

    Parameters
    ----------
    differences
        Shape (n,): ln(candidate) - ln(baseline) of blocks without an effect, finite.
    blocks
        Number of blocks of the campaign.
    alpha
        Alpha of its verdict.
    seed
        Seed of the resampling.

    Returns
    -------
    The effect in log units; ``None`` if it exceeds ln 2, or there are fewer than 8 blocks.
    """
    simulated = min(blocks, MOST_SIMULATED)
    if simulated < 8 or len(differences) < 8:
        return None
    generator = np.random.default_rng(seed)
    campaigns = [
        (
            generator.choice(differences - np.median(differences), simulated),
            generator.choice(np.array([-1, 1], dtype=np.int8), simulated),
        )
        for _ in range(CONTINUATIONS)
    ]
    low, high = 0.0, math.log1p(LARGEST_EFFECT)
    if not _is_seen(campaigns, high, alpha):
        return None
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if _is_seen(campaigns, middle, alpha):
            high = middle
        else:
            low = middle
    return high * math.sqrt(simulated / blocks)


def _is_seen(campaigns: list[tuple[FloatArray, OrderArray]], effect: float, alpha: float) -> bool:
    detected = 0
    for noise, orders in campaigns:
        blocks = PairedBlocks(np.ones_like(noise), np.exp(noise + effect), orders)
        detected += blocks.engine.blocks_to_exclude(0.0, alpha) is not None
    return detected >= FOUND_IN * len(campaigns)
