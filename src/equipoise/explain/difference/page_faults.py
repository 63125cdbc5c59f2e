"""What differs in the page faults, by the functions in which they happened."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.explain.difference.changes import changes, counted, measured
from equipoise.explain.difference.places import Place, places, weights
from equipoise.explain.difference.result import Change, FaultsChange, Function, Side
from equipoise.explain.evidence.sampled import Sampled
from equipoise.explain.gathered import Runs


def page_faults_change(runs: Runs[Sampled], slower: Side) -> FaultsChange | None:
    """The page faults; ``None`` unless both conditions have a run.

    All are counted; the functions are of sampled ones.
    """
    if not runs.both:
        return None
    return FaultsChange(
        count=_count(runs, slower),
        by_function=changes(runs.map(lambda run: weights(places(run.stacks), _function)), slower),
    )


def _count(runs: Runs[Sampled], slower: Side) -> Change:
    if any(run.total is None for run in (*runs.baseline, *runs.candidate)):
        return measured(runs.map(lambda run: run.stacks.weight()), slower)
    return counted(runs.map(lambda run: run.total or 0.0), slower)


def _function(place: Place) -> Iterator[Function]:
    if place.function is not None:
        yield place.function
