"""A file for https://profiler.firefox.com, with both conditions as processes of one profile."""

from __future__ import annotations

from equipoise.why.differences.pictures import drawn
from equipoise.why.differences.result import Side
from equipoise.why.evidence.evidence_set import Gathered


def firefox_profile(gathered: Gathered, names: tuple[str, str], slower: Side) -> bytes:
    """The profiles of both conditions, of which ``names`` are the baseline and the candidate.

    Weights are milliseconds of the mean run. The samples of a condition stand one after another,
    the heaviest stack first: their order says nothing of when they were taken.

    Raises
    ------
    UnusableInput
        There is no profile of both conditions, or the native observer is missing.
    """
    return drawn("firefox", gathered.profile, names, slower)
