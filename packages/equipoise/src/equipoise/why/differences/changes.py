"""Changes between two conditions: the data of a `Difference`, and the computation of a change.

An entry point is a place where a program enters the kernel: a system call, or a page fault.

If a count does not vary between runs, the interval of its change has no width. If a time or a
sampled weight does not vary, hardly anything was measured, and the interval is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

import numpy as np
from msgspec import Struct, field

from equipoise.model.quantities import Interval
from equipoise.stats.two_samples import NO_SPREAD, sample_difference
from equipoise.why.evidence.observer import Function
from equipoise.why.evidence.sources import Runs, Side

ALPHA = 0.05
"""1 minus the nominal coverage of each interval."""


class Change(Struct, frozen=True):
    """One quantity in both conditions: means over runs. A run without the quantity counts as 0."""

    baseline: float
    candidate: float
    extra: float
    """Slower condition minus faster condition; below 0 if the slower condition has less."""
    extra_ci: Interval
    """Welch's 95 % interval over observed runs, or Student's 95 % interval over the blocks of the
    campaign. Both bounds are ``None`` if the interval is unknown."""

    @property
    def slower(self) -> float:
        """Value of the slower condition: the larger value if ``extra`` is above 0."""
        low, high = sorted((self.baseline, self.candidate))
        return high if self.extra > 0 else low

    @property
    def faster(self) -> float:
        """Value of the faster condition."""
        low, high = sorted((self.baseline, self.candidate))
        return low if self.extra > 0 else high

    @property
    def is_certain(self) -> bool:
        """Whether the interval is known and does not contain 0."""
        low, high = self.extra_ci
        return low is not None and high is not None and (low > 0 or high < 0)

    @property
    def half_width(self) -> float:
        """Half of the interval's width; the change itself if the interval is unknown."""
        low, high = self.extra_ci
        return abs(self.extra) if low is None or high is None else (high - low) / 2


NO_CHANGE = Change(0.0, 0.0, 0.0, (0.0, 0.0))


class Wait(Struct, frozen=True):
    """A kernel entry point where threads wait, with the function that called it."""

    entry_point: str
    function: Function | None


class CallsChange(Struct, frozen=True):
    """Change of the system calls of one name."""

    count: Change
    seconds: Change
    """Seconds from call to return, over all threads, including the cost of observing the calls."""
    errors: Mapping[str, Change]
    """Number of errors by name, such as ``ENOENT``."""
    typical_bytes: int | None
    """Most frequent size argument in the slower condition."""
    waits: bool
    """Whether the call mostly waits for another thread, process or device."""


class FileChange(Struct, frozen=True):
    """Change of the use of one file. All sockets count as one file, and so do all pipes."""

    reads: Change = NO_CHANGE
    bytes_read: Change = NO_CHANGE
    writes: Change = NO_CHANGE
    bytes_written: Change = NO_CHANGE
    syncs: Change = NO_CHANGE
    seconds: Change = NO_CHANGE


class LockChange(Struct, frozen=True):
    """Change of the waits for one lock."""

    waits: Change
    seconds: Change
    more_in_each_run: bool = False
    """Whether each run of the slower condition has more waits than every run of the faster
    condition. If the numbers vary a thousandfold, the interval of ``waits`` is useless."""


class Locking(Struct, frozen=True):
    """Time that threads spend at locks, from sampled stacks."""

    functions: tuple[Function, ...] = ()
    """Functions of the profile that mostly acquire or release a lock."""
    callers: Mapping[Function, Change] = field(default_factory=dict)
    """Seconds at locks, by the innermost function outside the lock and the C library."""
    lock_function: str | None = None
    """Lock function that takes most of these seconds, such as ``pthread_mutex_lock``."""


class SizeClassChange(Struct, frozen=True):
    """Change of the allocated blocks of one size class."""

    min_bytes: int
    max_bytes: int
    typical_bytes: int
    """Most frequent size in the condition that has more of these blocks."""
    count: Change
    bytes: Change
    usual_lifetime_s: float | None = None
    """Lifetime within which nine in ten blocks were freed, in the condition with more blocks;
    ``None`` if fewer were freed, or if lifetimes are unknown."""
    typical_share: float = 0.0
    """Lower bound of the share of blocks with the typical size, in the same condition."""


class AllocationsChange(Struct, frozen=True):
    """Change of the allocations."""

    count: Change
    classes: tuple[SizeClassChange, ...]
    """Size classes, those with the most blocks in either condition first."""
    by_function: Mapping[Function, Change]
    """Estimated bytes by the innermost function outside the allocator."""


class FaultsChange(Struct, frozen=True):
    """Change of the page faults."""

    count: Change
    by_function: Mapping[Function, Change]
    """Sampled page faults by the function that touches the page."""


class Setting(Struct, frozen=True):
    """A setting that the two conditions declare differently."""

    name: str
    """Name, such as ``environment OPENBLAS_CORETYPE``, ``argument 2`` or ``huge pages``."""
    baseline: str | None
    candidate: str | None


