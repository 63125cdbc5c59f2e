"""The live bar on stderr: on a terminal only, drawn between trials only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from equipoise.campaign.progress import CampaignProgress, ComparisonStatus, ProgressListener
from equipoise.cli.board import OPEN, board
from equipoise.cli.few_lines import FewLines
from equipoise.cli.foretold import Foretold
from equipoise.model.plan import Plan
from equipoise.model.safe_text import visible
from equipoise.report.units import interval_text, seconds_left

SHORTEST_REDRAW_S = 0.1
PAIR = 2
"""So many conditions are no study."""
LINES_BESIDE_THE_TABLE = 6


def watcher_for(*, quiet: bool, color: bool, about_s: float | None = None) -> ProgressListener:
    """A live bar if stderr is a terminal; else a few lines of a long study; or nobody.

    Parameters
    ----------
    about_s
        What a block took where the study was written.
    """
    if quiet:
        return ProgressListener()
    if not sys.stderr.isatty():
        return FewLines(about_s)
    return Bar(Console(stderr=True, no_color=not color), about_s)


class _ProgressAndTable(Progress):
    """A bar, and below it a table once there is one."""

    table: RenderableType | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bar, and the table."""
        yield from super().get_renderables()
        if self.table is not None:
            yield self.table


class Bar(ProgressListener):
    """Blocks, time left, and the interval as it narrows.

    Nothing here runs by itself: a thread that redraws would run beside the trials (rule 4).
    """

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
            TextColumn("{task.description}", markup=False),
            console=console,
            auto_refresh=False,
            transient=True,
        )
        self._task: TaskID | None = None
        self._budget_s = 0.0
        self._blocks = 0
        self._drawn_at = 0.0
        self._foretold: Foretold | None = None

    def segment_started(
        self, run_id: str, plan: Plan, earliest_block: int, blocks_before: int
    ) -> None:
        """Say how the campaign can end, and start the bar."""
        self._budget_s = plan.stopping.budget_s
        self._blocks = plan.stopping.blocks
        earliest = max(earliest_block, plan.stopping.min_blocks)
        verdict = f"; earliest possible verdict: block {earliest}" if plan.contrasts else ""
        self._say(
            f"campaign {run_id}: at most {self._blocks} blocks or {self._budget_s:g} s{verdict}"
        )
        # A later block of a campaign that explains holds a part of the conditions only.
        if len(plan.conditions) > PAIR and plan.explains is None:
            self._foretold = Foretold(plan, earliest, blocks_before, self._about_s)
            if self._about_s is not None:
                self._say(self._foretold.before_it_begins())
        self._progress.start()
        self._task = self._progress.add_task("warming up", total=1.0)
        self._progress.refresh()

    def trial_ended(self, seconds: float, of: int) -> None:
        """While the first block runs, show how far it is and say how long one takes."""
        if self._foretold is None or self._foretold.first_block_is_over:
            return
        words = self._foretold.trial_ended(seconds, of)
        if words is not None:
            self._say(words)
        if self._clock() - self._drawn_at >= SHORTEST_REDRAW_S:
            self._describe(self._foretold.so_far(), 0.0)

    def warmed_up(self) -> None:
        """Show that the first block has begun."""
        self._describe("block 1", 0.0)

    def block_ended(self, progress: CampaignProgress) -> None:
        """Show the blocks, the time left and the interval that decides."""
        if self._clock() - self._drawn_at < SHORTEST_REDRAW_S:
            return
        if len(progress.statuses) > 1:
            rows = self._console.height - LINES_BESIDE_THE_TABLE
            self._progress.table = board(progress.statuses, rows)
        part = max(progress.elapsed_s / self._budget_s, progress.blocks / self._blocks)
        left = seconds_left(progress.elapsed_s, self._budget_s, progress.blocks, self._blocks)
        self._describe(
            f"block {progress.blocks}/{self._blocks}, at most {left} left"
            + "".join(f"; {_interval_words(one)}" for one in _widest(progress.statuses)),
            min(part, 1.0),
        )

    def trial_running(self) -> None:
        """Turn the spinner while a long trial runs."""
        self._progress.refresh()

    def segment_ended(self) -> None:
        """Take the bar away."""
        self._progress.stop()

    def _say(self, line: str) -> None:
        self._console.print(line, style="dim", highlight=False, markup=False)

    def _describe(self, text: str, part: float) -> None:
        if self._task is not None:
            self._progress.update(self._task, description=visible(text), completed=part)
            self._progress.refresh()
            self._drawn_at = self._clock()


def _widest(statuses: tuple[ComparisonStatus, ...]) -> tuple[ComparisonStatus, ...]:
    """The comparison that keeps the campaign going: an undecided one first."""
    undecided = [one for one in statuses if one.verdict in OPEN]
    return tuple((undecided or list(statuses))[:1])


def _interval_words(one: ComparisonStatus) -> str:
    low, high = one.ratio_ci
    if one.closes:
        return f"{one.candidate}: closes {one.closes}"
    if low is None or high is None:
        return f"{one.candidate}: interval still open"
    return f"{one.candidate}: {interval_text(low, high)}"
