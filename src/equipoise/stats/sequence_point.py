"""Where an interval stood after a block: what a picture of the confidence sequence needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SequencePoint:
    """One look at a comparison; ratios of a cost, ``None`` for what is not known or unlimited."""

    block: int
    """Complete blocks so far, from 1."""
    ratio: float | None
    low: float | None
    high: float | None
