"""One instrumented run, as the ledger keeps it."""

from __future__ import annotations

from msgspec import Struct


class Observation(Struct, frozen=True):
    """What one source saw of one run of one condition. Its time counts for no verdict (rule 4)."""

    source: str
    """Name in ``equipoise.why.evidence.sources.SOURCES``."""
    condition: int
    """Place of the condition in the plan of the campaign."""
    repetition: int
    """Number of the repetition, from 1."""
    position: int
    """Place in the random order of all observations of one command, from 0."""
    observed_at: float
    """Start in seconds since the epoch."""
    document: bytes | None
    """Evidence as JSON; ``None`` if the source could not read any."""
    failure: str | None
    """Why there is no document."""
