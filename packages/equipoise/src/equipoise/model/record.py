"""The record of a campaign in the ledger: draws, trials, samples, segments, observations."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from equipoise.model.host import HostReference
from equipoise.model.plan import Plan

Phase = Literal["warmup", "measured"]
Better = Literal["lower", "higher"]
"""Which values of a metric are better."""
CUT_BLOCK = "its block was cut by an interruption"
WASHOUT_RUN = "it washes out what ran before"
BEFORE_WASHOUTS = "it ran before the blocks with washouts, which alone decide"
WARMUP_RUN = "it warms up"
"""This constant and the three above are reasons why a trial (``it``) is not analysed."""
FailureKind = Literal["timed out", "unavailable", "no room", "failed"]
"""Kind of a trial's failure. ``unavailable``: the machine cannot run the program (``UNAVAILABLE``
in sysexits.h). ``no room``: the disk is full."""
ENDED_BY_FAILURE = "a condition failed"
"""Value of ``Segment.stopped_because``: a trial or a hook failed."""
ENDED_BY_PILOT = "its pilot"
"""Value of ``Segment.stopped_because``: trials that run at once disturb each other."""
INTERRUPTED = "interrupted"
"""Value of ``Segment.stopped_because``: the user or a fleet's coordinator stopped the segment."""
FAILURE_WARNING = "failed"
"""Code of the warning about a campaign that a failure ended."""


class Draw(Struct, frozen=True):
    """One draw of the coin: the order of one block, recorded before the first trial of the block.

    Blocks are numbered from 1 within their phase, across interruptions.
    """

    phase: Phase
    block: int
    order: tuple[int, ...]
    """Indices into the plan's conditions, in the order in which they run."""
    padding_bytes: int
    """Bytes by which the environment of every trial of the block is enlarged."""
    layout: int | None = None
    """Layout of every trial of the block, by its number in the plan, from 1."""
    washout_condition: int | None = None
    """Index of the condition whose washouts run before each trial of the block; ``None`` without
    washouts, and after reading from a ledger, which does not store this field."""


class Sample(Struct, frozen=True):
    """One value that a workload itself reported, through EQUIPOISE_METRICS."""

    metric: str
    value: float
    iteration: int | None = None
    unit: str | None = None
    better: Better = "lower"
    resolution: float | None = None
    """Smallest step of the value, in its unit; ``None`` if unknown."""


class Accounting(Struct, frozen=True):
    """Measurements of one trial by the launcher, in seconds and bytes; ``None`` if unknown."""

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
    """Counters of the plan (``Measure.counters``), by name."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Reason for each field, counter and covariate that is ``None`` (rule 7). An incomplete counter
    has the part that is not counted."""

    @property
    def cpu_s(self) -> float | None:
        """User plus system time: the kernel measures the sum more exactly than the parts."""
        return None if self.user_s is None or self.sys_s is None else self.user_s + self.sys_s


class Trial(Struct, frozen=True):
    """One execution of one condition in a fresh process."""

    phase: Phase
    block: int
    position: int
    """Position in its block, from 0."""
    condition: int
    """Index into the plan's conditions."""
    started_at: float
    """Seconds since the epoch."""
    accounting: Accounting
    exit: int | None = None
    """Exit status; ``None`` if the trial died of a signal, timed out or could not start."""
    failure: str | None = None
    """The failure, such as "exit status 3" or "signal 11 (SIGSEGV)"; ``None`` after success."""
    failure_kind: FailureKind | None = None
    """Kind of the failure; ``None`` after success."""
    washout: bool = False
    """Whether the trial is a washout, which is never analysed."""
    error_tail: str = ""
    """Last lines of the standard error of a failed trial."""
    covariates: dict[str, float | None] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()

    @property
    def timed_out(self) -> bool:
        """Whether the trial took too long, and counts as slowest."""
        return self.failure_kind == "timed out"

    @property
    def is_unavailable(self) -> bool:
        """Whether the machine cannot run the program; the short time must not count as fast."""
        return self.failure_kind == "unavailable"


