"""Find the rows that cost more or less in a later session, which was not interleaved.

A session is one measurement of all rows. A row is one condition, with one cost for each process. No
coin orders the two sessions. So a row's ratio includes everything else that differs between the
sessions, such as the temperature. Its variance has four parts (docs/methods/campaigns.md):

- The spread of the processes. The mean of a row's log costs leaves out a fifth at each end, because
  of disturbed processes (Yuen 1974).
- The drift within a session. If the halves of a session differ more than its processes do, the
  session's variances are multiplied by a `variance_factor`.
- The movement of blocks: all rows of a block may become slower or faster together. This variance is
  not divided by the number of blocks.
- The difference between sessions. Most rows do not change, so their typical log ratio estimates
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
"""Efficiency of the median absolute value as an estimate of the sd of a normal distribution."""
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
    """Change of one row: later session over earlier session, in log units."""

    log_ratio: float
    low: float
    high: float
    """Upper bound; both bounds are infinite if a session has only one process."""
    p_value: float
    """P-value for "the change is at most the smallest effect that matters"."""
    changed: bool
    """Whether the p-value is at most ``SessionChanges.level``."""


class SessionChanges(Struct, frozen=True):
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
    sd_between_sessions: float = 0.0,
) -> SessionChanges:
    """Return the changes of all rows from the earlier to the later session.

    Both sessions have the same rows, at least one. A row has changed if its log ratio is outside
    ±ln(1 + min_effect/100). ``alpha`` is the false-discovery rate, and 1 minus the coverage of the
    interval of the mean. ``sd_between_sessions`` is as in `estimate_sd_between_sessions`; 0 if it
    is unknown.
    """
    margin = math.log1p(min_effect / 100.0)
    pairs = _paired_rows(earlier, later)
    # Variances that all rows share, each with its degrees of freedom.
    shared_variances = (
        *((drift.block_sd**2, drift.blocks - 1) for drift in pairs.drifts),
        (sd_between_sessions**2, max(1, round(_MEDIAN_EFFICIENCY * len(earlier)))),
    )
    shared_variance = sum(variance for variance, _ in shared_variances)
    standard_errors = np.sqrt(pairs.variances.sum(axis=1) + shared_variance).tolist()
    log_ratios = pairs.log_ratios.tolist()
    row_degrees = [
        _combined_degrees(tuple(zip(variances, degrees, strict=True)), shared_variances)
        for variances, degrees in zip(
            pairs.variances.tolist(), pairs.degrees_of_freedom, strict=True
        )
    ]
    p_values = list(
        map(_p_value, log_ratios, standard_errors, row_degrees, itertools.repeat(margin))
    )
    level = alpha * max(1, _selected_count(p_values, alpha)) / len(p_values)
    half_widths = [
        error * student_quantile(1.0 - level / 2.0, degrees) if degrees else math.inf
        for error, degrees in zip(standard_errors, row_degrees, strict=True)
    ]
    mean = float(np.mean(pairs.log_ratios))
    # Rows are independent, except for the variances that they share.
    row_variances = pairs.variances[np.isfinite(pairs.variances).all(axis=1)]
    mean_error = math.inf
    if len(row_variances):
        mean_error = math.sqrt(float(row_variances.sum()) / len(log_ratios) ** 2 + shared_variance)
    half_width = mean_error * student_quantile(1.0 - alpha / 2.0, max(row_degrees, default=0) or 1)
    return SessionChanges(
        rows=tuple(
            RowChange(log_ratio, log_ratio - width, log_ratio + width, p_value, p_value <= level)
            for log_ratio, width, p_value in zip(log_ratios, half_widths, p_values, strict=True)
        ),
        level=level,
        earlier=pairs.drifts[0],
        later=pairs.drifts[1],
        mean=mean,
        mean_low=mean - half_width,
        mean_high=mean + half_width,
    )


def estimate_sd_between_sessions(
    earlier: Sequence[SessionRow], later: Sequence[SessionRow]
) -> float:
    """Estimate how much two sessions differ, in addition to the spread and drift within them.

    The estimate is a standard deviation in log units. Its square is the robust variance of the
    rows' log ratios minus the typical variance of their errors. The estimate assumes that most rows
    did not change.
    """
    if len(earlier) < _MIN_ROWS:
        return 0.0
    pairs = _paired_rows(earlier, later)
    shared_variance = pairs.drifts[0].block_sd ** 2 + pairs.drifts[1].block_sd ** 2
    error_variances = pairs.variances.sum(axis=1) + shared_variance
    spread = NORMAL_MAD * float(np.median(np.abs(pairs.log_ratios)))
    return math.sqrt(max(0.0, spread**2 - float(np.median(error_variances))))


class _RowPairs(Struct, frozen=True):
    """Each row in both sessions. The first of two values belongs to the earlier session."""

    drifts: tuple[SessionDrift, SessionDrift]
    log_ratios: FloatArray
    """Shape (rows,): trimmed mean of the log costs, later minus earlier session."""
    variances: FloatArray
    """Shape (rows, 2): variances of the trimmed means, times the session's variance factor."""
    degrees_of_freedom: Sequence[tuple[int, int]]
    """Degrees of freedom of the two variances of each row."""


