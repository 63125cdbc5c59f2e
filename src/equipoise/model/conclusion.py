"""What an analysis came to, in words and tables: plain text, which whoever shows it escapes."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.model.findings import FindingTable
from equipoise.model.record import CampaignWarning

Cell = str | float | None


@dataclass(frozen=True, slots=True)
class Conclusion:
    """One answer, in the order in which it is read."""

    title: str
    """What was asked, in a few words."""
    badge: str
    """What kind of answer it is, in a word or two."""
    tone: str
    """The verdict whose colour it has."""
    words: str
    """The answer in one sentence."""
    estimate: tuple[str, str] | None
    """The number and its 95 % interval; ``None`` where there is none."""
    beside: tuple[str, ...]
    """What must be known with it, a line each."""
    facts: tuple[tuple[str, str], ...]
    """What it rests on: what, and its value."""
    tables: tuple[FindingTable, ...]
    method: tuple[str, ...]
    """How it was computed, a paragraph each."""
    warnings: tuple[CampaignWarning, ...]
    again: str
    """The command that does it again."""
    numbers: tuple[dict[str, Cell], ...]
    """The same for other programs, a row each; what a row lacks is unknown or means nothing."""
