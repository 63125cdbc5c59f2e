"""The question that is put to a log: what ran, what it cost, and what else may explain it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.model.errors import UnusableInput

Log = Mapping[str, NDArray[Any]]
"""The columns of a table by name, each with a value for each row; at least one row."""

METHODS = ("genetic", "mahalanobis", "propensity")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked.

    Parameters
    ----------
    treatment, values
        The column that says what ran, and ``CANDIDATE:BASELINE``, two of its values.
    outcome
        The column that the candidate may have changed: a cost.
    covariates
        What rows must be alike in; ``None`` for every column that can serve
        (``covariates.default_covariates``).
    exact
        Columns in which they must agree.
    cluster
        Columns of which one value is one lot of rows; ``None`` to choose one that is known by
        name, ``()`` for none.
    method
        One of ``METHODS``.
    ratio
        Whether the effect is a ratio as well: then every outcome must be above 0.
    placebo_outcomes
        Columns that the candidate cannot have changed.
    placebo_period
        A column and its value in rows that the candidate cannot have reached yet.
    mediators
        Columns that the candidate itself changes, beside those that are known.
    leave_others_out
        Whether rows of other versions are left out rather than refused.
    one_unit
        Whether the outcomes are known to be in one unit.
    seed
        Of every draw.
    threads
        ``None`` for all cores; never changes the answer.
    """

    treatment: str
    values: str
    outcome: str
    covariates: tuple[str, ...] | None = None
    exact: tuple[str, ...] = ()
    cluster: tuple[str, ...] | None = None
    method: str = "genetic"
    ratio: bool = True
    placebo_outcomes: tuple[str, ...] = ()
    placebo_period: tuple[str, str] | None = None
    mediators: tuple[str, ...] = ()
    leave_others_out: bool = False
    one_unit: bool = False
    seed: int = 0
    threads: int | None = None


def column_of(log: Log, name: str, what: str) -> NDArray[Any]:
    """One column.

    Parameters
    ----------
    what
        The option that names it, for what is said if it is missing.

    Raises
    ------
    UnusableInput
        There is no such column; it says which there are.
    """
    if name not in log:
        raise UnusableInput(
            f"{what}: there is no column {name}", hint=f"there are {', '.join(log)}"
        )
    return log[name]


def rows_of(log: Log) -> int:
    """How many rows there are."""
    return len(next(iter(log.values())))


def part_of(log: Log, rows: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    """The same columns of these rows."""
    return {name: column[rows] for name, column in log.items()}


def check(log: Log, question: Question) -> None:
    """See that every column is there, and that none is two things at once.

    Raises
    ------
    UnusableInput
        Naming the option and the column.
    """
    named = {
        "--treatment": (question.treatment,),
        "--outcome": (question.outcome,),
        "--covariates": question.covariates or (),
        "--exact": question.exact,
        "--cluster": question.cluster or (),
        "--placebo-outcome": question.placebo_outcomes,
        "--placebo-period": () if question.placebo_period is None else question.placebo_period[:1],
    }
    for option, names in named.items():
        for name in names:
            column_of(log, name, option)
    alone = ("--treatment", "--outcome", "--placebo-outcome")
    for option in alone:
        for name in named[option]:
            for other in ("--outcome", "--covariates", "--exact", "--placebo-outcome"):
                if other != option and name in named[other]:
                    raise UnusableInput(
                        f"{name} is named by {option} and by {other}",
                        hint=f"leave it out of {other}: nothing is explained by itself",
                    )
