"""Match greedily on one score: each row in turn takes the nearest row that is still free.

The rows that take matches are the takers: the treated rows for ATT, the controls for ATC. The
other arm has the donors. The computation is in Rust (``crates/matching/src/score.rs``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching import _native
from equipoise_matching.designs.design import LEFT_OUT, Design
from equipoise_matching.designs.units import DesignUnits, design_units, setting_details
from equipoise_matching.matching.frames import columns_of, value_indices_of
from equipoise_matching.matching.options import Estimand, check_whole_number
from equipoise_matching.matching.units import Floats, Indices, Truths, check_length, checked_column
from equipoise_matching.shared.errors import UnusableInput

ScoreOrder = Literal["largest", "smallest", "closest", "random", "data"]
TAKER_ARMS = {"ATT": 1, "ATC": 0}
"""Arm whose rows take matches, by estimand."""


def nearest_match(
    treat: Any,
    score: ArrayLike,
    *,
    X: Any = None,
    estimand: Estimand = "ATT",
    m: int = 1,
    order: ScoreOrder = "largest",
    caliper: float | None = None,
    exact: Any = None,
    replace: bool = False,
    seed: int | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Design:
    """Match each row of one arm with the nearest rows of the other arm by a score.

    Each row of the estimand takes its nearest free row of the other arm, one row after the other
    (Rubin 1973, Biometrics 29(1)), as in R's ``matchit(method="nearest")``. With ``m=2``, all rows
    take their first match before a row takes its second. Equal distances are decided by the row
    number.

    Raise `UnusableInput` if data or options cannot be used, or no row has a match.

    Examples
    --------
    >>> from equipoise_matching import nearest_match
    >>> trained = [1, 1, 0, 0, 0]
    >>> chance = [0.62, 0.35, 0.30, 0.41, 0.58]
    >>> design = nearest_match(trained, chance)
    >>> design.pairs().tolist()
    [[0, 4], [1, 2]]
    >>> nearest_match(trained, chance, caliper=0.045).pairs().tolist()
    [[0, 4]]

    Parameters
    ----------
    treat
        Shape (n,), 1 for treated rows, 0 for controls.
    score
        Shape (n,), finite numbers such as propensity scores or their logits.
    X
        Shape (n, k), covariates for the balance of the design; by default the score.
    estimand
        ATT: treated rows take controls. ATC: controls take treated rows.
    m
        Largest number of matches of a row.
    order
        Order of the rows that take matches: the "largest" or the "smallest" score first, the
        "closest" pair of all first, "random" by ``seed``, or as in the "data".
    caliper
        Largest difference of the scores in a pair, in the unit of the score (in R,
        ``std.caliper=FALSE``).
    exact
        Columns that are equal in a pair: shape (n,) or (n, columns), or a frame.
    replace
        Whether a row may be the match of several rows. The order does not matter then.
    seed, threads
        Seed of a random order, by default 0. Number of threads, by default one for each core; the
        answer does not depend on it.
    progress
        Function that receives the amounts of finished and of all work.
    """
    if estimand not in TAKER_ARMS:
        raise UnusableInput(
            f"nearest_match has no estimand {estimand!r}: it seeks matches for one arm",
            hint="choose ATT or ATC, or use quick_match for ATE",
        )
    if order not in get_args(ScoreOrder):
        raise UnusableInput(
            f"there is no order {order!r}",
            hint=f"choose one of {', '.join(get_args(ScoreOrder))}",
        )
    if m is None:
        raise UnusableInput("m is None", hint="give a whole number of matches from 1")
    for name, value, minimum in (("m", m, 1), ("seed", seed, 0), ("threads", threads, 1)):
        check_whole_number(name, value, minimum)
    scores = checked_column(score, "score", np.asarray(score).size)
    units = design_units(treat, {"score": scores} if X is None else X)
    check_length(len(scores), "score", len(units))
    if scores.min() == scores.max():
        raise UnusableInput(
            f"score is {scores[0]:g} in all {len(scores)} rows",
            hint="give a score that differs between rows",
        )
    is_taker = units.treated if TAKER_ARMS[estimand] else ~units.treated
    problem = ScoreProblem(
        score=scores,
        is_taker=is_taker,
        cells=None if exact is None else exact_cells(exact, len(units)),
        matches=min(int(m), int((~is_taker).sum())),
        caliper=checked_caliper(caliper),
        order=order,
        replace=bool(replace),
        seed=int(seed or 0),
        threads=int(threads or 0),
    )
    takers, donors = _native.match_on_score(problem, progress)
    if not len(takers):
        raise UnusableInput(
            "no row has a match: caliper or exact exclude all pairs",
            hint="widen the caliper, or give fewer exact columns",
        )
    settings = setting_details(caliper=caliper, exact=exact)
    return _design(units, problem, estimand, takers, donors, settings)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreProblem:
    """Checked data and options of n rows, which ``_native`` reads by the names of the fields."""

    score: Floats
    """Shape (n,)."""
    is_taker: Truths
    """Whether each row takes matches, shape (n,); the other rows are donors."""
    cells: Indices | None
    """Shape (n,), the cell of each row; only rows of one cell can be a pair."""
    matches: int
    caliper: float
    """Largest difference of scores, infinite without a limit."""
    order: str
    replace: bool
    seed: int
    threads: int
    """Number of threads; 0 for one on each core."""


def checked_caliper(caliper: float | None) -> float:
    """Return the caliper as a number, infinite for ``None``; raise `UnusableInput` if negative."""
    if caliper is None:
        return math.inf
    is_number = isinstance(caliper, int | float | np.number) and not isinstance(caliper, bool)
    if not is_number or not caliper >= 0:
        raise UnusableInput(
            f"caliper is {caliper!r}", hint="give a distance of 0 or more, or None for no limit"
        )
    return float(caliper)


def exact_cells(exact: Any, rows: int) -> Indices:
    """Return the cell of each row, shape (rows,): rows of a cell agree in every exact column."""
    columns = columns_of(exact)
    if columns is None:
        array = np.asarray(exact)
        if array.ndim not in (1, 2) or not array.size:
            raise UnusableInput(
                f"exact has shape {array.shape}", hint="give one value for each row"
            )
        table = array.reshape(len(array), -1)
        columns = {f"exact{number}": column for number, column in enumerate(table.T, start=1)}
    cells = np.zeros(rows, dtype=np.int64)
    for name, column in columns.items():
        check_length(len(column), f"exact, column {name!r}", rows)
        indices = value_indices_of(column, f"exact, column {name!r}")
        # Cells are renumbered after each column, because the products may overflow.
        combined = cells * (int(indices.max()) + 1) + indices
        cells = np.unique(combined, return_inverse=True)[1].astype(np.int64).reshape(-1)
    return cells


def _design(
    units: DesignUnits,
    problem: ScoreProblem,
    estimand: Estimand,
    takers: Indices,
    donors: Indices,
    settings: Mapping[str, str],
) -> Design:
    """Return the design of these pairs, which are in the order of the takers."""
    stratum_of_pair = np.cumsum(np.diff(takers, prepend=takers[0]) != 0)
    matches = np.bincount(stratum_of_pair)
    shares = 1.0 / matches[stratum_of_pair]
    weights = np.asarray(np.bincount(donors, shares, len(units)), dtype=np.float64)
    weights[takers] = 1.0
    strata, pairs = None, None
    if problem.replace:
        is_att = estimand == "ATT"
        pairs = np.column_stack([takers, donors] if is_att else [donors, takers])
    else:
        strata = np.full(len(units), LEFT_OUT, dtype=np.int64)
        strata[takers] = stratum_of_pair
        strata[donors] = stratum_of_pair
    distances = np.abs(problem.score[takers] - problem.score[donors])
    details = {
        **settings,
        "Order": "any (with replacement)" if problem.replace else problem.order,
        "Pairs": len(takers),
        "Rows without a match": int(problem.is_taker.sum()) - len(matches),
        "Mean difference of scores": float(distances.mean()),
        "Largest difference of scores": float(distances.max()),
    }
    return Design("nearest_match", estimand, units, weights, strata, pairs, details)
