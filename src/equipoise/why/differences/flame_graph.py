"""A differential flame graph as SVG: widths are of the slower condition, colours the difference."""

from __future__ import annotations

from equipoise.why.differences.pictures import drawn
from equipoise.why.differences.result import Side
from equipoise.why.evidence.evidence_set import Gathered


def flame_graph(gathered: Gathered, names: tuple[str, str], slower: Side) -> bytes:
    """The profiles of both conditions, of which ``names`` are the baseline and the candidate.

    Frames narrower than a thousandth of the whole are left out. Red is a function in which
    itself, without what it calls, the slower condition spends more, blue one in which less.

    Raises
    ------
    UnusableInput
        There is no profile of both conditions, or the native observer is missing.
    """
    return drawn("flame-graph", gathered.profile, names, slower)
