"""News of one campaign for a site: its changes, and the badges of a gate."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Tone = Literal["slower", "faster", "equivalent", "undecided"]
"""Verdict that gives a text its colour."""


class Change(Struct, frozen=True):
    """A change of a cost that a campaign is certain of."""

    key: str
    """Text that is equal if another campaign reports the same change."""
    summary: str
    """Sentence that says what changed."""
    tone: Tone


class Badge(Struct, frozen=True):
    """The outcome of one benchmark in a few words."""

    label: str
    """Name of the benchmark; a later campaign replaces the badge with an equal label."""
    message: str
    """Outcome with its revisions and its interval: ``v1.4 to main: no slower, ±1.2 %``."""
    tone: Tone
