"""How far memory layouts alone move a program, from a campaign over layouts."""

from __future__ import annotations

import math

from equipoise.analysis.comparisons import primary_comparisons
from equipoise.analysis.levels import LAYOUT, ratios_by_level
from equipoise.campaign.blocks import complete_blocks
from equipoise.model.record import RunRecord


def layout_spread(record: RunRecord) -> float | None:
    """Return the standard deviation of one program's cost over layouts, in percent.

    It is the largest of the campaign's comparisons: a ratio of two programs has twice the variance
    of one. ``None`` where the campaign cannot tell it.
    """
    blocks = complete_blocks(record.draws, record.trials)
    if not record.plan.layouts or not blocks:
        return None
    draws = {draw.block: draw for draw in record.draws if draw.phase == "measured"}
    compared = ratios_by_level(record.plan, primary_comparisons(record.plan, blocks), blocks, draws)
    variances = [
        component.variance
        for comparison in compared
        if comparison.by_level is not None
        for component in comparison.by_level.components
        if component.level == LAYOUT
    ]
    if not variances:
        return None
    return 100.0 * math.sqrt(0.5 * max(0.0, *variances))
