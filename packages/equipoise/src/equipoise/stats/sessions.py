"""Find the rows that cost more or less in a later session, which was not interleaved.

A session is one measurement of all rows. A row is one condition, with one cost for each process. No
coin randomises sessions, so every difference between them (boot, other programs, temperature) is
part of the ratio of a row. Each session shows how large such differences are:

- The spread of its processes gives Yuen's (1974) interval: means of the logarithms without the
  fifth at each end, so that a disturbed process does not decide.
- Its halves may differ by more than its processes explain. All variances are multiplied by a
  factor: the median over all rows of the squared difference of the halves over its variance by the
  processes, as a multiple of this median without drift.
- All rows of a block may move together. Two sessions are as far apart as two blocks can be, so this
  movement is not averaged over blocks.

Without a known difference of the hosts, the typical difference of the rows estimates the difference
of the sessions (an empirical null: Efron 2004); a row with a larger difference has changed.

The false-discovery rate over the rows is at most alpha (Benjamini and Hochberg 1995). So if nothing
changed, the chance that any row is called changed is at most alpha. The intervals of all rows have
the level at which rows were selected (Benjamini and Yekutieli 2005).
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

MIN_PROCESSES = 2
_MIN_VALUES_FOR_HALVES = 4
_TRIMMED_SHARE = 0.2
"""Share of the values that is trimmed at each end."""
_MEDIAN_EFFICIENCY = 0.37
"""Efficiency of the median absolute value as an estimate of a normal standard deviation."""
_MIN_ROWS = 5
"""Minimum number of rows for the common effect of a session on all rows."""


class Session(Struct, frozen=True):
    """Costs of one row in one session."""

    costs: FloatArray
    """Shape (n,): positive costs, one for each process, in the order in which they ran."""
    blocks: IntArray
    """Shape (n,): number of the block of each process."""


class SessionDrift(Struct, frozen=True):
    """Drift within one session, over all rows."""

    variance_factor: float
    """Factor that widens variances because the halves of the session differ; 1 without drift."""
    block_sd: float
    """Standard deviation of the common movement of all rows of a block, in log units."""
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


class Changes(Struct, frozen=True):
    """Changes of all rows between two sessions."""

    rows: tuple[RowChange, ...]
    level: float
    """1 minus the coverage of each interval."""
    earlier: SessionDrift
    later: SessionDrift
    mean: float
    """Mean of the log ratios: the logarithm of the geometric mean of the ratios."""
    mean_low: float
    mean_high: float
    """Upper bound of the mean; the interval of the mean has the coverage 1 minus alpha."""


def changes_between(
    earlier: Sequence[Session],
    later: Sequence[Session],
    *,
    min_effect: float,
    alpha: float = 0.05,
    between: float = 0.0,
) -> Changes:
    """Return the changes of all rows from the earlier to the later session.

    Parameters
    ----------
    earlier, later
        The same k rows in both sessions, k at least 1.
    min_effect
        Percent; a row has changed if its log ratio is outside ±ln(1 + min_effect/100).
    alpha
        False-discovery rate, and 1 minus the coverage of the interval of the mean.
    between
        Standard deviation of a row between two sessions, in log units, without the spread and drift
        within the sessions (`difference_between_sessions`); 0 if unknown.
    """
    margin = math.log1p(min_effect / 100.0)
    pairs = _paired_rows(earlier, later)
    shared_variances = (
        *((drift.block_sd**2, drift.blocks - 1) for drift in pairs.drifts),
        (between**2, max(1, round(_MEDIAN_EFFICIENCY * len(earlier)))),
    )
    shared_variance = sum(variance for variance, _ in shared_variances)
    errors = np.sqrt(pairs.variances.sum(axis=1) + shared_variance).tolist()
    differences = pairs.differences.tolist()
    freedoms = [
        _combined_freedom(tuple(zip(variances, freedoms, strict=True)), shared_variances)
        for variances, freedoms in zip(pairs.variances.tolist(), pairs.freedoms, strict=True)
    ]
    p_values = list(map(_p_value, differences, errors, freedoms, itertools.repeat(margin)))
    level = alpha * max(1, _selected_count(p_values, alpha)) / len(p_values)
    half_widths = [
        error * student_quantile(1.0 - level / 2.0, freedom) if freedom else math.inf
        for error, freedom in zip(errors, freedoms, strict=True)
    ]
    mean = float(np.mean(pairs.differences))
    # Rows are independent, except for their common movement.
    finite_rows = pairs.variances[np.isfinite(pairs.variances).all(axis=1)]
    mean_error = math.inf
    if len(finite_rows):
        mean_error = math.sqrt(float(finite_rows.sum()) / len(differences) ** 2 + shared_variance)
    half_width = mean_error * student_quantile(1.0 - alpha / 2.0, max(freedoms, default=0) or 1)
    return Changes(
        rows=tuple(
            RowChange(change, change - half, change + half, p_value, p_value <= level)
            for change, half, p_value in zip(differences, half_widths, p_values, strict=True)
        ),
        level=level,
        earlier=pairs.drifts[0],
        later=pairs.drifts[1],
        mean=mean,
        mean_low=mean - half_width,
        mean_high=mean + half_width,
    )


def difference_between_sessions(earlier: Sequence[Session], later: Sequence[Session]) -> float:
    """Estimate the log difference of two sessions beyond the spread and drift within each.

    The estimate is a robust standard deviation of the rows' differences, minus their errors. It is
    for sessions without a known difference, so that most rows did not change.
    """
    if len(earlier) < _MIN_ROWS:
        return 0.0
    pairs = _paired_rows(earlier, later)
    shared_variance = pairs.drifts[0].block_sd ** 2 + pairs.drifts[1].block_sd ** 2
    errors = pairs.variances.sum(axis=1) + shared_variance
    spread = NORMAL_MAD * float(np.median(np.abs(pairs.differences)))
    return math.sqrt(max(0.0, spread**2 - float(np.median(errors))))


class _RowPairs(Struct, frozen=True):
    """Differences of all rows between two sessions; pairs have the earlier session first."""

    drifts: tuple[SessionDrift, SessionDrift]
    differences: FloatArray
    """Shape (rows,): trimmed mean of the log costs, later minus earlier session."""
    variances: FloatArray
    """Shape (rows, 2): variances of the trimmed means, widened by the drift of the session."""
    freedoms: Sequence[tuple[int, int]]


def _paired_rows(earlier: Sequence[Session], later: Sequence[Session]) -> _RowPairs:
    drifts = (session_drift(earlier), session_drift(later))
    means = [
        (_trimmed_mean(earlier_row), _trimmed_mean(later_row))
        for earlier_row, later_row in zip(earlier, later, strict=True)
    ]
    return _RowPairs(
        drifts,
        np.array([later_mean[0] - earlier_mean[0] for earlier_mean, later_mean in means]),
        np.array([(earlier_mean[1], later_mean[1]) for earlier_mean, later_mean in means])
        * [drift.variance_factor for drift in drifts],
        [(earlier_mean[2], later_mean[2]) for earlier_mean, later_mean in means],
    )


def _trimmed_mean(row: Session) -> tuple[float, float, int]:
    """Return Yuen's mean of the log costs, its variance and its degrees of freedom.

    The variance is infinite for a single process.
    """
    ordered = np.sort(np.log(row.costs))
    count = len(ordered)
    cut_count = math.floor(_TRIMMED_SHARE * count)
    trimmed = ordered[cut_count : count - cut_count]
    freedom = len(trimmed) - 1
    variance = math.inf
    if count >= MIN_PROCESSES:
        winsorised = np.clip(ordered, trimmed[0], trimmed[-1])
        variance = float(np.var(winsorised, ddof=1)) * (count - 1) / (len(trimmed) * freedom)
    return float(np.mean(trimmed)), variance, freedom


def session_drift(rows: Sequence[Session]) -> SessionDrift:
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


def _block_moves(rows: Sequence[Session]) -> dict[int, float]:
    """Return, for each block, the median over rows of its deviation from the row's median."""
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
    """Return the squared difference of the halves, as a multiple of its median without drift.

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


def _combined_freedom(own: Sequence[tuple[float, int]], shared: Sequence[tuple[float, int]]) -> int:
    """Return the degrees of freedom of a sum of variances (Satterthwaite 1946; Welch 1947).

    ``own`` are the variances of a row in both sessions, ``shared`` those that all rows share, each
    with its degrees of freedom. The result is 0 if a session has only one process.
    """
    if min(freedom for _, freedom in own) < 1:
        return 0
    parts = [(variance, freedom) for variance, freedom in (*own, *shared) if variance > 0.0]
    if not parts:
        return sum(freedom for _, freedom in own)
    total = sum(variance for variance, _ in parts)
    return max(1, math.floor(total**2 / sum(variance**2 / freedom for variance, freedom in parts)))


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
