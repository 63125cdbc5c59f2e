"""Which rows are the candidate's and which are the baseline's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.stratified import levels_of, plain
from equipoise.model.errors import UnusableInput
from equipoise.observation.question import Log, Question, column_of

_NAMED = 6
"""So many values an error names; it counts the others."""


@dataclass(frozen=True, slots=True)
class Arms:
    """The two values, and of each row whether it has one of them."""

    candidate: str
    baseline: str
    is_candidate: NDArray[np.bool_]
    is_baseline: NDArray[np.bool_]


def arms_of(log: Log, question: Question) -> Arms:
    """Read the two arms of a question.

    Raises
    ------
    UnusableInput
        The two values are not there, cannot be told apart, or are not the only ones; or a row
        has none.
    """
    name = question.treatment
    values, code = texts_of(column_of(log, name, "--treatment"), name)
    there = f"{name} has {_some(values)}"
    candidate, baseline = _two_of(question.values, values, there)
    others = [value for value in values if value not in (candidate, baseline)]
    if others and not question.leave_others_out:
        raise UnusableInput(
            f"{name} has {len(values)} values: {_some(values)}; the question names two",
            hint="--leave-others-out leaves the rows of the others out",
        )
    return Arms(
        candidate,
        baseline,
        np.asarray(code == values.index(candidate)),
        np.asarray(code == values.index(baseline)),
    )


def texts_of(column: NDArray[Any], name: str) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct values of a column as somebody would type them, and of each row which it is.

    Raises
    ------
    UnusableInput
        A value is missing.
    """
    code = levels_of(column, name)
    _, first = np.unique(code, return_index=True)
    return [text_of(plain(value)) for value in column[first]], code


def _two_of(asked: str, values: list[str], there: str) -> tuple[str, str]:
    """The candidate and the baseline; either may have colons in it."""
    parts = asked.split(":")
    splits = [(":".join(parts[:at]), ":".join(parts[at:])) for at in range(1, len(parts))]
    fitting = [split for split in splits if split[0] in values and split[1] in values]
    if len(fitting) == 1 and fitting[0][0] != fitting[0][1]:
        return fitting[0]
    if not splits or not all(splits[0]):
        raise UnusableInput(
            f"--treatment: '{asked}' is not CANDIDATE:BASELINE", hint=f"name two values; {there}"
        )
    if len(fitting) > 1:
        raise UnusableInput(
            f"--treatment: '{asked}' can be split in several ways", hint="rename one of the values"
        )
    if fitting:
        raise UnusableInput(
            f"--treatment: '{asked}' names one value twice", hint=f"name two values; {there}"
        )
    missing = [part for part in splits[0] if part not in values] if len(splits) == 1 else [asked]
    raise UnusableInput(f"--treatment: no row has {', '.join(missing)}", hint=there)


def text_of(value: Any) -> str:
    """One value as somebody would type it."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _some(values: list[str]) -> str:
    more = f" and {len(values) - _NAMED} more" if len(values) > _NAMED else ""
    return ", ".join(values[:_NAMED]) + more
