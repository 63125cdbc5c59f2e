"""One instrumented run, as the ledger keeps it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Observation:
    """What one source saw of one run of one condition; it is never timed for a verdict (rule 4)."""

    source: str
    """The name of a file under ``explain/evidence/``."""
    condition: int
    """Its place in the plan of the campaign that is to be explained."""
    repetition: int
    """From 1."""
    position: int
    """Its place in the random order of all of them, from 0."""
    observed_at: float
    """Seconds since the epoch."""
    document: bytes | None
    """What the source read, as JSON; ``None`` if it could not."""
    failure: str | None
    """Why not."""
