"""Live progress of a campaign: a bar, and for a study a table with the status of comparisons."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID
from rich.table import Table
from rich.text import Text

from equipoise.campaign.progress import (
    CampaignProgress,
    ComparisonStatus,
    ProgressListener,
    new_warnings,
)
from equipoise.cli.study_forecast import StudyForecast
from equipoise.cli.work_bars import MIN_REDRAW_S, description_column
from equipoise.model.inverse_ratios import inverse_interval, inverse_ratio
from equipoise.model.metrics import verdict_word
from equipoise.model.plan import Plan
from equipoise.model.record import CampaignWarning
from equipoise.report.renderers.terminal import RICH_STYLES
from equipoise.report.units import estimate_and_interval, time_left_text
from equipoise.shared.safe_text import visible

MAX_PLAIN_CONDITIONS = 2
"""Maximum number of conditions without a forecast of the time of a block."""
RESERVED_LINES = 6
"""Number of lines of the terminal that the rows of the table may not use."""
OPEN_VERDICTS = ("undecided", "open")
"""Verdicts that more blocks may change."""
STATUS_STYLES = {**RICH_STYLES, "confirmed": "bold", "refuted": "", "open": "dim"}
"""Styles of the verdicts on comparisons, and of the outcomes of interventions."""


class _ProgressAndTable(Progress):
    """A bar, and below it a table if ``table`` is set."""

    table: RenderableType | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the bar, then the table."""
        yield from super().get_renderables()
        if self.table is not None:
            yield self.table


