"""Iterations of trials by class: flat, warm-up, slowdown, no steady state or inconsistent."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

TrialClass = Literal["flat", "warm-up", "slowdown", "no steady state"]
WorkloadClass = Literal["flat", "warm-up", "slowdown", "no steady state", "inconsistent"]


class Stretch(Struct, frozen=True):
    """Iterations ``begin`` to ``end`` - 1 of a trial, counted from 0, with about the same mean."""

    begin: int
    end: int
    mean: float
    """Mean of the iterations with extremes clipped, in the metric's unit."""


class TrialIterations(Struct, frozen=True):
    """The iterations of one analysed trial."""

    block: int
    kind: TrialClass
    stretches: tuple[Stretch, ...]
    """Stretches in order, separated by change-points."""
    steady_from: int | None
    """First iteration of the steady state, from 0; null without a steady state."""
    steady_mean: float | None
    """Mean of the iterations in the steady state; null without a steady state."""


class IterationShape(Struct, frozen=True):
    """The iterations of all analysed trials of one condition, on one metric."""

    kind: WorkloadClass | None
    """Class of the condition; null if no trial has enough iterations to be classified."""
    has_steady_state: bool
    trials: tuple[TrialIterations, ...]
    """Classified trials, in the order in which they ran."""
    unclassified_trials: int
    """Number of trials with too few iterations, or with a value that is not a finite number."""
    summary: str
