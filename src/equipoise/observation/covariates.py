"""What comparable rows must be alike in, as a matrix of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.frames import numbers_of
from equipoise.matching.stratified import levels_of
from equipoise.model.errors import UnusableInput
from equipoise.observation.arms import texts_of
from equipoise.observation.clusters import is_known_cluster
from equipoise.observation.mediators import is_mediator
from equipoise.observation.question import Log, Question, column_of

Values = NDArray[np.float64]

MOST_CATEGORIES = 20
"""A column of words with more of them is a name, not a kind."""
_NO_COVARIATE = frozenset(
    {"run", "study", "condition", "block", "position", "phase", "layout", "covariate_cpu"}
)
"""Of a ledger's columns: what a trial is, not what it met. The number of a CPU is no size."""


@dataclass(frozen=True, slots=True)
class Covariates:
    """Columns to match on.

    Attributes
    ----------
    names, owners
        Of each column of the matrix, and the column of the log that it comes from: a column of
        words gives one column for each word but the first.
    matrix
        Shape (rows, columns).
    exact
        Shape (rows, exact columns): equal numbers for equal values.
    exact_names
        Of these.
    """

    names: tuple[str, ...]
    owners: tuple[str, ...]
    matrix: Values
    exact: Values
    exact_names: tuple[str, ...]


def covariates_of(log: Log, names: tuple[str, ...], exact: tuple[str, ...]) -> Covariates:
    """The columns of these names as numbers.

    Raises
    ------
    UnusableInput
        Naming the column: a value is missing or infinite, there are too many words, or nothing
        is there to match on.
    """
    if not names and not exact:
        raise UnusableInput(
            "there is no covariate: rows cannot be told comparable",
            hint="--covariates a,b,c names what may explain the difference",
        )
    columns: list[tuple[str, str, Values]] = []
    for name in names:
        if name not in exact:
            columns += _numbers(column_of(log, name, "--covariates"), name)
    codes = [levels_of(column_of(log, name, "--exact"), name).astype(np.float64) for name in exact]
    rows = len(next(iter(log.values())))
    return Covariates(
        tuple(name for name, _, _ in columns),
        tuple(owner for _, owner, _ in columns),
        np.column_stack([values for _, _, values in columns]) if columns else np.empty((rows, 0)),
        np.column_stack(codes) if codes else np.empty((rows, 0)),
        exact,
    )


def default_covariates(log: Log, question: Question) -> tuple[str, ...]:
    """Every column that can serve: numbers without a gap, or a few words.

    Left out are the treatment, the outcome, placebos, what is exact, what the candidate changes
    itself, times and clusters, and numbers that only count the rows.
    """
    taken = {
        question.treatment,
        question.outcome,
        *question.exact,
        *question.placebo_outcomes,
        *(question.cluster or ()),
        *(() if question.placebo_period is None else question.placebo_period[:1]),
    }
    return tuple(
        name
        for name, column in log.items()
        if name not in taken
        and name not in _NO_COVARIATE
        and not name.startswith("level_")
        and not is_mediator(name, question.mediators)
        and not is_known_cluster(name)
        and _can_serve(column)
    )


def _can_serve(column: NDArray[Any]) -> bool:
    if column.dtype.kind in "biuf":
        numbers = column.astype(np.float64)
        if not np.isfinite(numbers).all() or np.ptp(numbers) == 0.0:
            return False
        counts_rows = column.dtype.kind in "iu" and bool((np.diff(numbers) == 1.0).all())
        return not counts_rows
    if column.dtype.kind not in "OUS" or any(not isinstance(one, str) for one in column.tolist()):
        return False
    return 1 < len(set(column.tolist())) <= MOST_CATEGORIES


def _numbers(column: NDArray[Any], name: str) -> list[tuple[str, str, Values]]:
    """One column of numbers, or one for each word but the first."""
    is_text = column.dtype.kind in "US" or (
        column.dtype.kind == "O" and any(isinstance(value, str) for value in column[:1].tolist())
    )
    if not is_text:
        return [(name, name, numbers_of(column, name))]
    words, code = texts_of(column, name)
    if len(words) > MOST_CATEGORIES:
        raise UnusableInput(
            f"{name}: {len(words)} different words are too many to be alike in",
            hint=f"--exact {name} compares within each, or leave it out",
        )
    return [
        (f"{name}={word}", name, (code == place).astype(np.float64))
        for place, word in enumerate(words)
        if place
    ]
