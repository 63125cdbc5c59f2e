"""Progress bars on a terminal for work that is not a campaign: a match, a search, an observation.

Each function is a context manager: it shows a bar or a sentence, yields a function that updates the
display, and removes the display at the end. If ``quiet`` is set or stderr is not a terminal, there
is no display: the yielded function does nothing, or is ``None``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from equipoise.shared.safe_text import visible

if TYPE_CHECKING:
    from equipoise_matching.genetic.search import Generation

MIN_REDRAW_S = 0.1
"""Minimum number of seconds between two updates of a display."""


def description_column() -> TextColumn:
    """Return the column with the description of a task as plain text."""
    return TextColumn("{task.description}", markup=False)


@contextmanager
def _bar(
    first_task: str,
    columns: Sequence[ProgressColumn],
    total: float | None,
    *,
    quiet: bool,
    color: bool,
) -> Iterator[Callable[..., None] | None]:
    """Show a bar with one task; yield its update function, or ``None`` without a terminal."""
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
    """Show a bar for work with a known end; yield its update function.

    The function takes the amount of work done and the total amount. Any thread may call it.
    """
    columns = (
        description_column(),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with _bar(description, columns, None, quiet=quiet, color=color) as update:
        updated_at = 0.0

        def show_progress(done: int, total: int) -> None:
            nonlocal updated_at
            now = time.monotonic()
            if update is not None and (done >= total or now - updated_at >= MIN_REDRAW_S):
                updated_at = now
                update(completed=done, total=total)

        yield None if update is None else show_progress


@contextmanager
def status_line(*, quiet: bool, color: bool) -> Iterator[Callable[[str], object]]:
    """Show the current step of long work as a sentence; yield a function to change the sentence."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    with Console(stderr=True, no_color=not color).status("reading") as status:
        # Rich would read brackets in a plain string as mark-up.
        yield lambda sentence: status.update(Text(visible(sentence)))


@contextmanager
def search_bar(
    measure: str, *, quiet: bool, color: bool
) -> Iterator[Callable[[Generation, int], None] | None]:
    """Show a bar for a genetic search; yield the function to call after each generation.

    The function takes the generation and the maximum number of generations. The bar shows the best
    value of ``measure``, a measure of balance.
    """
    columns = (BarColumn(bar_width=24), description_column())
    started = time.monotonic()
    with _bar("generation 0", columns, 1.0, quiet=quiet, color=color) as update:

        def generation_ended(generation: Generation, limit: int) -> None:
            # The forecast assumes that later generations take as long as earlier generations.
            generation_count = generation.number + 1
            generation_s = (time.monotonic() - started) / generation_count
            time_left = _clock_format(round(generation_s * max(limit - generation.number, 0)))
            description = (
                f"generation {generation.number}/{limit}, {measure} {generation.value[0]:.4g}, "
                f"at most {time_left} left"
            )
            if update is not None:
                update(description=description, completed=min(generation_count / (limit + 1), 1.0))

        yield None if update is None else generation_ended


def _clock_format(seconds: int) -> str:
    """Return seconds as minutes or hours: ``3:07``, ``1:02:09``."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"
