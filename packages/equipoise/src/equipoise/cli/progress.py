"""Progress of a campaign on stderr: live on a terminal, a few lines of a long study elsewhere.

Nothing here or in `progress_bars` runs on its own while trials run: a thread that redraws would
run at the same time (rule 4).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

from equipoise.campaign.progress import CampaignProgress, ProgressListener
from equipoise.cli.streams import say
from equipoise.cli.study_forecast import WORTH_SAYING_S, StudyForecast
from equipoise.model.plan import COMMAND, Plan

LONG_S = 120.0
"""Budget of a study from which a line is worth printing beforehand."""


def progress_for(*, quiet: bool, color: bool, about_s: float | None = None) -> ProgressListener:
    """Return a live bar if stderr is a terminal, else a few lines of a long study, or silence.

    Parameters
    ----------
    about_s
        Seconds of a block where the study was written.
    """
    if quiet:
        return ProgressListener()
    if not sys.stderr.isatty():
        return ProgressLines(about_s)
    # rich's bars are loaded where there is a terminal only.
    from rich.console import Console

    from equipoise.cli.progress_bars import Bar

    return Bar(Console(stderr=True, no_color=not color), about_s)


class ProgressLines(ProgressListener):
    """Lines that say how long a study will take and how far a search is; `compare` has none."""

    def __init__(self, about_s: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._about_s = about_s
        self._clock = clock
        self._forecast: StudyForecast | None = None
        self._search = ""
        self._said_at = -math.inf

    def segment_started(
        self, run_id: str, plan: Plan, earliest_block: int, blocks_before: int
    ) -> None:
        """Say what is known of the study's time beforehand."""
        is_compare = plan.chosen_contrasts is None or COMMAND in plan.conditions[0].levels
        if is_compare or not plan.rules.runs_whole_blocks:
            return
        earliest = max(earliest_block, plan.stopping.min_blocks)
        self._forecast = StudyForecast(plan, earliest, blocks_before, self._about_s)
        if plan.stopping.budget_s >= LONG_S:
            say(self._forecast.before_it_begins())

    def trial_ended(self, seconds: float, of: int) -> None:
        """Say what is known once enough of a long first block ran, and at its end."""
        forecast = self._forecast
        if forecast is None or forecast.first_block_is_over:
            return
        sentence = forecast.trial_ended(seconds, of)
        if sentence is not None and forecast.first_block_s >= WORTH_SAYING_S:
            say(sentence)

    def block_ended(self, progress: CampaignProgress) -> None:
        """Say how far a search is, whenever it came further and some time has passed."""
        search = "; ".join(status.search for status in progress.statuses if status.search)
        if search != self._search and self._clock() - self._said_at >= WORTH_SAYING_S:
            say(f"block {progress.blocks}: {search}")
            self._search, self._said_at = search, self._clock()
