"""The same rows measured in two sessions that were not interleaved: what changed between them.

No coin stands between two sessions, so that whatever differs between them (the boot, neighbours,
temperature) stands in the ratio. What is known of it is what each session shows of itself:

- the spread of its processes (Yuen's (1974) interval: means of the logarithms without the fifth at
  each end, so that a process that something disturbed does not decide);
- whether its halves differ by more than its processes do, over all rows together: the median over
  rows of the squared difference of the halves over what the processes explain, as a multiple of its
  median without drift. All variances are widened by it;
- how far all rows moved together, block by block. Another session is as far away as two blocks can
  be, so that this is not averaged over blocks.

Where nothing is known to differ between the two hosts, what half of the rows differ by is taken for
what sessions differ by (an empirical null: Efron 2004); what stands out of that has changed.

The false-discovery rate over the rows is held at alpha (Benjamini and Hochberg 1995), so that with
nothing changed the chance that any row is called changed is at most alpha; the intervals of all
rows have the level at which rows were selected (Benjamini and Yekutieli 2005).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise._native import student_p_value, student_quantile
from equipoise.stats.arrays import FloatArray, IntArray

LEAST_PROCESSES = 2
_LEAST_FOR_HALVES = 4
_TRIMMED = 0.2
"""At each end."""
_NORMAL_MEDIAN = 1.4826
"""The standard deviation of a normal law over its median absolute value."""
_MEDIAN_EFFICIENCY = 0.37
"""Efficiency of the median absolute value as an estimate of a normal standard deviation."""
_LEAST_ROWS = 5
"""Fewer rows tell nothing of what sessions do to all of them."""


_Part = tuple[float, int]
"""A variance and the degrees of freedom that it was estimated with."""


class Session(Struct, frozen=True):
    """One row in one session."""

    costs: FloatArray
    """Shape (n,): positive, one for each process, in the order in which they ran."""
    blocks: IntArray
    """Shape (n,): the block of each."""


class SessionDrift(Struct, frozen=True):
    """Drift of a session by itself."""

    halves: float
    """Factor that widens variances because the halves differ; 1 where they do not."""
    together: float
    """The standard deviation of what moves all rows of a block together, in log units."""
    blocks: int
    """Number of blocks that ``together`` was estimated from; 0 for too few rows."""


class RowChange(Struct, frozen=True):
    """One row in both sessions; log ratios of the cost, the later over the earlier."""

    difference: float
    low: float
    high: float
    """Infinite where a session has one process only."""
    p_value: float
    """P-value of a change no larger than the smallest that matters."""
    changed: bool


class Changes(Struct, frozen=True):
    """All rows."""

    rows: tuple[RowChange, ...]
    level: float
    """1 minus the coverage of each interval."""
    here: SessionDrift
    there: SessionDrift
    mean: float
    """Mean of the log ratios: the logarithm of their geometric mean."""
    mean_low: float
    mean_high: float
    """At 1 minus alpha."""


def changes_between(
    there: Sequence[Session],
    here: Sequence[Session],
    *,
    min_effect: float,
    alpha: float = 0.05,
    between: float = 0.0,
) -> Changes:
    """Tell which rows cost more or less here than there.

    Parameters
    ----------
    there, here
        The same k rows, at least one, in the earlier and in the later session.
    min_effect
        In percent: a row has changed if its ratio is outside ±ln(1 + min_effect/100).
    alpha
        Of the false-discovery rate, and of the interval of the mean.
    between
        The standard deviation of what a row differs by between two sessions beyond what they show
        of themselves, in log units (`difference_between_sessions`); 0 if nothing is known of it.
    """
    matters = math.log1p(min_effect / 100.0)
    resting = (session_drift(there), session_drift(here))
    differences = _locations(here) - _locations(there)
    own = _own_variances(there, here, resting)
    shared = (
        (resting[0].together ** 2, resting[0].blocks - 1),
        (resting[1].together ** 2, resting[1].blocks - 1),
        (between**2, max(1, round(_MEDIAN_EFFICIENCY * len(there)))),
    )
    moves = sum(variance for variance, _ in shared)
    errors = np.sqrt(own.sum(axis=1) + moves).tolist()
    freedoms = [
        _freedom(((one, _own_freedom(a)), (two, _own_freedom(b))), shared)
        for (one, two), a, b in zip(own.tolist(), there, here, strict=True)
    ]
    p_values = np.array(
        list(map(_p_value, differences.tolist(), errors, freedoms, itertools.repeat(matters)))
    )
    level = alpha * max(1, _selected(p_values, alpha)) / len(p_values)
    reaches = [
        error * student_quantile(1.0 - level / 2.0, freedom) if freedom else math.inf
        for error, freedom in zip(errors, freedoms, strict=True)
    ]
    mean = float(np.mean(differences))
    # Rows are independent but for what may move all of them.
    known = own[np.isfinite(own).all(axis=1)]
    mean_error = math.inf
    if len(known):
        mean_error = math.sqrt(float(known.sum()) / len(differences) ** 2 + moves)
    mean_reach = mean_error * student_quantile(1.0 - alpha / 2.0, max(freedoms, default=0) or 1)
    return Changes(
        rows=tuple(
            RowChange(middle, middle - reach, middle + reach, p_value, p_value <= level)
            for middle, reach, p_value in zip(
                differences.tolist(), reaches, p_values.tolist(), strict=True
            )
        ),
        level=level,
        here=resting[1],
        there=resting[0],
        mean=mean,
        mean_low=mean - mean_reach,
        mean_high=mean + mean_reach,
    )


def difference_between_sessions(there: Sequence[Session], here: Sequence[Session]) -> float:
    """Return the log difference of the median row beyond what both sessions show of themselves.

    The normal standard deviation of the median row, less its error. For sessions between which
    nothing is known to have changed, so that most rows have not.
    """
    if len(there) < _LEAST_ROWS:
        return 0.0
    resting = (session_drift(there), session_drift(here))
    shared = resting[0].together ** 2 + resting[1].together ** 2
    errors = _own_variances(there, here, resting).sum(axis=1) + shared
    spread = _NORMAL_MEDIAN * float(np.median(np.abs(_locations(here) - _locations(there))))
    return math.sqrt(max(0.0, spread**2 - float(np.median(errors))))


def session_drift(rows: Sequence[Session]) -> SessionDrift:
    """Return how much a session drifts by itself, over all its rows."""
    together = _together(rows)
    excesses = [excess for row in rows if (excess := _excess(_without(row, together))) is not None]
    halves = 1.0
    if len(excesses) >= _LEAST_ROWS:
        halves = max(1.0, float(np.median(excesses)))
    moves = list(together.values())
    spread = float(np.std(moves, ddof=1)) if len(moves) > 1 else 0.0
    return SessionDrift(halves, spread, len(moves))


def _locations(rows: Sequence[Session]) -> FloatArray:
    """Return the trimmed mean of the logarithms of each row."""
    means = []
    for row in rows:
        ordered, trimmed = np.sort(np.log(row.costs)), _trimmed(row)
        means.append(float(np.mean(ordered[trimmed : len(ordered) - trimmed])))
    return np.array(means)


def _own_variances(
    there: Sequence[Session], here: Sequence[Session], resting: tuple[SessionDrift, SessionDrift]
) -> FloatArray:
    """Return the variance of each row's mean, widened by the session's drift; shape (rows, 2)."""
    errors = np.array([[_error(a), _error(b)] for a, b in zip(there, here, strict=True)])
    return errors * [drift.halves for drift in resting]


def _together(rows: Sequence[Session]) -> dict[int, float]:
    """For each block, the median over rows of how far it lies from the row's own median."""
    moves: dict[int, list[float]] = {}
    for row in rows:
        logs = np.log(row.costs)
        for block, move in zip(row.blocks.tolist(), logs - np.median(logs), strict=True):
            moves.setdefault(block, []).append(float(move))
    return {
        block: float(np.median(listed))
        for block, listed in moves.items()
        if len(listed) >= _LEAST_ROWS
    }


