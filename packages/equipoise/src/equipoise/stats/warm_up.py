"""Whether a process warms up: the class of each trial's iterations, and of the whole workload.

The iterations of a trial are cut into segments, each on one level (stats/changes.py). The *steady
state* is the last stretch on equal levels, if it is long enough. A trial is flat, warm-up, slowdown
or without a steady state (Barrett et al. 2017). docs/evidence/simulations.md compares the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise.model.iterations import TrialClass, WorkloadClass
from equipoise.stats.arrays import FloatArray
from equipoise.stats.changes import Segment, Segmentation, consecutive_medians, find_changes

STEADY_SHARE = 0.25
"""Minimum share of a trial's iterations that the steady state, at the end, must last."""
MAX_DISSENTING_SHARE = 0.2
"""Maximum share of trials outside of the commonest class in a consistent workload. One in ten
trials gets a wrong class, so the maximum is larger."""
MIN_ITERATIONS = 20
"""Minimum number of iterations that can show a change and a steady state after it."""


class TrialShape(Struct, frozen=True):
    """Class of one trial, and the levels of its iterations."""

    kind: TrialClass
    segmentation: Segmentation
    steady_from: int | None
    """First iteration of the steady state, from 0; ``None`` without a steady state."""
    steady_mean: float | None
    """Mean of the iterations in the steady state; ``None`` without a steady state."""
    final_mean: float
    """``steady_mean``; without a steady state, the mean of the last quarter of the iterations."""


class WorkloadShape(Struct, frozen=True):
    """Class of one condition, from the classes of its trials."""

    kind: WorkloadClass
    """Class of the condition: the commonest class of its trials, or inconsistent."""
    trials: tuple[TrialShape, ...]
    has_steady_state: bool
    """Whether at most ``MAX_DISSENTING_SHARE`` of the trials are without a steady state."""
    summary: str
    """Number of trials in each class, as text."""

    @property
    def final_means(self) -> tuple[float, ...] | None:
        """The ``final_mean`` of each trial, in order; ``None`` without a steady state."""
        return tuple(trial.final_mean for trial in self.trials) if self.has_steady_state else None


def classify_trial(iterations: FloatArray) -> TrialShape | None:
    """Classify the iterations of one trial; return ``None`` for fewer than ``MIN_ITERATIONS``.

    ``iterations``, shape (n,), are finite costs, in order. More than 2,000 costs are first reduced
    to medians of consecutive costs.

    Two levels are equal if they differ by less than 1 % or one sd (docs/methods/distribution.md).
    The steady state must last a quarter of the iterations. With a steady state, the class is flat
    if all levels are equal, slowdown if an earlier level was lower, else warm-up.

    Raise `UnusableInput` if a value is not finite.
    """
    iteration_count = len(iterations)
    if iteration_count < MIN_ITERATIONS:
        return None
    block_medians, begins = consecutive_medians(iterations)
    median_segmentation = find_changes(block_medians)
    segmentation = Segmentation(
        tuple(
            Segment(int(begins[segment.begin]), int(begins[segment.end]), segment.level)
            for segment in median_segmentation.segments
        ),
        median_segmentation.sd,
    )
    last_segment = segmentation.segments[-1]
    different_segments = [
        segment
        for segment in segmentation.segments
        if not segmentation.are_equal(segment, last_segment)
    ]
    steady_from = different_segments[-1].end if different_segments else 0
    if iteration_count - steady_from < STEADY_SHARE * iteration_count:
        final_mean = float(np.mean(iterations[-round(STEADY_SHARE * iteration_count) :]))
        return TrialShape("no steady state", segmentation, None, None, final_mean)
    kind: TrialClass = "flat"
    if different_segments:
        min_level = min(segment.level for segment in different_segments)
        kind = "slowdown" if min_level < last_segment.level else "warm-up"
    steady_mean = float(np.mean(iterations[steady_from:]))
    return TrialShape(kind, segmentation, steady_from, steady_mean, steady_mean)


def workload_of(shapes: Sequence[TrialShape]) -> WorkloadShape | None:
    """Classify a workload by the classes of its trials; return ``None`` without a trial.

    A workload is inconsistent if more than a fifth of its trials are not of the commonest class.
    """
    if not shapes:
        return None
    counts = Counter(shape.kind for shape in shapes)
    commonest, commonest_count = counts.most_common(1)[0]
    max_dissenters = MAX_DISSENTING_SHARE * len(shapes)
    is_consistent = len(shapes) - commonest_count <= max_dissenters
    return WorkloadShape(
        kind=commonest if is_consistent else "inconsistent",
        trials=tuple(shapes),
        has_steady_state=counts["no steady state"] <= max_dissenters,
        summary=_summary(shapes, counts) if is_consistent else f"inconsistent: {_listing(counts)}",
    )


def _summary(shapes: Sequence[TrialShape], counts: Counter[TrialClass]) -> str:
    (commonest, count), *other_counts = counts.most_common()
    summary = f"{commonest} in {'all' if not other_counts else f'{count} of'} {len(shapes)} trials"
    if len(shapes) == 1:
        summary = f"{commonest} in its one trial"
    if commonest in ("warm-up", "slowdown"):
        first_iterations = [shape.steady_from or 0 for shape in shapes if shape.kind == commonest]
        summary += f", steady from iteration {int(np.median(first_iterations)) + 1} on (median)"
    return summary + (f"; {_listing(Counter(dict(other_counts)))}" if other_counts else "")


def _listing(counts: Counter[TrialClass]) -> str:
    return ", ".join(f"{kind} in {count}" for kind, count in counts.most_common())
