"""The treatment and the covariates of the rows from which a design is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise_matching.matching.frames import (
    check_present,
    columns_of,
    matrix_of,
    python_value,
    value_indices_of,
)
from equipoise_matching.matching.units import Floats, Indices, Truths, check_length
from equipoise_matching.shared.errors import UnusableInput

MAX_ARMS = 20
"""Largest number of arms of a treatment; a column with more values is not a treatment."""
ARM_NAMES = ("Controls", "Treated")


@dataclass(frozen=True, slots=True, eq=False)
class DesignUnits:
    """The rows of a design: n rows with k covariates.

    Parameters
    ----------
    names
        Names of the k covariates.
    matrix
        Shape (n, k), finite numbers.
    arm
        Shape (n,), the position in ``arms`` of each row's treatment.
    arms
        The values of the treatment in ascending order: 0 and 1, or the labels of several arms.
    """

    names: tuple[str, ...]
    matrix: Floats
    arm: Indices
    arms: tuple[Any, ...]

    @property
    def treated(self) -> Truths:
        """Whether each row is treated, shape (n,), in a design of two arms."""
        return np.asarray(self.arm == 1)

    @property
    def arm_names(self) -> tuple[str, ...]:
        """Names of the arms in a summary, in the order of ``arms``."""
        return ARM_NAMES if self.arms == (0, 1) else tuple(str(arm) for arm in self.arms)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.arm)


def design_units(treat: Any, X: Any, *, several_arms: bool = False) -> DesignUnits:
    """Check the treatment and the covariates of a design.

    The treatment is 0 or 1; with ``several_arms``, any values, each of which is an arm. Raise
    `UnusableInput` for missing or infinite values, unequal lengths, an empty arm, or more than two
    values without ``several_arms``; the error names the column and the rows.
    """
    names, matrix = matrix_of(X)
    name, column = _treatment_column(treat)
    check_length(len(column), name, len(matrix))
    check_present(column, name)
    values = np.unique(column) if column.dtype.kind in "biufSU" else None
    if values is None or not set(values.tolist()) <= {0, 1}:
        arm = value_indices_of(column, name)
        first_rows = np.unique(arm, return_index=True)[1]
        labels = tuple(python_value(value) for value in column[first_rows])
    else:
        arm, labels = column.astype(np.int64), (0, 1)
    counts = np.bincount(arm, minlength=len(labels))
    if len(labels) < 2 or not counts.all():
        raise UnusableInput(
            f"{name} has one value in all {len(column)} rows: there is nothing to compare with",
            hint="give rows of both arms",
        )
    if labels != (0, 1) and not several_arms:
        listed = ", ".join(map(str, labels[:5]))
        raise UnusableInput(
            f"{name} has the values {listed}{', …' if len(labels) > 5 else ''}, not 0 and 1",
            hint="code treated rows as 1 and controls as 0",
        )
    if len(labels) > MAX_ARMS:
        raise UnusableInput(
            f"{name} has {len(labels)} different values, which are too many for arms",
            hint=f"give a treatment with at most {MAX_ARMS} values",
        )
    return DesignUnits(names, matrix, arm, labels)


def effective_size(weights: Floats) -> float:
    """Return the effective number of rows, (Σw)² / Σw² (Kish 1965); 0 if all weights are 0."""
    # Weights are divided by the largest, because the squares of tiny weights would be 0.
    weights = weights / (weights.max(initial=0.0) or 1.0)
    squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def _treatment_column(treat: Any) -> tuple[str, Any]:
    columns = columns_of(treat)
    if columns is None:
        columns = {"treat": np.asarray(treat)}
    if [column.ndim for column in columns.values()] != [1]:
        raise UnusableInput(
            f"the treatment has shape {np.shape(treat)}", hint="give one treatment for each row"
        )
    ((name, column),) = columns.items()
    return name, column


def setting_details(**settings: Any) -> dict[str, str]:
    """Return the settings of a design that are given, as text for its details.

    Examples
    --------
    >>> setting_details(metric="mahalanobis", caliper={"age": 0.2}, exact=None)
    {'Metric': 'mahalanobis', 'Caliper': 'age 0.2'}
    """
    return {
        name.capitalize(): _setting_text(value)
        for name, value in settings.items()
        if value is not None
    }


def _setting_text(value: Any) -> str:
    if isinstance(value, str | bool | int | float):
        return str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {width}" for name, width in value.items())
    columns = columns_of(value)
    if columns is not None:
        return ", ".join(columns)
    array = np.asarray(value)
    if array.dtype.kind in "US" and array.ndim == 1 and len(array) <= MAX_ARMS:
        return ", ".join(map(str, array.tolist()))
    return f"given, of shape {array.shape}"
