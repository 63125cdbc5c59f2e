"""A live bar with the time left for a long computation: on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SHORTEST_REDRAW_S = 0.1


@contextmanager
def work_bar(
    description: str, *, quiet: bool, color: bool
) -> Iterator[Callable[[int, int], None] | None]:
    """Give what is to be told how much is done, of how much; ``None`` where nobody watches.

    It may be told by any thread. The bar is gone afterwards.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True, no_color=not color),
        transient=True,
    ) as progress:
        task = progress.add_task(description, total=None)
        drawn_at = 0.0

        def tell(done: int, of: int) -> None:
            nonlocal drawn_at
            now = time.monotonic()
            if done < of and now - drawn_at < SHORTEST_REDRAW_S:
                return
            drawn_at = now
            progress.update(task, completed=done, total=of)

        yield tell


@contextmanager
def work_in_words(*, quiet: bool, color: bool) -> Iterator[Callable[[str], object]]:
    """Give what is to be told what is done next; on a terminal it is shown until the end."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    from equipoise.model.safe_text import visible

    console = Console(stderr=True, no_color=not color)
    with console.status("reading") as status:
        # Of a plain string rich would take what stands in brackets for its mark-up.
        yield lambda words: status.update(Text(visible(words)))
