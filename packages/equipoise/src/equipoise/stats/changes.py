"""Change-points: where a series changes its level for good (docs/methods/distribution.md).

`find_changes` clips extremes and cuts a series into segments. The cuts minimise the *loss*, the sum
of the squared deviations from the mean of each segment, plus a penalty for each segment (Jackson et
al. 2005). The unit of the loss is the long-run variance of an AR(1) process. So the similarity of
neighbours is not mistaken for a change. (Why not a library: docs/decisions/statistics.md.)

`level_changes` returns suspicions: change-points of the logarithms of a series with one value for
each commit. Their penalty is smaller, because a false suspicion costs only one bisection. The
values were not measured side by side, so either the program or the machine may have changed.

The range of a suspicion contains the true index with a probability of about 95 %. The loss of each
index in the range is at most `MAX_EXTRA_LOSS` above the least loss (Bai 1997, Proposition 3).
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from msgspec import Struct
from numpy.lib.stride_tricks import sliding_window_view

from equipoise.model.errors import UnusableInput
from equipoise.model.result import RatioSegment, State
from equipoise.stats.arrays import NORMAL_MAD, FloatArray, IntArray, part_medians, row_medians
from equipoise.stats.sequence import PairedBlocks

MIN_SEGMENT_VALUES = 5
"""Minimum number of values of a segment."""
PENALTY_PER_LOG = 5.0
"""Penalty for each segment, as a multiple of ln n times the long-run variance."""
SHORT_SERIES = 30
"""Number of values below which the penalty grows, because the dependence is known only roughly."""
CLIP_SCALES = 3.0
"""Number of robust standard deviations (scales) at which extremes are clipped."""
EQUAL_SHARE = 0.01
"""Two levels are equal if they differ by at most this share, or by at most one sd of the values."""
MAX_VALUES = 2000
"""Number of medians to which a longer series is reduced."""
MAX_DEPENDENCE = 0.95
"""Maximum AR(1) coefficient of neighbouring values that is assumed."""
MIN_VALUES = 2 * MIN_SEGMENT_VALUES
"""Minimum number of values of a series that can have a change-point."""
PENALTY_OF_SUSPICIONS = 4.0
"""`PENALTY_PER_LOG` for suspicions: at most 5 % of series without a change get a suspicion."""
MAX_EXTRA_LOSS = -2.0 * math.log(1.0 - math.sqrt(0.95))
"""Maximum loss above the least loss in the range of a suspicion: the x at which the chance that the
true index has more extra loss, 1 - (1 - exp(-x/2))², is 5 %."""


class Segment(Struct, frozen=True):
    """A stretch of a series on one level: values ``begin`` to ``end`` - 1, from 0."""

    begin: int
    end: int
    level: float
    """Mean of the values, with extremes clipped."""


class Segmentation(Struct, frozen=True):
    """The segments of a series, in order."""

    segments: tuple[Segment, ...]
    sd: float
    """Standard deviation of the values around their segment's level."""

    def are_equal(self, first: Segment, second: Segment) -> bool:
        """Return whether two levels differ too little to matter in practice."""
        margin = max(EQUAL_SHARE * min(abs(first.level), abs(second.level)), self.sd)
        return abs(first.level - second.level) <= margin


def find_changes(series: FloatArray, penalty: float | None = None) -> Segmentation:
    """Cut a series where its level changes.

    ``series`` has the shape (n,) and the order in which it was measured. ``penalty`` is for each
    segment, in units of the long-run variance. By default it is `PENALTY_PER_LOG` times ln n, and
    more for short series.

    Raise `UnusableInput` if there is no value, or a value that is not finite.
    """
    if len(series) == 0 or not np.isfinite(series).all():
        raise UnusableInput(
            "a series without values, or with a value that is not finite, has no change-points",
            hint="leave out the trials without a finite value",
        )
    clipped, count = clip_extremes(series), len(series)
    variance = long_run_variance(clipped) if count >= MIN_VALUES else 0.0
    if variance == 0.0:
        return _segmentation(clipped, [count])
    # Centred and scaled, so that sums of squares stay exact.
    standardised = (clipped - np.median(clipped)) / math.sqrt(variance)
    if penalty is None:
        penalty = PENALTY_PER_LOG * math.log(count) * (1.0 + (SHORT_SERIES / count) ** 2)
    return _segmentation(clipped, best_cuts(standardised, penalty))


