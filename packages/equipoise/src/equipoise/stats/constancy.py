"""Whether one ratio describes a comparison, or fast and slow runs have different ratios.

A constant ratio moves every run alike. Then the candidate's log costs, minus their effect, spread
as the baseline's do, and exchanging the two within a block changes nothing that is known before its
coin. `spreads_differ` bets on that. `centre_is_unstable` finds the other case: times lie so far
apart that the typical ratio depends on a few blocks (docs/methods/interval.md).
"""

from __future__ import annotations

import math

import numpy as np

from equipoise._native import BettingSequence
from equipoise.stats.arrays import NORMAL_MAD, FloatArray, median_of
from equipoise.stats.sequence import PairedBlocks

SHARE_OF_LEVEL = 0.2
"""Part of a comparison's level that is spent on a false difference of spreads."""
FIRST_BLOCKS = 3
"""Blocks at the start from which only the middle is learnt."""
RELEARNT_AT_EACH = 256
"""Number of blocks up to which the middle is computed again at each block, as in the engine."""
RELEARNT_GROWTH = 1.0 / 64.0
RESAMPLES = 40
MIN_STANDARD_ERRORS = 2.0
"""Minimum reach to each side; a 95 % interval that holds at any stop reaches about three."""
CLIP = 1.25
"""Clip of the Huber centre, in scales, as in the engine."""
_ROUNDS = 60


def one_ratio_describes(blocks: PairedBlocks, low: float, high: float, level: float) -> bool:
    """Return whether one ratio may describe both fast and slow runs.

    ``low`` and ``high`` are the bounds of the interval shown, in log units.
    """
    return not (
        spreads_differ(blocks, level * SHARE_OF_LEVEL) or centre_is_unstable(blocks, low, high)
    )


def spreads_differ(blocks: PairedBlocks, level: float) -> bool:
    """Return whether the candidate's costs ever spread differently from the baseline's.

    The engine bets on the sign of |ln c - θ - m| - |ln b - m|, where θ is the median difference and
    m the median cost of the blocks before. With a constant ratio and exact θ and m this sign is a
    fair coin, so the chance that a difference is ever called is at most ``level``. Medians of few
    blocks are not exact; `python -m benchmarks.validity.intervals` prints how much that adds.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        candidate = np.log(blocks.candidate)
        # Without the baseline's twin: the mean of two runs spreads less than one run.
        baseline = candidate - blocks.differences
    known = np.isfinite(baseline) & np.isfinite(candidate)
    below, above, orders = baseline[known], candidate[known], blocks.orders[known]
    count = len(below)
    if count <= FIRST_BLOCKS:
        return False
    contrasts = np.empty(count - FIRST_BLOCKS)
    effect = middle = 0.0
    learnt = 0
    for place in range(FIRST_BLOCKS, count):
        if place <= RELEARNT_AT_EACH or place >= learnt * (1.0 + RELEARNT_GROWTH):
            effect = float(median_of(above[:place] - below[:place]))
            middle = float(median_of(np.concatenate([below[:place], above[:place] - effect])))
            learnt = place
        contrasts[place - FIRST_BLOCKS] = abs(above[place] - effect - middle) - abs(
            below[place] - middle
        )
    tolerances = 2.0 * blocks.tolerances[known][FIRST_BLOCKS:]
    engine = BettingSequence(contrasts, np.ascontiguousarray(orders[FIRST_BLOCKS:]), tolerances)
    return engine.blocks_to_exclude(0.0, level) is not None


def centre_is_unstable(blocks: PairedBlocks, low: float, high: float) -> bool:
    """Return whether the interval is narrower than the uncertainty of the typical ratio.

    That is, whether it reaches less than two standard errors to each side. The standard error is
    the spread of the Huber centre of resampled blocks. Where about half of the blocks have one
    ratio and half have others, the scale of that centre jumps, and so does the centre.
    """
    centre = blocks.engine.centre()
    if centre is None or not (math.isfinite(low) and math.isfinite(high)):
        return False
    differences = blocks.differences - blocks.orders * centre[1]
    differences = differences[np.isfinite(differences)]
    if len(differences) <= FIRST_BLOCKS:
        return False
    draws = np.random.default_rng(0).integers(0, len(differences), (RESAMPLES, len(differences)))
    tolerance = float(median_of(blocks.tolerances))
    spread = float(np.std(_huber_centres(differences[draws], tolerance)))
    return bool(0.5 * (high - low) < MIN_STANDARD_ERRORS * spread - tolerance)


def _huber_centres(samples: FloatArray, min_scale: float) -> FloatArray:
    """Return Huber's M-estimate of each row, with the scale 1.4826·MAD."""
    centres: FloatArray = median_of(samples)
    deviations = median_of(np.abs(samples - centres[:, np.newaxis]))
    limits = CLIP * np.maximum(NORMAL_MAD * deviations, max(min_scale, 1e-12))[:, np.newaxis]
    for _ in range(_ROUNDS):
        distances = np.maximum(np.abs(samples - centres[:, np.newaxis]), 1e-300)
        weights = np.minimum(1.0, limits / distances)
        moved: FloatArray = (weights * samples).sum(axis=1) / weights.sum(axis=1)
        if np.allclose(moved, centres, rtol=0.0, atol=1e-9):
            return moved
        centres = moved
    return centres
