"""Find the rows that cost more or less in a later session, which was not interleaved.

A session is one measurement of all rows. A row is one condition, with one cost for each process. No
coin orders the two sessions. So a row's ratio includes everything else that differs between them,
such as the boot or the temperature. Four variances say how large such differences are
(docs/methods/campaigns.md):

- The spread of the processes. The mean of a row's log costs leaves out a fifth at each end, because
  of disturbed processes (Yuen 1974).
- The drift within a session. If the halves of a session differ more than its processes do, its
  variances are multiplied by `variance_factor`.
- The movement of whole blocks. All rows of a block may move together. This variance is not divided
  by the number of blocks.
- The difference between sessions. Most rows do not change, so their typical difference estimates
  this variance (an empirical null: Efron 2004).

The false-discovery rate over the rows is at most alpha (Benjamini and Hochberg 1995). The intervals
of all rows have the level at which rows were selected (Benjamini and Yekutieli 2005).
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise._native import student_p_value, student_quantile
from equipoise.stats.arrays import NORMAL_MAD, FloatArray, IntArray

MIN_PROCESSES, _MIN_VALUES_FOR_HALVES = 2, 4
"""Minimum number of processes of a row: for a variance, and for a comparison of its halves."""
_TRIMMED_SHARE = 0.2
"""Share of the values that is trimmed at each end."""
_MEDIAN_EFFICIENCY = 0.37
"""Efficiency of the median absolute value, as an estimate of the sd of a normal law."""
_MIN_ROWS = 5
"""Minimum number of rows from which an effect that all rows share is estimated."""


class SessionRow(Struct, frozen=True):
    """Costs of one row in one session."""

    costs: FloatArray
    """Shape (n,): positive costs, one for each process, in the order in which they ran."""
    blocks: IntArray
    """Shape (n,): number of the block of each process."""


class SessionDrift(Struct, frozen=True):
    """Drift within one session, over all rows."""

    variance_factor: float
    """Factor for the variances of all rows, at least 1; 1 if the halves differ by chance only."""
    block_sd: float
    """Standard deviation of the movement that all rows of a block share, in log units."""
    blocks: int
    """Number of blocks from which ``block_sd`` is estimated; 0 for too few rows."""


class RowChange(Struct, frozen=True):
    """Change of one row: log ratios of its costs, later session over earlier session."""

    difference: float
    low: float
    high: float
    """Upper bound; both bounds are infinite if a session has only one process."""
    p_value: float
    """P-value for "the change is at most the smallest effect that matters"."""
    changed: bool
    """Whether the p-value is at most ``Changes.level``."""


class Changes(Struct, frozen=True):
    """Changes of all rows between two sessions."""

    rows: tuple[RowChange, ...]
    level: float
    """1 minus the coverage of each row's interval."""
    earlier: SessionDrift
    later: SessionDrift
    mean: float
    """Mean of the log ratios: the logarithm of the geometric mean of the ratios."""
    mean_low: float
    mean_high: float
    """Upper bound of the mean; the interval of the mean has the coverage 1 minus alpha."""


