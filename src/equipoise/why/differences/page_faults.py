"""What differs in the page faults, by the functions in which they happened."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.why.differences.changes import changes, counted, measured
from equipoise.why.differences.places import Place, places, weights
from equipoise.why.differences.result import Change, FaultsChange, Function, Side
from equipoise.why.evidence.evidence_set import Runs
from equipoise.why.evidence.sampled import Sampled


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
