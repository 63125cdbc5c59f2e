"""A campaign as the ledger records it: draws, trials, samples, segments, observations."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from msgspec import Struct, field

from equipoise.model.host import HostReference
from equipoise.model.plan import Plan

Phase = Literal["warmup", "measured"]
Better = Literal["lower", "higher"]
CUT_BLOCK = "its block was cut by an interruption"
WASHOUT_RUN = "it washes out what ran before"
BEFORE_WASHOUTS = "it ran before the blocks with washouts, which alone decide"
WARMUP_RUN = "it warms up"
FailureKind = Literal["timed out", "unavailable", "no room", "failed"]
"""Kind of a failure: the trial took too long, the machine cannot do its work (``UNAVAILABLE`` in
sysexits.h), its output found no room on the disk, or anything else."""
FAILED = "a condition failed"
"""Why a segment ended, if a trial or a hook failed."""
INTERRUPTED = "interrupted"
"""Why a segment ended, if its user or the coordinator of its fleet stopped it."""
FAILURE = "failed"
"""Code of the warning that tells how it failed."""


class Draw(Struct, frozen=True):
    """One draw of the coin: the order of one block, in the ledger before its first trial.

    Blocks count from 1 within their phase, over interruptions.
    """

    phase: Phase
    block: int
    order: tuple[int, ...]
    """Indices into the plan's conditions, in the order in which they run."""
    padding_bytes: int
    """Bytes by which the environment of every trial of the block is enlarged."""
    layout: int | None = None
    """The plan's layout, from 1, that every trial of the block runs in."""
    washout: int | None = None
    """Condition that runs before each trial of the block and is not counted; ``None`` without
    washouts. A draw that is read back has none: the trials of its block tell."""


class Sample(Struct, frozen=True):
    """One line that a workload reported itself through EQUIPOISE_METRICS."""

    metric: str
    value: float
    iteration: int | None = None
    unit: str | None = None
    better: Better = "lower"
    resolution: float | None = None
    """Smallest step of the value that the program can tell, in its unit; ``None`` if unknown."""


class Accounting(Struct, frozen=True):
    """Measurements of one trial by the launcher; ``None`` is what could not be read.

    Times in seconds, memory in bytes.
    """

    wall_s: float | None = None
    user_s: float | None = None
    sys_s: float | None = None
    max_rss_bytes: int | None = None
    minor_faults: int | None = None
    major_faults: int | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    block_reads: int | None = None
    block_writes: int | None = None
    output_bytes: int | None = None
    counters: dict[str, float | None] = field(default_factory=dict)
    """Counters that the plan asked for (``Measure.counters``), by name."""
    unknown: dict[str, str] = field(default_factory=dict)
    """For each field, counter and covariate of the launcher that is ``None``: the named reason
    (rule 7). For a counter that is not the whole: what it leaves out."""

    @property
    def cpu_s(self) -> float | None:
        """User and system time together, which the kernel knows more exactly than its parts."""
        return None if self.user_s is None or self.sys_s is None else self.user_s + self.sys_s


class Trial(Struct, frozen=True):
    """One execution of one condition in a fresh process."""

    phase: Phase
    block: int
    position: int
    """Place within its block, from 0."""
    condition: int
    """Index into the plan's conditions."""
    started_at: float
    """Seconds since the epoch."""
    accounting: Accounting
    exit: int | None = None
    """Exit status; ``None`` if it died of a signal, timed out or could not start."""
    failure: str | None = None
    """Why it failed, such as "exit status 3" or "signal 11 (SIGSEGV)"; ``None`` if it succeeded."""
    failure_kind: FailureKind | None = None
    """Kind of the failure; ``None`` if it succeeded."""
    washout: bool = False
    """Whether it ran only to wash out what ran before; never analysed then."""
    error_tail: str = ""
    """The last lines that it wrote to standard error, kept if it failed."""
    covariates: dict[str, float | None] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()

    @property
    def timed_out(self) -> bool:
        """Whether it took too long, and counts as slowest."""
        return self.failure_kind == "timed out"

    @property
    def is_unavailable(self) -> bool:
        """Whether the machine cannot do its work; its short time must not count as fast."""
        return self.failure_kind == "unavailable"