def changes_between(
    earlier: Sequence[SessionRow],
    later: Sequence[SessionRow],
    *,
    min_effect: float,
    alpha: float = 0.05,
    between_sd: float = 0.0,
) -> Changes:
    """Return the changes of all rows from the earlier to the later session.

    Both sessions have the same rows, at least one. A row has changed if its log ratio is outside
    ±ln(1 + min_effect/100). ``alpha`` is the false-discovery rate, and 1 minus the coverage of the
    interval of the mean. ``between_sd`` is the `difference_between_sessions`, in log units; 0 if it
    is unknown.
    """
    margin = math.log1p(min_effect / 100.0)
    pairs = _paired_rows(earlier, later)
    # Variances that all rows share, each with its degrees of freedom.
    shared_variances = (
        *((drift.block_sd**2, drift.blocks - 1) for drift in pairs.drifts),
        (between_sd**2, max(1, round(_MEDIAN_EFFICIENCY * len(earlier)))),
    )
    shared_variance = sum(variance for variance, _ in shared_variances)
    standard_errors = np.sqrt(pairs.variances.sum(axis=1) + shared_variance).tolist()
    differences = pairs.differences.tolist()
    row_freedoms = [
        _combined_freedom(tuple(zip(variances, freedoms, strict=True)), shared_variances)
        for variances, freedoms in zip(pairs.variances.tolist(), pairs.freedoms, strict=True)
    ]
    p_values = list(
        map(_p_value, differences, standard_errors, row_freedoms, itertools.repeat(margin))
    )
    level = alpha * max(1, _selected_count(p_values, alpha)) / len(p_values)
    half_widths = [
        error * student_quantile(1.0 - level / 2.0, freedom) if freedom else math.inf
        for error, freedom in zip(standard_errors, row_freedoms, strict=True)
    ]
    mean = float(np.mean(pairs.differences))
    # Rows are independent, except for the effects that they share.
    row_variances = pairs.variances[np.isfinite(pairs.variances).all(axis=1)]
    mean_error = math.inf
    if len(row_variances):
        mean_error = math.sqrt(float(row_variances.sum()) / len(differences) ** 2 + shared_variance)
    half_width = mean_error * student_quantile(1.0 - alpha / 2.0, max(row_freedoms, default=0) or 1)
    return Changes(
        rows=tuple(
            RowChange(change, change - width, change + width, p_value, p_value <= level)
            for change, width, p_value in zip(differences, half_widths, p_values, strict=True)
        ),
        level=level,
        earlier=pairs.drifts[0],
        later=pairs.drifts[1],
        mean=mean,
        mean_low=mean - half_width,
        mean_high=mean + half_width,
    )


def difference_between_sessions(
    earlier: Sequence[SessionRow], later: Sequence[SessionRow]
) -> float:
    """Estimate how much two sessions differ, in addition to the spread and drift within them.

    The estimate is a standard deviation in log units. Its square is the robust variance of the
    rows' differences minus the typical variance of their errors. It assumes that most rows did not
    change.
    """
    if len(earlier) < _MIN_ROWS:
        return 0.0
    pairs = _paired_rows(earlier, later)
    shared_variance = pairs.drifts[0].block_sd ** 2 + pairs.drifts[1].block_sd ** 2
    error_variances = pairs.variances.sum(axis=1) + shared_variance
    spread = NORMAL_MAD * float(np.median(np.abs(pairs.differences)))
    return math.sqrt(max(0.0, spread**2 - float(np.median(error_variances))))


class _RowPairs(Struct, frozen=True):
    """Each row in both sessions. The first of two values belongs to the earlier session."""

    drifts: tuple[SessionDrift, SessionDrift]
    differences: FloatArray
    """Shape (rows,): trimmed mean of the log costs, later minus earlier session."""
    variances: FloatArray
    """Shape (rows, 2): variances of the trimmed means, times the session's variance factor."""
    freedoms: Sequence[tuple[int, int]]
    """Degrees of freedom of the two variances of each row."""


class _TrimmedMean(Struct, frozen=True):
    """Mean of the log costs of one row in one session, without a fifth at each end."""

    mean: float
    variance: float
    """Variance of the mean; infinite for a single process."""
    freedom: int
    """Degrees of freedom of the variance."""


def _paired_rows(earlier: Sequence[SessionRow], later: Sequence[SessionRow]) -> _RowPairs:
    drifts = (session_drift(earlier), session_drift(later))
    rows = [
        (_trimmed_mean(earlier_row), _trimmed_mean(later_row))
        for earlier_row, later_row in zip(earlier, later, strict=True)
    ]
    return _RowPairs(
        drifts,
        np.array([after.mean - before.mean for before, after in rows]),
        np.array([(before.variance, after.variance) for before, after in rows])
        * [drift.variance_factor for drift in drifts],
        [(before.freedom, after.freedom) for before, after in rows],
    )


