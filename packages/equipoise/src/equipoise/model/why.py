"""Explanations of a gap: suggested causes, and interventions with their results."""

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
"""Topic of a cause; ``chance`` is a source of the spread of one command."""

Outcome = Literal["confirmed", "refuted", "open", "not reachable"]
"""Outcome of an intervention. ``not reachable``: it did not change what the evidence names, so that
the time does not test the cause."""

Status = Literal[
    "open", "confirmed", "refuted", "not reachable", "source", "not shown", "remainder"
]
"""Status of an entry; the first four are for causes of a gap, the others for sources of spread."""


class InterventionOutcome(Struct, frozen=True):
    """One intervention that was tried on both conditions of a gap (docs/methods/fraction.md)."""

    intervention: str
    """Stable id, listed in docs/reference/causes.md; for a user's intervention, its name."""
    summary: str
    """Change as the subject of a sentence: ``keeping freed memory (mmap_max=0)``."""
    outcome: Outcome
    share: float | None
    """Fraction of the gap that it closes, of the logarithm of the ratio."""
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
    """Reason why the fraction is not known."""
    advice: str | None = None
    """Line with which a user keeps the change; null if the change cannot or should not be kept."""
    unchanged: str | None = None
    """Sentence on the expected change that did not occur; null unless the outcome is ``not
    reachable``."""


class Explanation(Struct, frozen=True):
    """One entry of ``why``."""

    cause: str
    """Stable id, listed in docs/reference/causes.md."""
    kind: Kind
    evidence: dict[str, Any]
    """Name of the thing (``syscall``, ``function``, ``file``, ``lock``, ``size_bytes``), with
    counts and seconds as ``{"baseline": …, "candidate": …}``."""
    status: Status
    share_of_gap: float | None
    """Fraction of the gap that an intervention closed; while the status is ``open``, the seconds of
    the evidence over the seconds of the gap."""
    share_ci: Interval
    summary: str
    seconds: float | None = None
    """Observed seconds of the slower condition's extra time."""
    seconds_ci: Interval = (None, None)
    tested: tuple[InterventionOutcome, ...] = field(default=())
    """Interventions that tested the cause."""
    remedy: str | None = None
    """Sentence on the change of the program if the cause is right."""


PartName = Literal["user", "system", "waiting", "queueing"]
"""Name of a part. ``queueing``: the main thread could run but waited for a processor."""


class TimePart(Struct, frozen=True):
    """A part of the wall time of two conditions; seconds of the mean trial."""

    part: PartName
    baseline_s: float
    candidate_s: float
    extra_s: float
    """Slower condition minus faster condition."""
    extra_s_ci: Interval
    share_of_gap: float | None
    """Fraction of the gap. It is above 1 if several processors worked at once, and null if the mean
    trial of the slower condition does not take longer."""


class ExtraTime(Struct, frozen=True):
    """Parts of the slower condition's extra time, by the accounts of the trials."""

    baseline: str
    candidate: str
    slower: str
    """Name of the slower condition."""
    gap_s: float
    gap_s_ci: Interval
    parts: tuple[TimePart, ...]
    """Known parts; ``unseen`` has the reasons for missing parts."""
    observed: dict[str, tuple[int, int]]
    """Numbers of runs of the baseline and of the candidate that gave evidence, by source."""
    unseen: dict[str, tuple[str, ...]]
    """Sentences about missing observations, and why runs gave no evidence, by source."""
    summary: str


class ExpectedChange(Struct, frozen=True):
    """The change in a cause's evidence that an intervention must make to refute the cause."""

    cause: int
    """Index of the cause in the plan."""
    account: str | None = None
    """Account of the campaign's own trials that must decrease; ``None`` if a run was observed."""
    unchanged: str | None = None
    """Sentence on what stayed the same in an observed run with the intervention."""
