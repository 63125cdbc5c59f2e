"""Covariates: the columns in which rows must be comparable, as a matrix of numbers.

By default, all columns with suitable values are covariates, except mediators. A mediator is a
column that the version itself changes, such as page faults.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from equipoise_matching.matching.frames import (
    MAX_CATEGORIES,
    missing_in,
    numeric_columns_of,
    value_indices_of,
)
from equipoise_matching.matching.units import Floats, Indices
from equipoise_matching.observation.clusters import is_known_cluster
from equipoise_matching.observation.question import Log, Question, column_of, row_count
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.spelling import option

MEDIATORS = frozenset(
    {
        "wall_s", "user_s", "sys_s", "cpu_s", "cpu_time", "cpu_time_s", "user_time", "system_time",
        "busy_s", "elapsed", "duration", "latency", "throughput",
        "minor_faults", "major_faults", "page_faults", "faults",
        "max_rss_bytes", "max_rss", "rss", "peak_memory", "memory_bytes",
        "voluntary_switches", "involuntary_switches", "context_switches",
        "block_reads", "block_writes", "output_bytes",
        "instructions", "cycles", "cache_misses", "branch_misses", "dtlb_misses",
        "system_calls", "allocations",
        "pressure_cpu_s", "pressure_memory_s", "pressure_io_s", "run_delay_s", "steal_s",
        "frequency_hz", "exit", "failure", "failure_kind",
    }
)  # fmt: skip
"""Known names of mediators, without the prefixes of a ledger. Matching on a mediator removes part
of the effect. Counts are mediators, because they grow with a trial's duration.
"""
_LEDGER_PREFIXES = ("covariate_", "metric_")
"""Beginnings of the names of columns in a table that was exported from a ledger."""
_IDENTIFIERS = frozenset(
    {"run", "study", "condition", "block", "position", "phase", "layout", "covariate_cpu"}
)
"""Columns of a ledger that identify a trial; the number of a CPU is not a quantity either."""


class Covariates(Struct, frozen=True):
    """Columns to match on, as numbers.

    ``names`` and ``log_columns`` belong to the columns of ``matrix`` (rows, columns): the name, and
    the column of the log from which it was made. A column of texts gives a column of 0 and 1 for
    each text except the first. In ``exact`` (rows, exact columns), equal numbers are equal values.
    """

    names: tuple[str, ...]
    log_columns: tuple[str, ...]
    matrix: Floats
    exact: Floats
    exact_names: tuple[str, ...]

    @property
    def columns_to_balance(self) -> tuple[tuple[str, ...], Floats]:
        """Names and matrix of the columns to balance: the covariates, or else the exact columns."""
        if self.names:
            return self.names, self.matrix
        return self.exact_names, self.exact

    def exact_strata(self) -> Indices:
        """Return the stratum of exact matching of each row; all 0 without exact columns."""
        if not self.exact_names:
            return np.zeros(len(self.matrix), dtype=np.int64)
        code = np.unique(self.exact, axis=0, return_inverse=True)[1]
        return np.asarray(code, dtype=np.int64).reshape(-1)


def read_covariates(log: Log, question: Question) -> Covariates:
    """Read the covariates and the exact columns of a question as numbers."""
    exact = question.exact
    if not question.matched_on and not exact:
        raise UnusableInput(
            "there is no covariate to match on",
            hint=f"name columns that may explain the difference: {option('covariates')} a,b,c",
        )
    columns: list[tuple[str, str, Floats]] = []
    for name in question.matched_on:
        if name not in exact:
            column = column_of(log, name, "covariates")
            indicators = numeric_columns_of(column, name)
            columns += [(label, name, values) for label, values in indicators]
    codes = [
        value_indices_of(column_of(log, name, "exact"), name).astype(np.float64) for name in exact
    ]
    empty = np.empty((row_count(log), 0))
    return Covariates(
        tuple(name for name, _, _ in columns),
        tuple(log_column for _, log_column, _ in columns),
        np.column_stack([values for _, _, values in columns]) if columns else empty,
        np.column_stack(codes) if codes else empty,
        exact,
    )


def default_covariates(log: Log, question: Question) -> tuple[str, ...]:
    """Return every usable column in which no value is missing."""
    return tuple(
        name for name in usable_covariates(log, question) if not missing_in(log[name]).any()
    )


def usable_covariates(log: Log, question: Question) -> tuple[str, ...]:
    """Return the columns that can be covariates, with or without missing values.

    Such a column holds numbers or few different texts. It is not a mediator, a time, a cluster or a
    row number, and has no other role in the question.
    """
    return tuple(name for name in _columns_without_role(log, question) if _is_usable(log[name]))


def infinite_covariates(log: Log, question: Question) -> dict[str, int]:
    """Count the infinite values of each column that is usable without these values."""
    infinite_counts: dict[str, int] = {}
    for name in _columns_without_role(log, question):
        column = log[name]
        if column.dtype.kind == "f" and (is_infinite := np.isinf(column)).any():
            if _is_usable(column[~is_infinite]):
                infinite_counts[name] = int(is_infinite.sum())
    return infinite_counts


def _columns_without_role(log: Log, question: Question) -> Iterator[str]:
    """Yield the columns that have no other role, in the question or by their name."""
    other_roles = frozenset(question.other_columns)
    for name in log:
        if (
            name not in other_roles
            and name not in _IDENTIFIERS
            and not name.startswith("level_")
            and not is_mediator(name, question.mediators)
            and not is_known_cluster(name)
        ):
            yield name


def is_mediator(name: str, declared: tuple[str, ...] = ()) -> bool:
    """Return whether a column is a known mediator, or is declared as one."""
    short_name = name.lower()
    for prefix in _LEDGER_PREFIXES:
        short_name = short_name.removeprefix(prefix)
    return name in declared or short_name in MEDIATORS


def _is_usable(column: NDArray[Any]) -> bool:
    column = column[~missing_in(column)]
    if column.dtype.kind == "O" and all(isinstance(value, bool) for value in column.tolist()):
        # A column of truth values with missing cells is an array of objects.
        column = column.astype(np.bool_)
    if not len(column):
        return False
    if column.dtype.kind in "biuf":
        numbers = column.astype(np.float64)
        is_row_number = column.dtype.kind in "iu" and bool((np.diff(numbers) == 1.0).all())
        is_finite = bool(np.isfinite(numbers).all())
        return is_finite and bool(np.ptp(numbers) > 0.0) and not is_row_number
    values = column.tolist()
    if column.dtype.kind not in "OUS" or not all(isinstance(value, str) for value in values):
        return False
    return 1 < len(set(values)) <= MAX_CATEGORIES
