"""Whether one ratio describes a comparison, or fast and slow runs have different ratios.

A constant ratio multiplies every run by the same factor. Then the log costs of both conditions have
the same spread. `spreads_differ` bets against equal spreads. `centre_is_unstable` finds another
case without one ratio: a typical ratio that depends on a few blocks (docs/methods/interval.md).
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence

import numpy as np

from equipoise._native import BettingSequence
from equipoise.stats.arrays import NORMAL_MAD, FloatArray, median_of
from equipoise.stats.sequence import PairedBlocks

SPREAD_LEVEL_SHARE = 0.2
"""Level of the test for different spreads, as a fraction of the comparison's level."""
LEARNING_BLOCKS = 3
"""Number of first blocks without a bet: they only give the first medians."""
UPDATE_EVERY_BLOCK_UP_TO = 256
"""Number of blocks up to which the medians are computed again at each block, as in the engine."""
UPDATE_GROWTH = 1.0 / 64.0
"""Growth of the number of blocks between later updates of the medians."""
RESAMPLES = 40
"""Number of resamples for the standard error of the typical ratio."""
MIN_STANDARD_ERRORS = 2.0
"""Minimum half-width of the interval, in standard errors."""
CLIP_SCALES = 1.25
"""Clip of the Huber centre, in scales, as in the engine."""
_MAX_CENTRE_ROUNDS = 60
_CENTRE_TOLERANCE = 1e-9


def may_have_one_ratio(blocks: PairedBlocks, low: float, high: float, level: float) -> bool:
    """Return whether one ratio may describe both fast and slow runs.

    ``low`` and ``high`` are the bounds of the displayed interval, in log units.
    """
    return not (
        spreads_differ(blocks, level * SPREAD_LEVEL_SHARE) or centre_is_unstable(blocks, low, high)
    )


def spreads_differ(blocks: PairedBlocks, level: float) -> bool:
    """Return whether the bets show that the costs of the two conditions spread differently.

    The engine bets on the sign of |ln c - θ - m| - |ln b - m|. Here c and b are the costs of
    candidate and baseline. Earlier blocks give the median difference θ and the median log cost m.
    With a constant ratio and exact θ and m, the sign is a fair coin. So the chance of a false
    answer is at most ``level``. Medians of few blocks are not exact
    (benchmarks/validity/intervals.py).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        candidate = np.log(blocks.candidate)
        # The baseline's own run, without the control: a mean of two runs spreads less than one run.
        baseline = candidate - blocks.differences
    is_known = np.isfinite(baseline) & np.isfinite(candidate)
    baseline_logs, candidate_logs = baseline[is_known], candidate[is_known]
    orders = blocks.orders[is_known]
    count = len(baseline_logs)
    if count <= LEARNING_BLOCKS:
        return False
    distance_differences = np.empty(count - LEARNING_BLOCKS)
    median_difference = median_log_cost = 0.0
    last_update_block = 0
    # Sorted lists of the past blocks: arrays of a few dozen numbers would take much longer.
    past_baseline: list[float] = []
    past_candidate: list[float] = []
    past_differences: list[float] = []
    logs = zip(baseline_logs.tolist(), candidate_logs.tolist(), strict=True)
    for block, (baseline_log, candidate_log) in enumerate(logs):
        is_due = block <= UPDATE_EVERY_BLOCK_UP_TO or (
            block >= last_update_block * (1.0 + UPDATE_GROWTH)
        )
        if block >= LEARNING_BLOCKS and is_due:
            median_difference = _median_of_sorted(past_differences)
            shifted_candidate = [cost - median_difference for cost in past_candidate]
            median_log_cost = _median_of_sorted(sorted(past_baseline + shifted_candidate))
            last_update_block = block
        if block >= LEARNING_BLOCKS:
            distance_differences[block - LEARNING_BLOCKS] = abs(
                candidate_log - median_difference - median_log_cost
            ) - abs(baseline_log - median_log_cost)
        insort(past_baseline, baseline_log)
        insort(past_candidate, candidate_log)
        insort(past_differences, candidate_log - baseline_log)
    tolerances = 2.0 * blocks.tolerances[is_known][LEARNING_BLOCKS:]
    engine = BettingSequence(
        distance_differences, np.ascontiguousarray(orders[LEARNING_BLOCKS:]), tolerances
    )
    return engine.blocks_to_exclude(0.0, level) is not None


def _median_of_sorted(values: Sequence[float]) -> float:
    half, is_odd = divmod(len(values), 2)
    return values[half] if is_odd else (values[half - 1] + values[half]) / 2.0


def centre_is_unstable(blocks: PairedBlocks, low: float, high: float) -> bool:
    """Return whether the interval is narrower than the uncertainty of the typical ratio.

    Its half-width is then less than two standard errors. The standard error is the spread of the
    Huber centre of resampled blocks. It is large if about half of the blocks have other ratios than
    the rest.
    """
    engine_centre = blocks.engine.centre()
    if engine_centre is None or not (math.isfinite(low) and math.isfinite(high)):
        return False
    _, order_effect, _ = engine_centre
    differences = blocks.differences - blocks.orders * order_effect
    differences = differences[np.isfinite(differences)]
    if len(differences) <= LEARNING_BLOCKS:
        return False
    indices = np.random.default_rng(0).integers(0, len(differences), (RESAMPLES, len(differences)))
    tolerance = float(median_of(blocks.tolerances))
    centre_error = float(np.std(_huber_centres(differences[indices], tolerance)))
    return bool(0.5 * (high - low) < MIN_STANDARD_ERRORS * centre_error - tolerance)


def _huber_centres(samples: FloatArray, min_scale: float) -> FloatArray:
    """Return Huber's centre of each row; the scale is 1.4826·MAD, at least ``min_scale``."""
    centres: FloatArray = median_of(samples)
    deviations = median_of(np.abs(samples - centres[:, np.newaxis]))
    limits = CLIP_SCALES * np.maximum(NORMAL_MAD * deviations, max(min_scale, 1e-12))[:, np.newaxis]
    for _ in range(_MAX_CENTRE_ROUNDS):
        distances = np.maximum(np.abs(samples - centres[:, np.newaxis]), 1e-300)
        weights = np.minimum(1.0, limits / distances)
        next_centres: FloatArray = (weights * samples).sum(axis=1) / weights.sum(axis=1)
        if np.abs(next_centres - centres).max() <= _CENTRE_TOLERANCE:
            return next_centres
        centres = next_centres
    return centres
