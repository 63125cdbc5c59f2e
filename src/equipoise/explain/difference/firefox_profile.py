"""A file for https://profiler.firefox.com, with both conditions as processes of one profile."""

from __future__ import annotations

from pathlib import Path

from equipoise.explain.difference.pictures import draw
from equipoise.explain.difference.result import Side
from equipoise.explain.gathered import Gathered


def write_firefox_profile(
    gathered: Gathered, names: tuple[str, str], slower: Side, path: Path
) -> None:
    """Write the profiles of both conditions, of which ``names`` are the baseline and the candidate.

    Weights are milliseconds of the mean run. The samples of a condition stand one after another,
    the heaviest stack first: their order says nothing of when they were taken.

    Raises
    ------
    UnusableInput
        There is no profile of both conditions, the file cannot be written, or the native observer
        is missing.
    """
    draw("firefox", gathered.profile, names, slower, path)
