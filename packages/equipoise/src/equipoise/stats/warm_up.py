"""Whether a process warms up: the class of each trial's iterations, and of the whole workload.

The classes are those of Barrett et al. (2017), "Virtual machine warmup blows hot and cold", on the
segments of stats/changes.py; docs/evidence/simulations.md names the differences. A workload
without a steady state gets no number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise.model.iterations import TrialClass, WorkloadClass
from equipoise.stats.arrays import FloatArray
from equipoise.stats.changes import Segment, Segments, consecutive_medians, find_changes

STEADY_SHARE = 0.25
"""Minimum share of the iterations, at the end, that the steady state must last."""
DISSENTING_SHARE = 0.2
"""Maximum share of trials of another class. Nine of ten series get their true class: with a tenth,
every third pure workload of 30 trials would be called inconsistent."""
MIN_ITERATIONS = 20
"""Minimum number of iterations that can show a change and a steady state after it."""


class TrialShape(Struct, frozen=True):
    """The iterations of one trial."""

    kind: TrialClass
    segments: Segments
    steady_from: int | None
    """Iteration, from 0, at which the steady state begins; ``None`` without a steady state."""
    steady: float | None
    """Mean of the iterations in the steady state, in their unit."""
    late: float
    """The same or, without a steady state, the mean of the last ``STEADY_SHARE`` of the iterations,
    so that a comparison does not leave out trials because of their times."""


class WorkloadShape(Struct, frozen=True):
    """All trials of one condition."""

    kind: WorkloadClass
    trials: tuple[TrialShape, ...]
    has_steady_state: bool
    """Whether at most ``DISSENTING_SHARE`` of the trials are without a steady state."""
    summary: str

    @property
    def steady(self) -> tuple[float, ...] | None:
        """Mean of each trial (``late``), in order; ``None`` without a steady state.

        The trial is the unit of replication, not the iteration.
        """
        return tuple(trial.late for trial in self.trials) if self.has_steady_state else None


def classify_trial(iterations: FloatArray) -> TrialShape | None:
    """Classify the iterations of one trial.

    Raise `UnusableInput` if a value is not finite.

    Parameters
    ----------
    iterations
        Shape (n,): finite costs, in order. Among more than 2,000, changes are searched in medians
        of consecutive costs.

    Returns
    -------
    ``None`` with fewer than ``MIN_ITERATIONS``. Two levels are equal if they differ by less than
    1 % or one sd (docs/methods/distribution.md). The steady state is the last stretch on equal
    levels; it must last a quarter of the iterations. The class is flat if all levels are equal,
    slowdown if an earlier level was lower, else warm-up. A factor on all iterations changes only
    the levels.
    """
    count = len(iterations)
    if count < MIN_ITERATIONS:
        return None
    medians, begins = consecutive_medians(iterations)
    changes = find_changes(medians)
    segments = Segments(
        tuple(
            Segment(int(begins[segment.begin]), int(begins[segment.end]), segment.level)
            for segment in changes.segments
        ),
        changes.sd,
    )
    last = segments.segments[-1]
    others = [segment for segment in segments.segments if not segments.are_equal(segment, last)]
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
    """Classify a workload by the classes of its trials.

    Returns
    -------
    ``None`` without a trial. The workload is inconsistent if more than a fifth of the trials differ
    from the commonest class.
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
