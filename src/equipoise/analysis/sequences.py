"""Where the intervals of a campaign stood after its blocks, as the figures show them."""

from __future__ import annotations

from equipoise.campaign.blocks import complete_blocks
from equipoise.campaign.interim import Look
from equipoise.model.record import RunRecord
from equipoise.stats.sequence_point import SequencePoint

MOST_LOOKS = 400
"""A look costs more the more blocks there are; a picture shows no more of them."""


def sequences_of(record: RunRecord) -> dict[str, tuple[SequencePoint, ...]]:
    """For each candidate, where its interval stood after the blocks as they came.

    All blocks are looked at, or about ``MOST_LOOKS`` of them, the last one always. An imported run
    has none: no coin of ours ordered it.
    """
    if record.plan.imported is not None:
        return {}
    look = Look(record.plan, record.plan.stopping)
    blocks = list(complete_blocks(record.draws, record.trials).values())
    step = -(-len(blocks) // MOST_LOOKS) or 1
    points: dict[str, list[SequencePoint]] = {}
    for number, block in enumerate(blocks, start=1):
        look.add(block)
        if (len(blocks) - number) % step:
            continue
        for standing in look.standings():
            point = SequencePoint(number, standing.ratio, *standing.ratio_ci)
            points.setdefault(standing.candidate, []).append(point)
    return {candidate: tuple(own) for candidate, own in points.items()}
