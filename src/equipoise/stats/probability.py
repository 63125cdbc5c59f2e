"""P(the candidate is slower in a block), beside the ratio (verdict.md §3)."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.model.interval import Interval
from equipoise.stats.sequence import PairedBlocks


@dataclass(frozen=True, slots=True)
class SlowerShare:
    """How often the candidate was the slower of the two."""

    share: float | None
    """Of the blocks that were no tie; ``None`` if there is none."""
    interval: Interval
    """Exact however often one looks, if the probability is the same in every block."""
    slower: int
    decided: int
    """Blocks that were no tie; ties, by the clock's resolution too, are left out."""


def probability_slower(blocks: PairedBlocks, *, level: float) -> SlowerShare:
    """The share of blocks in which the candidate was slower, with a confidence sequence.

    The beta(½, ½)-binomial mixture (Robbins 1970; Howard et al. 2021) on the sign of the block
    differences, running; at level 1 minus the coverage.
    """
    slower, decided, low, high = blocks.engine.slower_count(level)
    if decided == 0:
        return SlowerShare(share=None, interval=(None, None), slower=0, decided=0)
    return SlowerShare(share=slower / decided, interval=(low, high), slower=slower, decided=decided)