class _TrimmedMean(Struct, frozen=True):
    """Mean of the log costs of one row in one session, without a fifth at each end."""

    mean: float
    variance: float
    """Variance of the mean; infinite for a single process."""
    degrees_of_freedom: int
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
        [(before.degrees_of_freedom, after.degrees_of_freedom) for before, after in rows],
    )


def _trimmed_mean(row: SessionRow) -> _TrimmedMean:
    ordered = np.sort(np.log(row.costs))
    count = len(ordered)
    cut_count = math.floor(_TRIMMED_SHARE * count)
    trimmed = ordered[cut_count : count - cut_count]
    degrees = len(trimmed) - 1
    variance = math.inf
    if count >= MIN_PROCESSES:
        winsorised = np.clip(ordered, trimmed[0], trimmed[-1])
        variance = float(np.var(winsorised, ddof=1)) * (count - 1) / (len(trimmed) * degrees)
    return _TrimmedMean(float(np.mean(trimmed)), variance, degrees)


def session_drift(rows: Sequence[SessionRow]) -> SessionDrift:
    """Return the drift within a session, over all its rows."""
    block_moves = _block_moves(rows)
    moves = list(block_moves.values())
    block_sd = float(np.std(moves, ddof=1)) if len(moves) > 1 else 0.0
    row_factors = [
        factor
        for row in rows
        if (
            factor := _drift_factor(
                np.log(row.costs) - [block_moves.get(block, 0.0) for block in row.blocks]
            )
        )
        is not None
    ]
    has_enough_rows = len(row_factors) >= _MIN_ROWS
    variance_factor = max(1.0, float(np.median(row_factors))) if has_enough_rows else 1.0
    return SessionDrift(variance_factor, block_sd, len(moves))


def _block_moves(rows: Sequence[SessionRow]) -> dict[int, float]:
    """Return, for each block, the median over all rows of log cost minus the row's median."""
    moves_by_block: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        log_costs = np.log(row.costs)
        moves = (log_costs - np.median(log_costs)).tolist()
        for block, move in zip(row.blocks.tolist(), moves, strict=True):
            moves_by_block[block].append(move)
    return {
        block: float(np.median(moves_of_block))
        for block, moves_of_block in moves_by_block.items()
        if len(moves_of_block) >= _MIN_ROWS
    }


def _drift_factor(log_costs: FloatArray) -> float | None:
    """Return t² of a row's two halves over the median of t² without drift; ``None`` if unknown."""
    half_length = len(log_costs) // 2
    if len(log_costs) < _MIN_VALUES_FOR_HALVES:
        return None
    first_half, last_half = log_costs[:half_length], log_costs[-half_length:]
    degrees = 2 * (half_length - 1)
    pooled_variance = (
        np.sum((first_half - first_half.mean()) ** 2) + np.sum((last_half - last_half.mean()) ** 2)
    ) / degrees
    if pooled_variance <= 0.0:
        return None
    squared_error = 2.0 * pooled_variance / half_length
    squared_t = float((last_half.mean() - first_half.mean()) ** 2 / squared_error)
    # Without drift, t² has the median of Student's third quartile squared.
    return squared_t / student_quantile(0.75, degrees) ** 2


def _combined_degrees(
    row_variances: Sequence[tuple[float, int]], shared_variances: Sequence[tuple[float, int]]
) -> int:
    """Return the degrees of freedom of a sum of variances (Satterthwaite 1946; Welch 1947).

    Each variance is given with its degrees of freedom. ``row_variances`` has one variance for each
    session. The result is 0 if a session has only one process.
    """
    if min(degrees for _, degrees in row_variances) < 1:
        return 0
    summands = [
        (variance, degrees)
        for variance, degrees in (*row_variances, *shared_variances)
        if variance > 0.0
    ]
    if not summands:
        return sum(degrees for _, degrees in row_variances)
    total = sum(variance for variance, _ in summands)
    squares = sum(variance**2 / degrees for variance, degrees in summands)
    return max(1, math.floor(total**2 / squares))


def _p_value(log_ratio: float, error: float, degrees: int, margin: float) -> float:
    """Return the p-value for "the true log ratio is within ± ``margin``"."""
    excess = abs(log_ratio) - margin
    if degrees == 0 or excess <= 0.0:
        return 1.0
    return student_p_value(excess / error, degrees) if error > 0.0 else 0.0


def _selected_count(p_values: Sequence[float], alpha: float) -> int:
    """Return the number of rows that Benjamini and Hochberg's step-up method selects."""
    count = len(p_values)
    ranked = enumerate(sorted(p_values), start=1)
    return max((rank for rank, p_value in ranked if p_value <= alpha * rank / count), default=0)
