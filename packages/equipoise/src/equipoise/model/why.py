"""Explanations of a gap: suggested causes, planned interventions, and what these showed."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from equipoise.model.quantities import Interval

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

Outcome = Literal["confirmed", "refuted", "open", "not reachable"]
"""``not reachable``: what the evidence names is as before with the intervention, so that the time
says nothing about the cause."""

Status = Literal[
    "open", "confirmed", "refuted", "not reachable", "source", "not shown", "remainder"
]
"""The first four are of causes of a gap; the others of sources of spread."""


class InterventionOutcome(Struct, frozen=True):
    """One intervention that was tried on both conditions of a gap (docs/methods/fraction.md)."""

    intervention: str
    """Stable id, listed in docs/reference/causes.md; for an intervention of the user, its name."""
    summary: str
    """Subject of a sentence that says what was changed: ``keeping freed memory (mmap_max=0)``."""
    outcome: Outcome
    share: float | None
    """Fraction of the gap that it closes: of the ratio, in logarithms."""
    share_ci: Interval
    share_of_seconds: float | None
    """Fraction of the difference in the metric's unit: a cost added to both closes none of it."""
    share_of_seconds_ci: Interval
    from_candidate: float | None
    """Part of the fraction that comes from a change of the candidate."""
    from_baseline: float | None
    """Part of the fraction that comes from a change of the baseline."""
    blocks: int
    level: float
    """1 minus the coverage of each interval."""
    unknown_because: str | None = None
    """Why the fraction is not known."""
    advice: str | None = None
    """Line with which a user keeps the change; null if nobody can or should keep it."""
    unchanged: str | None = None
    """What was expected to change with it and did not, a sentence; null unless the outcome is
    ``not reachable``."""


class Explanation(Struct, frozen=True):
    """One entry of ``why``."""

    cause: str
    """Stable id, listed in docs/reference/causes.md."""
    kind: Kind
    evidence: dict[str, Any]
    """Names the thing (``syscall``, ``function``, ``file``, ``lock``, ``size_bytes``), with counts
    and seconds as ``{"baseline": …, "candidate": …}``."""
    status: Status
    share_of_gap: float | None
    """Fraction of the gap that an intervention closed; while the status is ``open``, the seconds of
    the evidence over those of the gap."""
    share_ci: Interval
    summary: str
    seconds: float | None = None
    """Seconds of the slower condition's extra time, as observed."""
    seconds_ci: Interval = (None, None)
    tested: tuple[InterventionOutcome, ...] = field(default=())
    """Interventions that were tried because of the cause."""
    remedy: str | None = None
    """What to change in the program if the cause is right, a sentence."""


PartName = Literal["user", "system", "waiting", "queueing"]
"""``queueing``: the main thread could have run and waited for a processor."""


class TimePart(Struct, frozen=True):
    """A part of the wall time of two conditions; seconds of the mean trial."""

    part: PartName
    baseline_s: float
    candidate_s: float
    extra_s: float
    """Slower condition minus faster condition."""
    extra_s_ci: Interval
    share_of_gap: float | None
    """Fraction of the gap: above 1 where several processors worked at once; null where the mean
    trial of the slower condition takes no longer."""


class ExtraTime(Struct, frozen=True):
    """Where the extra time of the slower condition goes, by the accounts of the trials."""

    baseline: str
    candidate: str
    slower: str
    """Name of one of the two."""
    gap_s: float
    gap_s_ci: Interval
    parts: tuple[TimePart, ...]
    """Known parts; ``unseen`` says why others are missing."""
    observed: dict[str, tuple[int, int]]
    """Numbers of runs of the baseline and of the candidate that gave evidence, by source."""
    unseen: dict[str, tuple[str, ...]]
    """Sentences about what could not be seen, and why runs gave no evidence, by source."""
    summary: str


class ExpectedChange(Struct, frozen=True):
    """What an intervention must change of the evidence of one cause to refute that cause."""

    cause: int
    """Place of the cause in the plan."""
    account: str | None = None
    """Account of the campaign's own trials that must fall; ``None`` if a run was observed."""
    unchanged: str | None = None
    """Sentence that says what an observed run with the intervention had as before."""