def _trimmed_mean(row: SessionRow) -> _TrimmedMean:
    ordered = np.sort(np.log(row.costs))
    count = len(ordered)
    cut_count = math.floor(_TRIMMED_SHARE * count)
    trimmed = ordered[cut_count : count - cut_count]
    freedom = len(trimmed) - 1
    variance = math.inf
    if count >= MIN_PROCESSES:
        winsorised = np.clip(ordered, trimmed[0], trimmed[-1])
        variance = float(np.var(winsorised, ddof=1)) * (count - 1) / (len(trimmed) * freedom)
    return _TrimmedMean(float(np.mean(trimmed)), variance, freedom)


def session_drift(rows: Sequence[SessionRow]) -> SessionDrift:
    """Return the drift within a session, over all its rows."""
    block_moves = _block_moves(rows)
    moves = list(block_moves.values())
    block_sd = float(np.std(moves, ddof=1)) if len(moves) > 1 else 0.0
    excesses = [
        excess
        for row in rows
        if (
            excess := _halves_excess(
                np.log(row.costs) - [block_moves.get(block, 0.0) for block in row.blocks]
            )
        )
        is not None
    ]
    has_enough_rows = len(excesses) >= _MIN_ROWS
    variance_factor = max(1.0, float(np.median(excesses))) if has_enough_rows else 1.0
    return SessionDrift(variance_factor, block_sd, len(moves))


def _block_moves(rows: Sequence[SessionRow]) -> dict[int, float]:
    """Return how far all rows of each block moved together, in log units.

    Each row has a difference: its log cost in the block minus its median log cost. The movement is
    the median of these differences.
    """
    moves_by_block: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        logs = np.log(row.costs)
        for block, move in zip(row.blocks.tolist(), (logs - np.median(logs)).tolist(), strict=True):
            moves_by_block[block].append(move)
    return {
        block: float(np.median(moves_of_block))
        for block, moves_of_block in moves_by_block.items()
        if len(moves_of_block) >= _MIN_ROWS
    }


def _halves_excess(logs: FloatArray) -> float | None:
    """Return the squared t statistic of a row's two halves over its median without drift.

    The result is ``None`` for too few processes, or if all costs are equal.
    """
    half_length = len(logs) // 2
    if len(logs) < _MIN_VALUES_FOR_HALVES:
        return None
    first_half, last_half = logs[:half_length], logs[-half_length:]
    freedom = 2 * (half_length - 1)
    pooled = (
        np.sum((first_half - first_half.mean()) ** 2) + np.sum((last_half - last_half.mean()) ** 2)
    ) / freedom
    if pooled <= 0.0:
        return None
    squared_t = float((last_half.mean() - first_half.mean()) ** 2 / (2.0 * pooled / half_length))
    # The median of F with 1 and ``freedom`` degrees of freedom is Student's third quartile squared.
    return squared_t / student_quantile(0.75, freedom) ** 2


def _combined_freedom(
    row_variances: Sequence[tuple[float, int]], shared_variances: Sequence[tuple[float, int]]
) -> int:
    """Return the degrees of freedom of a sum of variances (Satterthwaite 1946; Welch 1947).

    Each variance is given with its degrees of freedom. ``row_variances`` has one variance for each
    session. The result is 0 if a session has only one process.
    """
    if min(freedom for _, freedom in row_variances) < 1:
        return 0
    summands = [
        (variance, freedom)
        for variance, freedom in (*row_variances, *shared_variances)
        if variance > 0.0
    ]
    if not summands:
        return sum(freedom for _, freedom in row_variances)
    total = sum(variance for variance, _ in summands)
    squares = sum(variance**2 / freedom for variance, freedom in summands)
    return max(1, math.floor(total**2 / squares))


def _p_value(difference: float, error: float, freedom: int, margin: float) -> float:
    excess = abs(difference) - margin
    if freedom == 0 or excess <= 0.0:
        return 1.0
    return student_p_value(excess / error, freedom) if error > 0.0 else 0.0


def _selected_count(p_values: Sequence[float], alpha: float) -> int:
    """Return the number of rows that Benjamini and Hochberg's step-up method selects."""
    count = len(p_values)
    ranked = enumerate(sorted(p_values), start=1)
    return max((rank for rank, p_value in ranked if p_value <= alpha * rank / count), default=0)
