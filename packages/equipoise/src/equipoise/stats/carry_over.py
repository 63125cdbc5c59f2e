"""Carry-over: the effect on a trial of the condition before it (docs/methods/carry-over.md).

The first trial of a block runs after its predecessor, the last trial of the block before. Two
independent coins draw the conditions of both trials. `carry_over` compares first trials with
different predecessors. The coin gives the standard error (Neyman 1923; Imbens and Rubin 2015, ch.
6). A local trend removes most of the drift of the machine.

`fit_differences` estimates how much of a difference carry-over could explain. It fits each trial's
log cost by its condition, its position in the block, a linear trend and its predecessor. Noise that
neighbouring trials share is removed as a first-order autocorrelation (Prais and Winsten 1954).
Outliers are clipped (Huber 1981, ch. 7). The levels of the tests were chosen by simulation
(`benchmarks/validity/carry_over.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from equipoise._native import student_quantile
from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import Interval
from equipoise.model.result import CarryOver
from equipoise.stats.arrays import LEVEL, NORMAL_MAD, FloatArray, IntArray, median_of, row_medians
from equipoise.stats.verdict import margin_of

MIN_TRIALS_AFTER_EACH = 6
"""Minimum number of first trials after the baseline, and after the candidate."""
MIN_DISTANCE, MAX_DISTANCE = 2, 6
"""The local trend comes from first trials at these distances, on each side. Distance 1 is left out,
because the predecessor depends on the condition of that trial."""
ROUNDS = 5
"""Number of rounds of each iterative fit."""
CLIP_SCALES = 5.0
"""Noise is clipped at this many robust standard deviations."""
MIN_ERRORS_FOR_WARNING = 3.0
"""A carry-over above this number of standard errors is certain. So at most 1 % of campaigns of 60
blocks warn falsely."""


def carry_over(
    orders: IntArray,
    costs: FloatArray,
    *,
    candidate: int,
    baseline: int = 0,
    follows: NDArray[np.bool_] | None = None,
) -> CarryOver | None:
    """Return how much longer a trial takes if the candidate, not the baseline, ran before it.

    The result is a ratio with its 95 % interval; ``None`` if fewer than six first trials ran after
    either condition.

    ``orders``, shape (n, k), has the conditions of each block in the order in which they ran.
    ``costs``, shape (n, k), has the costs of these trials. A cost is +inf for a trial that timed
    out, which counts as slow as the slowest finished trial. ``follows``, shape (n,), is True if a
    block ran directly after the previous block of the arrays. It is False after a block that was
    left out. By default it is True for all blocks but the first.

    Raise `UnusableInput` if the shapes differ, or are not of two dimensions.
    """
    if orders.shape != costs.shape or orders.ndim != 2:
        raise UnusableInput(
            f"orders of the shape {orders.shape} do not fit costs of the shape {costs.shape}",
            hint="give both the shape (blocks, conditions)",
        )
    if len(orders) < 2:
        return None
    is_usable = np.ones(len(orders) - 1, dtype=bool) if follows is None else follows[1:]
    conditions, predecessors = orders[1:, 0][is_usable], orders[:-1, -1][is_usable]
    first_costs = costs[1:, 0][is_usable]
    finite_costs = first_costs[np.isfinite(first_costs) & (first_costs > 0)]
    predecessor_masks = [predecessors == condition for condition in (candidate, baseline)]
    counts = [int(mask.sum()) for mask in predecessor_masks]
    if not len(finite_costs) or min(counts) < MIN_TRIALS_AFTER_EACH:
        return None
    log_costs = np.log(np.clip(first_costs, finite_costs.min(), finite_costs.max()))
    residuals = _residuals(log_costs, conditions, predecessors)
    after_candidate, after_baseline = samples = [residuals[mask] for mask in predecessor_masks]
    estimate = float(np.mean(after_candidate) - np.mean(after_baseline))
    error = math.sqrt(sum(float(np.var(sample, ddof=1)) / len(sample) for sample in samples))
    half_width = student_quantile(1.0 - LEVEL / 2.0, sum(counts) - 2) * error
    return CarryOver(
        ratio=math.exp(estimate),
        ratio_ci=(math.exp(estimate - half_width), math.exp(estimate + half_width)),
        trials=sum(counts),
    )


def should_warn(estimate: CarryOver, *, min_effect: float) -> bool:
    """Return whether a carry-over is both certain and large enough to matter.

    It is certain if it exceeds three standard errors. It is large enough if it causes an error of
    at least a quarter of ``min_effect`` (percent). About half of a carry-over becomes an error of
    the effect.
    """
    low, high = estimate.ratio_ci
    if low is None or high is None:
        return False
    log_size = abs(math.log(estimate.ratio))
    half_width = 0.5 * (math.log(high) - math.log(low))
    error = half_width / student_quantile(1.0 - LEVEL / 2.0, estimate.trials - 2)
    return (
        log_size > MIN_ERRORS_FOR_WARNING * error and log_size / 2.0 >= margin_of(min_effect) / 4.0
    )


def _residuals(log_costs: FloatArray, conditions: IntArray, predecessors: IntArray) -> FloatArray:
    """Remove the effect of the condition and the local trend from the first trials' log costs.

    The trend comes from neighbouring trials. Their conditions do not depend on the predecessor of
    the trial, so the trend hides no carry-over.
    """
    effect, carry_over_effect = np.zeros_like(log_costs), np.zeros_like(log_costs)
    detrended = log_costs
    neighbours = _neighbours(len(log_costs))
    condition_masks, predecessor_masks = _group_masks(conditions), _group_masks(predecessors)
    for _ in range(ROUNDS):
        trend = _local_trend(log_costs - effect - carry_over_effect, neighbours)
        detrended = log_costs - trend
        effect = _group_medians(detrended - carry_over_effect, condition_masks)
        carry_over_effect = _group_medians(detrended - effect, predecessor_masks)
    noise = detrended - effect - carry_over_effect
    clip_limit = CLIP_SCALES * NORMAL_MAD * float(median_of(np.abs(noise - median_of(noise))))
    if clip_limit > 0:
        noise = np.clip(noise, -clip_limit, clip_limit)
    return np.asarray(noise + carry_over_effect)


def _group_masks(groups: IntArray) -> list[NDArray[np.bool_]]:
    return [groups == group for group in dict.fromkeys(groups.tolist())]


def _group_medians(values: FloatArray, group_masks: Sequence[NDArray[np.bool_]]) -> FloatArray:
    """Return, for each value, the median of the values of its group."""
    medians = np.empty_like(values)
    for members in group_masks:
        medians[members] = median_of(values[members])
    return medians


def _neighbours(count: int) -> NDArray[np.bool_]:
    """Return which values around each value give its trend: up to five on each side, equally many.

    The shape is (count, 2·`MAX_DISTANCE` + 1).
    """
    positions = np.arange(count)
    # The first and the last values have neighbours on one side only.
    max_distances = np.clip(np.minimum(positions, positions[::-1]), MIN_DISTANCE, MAX_DISTANCE)
    distances = np.abs(np.arange(-MAX_DISTANCE, MAX_DISTANCE + 1))
    return (distances >= MIN_DISTANCE) & (distances <= max_distances[:, None])


def _local_trend(values: FloatArray, is_neighbour: NDArray[np.bool_]) -> FloatArray:
    """Return the median of the neighbours of each value."""
    windows = sliding_window_view(
        np.pad(values, MAX_DISTANCE, constant_values=math.nan), 2 * MAX_DISTANCE + 1
    )
    return row_medians(np.where(is_neighbour, windows, math.nan))


WASHOUT_LEVEL = 0.25
"""One-sided level of a test that the difference, without carry-over, is beyond 0. If it may be 0,
carry-over could explain the whole difference, and the campaign continues with washouts."""
WARNING_LEVEL = 0.0075
"""One-sided level of the same test, for a warning that carry-over could explain a part."""
FITTED_CLIP_SCALES = 2.5
"""Residuals of a fit are clipped at this many robust standard deviations."""
MAX_AUTOCORRELATION = 0.98
"""Maximum autocorrelation of neighbouring trials that a fit assumes."""
MIN_DEGREES_OF_FREEDOM = 3
"""Minimum degrees of freedom of a fit."""
TIMEOUT_FACTOR = 2.0
"""Cost of a trial that timed out, as a multiple of the slowest finished trial."""

ExplainablePart = Literal["nothing", "part", "all"]
"""How much of a difference carry-over could explain."""


class FittedDifference(Struct, frozen=True):
    """Logarithms of a difference and of the carry-over, fitted together."""

    difference: float
    """Log ratio of candidate over baseline, if the condition before both is the same."""
    difference_error: float
    """Standard error of ``difference``."""
    carry_over: float
    """Log ratio of a trial after the candidate over one after the baseline."""
    carry_over_error: float
    """Standard error of ``carry_over``."""
    degrees_of_freedom: int
    """Degrees of freedom of both standard errors."""

    def explainable_part(self, side: float) -> ExplainablePart:
        """Return how much of a difference carry-over could explain; side 1 is slower, -1 faster."""
        if self._is_beyond_0(side, WARNING_LEVEL):
            return "nothing"
        return "part" if self._is_beyond_0(side, WASHOUT_LEVEL) else "all"

    def _is_beyond_0(self, side: float, level: float) -> bool:
        half_width = student_quantile(1.0 - level, self.degrees_of_freedom) * self.difference_error
        return side * self.difference > half_width

    @property
    def ratio_ci(self) -> Interval:
        """The 95 % interval of the difference, as a ratio."""
        return self._ratio_interval(self.difference, self.difference_error)

    @property
    def carry_over_ci(self) -> Interval:
        """The 95 % interval of the carry-over, as a ratio."""
        return self._ratio_interval(self.carry_over, self.carry_over_error)

    def _ratio_interval(self, centre: float, error: float) -> Interval:
        half_width = student_quantile(1.0 - LEVEL / 2.0, self.degrees_of_freedom) * error
        return (math.exp(centre - half_width), math.exp(centre + half_width))


def fit_differences(
    blocks: IntArray, conditions: IntArray, costs: FloatArray, *, baseline: int
) -> dict[int, FittedDifference]:
    """Fit the differences of all conditions from a baseline, together with their carry-overs.

    ``blocks``, ``conditions`` and ``costs``, shape (t,), have one value for each trial, in order. A
    cost is +inf for a timeout. The result is empty while the orders cannot separate difference and
    carry-over.
    """
    finite_costs = costs[np.isfinite(costs) & (costs > 0)]
    candidates = [
        condition for condition in np.unique(conditions).tolist() if condition != baseline
    ]
    if not len(finite_costs):
        return {}
    log_costs = np.log(np.clip(costs, finite_costs.min(), TIMEOUT_FACTOR * finite_costs.max()))
    block_steps = np.diff(blocks)
    first_trials = np.flatnonzero(np.concatenate([[True], block_steps != 0]))
    block_sizes = np.diff([*first_trials, len(blocks)])
    positions = np.arange(len(blocks)) - np.repeat(first_trials, block_sizes)
    predecessors = np.concatenate([[-1], conditions[:-1]])
    # Trials without a known predecessor: in the first block, and after a block that was left out.
    has_predecessor = np.concatenate([[False], block_steps <= 1])
    # Columns: constant, linear trend, positions in the block, conditions, predecessors.
    columns = [
        np.ones(len(log_costs)),
        np.linspace(-1.0, 1.0, len(log_costs)),
        *(positions == index for index in range(1, int(block_sizes.max()))),
        *(conditions == condition for condition in candidates),
        *(predecessors == condition for condition in candidates),
    ]
    design = np.column_stack(columns).astype(np.float64)
    degrees = int(has_predecessor.sum()) - design.shape[1]
    if (
        degrees < MIN_DEGREES_OF_FREEDOM
        or np.linalg.matrix_rank(design[has_predecessor]) < design.shape[1]
    ):
        return {}
    coefficients, errors = _fit_regression(log_costs, design, has_predecessor, degrees)
    carry_over_columns = range(design.shape[1] - len(candidates), design.shape[1])
    return {
        condition: FittedDifference(
            float(coefficients[index - len(candidates)]),
            float(errors[index - len(candidates)]),
            float(coefficients[index]),
            float(errors[index]),
            degrees,
        )
        for condition, index in zip(candidates, carry_over_columns, strict=True)
    }


def _fit_regression(
    log_costs: FloatArray, design: FloatArray, is_used: NDArray[np.bool_], degrees: int
) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of the design's columns, and their standard errors.

    Only trials in ``is_used``, shape (t,), count. The first loop estimates the autocorrelation of
    neighbouring trials, which is then removed. The second loop fits with clipped residuals (Huber).
    """
    successors = np.flatnonzero(is_used & np.concatenate([[False], is_used[:-1]]))
    correlation = 0.0
    for _ in range(ROUNDS):
        rows, targets = _whiten(log_costs, design, successors, correlation)
        coefficients = _least_squares(rows[is_used], targets[is_used])
        residuals = log_costs - design @ coefficients
        residuals = _clip(residuals, residuals[is_used])
        previous, current = residuals[successors - 1], residuals[successors]
        squared_sum = float(previous @ previous)
        correlation = float(previous @ current) / squared_sum if squared_sum > 0 else 0.0
        correlation = min(max(correlation, 0.0), MAX_AUTOCORRELATION)
    rows, targets = (
        array[is_used] for array in _whiten(log_costs, design, successors, correlation)
    )
    # The rows stay the same, so one decomposition serves all fits.
    solver = np.linalg.pinv(rows)
    coefficients, unclipped_share = solver @ targets, 1.0
    residuals = targets - rows @ coefficients
    for _ in range(ROUNDS):
        clipped = _clip(residuals, residuals)
        unclipped_share = float(np.mean(clipped == residuals))
        coefficients = solver @ (rows @ coefficients + clipped)
        residuals = targets - rows @ coefficients
    clipped = _clip(residuals, residuals)
    # Variance of Huber's estimate: variance of the clipped residuals / unclipped share squared.
    variance = float(clipped @ clipped) / degrees / unclipped_share**2
    # The inverse of rowsᵀ·rows is solver·solverᵀ.
    return coefficients, np.sqrt(variance * (solver**2).sum(axis=1))


def _least_squares(rows: FloatArray, targets: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.lstsq(rows, targets, rcond=None)[0], dtype=np.float64)


def _clip(values: FloatArray, sample: FloatArray) -> FloatArray:
    """Clip values at ``FITTED_CLIP_SCALES`` robust sds of a sample; do nothing if the sd is 0."""
    clip_limit = FITTED_CLIP_SCALES * NORMAL_MAD * float(median_of(np.abs(sample)))
    return np.asarray(np.clip(values, -clip_limit, clip_limit)) if clip_limit > 0 else values


def _whiten(
    log_costs: FloatArray, design: FloatArray, successors: IntArray, correlation: float
) -> tuple[FloatArray, FloatArray]:
    """Remove from each trial of ``successors`` the noise that it shares with the trial before."""
    scale = math.sqrt(1.0 - correlation**2)
    rows, targets = scale * design, scale * log_costs
    rows[successors] = design[successors] - correlation * design[successors - 1]
    targets[successors] = log_costs[successors] - correlation * log_costs[successors - 1]
    return rows, targets
