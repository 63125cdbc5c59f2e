"""The live bar on stderr: on a terminal only, drawn between trials only."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from equipoise.campaign.watch import Moment, Standing, Unwatched, Watcher
from equipoise.cli.board import board
from equipoise.model.plan import Plan
from equipoise.report.safe_text import visible
from equipoise.report.units import duration, interval_words, seconds_left

SHORTEST_REDRAW_S = 0.1
LINES_BESIDE_THE_TABLE = 6


def watcher_for(*, quiet: bool, color: bool) -> Watcher:
    """A live bar if stderr is a terminal and progress is wanted; else nobody."""
    if quiet or not sys.stderr.isatty():
        return Unwatched()
    return Bar(Console(stderr=True, no_color=not color))


class _ProgressAndTable(Progress):
    """A bar, and below it a table once there is one."""

    table: RenderableType | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bar, and the table."""
        yield from super().get_renderables()
        if self.table is not None:
            yield self.table


class Bar:
    """Blocks, time left, and the interval as it narrows.

    Nothing here runs by itself: a thread that redraws would run beside the trials (rule 4).
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = _ProgressAndTable(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            console=console,
            auto_refresh=False,
            transient=True,
        )
        self._task: TaskID | None = None
        self._budget_s = 0.0
        self._blocks = 0
        self._drawn_at = 0.0
        self._conditions = 0
        self._compares = False
        self._earliest = 0

    def begins(self, run_id: str, plan: Plan, earliest_block: int) -> None:
        """Say how the campaign can end, and start the bar."""
        self._budget_s = plan.stopping.budget_s
        self._blocks = plan.stopping.blocks
        self._conditions = len(plan.conditions)
        self._compares = bool(plan.contrasts)
        self._earliest = earliest = max(earliest_block, plan.stopping.min_blocks)
        verdict = f"; earliest possible verdict: block {earliest}" if plan.contrasts else ""
        self._console.print(
            f"campaign {run_id}: at most {self._blocks} blocks or {self._budget_s:g} s{verdict}",
            style="dim",
            highlight=False,
            markup=False,
        )
        self._progress.start()
        self._task = self._progress.add_task("warming up", total=1.0)
        self._progress.refresh()

    def warmed_up(self, block_s: float | None) -> None:
        """Say how long it will take, and show that the first block has begun."""
        if block_s is not None and block_s > 0 and self._compares and self._conditions > 2:
            self._console.print(
                _forecast(self._conditions, block_s, self._earliest, self._budget_s),
                style="dim",
                highlight=False,
                markup=False,
            )
        self._describe("block 1", 0.0)

    def block_ended(self, moment: Moment) -> None:
        """Show the blocks, the time left and the interval that decides."""
        if time.monotonic() - self._drawn_at < SHORTEST_REDRAW_S:
            return
        if len(moment.standings) > 1:
            rows = self._console.height - LINES_BESIDE_THE_TABLE
            self._progress.table = board(moment.standings, rows)
        part = max(moment.elapsed_s / self._budget_s, moment.blocks / self._blocks)
        left = seconds_left(moment.elapsed_s, self._budget_s, moment.blocks, self._blocks)
        self._describe(
            f"block {moment.blocks}/{self._blocks}, at most {left} left"
            + "".join(f"; {_interval_words(one)}" for one in _widest(moment.standings)),
            min(part, 1.0),
        )

    def waits(self) -> None:
        """Turn the spinner while a long trial runs."""
        self._progress.refresh()

    def ends(self) -> None:
        """Take the bar away."""
        self._progress.stop()

    def _describe(self, text: str, part: float) -> None:
        if self._task is not None:
            self._progress.update(self._task, description=escape(visible(text)), completed=part)
            self._progress.refresh()
            self._drawn_at = time.monotonic()


def _forecast(conditions: int, block_s: float, earliest: int, budget_s: float) -> str:
    """How long a study will take, from its warm-up trials."""
    words = (
        f"{conditions} conditions, {duration(block_s)} a block: first verdicts after about "
        f"{duration(earliest * block_s)}, the end after at most {duration(budget_s)}"
    )
    if earliest * block_s > budget_s:
        words += f"; too short for any verdict: --budget {2 * earliest * block_s:.0f}"
    return words


def _widest(standings: tuple[Standing, ...]) -> tuple[Standing, ...]:
    """The comparison that keeps the campaign going: an undecided one first."""
    undecided = [one for one in standings if one.verdict == "undecided"]
    return tuple((undecided or list(standings))[:1])


def _interval_words(one: Standing) -> str:
    low, high = one.ratio_ci
    if low is None or high is None:
        return f"{one.candidate}: interval still open"
    return f"{one.candidate}: {interval_words(low, high)}"
