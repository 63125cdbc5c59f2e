"""What the ledger gives back: a campaign as it was recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from equipoise.model.observation import Observation
from equipoise.model.plan import Plan
from equipoise.model.trial import Draw, Trial


@dataclass(frozen=True, slots=True)
class CampaignWarning:
    """A warning: what, and what to do about it (rule 8)."""

    code: str
    summary: str
    hint: str


@dataclass(frozen=True, slots=True)
class Segment:
    """One uninterrupted stretch of a campaign; a resumed campaign has several.

    ``ended_at`` and ``stopped_because`` are ``None`` for a segment that was killed.
    """

    started_at: float
    environment: dict[str, Any]
    ended_at: float | None = None
    stopped_because: str | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """All that the ledger knows of one campaign, in the order in which it was written."""

    id: str
    plan: Plan
    started_at: float
    segments: tuple[Segment, ...]
    draws: tuple[Draw, ...]
    trials: tuple[Trial, ...]
    notices: tuple[CampaignWarning, ...]
    observations: tuple[Observation, ...] = ()
    """Of the instrumented runs that were made to explain it."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of ``equipoise list runs``."""

    id: str
    study: str
    commands: tuple[str, ...]
    """The names of the conditions, baseline first."""
    started_at: float
    trials: int
    stopped_because: str | None
    """``None`` while it runs, or if it was killed."""
