"""The question that the user asks about a log, and access to the log's columns.

A log is a table. Each row ran one version, the candidate or the baseline, and has an outcome: the
cost that the question is about.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from numpy.typing import NDArray

from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.numbers import joined
from equipoise_matching.shared.spelling import option

Names = str | Sequence[str]
"""Names of columns; a single name may be a plain string."""
Log = Mapping[str, NDArray[Any]]
"""The columns of a table by their names. All have the same length, at least one row."""
METHODS = ("genetic", "mahalanobis", "propensity")
"""Values of ``method``: the ways to measure how alike two rows are."""
NO_CLUSTERS = "none"
"""Value of ``cluster`` that declares all rows independent."""


class Question(Struct, frozen=True):
    """A question about a log: what the candidate changes, compared with the baseline.

    Parameters
    ----------
    treatment
        Column with the version of each row.
    values
        Two values of that column, as ``CANDIDATE:BASELINE``. ``None`` if there are only two values,
        and one is a known baseline (``main``, ``off``).
    outcome
        Column with the cost that the candidate may have changed.
    covariates
        Columns to match on; ``None`` chooses every usable column (``default_covariates``).
    exact
        Columns in which matched rows must be equal.
    cluster
        Columns that group dependent rows; ``None`` to choose one, ``()`` for independent rows.
    method
        ``genetic``, ``mahalanobis`` or ``propensity``.
    ratio
        Whether to estimate a ratio too; every outcome must then be above 0.
    placebo_outcomes
        Columns that the candidate cannot have changed.
    placebo_period
        Column and value of rows from a time before the candidate could have an effect.
    mediators
        Columns that the candidate itself changes, in addition to the known ``MEDIATORS``.
    leave_others_out
        Whether to leave out the rows of other versions instead of refusing the log.
    one_unit
        Whether all outcomes have one unit of measurement, although a column names several units.
    unit
        Plural noun for the rows in sentences, such as ``people``; not a unit of measurement.
    seed
        Seed of every random draw.
    threads
        Number of threads, ``None`` for all cores; the answer does not depend on it.
    """

    treatment: str
    values: str | None
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
    unit: str = "rows"
    seed: int = 0
    threads: int | None = None

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> Question:
        """Return the question; raise `UnusableInput` for an unknown method or a partial period."""
        fields = {name: arguments[name] for name in cls.__struct_fields__}
        for name in ("exact", "placebo_outcomes", "mediators"):
            fields[name] = names_tuple(fields[name])
        for name in ("covariates", "cluster"):
            # ``None`` stays: Equipoise then chooses the columns.
            fields[name] = None if fields[name] is None else names_tuple(fields[name])
        if fields["cluster"] == (NO_CLUSTERS,):
            fields["cluster"] = ()
        if fields["method"] not in METHODS:
            raise UnusableInput(
                f"there is no method {fields['method']!r}", hint=f"choose {joined(METHODS, 'or')}"
            )
        fields["placebo_period"] = _placebo_period(fields["placebo_period"])
        return cls(**fields)

    @property
    def matched_on(self) -> tuple[str, ...]:
        """The covariates to match on, after the default covariates were chosen."""
        assert self.covariates is not None
        return self.covariates

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """Names of the columns in the question, by the argument that names them."""
        return {
            "treatment": (self.treatment,),
            "outcome": (self.outcome,),
            "covariates": self.covariates or (),
            "exact": self.exact,
            "cluster": self.cluster or (),
            "placebo_outcomes": self.placebo_outcomes,
            "placebo_period": () if self.placebo_period is None else self.placebo_period[:1],
        }

    @property
    def other_columns(self) -> tuple[str, ...]:
        """Names of all columns in the question except the covariates."""
        groups = (names for role, names in self.columns.items() if role != "covariates")
        return tuple(itertools.chain.from_iterable(groups))


def _placebo_period(period: str | tuple[str, str] | None) -> tuple[str, str] | None:
    """Return the column and the value of a placebo period, given as ``COLUMN=VALUE`` or a pair."""
    if not isinstance(period, str):
        return period
    column, _, value = period.partition("=")
    if not (column and value):
        raise UnusableInput(
            f"{option('placebo_period')}: '{period}' is not COLUMN=VALUE",
            hint="name the column and the value of rows that the candidate cannot have reached, "
            f"such as {option('placebo_period', 'month=2025-01')}",
        )
    return column, value


def names_tuple(names: Names | None) -> tuple[str, ...]:
    """Return the names as a tuple, which is empty for ``None``."""
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(names)


def check_question(log: Log, question: Question) -> None:
    """Raise `UnusableInput` if a column is missing, or two arguments name the same column."""
    names_by_role = question.columns
    for role, names in names_by_role.items():
        for name in names:
            column_of(log, name, role)
    for role in ("treatment", "outcome", "placebo_outcomes"):
        for other_role in ("outcome", "covariates", "exact", "placebo_outcomes"):
            if other_role == role:
                continue
            shared = [name for name in names_by_role[role] if name in names_by_role[other_role]]
            if shared:
                raise UnusableInput(
                    f"{shared[0]} is named by {option(role)} and by {option(other_role)}",
                    hint=f"leave {shared[0]} out of {option(other_role)}: a column cannot explain "
                    "itself",
                )


def column_of(log: Log, name: str, role: str) -> NDArray[Any]:
    """Return the column with this name; ``role`` is the argument that names the column."""
    if name not in log:
        raise UnusableInput(
            f"{option(role)}: there is no column {name}", hint=f"name one of {', '.join(log)}"
        )
    return log[name]


def row_count(log: Log) -> int:
    """Return the number of rows."""
    return len(next(iter(log.values())))
