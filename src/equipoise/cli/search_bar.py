"""The live bar of a genetic search on stderr: on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

if TYPE_CHECKING:
    from equipoise.genoud.search import Generation

Told = Callable[["Generation", int], None]


@contextmanager
def search_bar(criterion: str, *, quiet: bool, color: bool) -> Iterator[Told | None]:
    """Who is to be told of each generation while the block runs; nobody without a terminal.

    Parameters
    ----------
    criterion
        What the first of a generation's values is, in words.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    progress = Progress(
        SpinnerColumn(),
        BarColumn(bar_width=24),
        TextColumn("{task.description}", markup=False),
        console=Console(stderr=True, no_color=not color),
        transient=True,
    )
    started = time.monotonic()
    with progress:
        task = progress.add_task("generation 0", total=1.0)

        def told(generation: Generation, most: int) -> None:
            elapsed = time.monotonic() - started
            words = (
                f"generation {generation.number}/{most}, {criterion} {generation.value[0]:.4g}, "
                f"at most {_left(elapsed, generation.number, most)} left"
            )
            part = (generation.number + 1) / (most + 1)
            progress.update(task, description=words, completed=min(part, 1.0))

        yield told


def _left(elapsed_s: float, done: int, most: int) -> str:
    """The time for the generations that may follow, each as long as those that were."""
    seconds = round(elapsed_s / (done + 1) * max(most - done, 0))
    hours, minutes = seconds // 3600, seconds // 60 % 60
    clock = f"{minutes}:{seconds % 60:02d}"
    return f"{hours}:{minutes:02d}:{seconds % 60:02d}" if hours else clock
