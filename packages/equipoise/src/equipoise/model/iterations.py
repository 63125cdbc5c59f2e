"""The iterations of trials, classed: flat, warm-up, slowdown, no steady state or inconsistent."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

TrialClass = Literal["flat", "warm-up", "slowdown", "no steady state"]
WorkloadClass = Literal["flat", "warm-up", "slowdown", "no steady state", "inconsistent"]


class Stretch(Struct, frozen=True):
    """Iterations ``begin`` to ``end`` - 1 of a trial, counted from 0, on one level."""

    begin: int
    end: int
    level: float
    """The mean, extremes drawn in, in the metric's unit."""


class TrialIterations(Struct, frozen=True):
    """The iterations of one analysed trial."""

    block: int
    kind: TrialClass
    stretches: tuple[Stretch, ...]
    """One after the other; a change-point stands between two."""
    steady_from: int | None
    """The iteration, from 0, at which the steady state begins; null without one."""
    steady: float | None
    """The mean of the iterations from there on; null without one."""


class IterationShape(Struct, frozen=True):
    """The iterations of all analysed trials of one condition, on one metric."""

    kind: WorkloadClass | None
    """Null where no trial has enough iterations to be classed."""
    has_steady_state: bool
    trials: tuple[TrialIterations, ...]
    """Trials that could be classed, in the order in which they ran."""
    not_classed: int
    """Trials with too few iterations, or with one that is no finite number."""
    summary: str
