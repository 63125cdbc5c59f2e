"""Explanations of a gap, the difference of two conditions: causes, and tests of causes."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from equipoise.model.quantities import Interval

CauseKind = Literal[
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
"""Topic of a cause; ``chance`` is a source of the spread of a single command."""

Outcome = Literal["confirmed", "refuted", "open", "not reachable"]
"""Outcome of an intervention. ``not reachable``: the intervention did not change the thing that the
evidence names. So the times do not test the cause."""

Status = Literal[
    "open", "confirmed", "refuted", "not reachable", "source", "not shown", "remainder"
]
"""Status of an entry of ``why``. The first four are for a cause of a gap, the last three for a
source of spread."""


class InterventionOutcome(Struct, frozen=True):
    """Result of one intervention on both conditions of a gap (docs/methods/fraction.md)."""

    intervention: str
    """Id of the intervention (docs/reference/causes.md), or the name of a user's intervention."""
    summary: str
    """The change, as the subject of a sentence: ``keeping freed memory (mmap_max=0)``."""
    outcome: Outcome
    share: float | None
    """Fraction of the gap (the logarithm of the ratio) that the intervention closes."""
    share_ci: Interval
    share_of_seconds: float | None
    """Fraction of the difference in seconds, or in the unit of the metric, that it closes."""
    share_of_seconds_ci: Interval
    from_candidate: float | None
    """Part of the fraction that is due to the change of the candidate."""
    from_baseline: float | None
    """Part of the fraction that is due to the change of the baseline."""
    blocks: int
    significance_level: float
    """1 minus the coverage of each interval."""
    unknown_because: str | None = None
    """Reason why the fraction is unknown."""
    advice: str | None = None
    """Line that makes the change permanent; null if it cannot or should not be permanent."""
    unchanged_sentence: str | None = None
    """Sentence about the evidence that did not change; null unless ``not reachable``."""


class Explanation(Struct, frozen=True):
    """One entry of ``why``: a cause of a gap, or a source of spread."""

    cause: str
    """Id of the cause, listed in docs/reference/causes.md."""
    kind: CauseKind
    evidence: dict[str, Any]
    """Name of the observed thing (``syscall``, ``function``, ``file``, ``lock``, ``size_bytes``),
    and its counts and seconds as ``{"baseline": …, "candidate": …}``."""
    status: Status
    share_of_gap: float | None
    """Fraction of the gap that an intervention closes. With the status ``open``, it is the observed
    seconds over the seconds of the gap."""
    share_ci: Interval
    summary: str
    seconds: float | None = None
    """Observed seconds of this cause in the slower condition's extra time."""
    seconds_ci: Interval = (None, None)
    tested: tuple[InterventionOutcome, ...] = field(default=())
    """Results of the interventions that tested the cause."""
    remedy: str | None = None
    """Sentence about the change of the program that removes the cause."""


PartName = Literal["user", "system", "waiting", "queueing"]
"""Part of the wall time. ``queueing``: the main thread could run but waited for a processor."""


class TimePart(Struct, frozen=True):
    """A part of the wall time of two conditions, in seconds of the mean trial."""

    part: PartName
    baseline_s: float
    candidate_s: float
    extra_s: float
    """Seconds of the slower condition minus seconds of the faster condition."""
    extra_s_ci: Interval
    share_of_gap: float | None
    """Fraction of the gap. It is above 1 if several processors worked at once. It is null if the
    slower condition's mean trial does not take longer."""


class ExtraTime(Struct, frozen=True):
    """Parts of the slower condition's extra time, from the times that each trial recorded."""

    baseline: str
    candidate: str
    slower: str
    """Name of the slower condition."""
    gap_s: float
    gap_s_ci: Interval
    parts: tuple[TimePart, ...]
    """Known parts of the time; ``unseen`` has the reasons for missing parts."""
    run_counts: dict[str, tuple[int, int]]
    """Numbers of runs of the baseline and of the candidate that gave evidence, by source."""
    unseen: dict[str, tuple[str, ...]]
    """Sentences about missing evidence, by source."""
    summary: str


class ReachCheck(Struct, frozen=True):
    """A check whether an intervention reaches a cause: whether the cause's evidence changes."""

    cause_index: int
    """Index of the cause in the plan."""
    decreasing_value: str | None = None
    """Name of the count that must fall in the trials; ``None`` if an observed run was checked."""
    unchanged_sentence: str | None = None
    """Sentence about the evidence that did not change in the observed run."""
