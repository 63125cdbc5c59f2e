"""Whether a process warms up: the class of each trial's iterations, and of the workload.

The classes of Barrett et al. (2017), "Virtual machine warmup blows hot and cold", on the segments
of stats/changes.py. No steady-state number is given for what has no steady state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from equipoise.stats.arrays import FloatArray
from equipoise.stats.changes import Segments, find_changes

TrialClass = Literal["flat", "warm-up", "slowdown", "no steady state"]
WorkloadClass = Literal["flat", "warm-up", "slowdown", "no steady state", "inconsistent"]

STEADY_SHARE = 0.25
"""The steady state must hold for at least this last share of the iterations."""
DISSENTING_SHARE = 0.1
"""Up to this share of the trials may be of another class: about what chance misclasses."""
LEAST_ITERATIONS = 20
"""Fewer cannot hold a change and a steady state after it."""


@dataclass(frozen=True, slots=True)
class TrialShape:
    """The iterations of one trial."""

    kind: TrialClass
    segments: Segments
    steady_from: int | None
    """The iteration, from 0, at which the steady state begins; ``None`` without one."""
    steady: float | None
    """Mean of the iterations in the steady state, in their unit."""


@dataclass(frozen=True, slots=True)
class WorkloadShape:
    """All trials of one condition."""

    kind: WorkloadClass
    trials: tuple[TrialShape, ...]
    steady: tuple[float, ...] | None
    """One value for each trial, in their order: the trial is the unit of replication, not the
    iteration. ``None`` unless every trial has a steady state."""
    words: str


def classify_trial(iterations: FloatArray) -> TrialShape | None:
    """Class the iterations of one trial.

    Parameters
    ----------
    iterations
        Shape (n,): costs, in order; finite.

    Returns
    -------
    ``None`` under ``LEAST_ITERATIONS``. Levels are alike if they differ by less than 1 % or one sd
    (verdict.md §8). The steady state is the last stretch on levels alike; it must hold for a
    quarter of the iterations. Then: flat if all levels are alike, slowdown if an earlier level was
    lower, else warm-up.

    Raises
    ------
    UnusableInput
        ruptures is not installed, or a value is not finite.
    """
    if len(iterations) < LEAST_ITERATIONS:
        return None
    found = find_changes(iterations)
    last = found.segments[-1]
    others = [one for one in found.segments if not found.same(one, last)]
    steady_from = others[-1].end if others else 0
    if len(iterations) - steady_from < STEADY_SHARE * len(iterations):
        return TrialShape("no steady state", found, None, None)
    kind: TrialClass = "flat"
    if others:
        kind = "slowdown" if min(one.level for one in others) < last.level else "warm-up"
    return TrialShape(kind, found, steady_from, float(np.mean(iterations[steady_from:])))


def classify_workload(trials: Sequence[FloatArray]) -> WorkloadShape | None:
    """Class a workload by its trials.

    Parameters
    ----------
    trials
        The iterations of each trial, each as for ``classify_trial``.

    Returns
    -------
    ``None`` without a trial that is long enough. The class is that of all trials but a tenth at
    most; else it is inconsistent.

    Raises
    ------
    UnusableInput
        As for ``classify_trial``.
    """
    shapes = tuple(shape for one in trials if (shape := classify_trial(one)) is not None)
    if not shapes:
        return None
    counts = Counter(one.kind for one in shapes)
    commonest, agreeing = counts.most_common(1)[0]
    consistent = len(shapes) - agreeing <= DISSENTING_SHARE * len(shapes)
    steady = tuple(one.steady for one in shapes if one.steady is not None)
    return WorkloadShape(
        kind=commonest if consistent else "inconsistent",
        trials=shapes,
        steady=steady if len(steady) == len(shapes) else None,
        words=_words(shapes, counts, consistent),
    )


def _words(shapes: Sequence[TrialShape], counts: Counter[TrialClass], consistent: bool) -> str:
    trials = f"{len(shapes)} trial{'' if len(shapes) == 1 else 's'}"
    if not consistent:
        parts = ", ".join(f"{kind} in {count}" for kind, count in counts.most_common())
        return f"inconsistent over {trials}: {parts}"
    kind = counts.most_common(1)[0][0]
    begins = [one.steady_from for one in shapes if one.kind == kind and one.steady_from is not None]
    if kind in ("warm-up", "slowdown"):
        return f"{kind}: steady from iteration {int(np.median(begins)) + 1} on (median, {trials})"
    return f"{kind} ({trials})"