class CampaignWarning(Struct, frozen=True):
    """A warning: what, and what to do about it (rule 8)."""

    code: str
    summary: str
    hint: str


class RecordedWarning(CampaignWarning, frozen=True):
    """A warning as the ledger keeps it, with what it is about."""

    condition: int | None = None
    """Index of the plan's condition that it is about; ``None`` if it is about the campaign. The
    summary begins with the name of the condition, unless the condition is withdrawn."""
    without_from: int | None = None
    """First measured block without the condition, if it is withdrawn from the campaign."""

    @property
    def warning(self) -> CampaignWarning:
        """The warning alone, as a result has it."""
        return CampaignWarning(self.code, self.summary, self.hint)


class Segment(Struct, frozen=True):
    """One uninterrupted stretch of a campaign; a resumed campaign has several.

    ``ended_at`` and ``stopped_because`` are ``None`` for a segment that was killed.
    """

    started_at: float
    environment: dict[str, Any]
    ended_at: float | None = None
    stopped_because: str | None = None


DIFF = "diff"
"""Source that says what the commit of a condition changed (`CommitDiff` of model/revisions.py)."""


class Observation(Struct, frozen=True):
    """What one source saw of one run of one condition. Its time counts for no verdict (rule 4)."""

    source: str
    """Name in ``equipoise.why.evidence.sources.SOURCES``; or ``DIFF``, which observes no run."""
    condition: int
    """Place of the condition in the plan of the campaign."""
    repetition: int
    """Number of the repetition, from 1."""
    position: int
    """Place in the random order of all observations of one command, from 0."""
    observed_at: float
    """Start in seconds since the epoch."""
    document: bytes | None
    """Evidence as JSON; ``None`` if the source could not read any."""
    failure: str | None
    """Why there is no document."""


class RunRecord(Struct, frozen=True):
    """All that the ledger knows of one campaign, in the order in which it was written."""

    id: str
    plan: Plan
    started_at: float
    segments: tuple[Segment, ...]
    draws: tuple[Draw, ...]
    trials: tuple[Trial, ...]
    notices: tuple[RecordedWarning, ...]
    observations: tuple[Observation, ...] = ()
    """Observations of the instrumented runs that explain it."""
    earlier: tuple[RunRecord, ...] = ()
    """Records of the earlier campaigns of a history, in order; none of them has its own."""
    identity: str = ""
    """32 hexadecimal digits that no other run has, on any host."""
    host: HostReference | None = None
    """The host that measured it; ``None`` for an imported run."""
    members: tuple[RunRecord, ...] = ()
    """Records of its parts, those that are in this ledger, in the order of its plan."""

    @property
    def environment(self) -> dict[str, Any]:
        """Environment of the first segment; empty without one."""
        return self.segments[0].environment if self.segments else {}

    @property
    def stopped_because(self) -> str | None:
        """Why the last segment stopped; ``None`` while it runs, or if it was killed."""
        return self.segments[-1].stopped_because if self.segments else None

    @property
    def measured_draws(self) -> dict[int, Draw]:
        """Draws of the measured blocks, by block."""
        return {draw.block: draw for draw in self.draws if draw.phase == "measured"}


class RunSummary(Struct, frozen=True):
    """One line of ``equipoise list runs``."""

    id: str
    study: str
    commands: tuple[str, ...]
    """The names of the conditions, baseline first."""
    started_at: float
    trials: int
    stopped_because: str | None
    """``None`` while it runs, or if it was killed."""
    host: str | None = None
    """Name of the host that measured it; ``None`` for an imported run."""
    whole: str | None = None
    """Run id of the run that it is a part of; ``None`` if it is none, or that is not here."""
    hosts: int | None = None
    """Hosts of its parts that are here; ``trials`` are theirs. ``None`` without parts."""


@contextmanager
def paused_garbage_collector() -> Iterator[None]:
    """Stop Python's cycle collector while the block makes many records and drops none.

    The collector would walk them again and again: without it a large ledger opens in half the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