class ProgressBar(ProgressListener):
    """Live bar of a campaign: the number of blocks, the time left, and the current interval."""

    def __init__(
        self,
        console: Console,
        author_block_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._author_block_s = author_block_s
        self._clock = clock
        self._progress = _ProgressAndTable(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            description_column(),
            console=console,
            auto_refresh=False,
            transient=True,
        )
        self._task: TaskID | None = None
        self._budget_s = 0.0
        self._max_blocks: int | None = None
        self._drawn_at = 0.0
        self._forecast: StudyForecast | None = None
        self._shown_warnings: set[CampaignWarning] = set()

    def segment_started(
        self, run_id: str, plan: Plan, earliest_block: int, blocks_before: int
    ) -> None:
        """Print the limits of the campaign, and start the bar."""
        self._budget_s, self._max_blocks = plan.stopping.budget_s, plan.stopping.blocks
        first_verdict_block = max(earliest_block, plan.stopping.min_blocks)
        verdict = (
            f"; earliest possible verdict: block {first_verdict_block}" if plan.contrasts else ""
        )
        block_limit_text = "" if self._max_blocks is None else f"{self._max_blocks} blocks or "
        self._say(f"campaign {run_id}: at most {block_limit_text}{self._budget_s:g} s{verdict}")
        # If a block runs only some conditions, the first block does not predict later blocks.
        if len(plan.conditions) > MAX_PLAIN_CONDITIONS and plan.rules.runs_whole_blocks:
            self._forecast = StudyForecast(
                plan, first_verdict_block, blocks_before, self._author_block_s
            )
            if self._author_block_s is not None:
                self._say(self._forecast.initial_forecast())
        self._progress.start()
        self._task = self._progress.add_task("warming up", total=1.0)
        self._progress.refresh()

    def trial_ended(self, seconds: float, trial_count: int) -> None:
        """During the first block, show its progress and print a forecast of the study's time."""
        if self._forecast is None or self._forecast.first_block_is_over:
            return
        sentence = self._forecast.trial_ended(seconds, trial_count)
        if sentence is not None:
            self._say(sentence)
        if self._is_due():
            self._describe(self._forecast.first_block_progress())

    def warmed_up(self) -> None:
        """Show that the first block has begun."""
        self._describe("block 1")

    def building(self, names: tuple[str, ...]) -> None:
        """Show the names of the conditions that are being built."""
        self._describe(f"building {' and '.join(names)}")

    def block_ended(self, progress: CampaignProgress) -> None:
        """Show new warnings, the blocks, the time left, and an undecided comparison's interval."""
        for warning in new_warnings(progress.statuses, self._shown_warnings):
            self._say(f"{visible(warning.summary)}\n  hint: {warning.hint}")
        if not self._is_due():
            return
        statuses = progress.statuses
        if len(statuses) > 1:
            max_rows = self._console.height - RESERVED_LINES
            self._progress.table = status_table(statuses, max_rows)
        fraction_done = progress.elapsed_s / self._budget_s
        limit_text = ""
        if self._max_blocks is not None:
            fraction_done = max(fraction_done, progress.blocks / self._max_blocks)
            limit_text = f"/{self._max_blocks}"
        time_left = time_left_text(
            progress.elapsed_s, self._budget_s, progress.blocks, self._max_blocks
        )
        text = f"block {progress.blocks}{limit_text}, at most {time_left} left"
        if statuses:
            # The campaign continues because of an undecided comparison, so show such a comparison.
            undecided_statuses = (status for status in statuses if status.verdict in OPEN_VERDICTS)
            text += f"; {_status_text(next(undecided_statuses, statuses[0]))}"
        self._describe(text, min(fraction_done, 1.0))

    def trial_running(self) -> None:
        """Turn the spinner while a long trial runs."""
        self._progress.refresh()

    def segment_ended(self) -> None:
        """Remove the bar."""
        self._progress.stop()

    def _is_due(self) -> bool:
        return self._clock() - self._drawn_at >= MIN_REDRAW_S

    def _say(self, line: str) -> None:
        self._console.print(line, style="dim", highlight=False, markup=False)

    def _describe(self, text: str, fraction_done: float = 0.0) -> None:
        if self._task is not None:
            self._progress.update(self._task, description=visible(text), completed=fraction_done)
            self._progress.refresh()
            self._drawn_at = self._clock()


def status_table(statuses: Sequence[ComparisonStatus], max_rows: int) -> Table:
    """Return the live table of a study, with the undecided comparisons first.

    If there are more than ``max_rows``, the last row counts the comparisons that do not fit.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("candidate", no_wrap=True, overflow="ellipsis", max_width=48)
    for heading in ("blocks", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("interval", "so far"):
        table.add_column(heading, no_wrap=True)
    # The sort is stable, so each group keeps the order of the plan.
    sorted_statuses = sorted(statuses, key=lambda status: status.verdict not in OPEN_VERDICTS)
    shown_count = len(sorted_statuses) if len(sorted_statuses) <= max_rows else max(max_rows - 1, 0)
    for status in sorted_statuses[:shown_count]:
        estimate, interval = _estimate_and_interval(status)
        table.add_row(
            Text(visible(status.candidate)),
            Text(str(status.blocks)),
            Text(estimate),
            Text(interval),
            Text(_verdict_word(status), style=STATUS_STYLES[status.verdict]),
        )
    hidden_statuses = sorted_statuses[shown_count:]
    if hidden_statuses:
        open_count = sum(status.verdict in OPEN_VERDICTS for status in hidden_statuses)
        table.add_row(
            Text(f"and {len(hidden_statuses)} more, {open_count} of them open", style="dim")
        )
    return table


def _status_text(status: ComparisonStatus) -> str:
    if status.search_status:
        return status.search_status
    is_open = None in status.ratio_ci and not status.closed_fraction
    _, interval = _estimate_and_interval(status)
    return f"{status.candidate}: {'interval still open' if is_open else interval}"


def _estimate_and_interval(status: ComparisonStatus) -> tuple[str, str]:
    """Return the estimate, and the interval or, for an intervention, how much it closes."""
    ratio, interval = status.ratio, status.ratio_ci
    if status.more_is_better:
        # As in the result, show ratios of values, not of costs.
        ratio, interval = inverse_ratio(ratio), inverse_interval(interval)
    estimate, ends = estimate_and_interval(ratio, interval, unknown="", unlimited="open")
    return estimate, f"closes {status.closed_fraction}" if status.closed_fraction else ends


def _verdict_word(status: ComparisonStatus) -> str:
    if status.verdict not in ("faster", "slower"):
        return status.verdict
    return verdict_word(status.verdict, status.metric, more_is_better=status.more_is_better)
