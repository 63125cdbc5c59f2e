"""What a rule of another tool is: in which order it runs two conditions, and when it calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from numpy.random import Generator

from benchmarks.validity.machine import FloatArray, IntArray

RUN_SECONDS = 0.3
"""How long a usual run takes, for rules that look at the clock. At 0.3 s hyperfine's two
minima, 10 runs and 3 s, agree."""

SIGNIFICANT = 0.05

Call = Literal["faster", "slower"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a tool tells its user about the candidate; ``None``: no significant difference."""

    call: Call | None
    runs: int
    """How many runs that took, of both conditions."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The decision rule of one tool, written from its documentation."""

    name: str
    words: str
    schedule: Callable[[Generator], IntArray]
    """Draws the condition of each run, shape (n,), up to the most that the tool would run."""
    decide: Callable[[FloatArray, FloatArray], Decision]
    """From the times of the baseline and of the candidate, each in the order in which they ran,
    finite: a run that was ended has the time limit as its time."""


def call_by(difference: float) -> Call | None:
    """The call for a significant difference of this sign."""
    if difference > 0:
        return "slower"
    return "faster" if difference < 0 else None