class CampaignWarning(Struct, frozen=True):
    """A warning with a hint (rule 8)."""

    code: str
    summary: str
    hint: str


class RecordedWarning(CampaignWarning, frozen=True):
    """A warning in the ledger, with the condition that it concerns."""

    condition: int | None = None
    """Index of the condition in the plan; ``None`` for a warning about the whole campaign."""
    absent_from: int | None = None
    """First measured block without the condition; ``None`` if no block leaves it out."""

    @property
    def warning(self) -> CampaignWarning:
        """The warning without the condition, for a result."""
        return CampaignWarning(self.code, self.summary, self.hint)


class Segment(Struct, frozen=True):
    """One uninterrupted stretch of a campaign; a resumed campaign has several segments.

    ``ended_at`` and ``stopped_because`` are ``None`` for a segment that runs or was killed.
    """

    started_at: float
    environment: dict[str, Any]
    ended_at: float | None = None
    stopped_because: str | None = None


DIFF = "diff"
"""Source whose evidence is the diff of a condition's commit (`CommitDiff`)."""


class Observation(Struct, frozen=True):
    """Evidence of one source (an observation tool) from one run; no verdict uses it (rule 4)."""

    source: str
    """Name in ``equipoise.why.evidence.sources.SOURCES``, or ``DIFF``, which needs no run. A kind
    of campaign may have sources of its own."""
    condition: int
    """Index of the condition in the plan of the campaign."""
    repetition: int
    """Number of the repetition, from 1."""
    position: int
    """Position in the random order of all observations of one command, from 0."""
    observed_at: float
    """Start of the run, in seconds since the epoch."""
    document: bytes | None
    """Evidence as JSON; ``None`` if there is no evidence."""
    failure: str | None
    """Reason why there is no document."""


class RunRecord(Struct, frozen=True):
    """The whole record of one campaign, in the order in which it was written."""

    id: str
    """Id of the campaign in its ledger."""
    plan: Plan
    started_at: float
    segments: tuple[Segment, ...]
    draws: tuple[Draw, ...]
    trials: tuple[Trial, ...]
    warnings: tuple[RecordedWarning, ...]
    """Warnings that were recorded while the campaign ran."""
    observations: tuple[Observation, ...] = ()
    """Observations of the instrumented runs that explain the campaign."""
    earlier_runs: tuple[RunRecord, ...] = ()
    """Records of the earlier campaigns of a history, in order, each without earlier campaigns."""
    identity: str = ""
    """Identity of the campaign in all ledgers of all hosts: 32 hexadecimal digits."""
    host: HostReference | None = None
    """Host that measured the campaign; ``None`` for an imported run."""
    members: tuple[RunRecord, ...] = ()
    """Records of the member campaigns of a fleet's run that are in this ledger, in the plan's
    order."""

    @property
    def environment(self) -> dict[str, Any]:
        """Environment of the first segment; empty without a segment."""
        return self.segments[0].environment if self.segments else {}

    @property
    def stopped_because(self) -> str | None:
        """Reason why the last segment stopped; ``None`` while it runs, or if it was killed."""
        return self.segments[-1].stopped_because if self.segments else None

    @property
    def measured_draws(self) -> dict[int, Draw]:
        """Draws of the measured blocks, by block."""
        return {draw.block: draw for draw in self.draws if draw.phase == "measured"}


class RunSummary(Struct, frozen=True):
    """Facts of one campaign: a line of ``equipoise list runs``."""

    id: str
    study: str
    commands: tuple[str, ...]
    """Names of the conditions, the baseline first."""
    started_at: float
    trials: int
    stopped_because: str | None
    """Reason why the last segment stopped; ``None`` while it runs, or if it was killed."""
    host: str | None = None
    """Name of the host that measured the campaign; ``None`` for an imported run."""
    part_of: str | None = None
    """Id of the fleet's run with this campaign; ``None`` if the ledger lacks such a run."""
    hosts: int | None = None
    """For a fleet's run: number of hosts whose campaigns are in this ledger; else ``None``."""
