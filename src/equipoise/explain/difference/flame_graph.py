"""A differential flame graph as SVG: widths are of the slower condition, colours the difference."""

from __future__ import annotations

from pathlib import Path

from equipoise.explain.difference.pictures import draw
from equipoise.explain.difference.result import Side
from equipoise.explain.gathered import Gathered


def write_flame_graph(gathered: Gathered, names: tuple[str, str], slower: Side, path: Path) -> None:
    """Draw the profiles of both conditions, of which ``names`` are the baseline and the candidate.

    Frames narrower than a thousandth of the whole are left out. Red is what the slower condition
    has more of, blue what it has less of.

    Raises
    ------
    UnusableInput
        There is no profile of both conditions, the file cannot be written, or the native observer
        is missing.
    """
    draw("flame-graph", gathered.profile, names, slower, path)