def _without(row: Session, together: dict[int, float]) -> FloatArray:
    """Return the logarithms of a row without what moved all rows."""
    moved = [together.get(block, 0.0) for block in row.blocks.tolist()]
    return np.log(row.costs) - np.array(moved, dtype=np.float64)


def _excess(logs: FloatArray) -> float | None:
    """Return the squared difference of the halves over what is expected of it, at its median.

    ``None`` for too few processes, or for ones that are all alike.
    """
    half = len(logs) // 2
    if len(logs) < _LEAST_FOR_HALVES:
        return None
    first, last = logs[:half], logs[-half:]
    freedom = 2 * (half - 1)
    pooled = (np.sum((first - first.mean()) ** 2) + np.sum((last - last.mean()) ** 2)) / freedom
    if pooled <= 0.0:
        return None
    found = float((last.mean() - first.mean()) ** 2 / (2.0 * pooled / half))
    # Of an F with 1 and that many degrees of freedom: the square of Student's third quartile.
    return found / student_quantile(0.75, freedom) ** 2


def _error(row: Session) -> float:
    """Return the variance of the trimmed mean; infinite for one process."""
    count, trimmed = len(row.costs), _trimmed(row)
    if count < LEAST_PROCESSES:
        return math.inf
    ordered = np.sort(np.log(row.costs))
    drawn_in = np.clip(ordered, ordered[trimmed], ordered[count - 1 - trimmed])
    kept = count - 2 * trimmed
    return float(np.var(drawn_in, ddof=1)) * (count - 1) / (kept * (kept - 1))


def _own_freedom(row: Session) -> int:
    return len(row.costs) - 2 * _trimmed(row) - 1


def _trimmed(row: Session) -> int:
    """Return how many processes are left out at each end."""
    return math.floor(_TRIMMED * len(row.costs))


def _freedom(own: Sequence[_Part], shared: Sequence[_Part]) -> int:
    """Return the degrees of freedom of a sum of variances (Satterthwaite 1946; Welch 1947).

    Each part has its variance and its own degrees; 0 where a session has one process only.
    """
    if min(freedom for _, freedom in own) < 1:
        return 0
    parts = [(variance, freedom) for variance, freedom in (*own, *shared) if variance > 0.0]
    if not parts:
        return sum(freedom for _, freedom in own)
    total = sum(variance for variance, _ in parts)
    return max(1, math.floor(total**2 / sum(one**2 / freedom for one, freedom in parts)))


def _p_value(difference: float, error: float, freedom: int, matters: float) -> float:
    beyond = abs(difference) - matters
    if freedom == 0 or beyond <= 0.0:
        return 1.0
    return student_p_value(beyond / error, freedom) if error > 0.0 else 0.0


def _selected(p_values: FloatArray, alpha: float) -> int:
    """Return how many rows Benjamini and Hochberg's step-up selects."""
    ordered = np.sort(p_values)
    ranks = np.arange(1, len(ordered) + 1)
    passing = np.flatnonzero(ordered <= alpha * ranks / len(ordered))
    return int(passing[-1]) + 1 if len(passing) else 0
