"""Progress on stderr: live on a terminal, a few lines of a long study elsewhere.

``progress_for`` gives what a campaign reports to; the bars below are for other long work. Nothing
here runs by itself while trials run: a thread that redraws would run beside them (rule 4).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from equipoise.campaign.progress import (
    CampaignProgress,
    ComparisonStatus,
    ProgressListener,
    forecast_block,
)
from equipoise.cli.streams import say
from equipoise.model.metrics import inverse_interval, inverse_ratio, verdict_word
from equipoise.model.plan import COMMAND, Plan
from equipoise.model.safe_text import visible
from equipoise.report.renderers.terminal import STYLES
from equipoise.report.units import estimate_and_interval, seconds_left, waiting_time

if TYPE_CHECKING:
    from equipoise.genoud.search import Generation

SHORTEST_REDRAW_S = 0.1
PAIR = 2
"""Number of conditions of a comparison; more are a study."""
LINES_OF_THE_BAR = 6
LONG_S = 120.0
"""Budget of a study from which a line is worth printing beforehand."""
WORTH_SAYING_S = 20.0
"""Time of a first block from which it is forecast while it runs."""
OPEN = ("undecided", "open")
STYLE = {**STYLES, "confirmed": "bold", "refuted": "", "open": "dim"}
"""Style of a verdict on a pair, or of the outcome of an intervention."""


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
    return Bar(Console(stderr=True, no_color=not color), about_s)


class _ProgressAndTable(Progress):
    """A bar, and below it a table once there is one."""

    table: RenderableType | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the bar, and the table."""
        yield from super().get_renderables()
        if self.table is not None:
            yield self.table


def _description() -> TextColumn:
    return TextColumn("{task.description}", markup=False)


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
            _description(),
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
        holds_all = plan.explains is None and plan.over_commits is None
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
        """Show what is built."""
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
        return self._clock() - self._drawn_at >= SHORTEST_REDRAW_S

    def _say(self, line: str) -> None:
        self._console.print(line, style="dim", highlight=False, markup=False)

    def _describe(self, text: str, part: float = 0.0) -> None:
        if self._task is not None:
            self._progress.update(self._task, description=visible(text), completed=part)
            self._progress.refresh()
            self._drawn_at = self._clock()


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
        if is_compare or plan.explains is not None or plan.over_commits is not None:
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
        search = "; ".join(one.search for one in progress.statuses if one.search)
        if search != self._search and self._clock() - self._said_at >= WORTH_SAYING_S:
            say(f"block {progress.blocks}: {search}")
            self._search, self._said_at = search, self._clock()


class StudyForecast:
    """Forecast of a study's time from the trials of its first block, which may be a warm-up.

    A resumed campaign has another first block, of the conditions that are still open.

    Parameters
    ----------
    earliest
        First block after which a verdict is possible.
    blocks_before
        Number of complete blocks of earlier segments.
    about_s
        Seconds of a block where the study was written.
    """

    def __init__(
        self, plan: Plan, earliest: int, blocks_before: int, about_s: float | None
    ) -> None:
        self._conditions = len(plan.conditions)
        self._compares = bool(plan.contrasts)
        self._budget_s = plan.stopping.budget_s
        stopping = plan.stopping
        self._blocks = math.inf if stopping.blocks is None else stopping.blocks - blocks_before
        self._before_budget = stopping.blocks_before_budget - blocks_before
        self._earliest = max(1, earliest - blocks_before)
        self._about_s = about_s
        self._seconds: list[float] = []
        self._was_given = False

    @property
    def first_block_s(self) -> float:
        """Seconds that the first block has taken so far."""
        return sum(self._seconds)

    @property
    def first_block_is_over(self) -> bool:
        """Whether every condition had its trial."""
        return len(self._seconds) >= self._conditions

    def before_it_begins(self) -> str:
        """Return what is known before the first trial."""
        if self._about_s is None:
            return (
                f"{self._conditions} conditions, no new block after "
                f"{waiting_time(self._budget_s)}; the first block will show how long a block takes"
            )
        return (
            f"{self._conditions} conditions, about {waiting_time(self._about_s)} a block where "
            f"the study was written: {self._then(self._about_s)}"
        )

    def trial_ended(self, seconds: float, of: int) -> str | None:
        """Note a trial of the first block, and return a forecast where one is due.

        A forecast is due once while a long first block runs, and once at its end.

        Parameters
        ----------
        of
            Number of trials of the first block.
        """
        self._conditions = of
        self._seconds.append(seconds)
        if self.first_block_is_over:
            block_s = self.first_block_s
            return f"{of} conditions, {waiting_time(block_s)} a block: {self._then(block_s)}"
        forecast = forecast_block(self._seconds, self._conditions)
        if forecast is None or self._was_given or self.first_block_s < WORTH_SAYING_S:
            return None
        self._was_given = True
        return (
            f"after {len(self._seconds)} of {of} trials: a block takes about "
            f"{waiting_time(forecast.block_s)} ({waiting_time(forecast.low_s)} to "
            f"{waiting_time(forecast.high_s)}); {self._then(forecast.block_s)}"
        )

    def so_far(self) -> str:
        """Return how far the first block is."""
        forecast = forecast_block(self._seconds, self._conditions)
        total = "" if forecast is None else f", about {waiting_time(forecast.block_s)} in all"
        return f"first trials: {len(self._seconds)} of {self._conditions}{total}"

    def _then(self, block_s: float) -> str:
        # The last block begins before the budget is spent.
        budget_s = max(self._budget_s + block_s, self._before_budget * block_s)
        end_s = min(budget_s, self._blocks * block_s)
        end = f"the end after at most {waiting_time(end_s)}"
        if not self._compares:
            return end
        first_s = self._earliest * block_s
        if first_s > budget_s:
            end = f"too long for the budget: --budget {2 * first_s:.0f}"
        return f"first verdicts after about {waiting_time(first_s)}, {end}"


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
    # Stable: within each kind they stand in the order of the plan.
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