def states(values: FloatArray) -> tuple[State, ...]:
    """Return the states that a campaign went through: the trials of one condition, in order.

    Neighbouring segments on equal levels are one state. Above ``MAX_VALUES`` trials, medians of
    consecutive trials are used instead. ``values`` and errors are as in ``find_changes``.
    """
    medians, begins = consecutive_medians(values)
    segmentation = find_changes(medians)
    merged: list[Segment] = []
    for segment in segmentation.segments:
        if merged and segmentation.are_equal(merged[-1], segment):
            previous = merged.pop()
            lengths = (previous.end - previous.begin, segment.end - segment.begin)
            level = float(np.average([previous.level, segment.level], weights=lengths))
            segment = Segment(previous.begin, segment.end, level)
        merged.append(segment)
    return tuple(State(int(begins[state.begin]), state.level) for state in merged)


def ratio_segments(blocks: PairedBlocks, block_numbers: IntArray) -> tuple[RatioSegment, ...]:
    """Return the stretches in which the ratio of two conditions kept its level.

    A stretch ends at a change-point of the block differences. Blocks with a timeout are left out.
    Above ``MAX_VALUES`` blocks, medians of consecutive differences are used. ``block_numbers``,
    shape (n,), are the blocks' numbers in their campaign. The result is empty if no difference is
    finite.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = np.log(blocks.candidate) - np.log(blocks.baseline)
    indices = np.flatnonzero(np.isfinite(differences))
    if len(indices) == 0:
        return ()
    medians, begins = consecutive_medians(differences[indices])
    return tuple(
        RatioSegment(int(block_numbers[indices[begins[segment.begin]]]), math.exp(segment.level))
        for segment in find_changes(medians).segments
    )


def consecutive_medians(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Reduce a series of more than ``MAX_VALUES`` values to medians of consecutive values.

    The first result has the m values or medians. The second result, shape (m + 1,), has the index
    at which each begins, then n.
    """
    parts = max(1, min(len(values), MAX_VALUES))
    length, longer_parts = divmod(len(values), parts)
    begins = np.concatenate([[0], np.cumsum(length + (np.arange(parts) < longer_parts))])
    return part_medians(values, parts) if len(values) else values, begins


def best_cuts(series: FloatArray, penalty: float) -> list[int]:
    """Return the ends of the segments of the partition with the least loss, in ascending order.

    The loss is the sum of the squared deviations from each segment's mean, plus ``penalty`` for
    each segment. The last end is n, at least ``MIN_SEGMENT_VALUES``. This takes O(n²) operations.
    """
    count = len(series)
    sums = np.concatenate([[0.0], np.cumsum(series)])
    squares = np.concatenate([[0.0], np.cumsum(series**2)])
    positions = np.arange(count + 1, dtype=np.float64)
    min_losses = np.full(count + 1, math.inf)
    min_losses[0] = 0.0
    begins = np.zeros(count + 1, dtype=np.int64)
    for end in range(MIN_SEGMENT_VALUES, count + 1):
        begin_count = end - MIN_SEGMENT_VALUES + 1
        loss = squares[end] - squares[:begin_count]
        loss -= (sums[end] - sums[:begin_count]) ** 2 / (end - positions[:begin_count])
        loss += min_losses[:begin_count]
        begins[end] = np.argmin(loss)
        min_losses[end] = loss[begins[end]] + penalty
    ends = [count]
    while begins[ends[-1]] > 0:
        ends.append(int(begins[ends[-1]]))
    return ends[::-1]


def _segmentation(clipped: FloatArray, ends: list[int]) -> Segmentation:
    bounds = [0, *ends]
    segments = tuple(
        Segment(begin, end, float(np.mean(clipped[begin:end])))
        for begin, end in itertools.pairwise(bounds)
    )
    levels = np.repeat([segment.level for segment in segments], np.diff(bounds))
    return Segmentation(segments, float(np.std(clipped - levels)))


def clip_extremes(series: FloatArray) -> FloatArray:
    """Clip the extremes of a series to ``CLIP_SCALES`` scales around its running median."""
    medians = _running_median(series)
    limit = CLIP_SCALES * _scale(series - medians)
    return series if limit == 0.0 else np.clip(series, medians - limit, medians + limit)


def _running_median(series: FloatArray) -> FloatArray:
    """Return the median of the 11 values around each value, or of fewer at the ends."""
    padded = np.pad(series, MIN_SEGMENT_VALUES, constant_values=math.nan)
    return row_medians(sliding_window_view(padded, 2 * MIN_SEGMENT_VALUES + 1))


