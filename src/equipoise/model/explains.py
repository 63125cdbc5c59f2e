"""What a campaign of interventions tests: part of its plan, fixed before its first trial."""

from __future__ import annotations

from dataclasses import dataclass, field

from equipoise.model.why import Explanation

WHY_STUDY = "why"
"""The study of every campaign that explains another one."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One intervention: the places of its conditions in the plan."""

    intervention: str
    words: str
    causes: tuple[str, ...]
    """The causes that it tests; none for the user's own."""
    baseline_with: int
    candidate_with: int
    baseline_without: int
    """The baseline itself, or with a sham of the intervention (verdict.md §7)."""
    candidate_without: int
    weight: float
    """How often it is drawn beside others that are open: the seconds of its causes."""
    advice: str | None = None
    only_confirms: bool = False
    """Whether that it closes nothing refutes no cause."""
    asked_by: tuple[str, str] | None = None
    """The option and its value that asked for it; ``None`` if a cause did."""


@dataclass(frozen=True, slots=True)
class NotTried:
    """One intervention that was left out."""

    intervention: str
    words: str
    causes: tuple[str, ...]
    because: str
    """With the hint: ``libjemalloc2 is not installed``."""


@dataclass(frozen=True, slots=True)
class Explains:
    """Which gap, what evidence suggested of it, and what is tried.

    Conditions 0 and 1 of the plan are the baseline and the candidate.
    """

    run: str
    """The campaign whose gap it is."""
    causes: tuple[Explanation, ...]
    """All open."""
    attempts: tuple[Attempt, ...]
    not_tried: tuple[NotTried, ...] = field(default=())
    """Interventions that fit a cause and are not among the attempts."""
