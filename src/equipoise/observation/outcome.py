"""The outcome as numbers in one unit."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.frames import numbers_of
from equipoise.matching.units import row_numbers
from equipoise.model.errors import UnusableInput
from equipoise.observation.arms import texts_of
from equipoise.observation.question import Log, Question, column_of

Values = NDArray[np.float64]

UNIT_COLUMNS = ("unit", "units", "time_unit", "unit_of_time")
"""Columns by which other tools say the unit of a row."""
_WITH_UNIT = re.compile(r"^\s*[-+0-9.eE]+\s*([a-zA-Zµμ]+)\s*$")

_APART = 30.0
"""A gap so wide, as a factor, between one value and the next is no noise."""
_LEAST_SHARE = 0.01
_UNIT_STEPS = (1e3, 1e6, 1e9)
_NEAR = 3.0
"""The medians on both sides of the gap are a unit apart, but for so much."""


def outcome_of(log: Log, question: Question) -> Values:
    """The outcomes of all rows.

    Raises
    ------
    UnusableInput
        A value is missing or no number, or they are in several units.
    """
    name = question.outcome
    column = column_of(log, name, "--outcome")
    if column.dtype.kind not in "biuf":
        units = {
            found[1] for value in column.tolist() if (found := _WITH_UNIT.match(str(value or "")))
        }
        if units:
            mixed = (
                f"times in mixed units: {', '.join(sorted(units))}"
                if len(units) > 1
                else (f"the unit {next(iter(units))} in each cell")
            )
            raise UnusableInput(
                f"{name} has {mixed}", hint="write plain numbers in one unit, such as seconds"
            )
    values = numbers_of(column, name)
    if not question.one_unit:
        _refuse_mixed(log, question, values)
    return values


def logarithm_of(values: Values, name: str) -> Values:
    """Natural logarithms, for a ratio.

    Raises
    ------
    UnusableInput
        A value is 0 or less, naming the rows.
    """
    wrong = values <= 0.0
    if wrong.any():
        raise UnusableInput(
            f"{name}: 0 or less in {row_numbers(wrong)}: no ratio is defined",
            hint="leave out rows without a measurement, or give --difference",
        )
    return np.asarray(np.log(values), dtype=np.float64)


def _refuse_mixed(log: Log, question: Question, values: Values) -> None:
    name = question.outcome
    hint = "bring them to one unit; --one-unit if they are in one already"
    for column in (*UNIT_COLUMNS, f"{name}_unit"):
        if column in log:
            units, _ = texts_of(log[column], column)
            if len(units) > 1:
                raise UnusableInput(
                    f"{name} is in mixed units: column {column} has {', '.join(units[:6])}",
                    hint=hint,
                )
    found = _unit_step(values)
    if found is not None:
        step, low, high = found
        raise UnusableInput(
            f"{name} seems to be in mixed units: {np.size(low)} values around "
            f"{np.median(low):.3g} and {np.size(high)} around {np.median(high):.3g}, a factor of "
            f"about {step:,.0f}, with none between",
            hint=hint,
        )


def _unit_step(values: Values) -> tuple[float, Values, Values] | None:
    """The step between two units, and the values below and above the gap; ``None`` without one."""
    positive = np.sort(values[values > 0.0])
    if len(positive) < 2:
        return None
    ratios = positive[1:] / positive[:-1]
    at = int(np.argmax(ratios)) + 1
    low, high = positive[:at], positive[at:]
    if ratios[at - 1] < _APART or min(len(low), len(high)) < max(2, _LEAST_SHARE * len(positive)):
        return None
    step = float(np.median(high) / np.median(low))
    for unit in _UNIT_STEPS:
        if unit / _NEAR < step < unit * _NEAR:
            return unit, low, high
    return None
