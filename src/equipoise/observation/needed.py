"""What is missing for an answer, and whom an answer is about."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from equipoise.model.observation_result import ColumnBalance, DroppedMean, MissingRows
from equipoise.observation.covariates import Covariates
from equipoise.observation.matching import Comparable, unbalanced

_REACH = 95.0
"""Percent of the candidate's rows that the range of what is missing reaches up to."""


def needed(
    found: Comparable, covariates: Covariates, treated: NDArray[np.bool_]
) -> tuple[MissingRows, ...]:
    """For each column that is not balanced, the range in which the baseline has too few rows.

    It reaches from the mean of the baseline's rows that were matched to where the candidate's end
    on the other side of its own mean, but for 5 % of them.
    """
    assert found.balance.after is not None
    asked = []
    for place in unbalanced(found):
        after = found.balance.after[place]
        column = _column(covariates, place)
        of_candidate = column[treated]
        if after.mean_treated >= after.mean_control:
            low = after.mean_control
            high = float(np.percentile(of_candidate, _REACH))
        else:
            low, high = float(np.percentile(of_candidate, 100.0 - _REACH)), after.mean_control
        inside = (column >= min(low, high)) & (column <= max(low, high))
        asked.append(
            MissingRows(
                found.balance.variables[place],
                _finite(after.sdiff / 100.0),
                min(low, high),
                max(low, high),
                int(np.count_nonzero(inside & treated)),
                int(np.count_nonzero(inside & ~treated)),
            )
        )
    return tuple(asked)


def balance_of(found: Comparable) -> tuple[ColumnBalance, ...]:
    """Every covariate before and after matching."""
    assert found.balance.after is not None
    return tuple(
        ColumnBalance(
            name,
            before.mean_treated,
            before.mean_control,
            _finite(before.sdiff / 100.0),
            after.mean_treated,
            after.mean_control,
            _finite(after.sdiff / 100.0),
        )
        for name, before, after in zip(
            found.balance.variables, found.balance.before, found.balance.after, strict=True
        )
    )


def dropped_of(
    found: Comparable, covariates: Covariates, treated: NDArray[np.bool_]
) -> tuple[DroppedMean, ...]:
    """Every covariate among the candidate's rows that were kept and those that were dropped."""
    dropped = found.pairs.dropped_index
    if not len(dropped):
        return ()
    kept = np.setdiff1d(np.flatnonzero(treated), dropped)
    return tuple(
        DroppedMean(name, float(column[kept].mean()), float(column[dropped].mean()))
        for name, column in zip(covariates.names, covariates.matrix.T, strict=True)
    )


def _column(covariates: Covariates, place: int) -> NDArray[np.float64]:
    return covariates.matrix[:, place] if covariates.names else covariates.exact[:, place]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
