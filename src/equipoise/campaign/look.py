"""Looking at a campaign while it runs: after every block, at no cost to the error rate."""

from __future__ import annotations

from typing import Literal

from equipoise.campaign.blocks import paired_blocks
from equipoise.campaign.watch import Standing
from equipoise.model.plan import Plan, Stopping
from equipoise.model.trial import Trial
from equipoise.stats import verdict


class Look:
    """Judges the blocks as they come, by the same rule as the result afterwards."""

    def __init__(self, plan: Plan, stopping: Stopping) -> None:
        self._plan = plan
        self._stopping = stopping
        self._blocks: list[tuple[Trial, ...]] = []
