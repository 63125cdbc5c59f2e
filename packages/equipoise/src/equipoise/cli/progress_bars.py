"""Bars on a terminal: of a campaign, with a table of a study, and of other long work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
)
from rich.table import Table
from rich.text import Text

from equipoise.campaign.progress import CampaignProgress, ComparisonStatus, ProgressListener
from equipoise.cli.study_forecast import StudyForecast
from equipoise.cli.work_bars import MIN_REDRAW_S, description_column
from equipoise.model.metrics import inverse_interval, inverse_ratio, verdict_word
from equipoise.model.plan import Plan
from equipoise.report.renderers.terminal import STYLES
from equipoise.report.units import estimate_and_interval, seconds_left
from equipoise.shared.safe_text import visible

PAIR = 2
"""Number of conditions of a comparison; more are a study."""
LINES_OF_THE_BAR = 6
OPEN = ("undecided", "open")
STYLE = {**STYLES, "confirmed": "bold", "refuted": "", "open": "dim"}
"""Style of a verdict on a pair, or of the outcome of an intervention."""


class _ProgressAndTable(Progress):
    """A bar, and below it a table once there is one."""

    table: RenderableType | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the bar, and the table."""
        yield from super().get_renderables()
        if self.table is not None:
            yield self.table


class Bar(ProgressListener):
    """Blocks, time left, and the interval as it narrows."""

    def __init__(
        self,
        console: Console,
        about_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._about_s = about_s
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
        self._blocks: int | None = None
        self._drawn_at = 0.0
        self._forecast: StudyForecast | None = None

    def segment_started(
        self, run_id: str, plan: Plan, earliest_block: int, blocks_before: int
    ) -> None:
        """Say how the campaign can end, and start the bar."""
        self._budget_s, self._blocks = plan.stopping.budget_s, plan.stopping.blocks
        earliest = max(earliest_block, plan.stopping.min_blocks)
        verdict = f"; earliest possible verdict: block {earliest}" if plan.contrasts else ""
        blocks = "" if self._blocks is None else f"{self._blocks} blocks or "
        self._say(f"campaign {run_id}: at most {blocks}{self._budget_s:g} s{verdict}")
        # A block of a search, and a later one of an experiment, holds a part of the conditions.
        holds_all = plan.rules.runs_whole_blocks
        if len(plan.conditions) > PAIR and holds_all:
            self._forecast = StudyForecast(plan, earliest, blocks_before, self._about_s)
            if self._about_s is not None:
                self._say(self._forecast.before_it_begins())
        self._progress.start()
        self._task = self._progress.add_task("warming up", total=1.0)
        self._progress.refresh()

    def trial_ended(self, seconds: float, of: int) -> None:
        """While the first block runs, show how far it is and say how long one takes."""
        if self._forecast is None or self._forecast.first_block_is_over:
            return
        sentence = self._forecast.trial_ended(seconds, of)
        if sentence is not None:
            self._say(sentence)
        if self._is_due():
            self._describe(self._forecast.so_far())

    def warmed_up(self) -> None:
        """Show that the first block has begun."""
        self._describe("block 1")

    def building(self, names: tuple[str, ...]) -> None:
        """Show the names of the builds that run."""
        self._describe(f"building {' and '.join(names)}")

    def block_ended(self, progress: CampaignProgress) -> None:
        """Show the blocks, the time left and the interval that decides."""
        if not self._is_due():
            return
        statuses = progress.statuses
        if len(statuses) > 1:
            rows = self._console.height - LINES_OF_THE_BAR
            self._progress.table = status_table(statuses, rows)
        part = progress.elapsed_s / self._budget_s
        of = ""
        if self._blocks is not None:
            part = max(part, progress.blocks / self._blocks)
            of = f"/{self._blocks}"
        left = seconds_left(progress.elapsed_s, self._budget_s, progress.blocks, self._blocks)
        text = f"block {progress.blocks}{of}, at most {left} left"
        if statuses:
            # An undecided comparison keeps the campaign going.
            undecided = (status for status in statuses if status.verdict in OPEN)
            text += f"; {_clause(next(undecided, statuses[0]))}"
        self._describe(text, min(part, 1.0))

    def trial_running(self) -> None:
        """Turn the spinner while a long trial runs."""
        self._progress.refresh()

    def segment_ended(self) -> None:
        """Take the bar away."""
        self._progress.stop()

    def _is_due(self) -> bool:
        return self._clock() - self._drawn_at >= MIN_REDRAW_S

    def _say(self, line: str) -> None:
        self._console.print(line, style="dim", highlight=False, markup=False)

    def _describe(self, text: str, part: float = 0.0) -> None:
        if self._task is not None:
            self._progress.update(self._task, description=visible(text), completed=part)
            self._progress.refresh()
            self._drawn_at = self._clock()


def status_table(statuses: Sequence[ComparisonStatus], rows: int) -> Table:
    """Return the live table of a study: the open comparisons first.

    Parameters
    ----------
    rows
        Number of rows at most; the last one counts what does not fit.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("candidate", no_wrap=True, overflow="ellipsis", max_width=48)
    for heading in ("blocks", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("interval", "so far"):
        table.add_column(heading, no_wrap=True)
    # Stable: within each kind they are in the order of the plan.
    ordered = sorted(statuses, key=lambda status: status.verdict not in OPEN)
    fitting = len(ordered) if len(ordered) <= rows else max(rows - 1, 0)
    for status in ordered[:fitting]:
        estimate, interval = _effect(status)
        table.add_row(
            Text(visible(status.candidate)),
            Text(str(status.blocks)),
            Text(estimate),
            Text(interval),
            Text(_word(status), style=STYLE[status.verdict]),
        )
    hidden = ordered[fitting:]
    if hidden:
        still_open = sum(status.verdict in OPEN for status in hidden)
        table.add_row(Text(f"and {len(hidden)} more, {still_open} of them open", style="dim"))
    return table


def _clause(status: ComparisonStatus) -> str:
    """Return how far a search is, or a candidate with its interval."""
    if status.search:
        return status.search
    is_open = None in status.ratio_ci and not status.closes
    return f"{status.candidate}: {'interval still open' if is_open else _effect(status)[1]}"


def _effect(status: ComparisonStatus) -> tuple[str, str]:
    """Return the estimate and the interval so far, or what an intervention closes."""
    ratio, interval = status.ratio, status.ratio_ci
    if status.more_is_better:
        # As in the result: ratios of values, not of costs.
        ratio, interval = inverse_ratio(ratio), inverse_interval(interval)
    estimate, ends = estimate_and_interval(ratio, interval, unknown="", unlimited="open")
    return estimate, f"closes {status.closes}" if status.closes else ends


def _word(status: ComparisonStatus) -> str:
    """Return a verdict in the words of its metric, or the outcome of an intervention."""
    if status.verdict not in ("faster", "slower"):
        return status.verdict
    return verdict_word(status.verdict, status.metric, more_is_better=status.more_is_better)
