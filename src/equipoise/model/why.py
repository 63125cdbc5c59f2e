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
class Tested:
    """One intervention that was tried on both conditions of a gap (verdict.md §7)."""

    intervention: str
    """A stable id, listed in docs/why.md; the user's own name for one of theirs."""
    words: str
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
    words: str
    seconds: float | None = None
    """Of the extra time of the slower condition, as observed."""
    seconds_ci: Interval = (None, None)
    tested: tuple[Tested, ...] = field(default=())
    """The interventions that were tried because of it."""
