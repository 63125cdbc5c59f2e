"""What differs between two conditions, as frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from equipoise.model.interval import Interval
from equipoise.why.evidence.stacks import Kind as FrameKind

Side = Literal["baseline", "candidate"]


@dataclass(frozen=True, slots=True)
class Change:
    """One quantity in both conditions: means over the runs of the source that sees it.

    What a run did not see it has 0 of.
    """

    baseline: float
    candidate: float
    extra: float
    """Of the slower condition over the faster one; below 0 where the slower one has less."""
    extra_ci: Interval
    """Welch's interval over the repeated runs, at 95 % for each by itself; Student's over the
    blocks for the campaign's own trials. Unknown where a condition has one run, and where no time
    or sampled weight varies. Of a count that was the same in all runs of a condition, for both
    conditions, both bounds are ``extra``."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the program."""

    name: str
    module: str
    kind: FrameKind


@dataclass(frozen=True, slots=True)
class Wait:
    """A place where threads wait: by which door of the kernel, called from which function."""

    door: str
    function: Function | None


@dataclass(frozen=True, slots=True)
class CallsChange:
    """The system calls of one name."""

    count: Change
    seconds: Change
    """From entry to return, over all threads; with the cost of observing them."""
    errors: Mapping[str, Change]
    typical_bytes: int | None
    """The most frequent size argument in the slower condition."""
    waits: bool


@dataclass(frozen=True, slots=True)
class FileChange:
    """What was done with one file; sockets and pipes are one each."""

    reads: Change
    bytes_read: Change
    writes: Change
    bytes_written: Change
    syncs: Change
    seconds: Change


@dataclass(frozen=True, slots=True)
class LockChange:
    """Waits on the futexes of one place."""

    waits: Change
    seconds: Change


@dataclass(frozen=True, slots=True)
class SizeClassChange:
    """Blocks of one size class."""

    least_bytes: int
    most_bytes: int
    typical_bytes: int
    """The size that most of its blocks have in the condition that has more of them."""
    count: Change
    bytes: Change
    short_lived: Change
    """Blocks that surely lived at most 64 microseconds."""
    usual_lifetime_s: float | None = None
    """Nine of ten of its blocks surely lived less, in the condition that has more of them;
    ``None`` if they did not end, or how long they lived is not known."""
    typical_share: float = 0.0
    """How many of its blocks have the typical size, at least, of all; in the same condition."""


@dataclass(frozen=True, slots=True)
class AllocationsChange:
    """What was allocated."""

    count: Change
    bytes: Change
    classes: tuple[SizeClassChange, ...]
    """The largest number of blocks in either condition first."""
    by_function: Mapping[Function, Change]
    """Estimated bytes by the innermost function outside the allocator."""


@dataclass(frozen=True, slots=True)
class FaultsChange:
    """Page faults."""

    count: Change
    by_function: Mapping[Function, Change]
    """Faults by the function in which they happened."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Something that is set for one condition, or differently for both."""

    name: str
    """``environment OPENBLAS_CORETYPE``, ``argument 2``, ``huge pages``, ``library``."""
    baseline: str | None
    candidate: str | None


@dataclass(frozen=True, slots=True)
class Difference:
    """All that differs between two conditions; what no source saw is empty or ``None``."""

    slower: Side
    gap: Change
    """Of the wall time of the campaign's own trials, in seconds: the mean of the differences
    within blocks. Nothing here is timed under a source."""
    split: Mapping[str, Change]
    """``user_s``, ``system_s``, ``waiting_s`` and ``queueing_s`` (for a processor) of these trials,
    as far as they are known."""
    accounts: Mapping[str, Change]
    """Other accounts of these trials: faults, switches, block reads and writes, peak memory."""
    on_processor: Change | None
    """Seconds on a processor, all stacks of the profile. As all seconds of the sources they are
    sums over the threads: where threads run at once, more than what passed."""
    doors: Mapping[str, Change]
    """Seconds on a processor inside the kernel, by the door by which it was entered. Where the
    kernel is hidden, ``kernel`` alone: the system time of ``split``."""
    functions: Mapping[Function, Change]
    """Seconds on a processor in a function itself, kernel excluded."""
    reached: Mapping[Function, Change]
    """Seconds on a processor in a function and in all that it called, kernel included."""
    doors_by_function: Mapping[tuple[str, Function], Change]
    """Kernel seconds by door and innermost function."""
    waits: Mapping[Wait, Change]
    """Seconds off the processor, of all threads."""
    calls: Mapping[str, CallsChange]
    files: Mapping[str, FileChange]
    locks: Mapping[str, LockChange]
    faults: FaultsChange | None
    allocations: AllocationsChange | None
    instructions: Mapping[str, Change]
    """Outside the kernel, by function; empty unless they were asked for."""
    processes: Change | None
    threads: Change | None
    programs: Change | None
    """Programs that were executed."""
    settings: tuple[Setting, ...]
    unseen: Mapping[str, tuple[str, ...]]
    """By source, in words."""

    @property
    def faster(self) -> Side:
        """The other side."""
        return "baseline" if self.slower == "candidate" else "candidate"
