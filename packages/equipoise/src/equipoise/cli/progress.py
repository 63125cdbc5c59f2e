"""Progress of a campaign on stderr: a live bar on a terminal, else a few lines for a long study.

This module and `progress_bars` start no thread, because it would run during trials (rule 4).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

from equipoise.campaign.progress import CampaignProgress, ProgressListener, new_warnings
from equipoise.cli.streams import say
from equipoise.cli.study_forecast import MIN_FORECAST_S, StudyForecast
from equipoise.model.plan import COMMAND, Plan
from equipoise.model.record import CampaignWarning

MIN_BUDGET_FOR_FORECAST_S = 120.0
"""Minimum budget of a study for which a forecast is printed before its first block."""


def progress_for(
    *, quiet: bool, color: bool, author_block_s: float | None = None
) -> ProgressListener:
    """Return a listener that shows the progress of a campaign, or a silent listener.

    ``author_block_s`` is the time of one block on the machine of the study's author, if known.
    """
    if quiet:
        return ProgressListener()
    if not sys.stderr.isatty():
        return ProgressLines(author_block_s)
    # The import of rich is slow, so it happens only if there is a terminal.
    from rich.console import Console

    from equipoise.cli.progress_bars import ProgressBar

    return ProgressBar(Console(stderr=True, no_color=not color), author_block_s)


class ProgressLines(ProgressListener):
    """Lines that forecast the time of a long study, and report the state of a search for commits.

    They also warn of comparisons that the budget cannot decide. `equipoise compare` prints no
    lines.
    """

    def __init__(
        self, author_block_s: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._author_block_s = author_block_s
        self._clock = clock
        self._forecast: StudyForecast | None = None
        self._printed_search = ""
        self._printed_at = -math.inf
        self._shown_warnings: set[CampaignWarning] = set()

    def segment_started(
        self, run_id: str, plan: Plan, earliest_block: int, blocks_before: int
    ) -> None:
        """Print the first forecast of a long study's time."""
        is_compare = plan.chosen_contrasts is None or COMMAND in plan.conditions[0].levels
        if is_compare or not plan.rules.runs_whole_blocks:
            return
        first_verdict_block = max(earliest_block, plan.stopping.min_blocks)
        self._forecast = StudyForecast(
            plan, first_verdict_block, blocks_before, self._author_block_s
        )
        if plan.stopping.budget_s >= MIN_BUDGET_FOR_FORECAST_S:
            say(self._forecast.initial_forecast())

    def trial_ended(self, seconds: float, trial_count: int) -> None:
        """Print a forecast during a long first block, and at the end of the first block."""
        forecast = self._forecast
        if forecast is None or forecast.first_block_is_over:
            return
        sentence = forecast.trial_ended(seconds, trial_count)
        if sentence is not None and forecast.first_block_s >= MIN_FORECAST_S:
            say(sentence)

    def block_ended(self, progress: CampaignProgress) -> None:
        """Print new warnings, and the state of a search at most once in `MIN_FORECAST_S`."""
        for warning in new_warnings(progress.statuses, self._shown_warnings):
            say(warning.summary, warning.hint)
        search = "; ".join(
            status.search_status for status in progress.statuses if status.search_status
        )
        if search != self._printed_search and self._clock() - self._printed_at >= MIN_FORECAST_S:
            say(f"block {progress.blocks}: {search}")
            self._printed_search, self._printed_at = search, self._clock()