class Difference(Struct, frozen=True):
    """All differences between two conditions; a part without observations is empty or ``None``."""

    slower: Side
    wall_time: Change
    """Wall-clock seconds of the campaign's own trials. Its ``extra`` is the gap: the mean of the
    differences within blocks."""
    time_parts: Mapping[str, Change] = field(default_factory=dict)
    """Known parts of the wall time of the trials: ``user_s``, ``system_s``, ``waiting_s``, and
    ``queueing_s`` (waiting for a processor)."""
    resources: Mapping[str, Change] = field(default_factory=dict)
    """Other resources of the trials: faults, switches, block reads and writes, peak memory."""
    on_processor: Change | None = None
    """Seconds on a processor, over all stacks of the profile."""
    entry_points: Mapping[str, Change] = field(default_factory=dict)
    """Seconds on a processor inside the kernel, by kernel entry point. If the kernel is hidden,
    the only entry point is ``kernel``: the system time of ``time_parts``."""
    functions: Mapping[Function, Change] = field(default_factory=dict)
    """Seconds on a processor in a function itself, without the kernel."""
    inclusive: Mapping[Function, Change] = field(default_factory=dict)
    """Seconds on a processor in a function and in all functions that it called, with the kernel."""
    callers: Mapping[Function, tuple[Function, ...]] = field(default_factory=dict)
    """Callers in most of the extra stacks of a function, the nearest caller first."""
    waits: Mapping[Wait, Change] = field(default_factory=dict)
    """Seconds off the processor, of all threads."""
    locking: Locking = Locking()
    calls: Mapping[str, CallsChange] = field(default_factory=dict)
    files: Mapping[str, FileChange] = field(default_factory=dict)
    locks: Mapping[str, LockChange] = field(default_factory=dict)
    """Waits by the name of the lock (`locks_change`)."""
    faults: FaultsChange | None = None
    allocations: AllocationsChange | None = None
    instructions: Mapping[str, Change] = field(default_factory=dict)
    """Instructions outside the kernel, by function; empty unless a source counted them."""
    processes: Change | None = None
    threads: Change | None = None
    programs: Change | None = None
    """Programs that were executed."""
    settings: tuple[Setting, ...] = ()
    unseen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Sentences about what could not be seen, by source."""


Key = TypeVar("Key")
ChangeFunction = Callable[[Runs[float], Side], Change]
"""Function of the values of both conditions, and of the slower condition."""


def is_increase(change: Change | None) -> bool:
    """Return whether the slower condition certainly has the larger value."""
    return change is not None and change.extra > 0 and change.is_certain


def _compute_change(runs: Runs[float], slower: Side, *, paired: bool, is_count: bool) -> Change:
    baseline, candidate = np.array(runs.baseline, float), np.array(runs.candidate, float)
    estimate = sample_difference(baseline, candidate, paired=paired, level=ALPHA)
    extra, (low, high) = estimate.difference, estimate.difference_ci
    if is_count and estimate.unknown == NO_SPREAD:
        low = high = extra
    if slower == "baseline":
        extra = -extra
        low, high = (None if high is None else -high, None if low is None else -low)
    return Change(float(baseline.mean()), float(candidate.mean()), extra, (low, high))


count_change: ChangeFunction = partial(_compute_change, paired=False, is_count=True)
"""Return the change of an exact count, with Welch's interval."""
measure_change: ChangeFunction = partial(_compute_change, paired=False, is_count=False)
"""Return the change of a time or a sampled weight, with Welch's interval."""
paired_count_change: ChangeFunction = partial(_compute_change, paired=True, is_count=True)
"""Return the change of a count in trials of the same blocks, with Student's interval."""
paired_measure_change: ChangeFunction = partial(_compute_change, paired=True, is_count=False)
"""Return the change of a time in trials of the same blocks, with Student's interval."""


def changes_by_key(
    runs: Runs[Mapping[Key, float]], slower: Side, compute: ChangeFunction = measure_change
) -> dict[Key, Change]:
    """Return the change of the value of each key, the largest ``extra`` first.

    A run without the key counts as 0. The result is empty unless both conditions have a run.
    """
    if not runs.has_both:
        return {}
    keys = dict.fromkeys(key for run in runs.all_runs for key in run)

    def change(key: Key) -> Change:
        return compute(runs.map(lambda run: run.get(key, 0.0)), slower)

    return dict(sorted(zip(keys, map(change, keys), strict=True), key=lambda item: -item[1].extra))


def sum_of(parts: Iterable[Change]) -> Change:
    """Return the sum of changes. An unknown interval counts as 0 to twice the change."""
    parts = tuple(parts)
    extra = sum(part.extra for part in parts)
    half_width = math.hypot(*(part.half_width for part in parts))
    return Change(
        baseline=sum(part.baseline for part in parts),
        candidate=sum(part.candidate for part in parts),
        extra=extra,
        extra_ci=(extra - half_width, extra + half_width),
    )