def long_run_variance(series: FloatArray) -> float:
    """Return the long-run variance: the variance of a sum of many values, over their number.

    The model is AR(1) with coefficient φ and variance v. Differences of neighbours then have the
    variance 2v(1 - φ) and the autocorrelation -(1 - φ)/2. They are clipped first, so that changes
    of level hardly count. There must be at least three values.
    """
    differences = np.diff(series)
    limit = CLIP_SCALES * _scale(differences)
    differences = np.clip(differences - np.median(differences), -limit, limit)
    variance = float(np.mean(differences**2))
    if variance == 0.0:
        return 0.0
    correlation = float(np.mean(differences[1:] * differences[:-1])) / variance
    dependence = min(MAX_DEPENDENCE, max(0.0, 1.0 + 2.0 * correlation))
    return variance * (1.0 + dependence) / (2.0 * (1.0 - dependence) ** 2)


def _scale(values: FloatArray) -> float:
    """Return 1.4826·MAD, a robust sd; or the plain sd if over half of the values are equal."""
    scale = NORMAL_MAD * float(np.median(np.abs(values - np.median(values))))
    return scale if scale > 0.0 else float(np.std(values))


class LevelChange(Struct, frozen=True):
    """A change of the level of a series, a suspicion; indices are from 0."""

    first: int
    """Index of the last value that is almost certainly on the old level."""
    place: int
    """Index of the first value on the new level, by the best fit."""
    last: int
    """Index of the first value that is almost certainly on the new level."""
    before: float
    """Level before the change."""
    ratio: float
    """Level after the change over the level before."""


def level_changes(values: FloatArray, min_effect: float) -> tuple[LevelChange, ...]:
    """Return the changes of the level of a series by more than ``min_effect`` percent, in order.

    ``values``, shape (n,), has one value above 0 for each commit, in order. There is no change
    among fewer than ten values. A level has at least five values, unless they repeat exactly.

    Raise `UnusableInput` if a value is not finite.
    """
    if len(values) < MIN_VALUES:
        return ()
    log_values = np.log(values)
    if np.median(np.abs(np.diff(log_values))) == 0.0:
        segments, max_extra_loss = _constant_segments(log_values), 0.0
    else:
        penalty = PENALTY_OF_SUSPICIONS * math.log(len(log_values))
        segments = list(find_changes(log_values, penalty).segments)
        max_extra_loss = MAX_EXTRA_LOSS * long_run_variance(clip_extremes(log_values))
    min_change = math.log1p(min_effect / 100.0)
    return tuple(
        _level_change(log_values, old_segment, new_segment, max_extra_loss)
        for old_segment, new_segment in itertools.pairwise(segments)
        if abs(new_segment.level - old_segment.level) > min_change
    )


def _constant_segments(log_values: FloatArray) -> list[Segment]:
    """Return the segments of equal values, for counts that repeat exactly, without noise."""
    bounds = [0, *(np.flatnonzero(np.diff(log_values)) + 1).tolist(), len(log_values)]
    return [
        Segment(begin, end, float(log_values[begin])) for begin, end in itertools.pairwise(bounds)
    ]


def _level_change(
    log_values: FloatArray, old: Segment, new: Segment, max_extra_loss: float
) -> LevelChange:
    last_old_index, first_new_index = old.end - 1, old.end
    if max_extra_loss > 0.0:
        losses = _cut_losses(clip_extremes(log_values)[old.begin : new.end])
        fitting_cuts = old.begin + 1 + np.flatnonzero(losses <= np.min(losses) + max_extra_loss)
        # The range is one value longer on each side: a value at its border may be an outlier.
        last_old_index = max(old.begin, min(last_old_index, int(fitting_cuts[0]) - 1) - 1)
        first_new_index = min(new.end - 1, max(first_new_index, int(fitting_cuts[-1])) + 1)
    ratio = math.exp(new.level - old.level)
    return LevelChange(last_old_index, old.end, first_new_index, math.exp(old.level), ratio)


def _cut_losses(values: FloatArray) -> FloatArray:
    """Return the loss with one cut after 1, 2, … values, minus the loss without a cut."""
    sums = np.cumsum(values - np.mean(values))[:-1]
    sizes = np.arange(1, len(values))
    # The two means are sums/sizes and -sums/(n - sizes).
    return -(sums**2) * (1.0 / sizes + 1.0 / (len(values) - sizes))
