"""One quantity in both conditions: how a change is computed from the runs.

What is counted differs from what is measured or sampled in one thing. Where no run of a condition
differs from another one, a count has been shown to be the same each time, and its change is exact:
an interval without width. A time, or the weight of samples, repeats itself only because it was
rounded or because hardly anything was sampled, and the interval is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from equipoise.stats.arrays import FloatArray
from equipoise.stats.two_samples import (
    NO_SPREAD,
    SampleDifference,
    paired_difference,
    welch_difference,
)
from equipoise.why.differences.result import Change, Side
from equipoise.why.evidence.evidence_set import Runs

LEVEL = 0.05
"""1 minus the nominal coverage of each interval, by itself."""

Key = TypeVar("Key")
Compute = Callable[[Runs[float], Side], Change]


def counted(runs: Runs[float], slower: Side) -> Change:
    """The change of something that each run counted exactly, by Welch's interval.

    Both conditions have a run.
    """
    baseline, candidate = _arrays(runs)
    return _change(runs, _exact(welch_difference(baseline, candidate, level=LEVEL)), slower)


def measured(runs: Runs[float], slower: Side) -> Change:
    """The change of something that was timed or sampled, by Welch's interval.

    Both conditions have a run.
    """
    baseline, candidate = _arrays(runs)
    return _change(runs, welch_difference(baseline, candidate, level=LEVEL), slower)


def paired_counted(runs: Runs[float], slower: Side) -> Change:
    """The change of a count in trials of the same blocks, by Student's t over their differences."""
    baseline, candidate = _arrays(runs)
    return _change(runs, _exact(paired_difference(baseline, candidate, level=LEVEL)), slower)


def paired_measured(runs: Runs[float], slower: Side) -> Change:
    """The change of a measure in trials of the same blocks, by Student's t over their differences.

    Of means, not medians: means of parts add up to the mean of the whole.
    """
    baseline, candidate = _arrays(runs)
    return _change(runs, paired_difference(baseline, candidate, level=LEVEL), slower)


def changes(
    runs: Runs[Mapping[Key, float]], slower: Side, compute: Compute = measured
) -> dict[Key, Change]:
    """The change of each thing that a run saw, what the slower condition has most more of first.

    What a run did not see it has 0 of. Empty unless both conditions have a run.
    """
    if not runs.both:
        return {}
    seen = dict.fromkeys(key for run in (*runs.baseline, *runs.candidate) for key in run)
    found = {key: compute(runs.map(_of(key)), slower) for key in seen}
    return dict(sorted(found.items(), key=lambda item: -item[1].extra))


def is_certain(change: Change) -> bool:
    """Whether the interval is known and excludes no change."""
    low, high = change.extra_ci
    return low is not None and high is not None and (low > 0 or high < 0)


def _of(key: Key) -> Callable[[Mapping[Key, float]], float]:
    return lambda run: run.get(key, 0.0)


def _arrays(runs: Runs[float]) -> tuple[FloatArray, FloatArray]:
    return np.array(runs.baseline, dtype=np.float64), np.array(runs.candidate, dtype=np.float64)


def _exact(found: SampleDifference) -> SampleDifference:
    if found.unknown != NO_SPREAD:
        return found
    return SampleDifference(found.difference, (found.difference, found.difference), None)


def _change(runs: Runs[float], found: SampleDifference, slower: Side) -> Change:
    baseline, candidate = _arrays(runs)
    low, high = found.difference_ci
    extra = found.difference
    if slower == "baseline":
        extra = -extra
        low, high = (None if high is None else -high, None if low is None else -low)
    return Change(float(np.mean(baseline)), float(np.mean(candidate)), extra, (low, high))
