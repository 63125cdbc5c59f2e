"""What a long study says where nobody sees a bar: a few lines on stderr, and no more."""

from __future__ import annotations

import sys

from equipoise.campaign.progress import ProgressListener
from equipoise.cli.foretold import WORTH_SAYING_S, Foretold
from equipoise.model.plan import Plan

LONG_S = 120.0
"""A budget of a study that is worth a line beforehand."""


class FewLines(ProgressListener):
    """Says how long a study will take; is silent of everything else, and of `compare`."""

    def __init__(self, about_s: float | None) -> None:
        self._about_s = about_s
        self._foretold: Foretold | None = None

    def segment_started(
        self, run_id: str, plan: Plan, earliest_block: int, blocks_before: int
    ) -> None:
        """Say what is known of its time beforehand."""
        if plan.chosen_contrasts is None or plan.explains is not None:
            return
        earliest = max(earliest_block, plan.stopping.min_blocks)
        self._foretold = Foretold(plan, earliest, blocks_before, self._about_s)
        if plan.stopping.budget_s >= LONG_S:
            _say(self._foretold.before_it_begins())

    def trial_ended(self, seconds: float, of: int) -> None:
        """Say what is known once enough of a long first block ran, and at its end."""
        foretold = self._foretold
        if foretold is None or foretold.first_block_is_over:
            return
        words = foretold.trial_ended(seconds, of)
        if words is not None and foretold.first_block_s >= WORTH_SAYING_S:
            _say(words)


def _say(words: str) -> None:
    print(f"equipoise: {words}", file=sys.stderr, flush=True)
