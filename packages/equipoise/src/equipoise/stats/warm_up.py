"""Whether a process warms up: the class of each trial's iterations, and of the workload.

The classes of Barrett et al. (2017), "Virtual machine warmup blows hot and cold", on the segments
of stats/changes.py; docs/methods/statistics.md names the differences. No number is given for what
has no steady state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise.model.iterations import TrialClass, WorkloadClass
from equipoise.stats.arrays import FloatArray
from equipoise.stats.changes import Segment, Segments, find_changes, thinned

STEADY_SHARE = 0.25
"""The steady state must hold for at least this last share of the iterations."""
DISSENTING_SHARE = 0.2
"""Up to this share of the trials may be of another class. A series is given its class in nine
cases of ten: if only a tenth might dissent, every third pure workload of 30 trials would be called
inconsistent."""
MIN_ITERATIONS = 20
"""Fewer cannot hold a change and a steady state after it."""


class TrialShape(Struct, frozen=True):
    """The iterations of one trial."""

    kind: TrialClass
    segments: Segments
    steady_from: int | None
    """The iteration, from 0, at which the steady state begins; ``None`` without one."""
    steady: float | None
    """Mean of the iterations in the steady state, in their unit."""
    late: float
    """The same, or without a steady state the mean of the last ``STEADY_SHARE`` of them: so that a
    comparison need leave out no trial for what it did."""


class WorkloadShape(Struct, frozen=True):
    """All trials of one condition."""

    kind: WorkloadClass
    trials: tuple[TrialShape, ...]
    has_steady_state: bool
    """Whether at most ``DISSENTING_SHARE`` of the trials have none."""
    summary: str

    @property
    def steady(self) -> tuple[float, ...] | None:
        """The ``late`` of each trial, in order; ``None`` without a steady state.

        The trial is the unit of replication, not the iteration.
        """
        return tuple(trial.late for trial in self.trials) if self.has_steady_state else None


def classify_trial(iterations: FloatArray) -> TrialShape | None:
    """Class the iterations of one trial.

    Raise `UnusableInput` if a value is not finite.

    Parameters
    ----------
    iterations
        Shape (n,): costs, in order; finite. Changes among more than 2,000 are looked for in medians
        of consecutive ones.

    Returns
    -------
    ``None`` under ``MIN_ITERATIONS``. Levels are alike if they differ by less than 1 % or one sd
    (docs/methods/statistics.md). The steady state is the last stretch on levels alike; it must
    hold for a
    quarter of the iterations. Then: flat if all levels are alike, slowdown if an earlier level was
    lower, else warm-up. Whatever multiplies all iterations multiplies the levels and leaves the
    rest as it is.
    """
    count = len(iterations)
    if count < MIN_ITERATIONS:
        return None
    medians, begins = thinned(iterations)
    changes = find_changes(medians)
    segments = Segments(
        tuple(
            Segment(int(begins[segment.begin]), int(begins[segment.end]), segment.level)
            for segment in changes.segments
        ),
        changes.sd,
    )
    last = segments.segments[-1]
    others = [segment for segment in segments.segments if not segments.same(segment, last)]
    steady_from = others[-1].end if others else 0
    if count - steady_from < STEADY_SHARE * count:
        late = float(np.mean(iterations[-round(STEADY_SHARE * count) :]))
        return TrialShape("no steady state", segments, None, None, late)
    kind: TrialClass = "flat"
    if others:
        kind = "slowdown" if min(segment.level for segment in others) < last.level else "warm-up"
    steady = float(np.mean(iterations[steady_from:]))
    return TrialShape(kind, segments, steady_from, steady, steady)


def workload_of(shapes: Sequence[TrialShape]) -> WorkloadShape | None:
    """Class a workload by the classes of its trials.

    Returns
    -------
    ``None`` without a trial. The class is that of all trials but a fifth at most; else it is
    inconsistent.
    """
    if not shapes:
        return None
    counts = Counter(shape.kind for shape in shapes)
    commonest, agreeing = counts.most_common(1)[0]
    dissenters = DISSENTING_SHARE * len(shapes)
    consistent = len(shapes) - agreeing <= dissenters
    return WorkloadShape(
        kind=commonest if consistent else "inconsistent",
        trials=tuple(shapes),
        has_steady_state=counts["no steady state"] <= dissenters,
        summary=_summary(shapes, counts) if consistent else f"inconsistent: {_listed(counts)}",
    )


def _summary(shapes: Sequence[TrialShape], counts: Counter[TrialClass]) -> str:
    (kind, agreeing), *others = counts.most_common()
    summary = f"{kind} in {'all' if not others else f'{agreeing} of'} {len(shapes)} trials"
    if len(shapes) == 1:
        summary = f"{kind} in its one trial"
    if kind in ("warm-up", "slowdown"):
        begins = [shape.steady_from or 0 for shape in shapes if shape.kind == kind]
        summary += f", steady from iteration {int(np.median(begins)) + 1} on (median)"
    return summary + (f"; {_listed(Counter(dict(others)))}" if others else "")


def _listed(counts: Counter[TrialClass]) -> str:
    return ", ".join(f"{kind} in {count}" for kind, count in counts.most_common())
