"""Explanations of a gap: what an instrumented run suggests, and what an intervention showed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from equipoise.model.interval import Interval

Kind = Literal[
    "allocation",
    "system_call",
    "page_fault",
    "function",
    "waiting",
    "file_io",
    "process",
    "configuration",
    "chance",
]
"""What a cause is about; ``chance`` is a source of the spread of one command."""

Outcome = Literal["confirmed", "refuted", "open"]

Status = Literal["open", "confirmed", "refuted", "source", "not shown", "remainder"]
"""The first three are of causes of a gap; the others of sources of spread."""


@dataclass(frozen=True, slots=True)
class InterventionOutcome:
    """One intervention that was tried on both conditions of a gap (verdict.md §7)."""

    intervention: str
    """A stable id, listed in docs/why.md; the user's own name for one of theirs."""
    summary: str
    """What was changed, as the subject of a sentence: ``keeping freed memory (mmap_max=0)``."""
    outcome: Outcome
    share: float | None
    """Of the ratio, in logarithms."""
    share_ci: Interval
    share_of_seconds: float | None
    """Of the difference in the metric's unit: an additive cost on both sides closes none of it."""
    share_of_seconds_ci: Interval
    from_candidate: float | None
    """The part that comes from the candidate's coming nearer."""
    from_baseline: float | None
    """The part that comes from the baseline's coming nearer."""
    blocks: int
    level: float
    """1 minus the coverage of each interval."""
    unknown_because: str | None = None
    """Why there is no share."""
    advice: str | None = None
    """The line with which a user keeps it; null if it cannot be kept."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One entry of ``why``."""

    cause: str
    """A stable id, listed in docs/why.md."""
    kind: Kind
    evidence: dict[str, Any]
    """Names the thing (``syscall``, ``function``, ``file``, ``lock``, ``size_bytes``), with counts
    and seconds as ``{"baseline": …, "candidate": …}``."""
    status: Status
    share_of_gap: float | None
    """What an intervention closed; while the status is ``open``, what the evidence says: its
    seconds over the gap's."""
    share_ci: Interval
    summary: str
    seconds: float | None = None
    """Of the extra time of the slower condition, as observed."""
    seconds_ci: Interval = (None, None)
    tested: tuple[InterventionOutcome, ...] = field(default=())
    """The interventions that were tried because of it."""


PartName = Literal["user", "system", "waiting", "queueing"]
"""``queueing``: the main thread could have run and waited for a processor."""


@dataclass(frozen=True, slots=True)
class TimePart:
    """A part of the wall time of two conditions; seconds of the mean trial."""

    part: PartName
    baseline_s: float
    candidate_s: float
    extra_s: float
    """Of the slower condition over the faster one."""
    extra_s_ci: Interval
    share_of_gap: float | None
    """More than 1 where several processors worked at once; null where the mean trial of the slower
    condition takes no longer."""


@dataclass(frozen=True, slots=True)
class ExtraTime:
    """Where the extra time of the slower condition is, by the accounts of the campaign's trials."""

    baseline: str
    candidate: str
    slower: str
    """One of the two."""
    gap_s: float
    gap_s_ci: Interval
    parts: tuple[TimePart, ...]
    """What is not known is left out, and ``unseen`` says why."""
    observed: dict[str, tuple[int, int]]
    """By source: how many runs of the baseline and of the candidate gave something."""
    unseen: dict[str, tuple[str, ...]]
    """By source, in words: what it could not see, and why runs under it gave nothing."""
    summary: str