@contextmanager
def _bar(
    first_task: str,
    columns: Sequence[ProgressColumn],
    total: float | None,
    *,
    quiet: bool,
    color: bool,
) -> Iterator[Callable[..., None] | None]:
    """Give what updates the task of a bar; ``None`` without a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    console = Console(stderr=True, no_color=not color)
    with Progress(SpinnerColumn(), *columns, console=console, transient=True) as progress:
        task = progress.add_task(first_task, total=total)
        yield lambda **fields: progress.update(task, **fields)


@contextmanager
def work_bar(
    description: str, *, quiet: bool, color: bool
) -> Iterator[Callable[[int, int], None] | None]:
    """Give what hears how much work is done, of how much; ``None`` without a terminal.

    Any thread may call it. The bar is gone afterwards.
    """
    columns = (
        _description(),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with _bar(description, columns, None, quiet=quiet, color=color) as update:
        drawn_at = 0.0

        def work_done(done: int, total: int) -> None:
            nonlocal drawn_at
            now = time.monotonic()
            if update is not None and (done >= total or now - drawn_at >= SHORTEST_REDRAW_S):
                drawn_at = now
                update(completed=done, total=total)

        yield None if update is None else work_done


@contextmanager
def work_in_sentences(*, quiet: bool, color: bool) -> Iterator[Callable[[str], object]]:
    """Give what hears what is done next; a terminal shows it until the end."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    with Console(stderr=True, no_color=not color).status("reading") as status:
        # rich would read brackets in a plain string as its mark-up.
        yield lambda sentence: status.update(Text(visible(sentence)))


@contextmanager
def search_bar(
    criterion: str, *, quiet: bool, color: bool
) -> Iterator[Callable[[Generation, int], None] | None]:
    """Give what hears of each generation of a genetic search; ``None`` without a terminal.

    Parameters
    ----------
    criterion
        Name of the first of a generation's values.
    """
    columns = (BarColumn(bar_width=24), _description())
    started = time.monotonic()
    with _bar("generation 0", columns, 1.0, quiet=quiet, color=color) as update:

        def generation_ended(generation: Generation, limit: int) -> None:
            # Each of those that may follow takes as long as the earlier ones.
            done = generation.number + 1
            each_s = (time.monotonic() - started) / done
            left = _clock(round(each_s * max(limit - generation.number, 0)))
            description = (
                f"generation {generation.number}/{limit}, {criterion} {generation.value[0]:.4g}, "
                f"at most {left} left"
            )
            if update is not None:
                update(description=description, completed=min(done / (limit + 1), 1.0))

        yield None if update is None else generation_ended


def _clock(seconds: int) -> str:
    """Return seconds as a clock shows them: ``3:07``, ``1:02:09``."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"
