"""What ``python -m benchmarks.history`` prints, and the claims that it checks."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from benchmarks.bisect.tables import Table
from benchmarks.environments import NoEnvironment
from benchmarks.history.engine import ALPHA, Outcome, at_once, night_by_night, truth_of
from benchmarks.history.guarantees import NOISES, PAIRS, REAL, discoveries, misses
from benchmarks.history.machines import COMMITS, MACHINES, nightly_series
from benchmarks.peers import ASV, ASV_STEPS, OTAVA, Peer
from packages.equipoise.tests.stats.simulated import FloatArray, at_most

Result = TypeVar("Result")
PEERS = (ASV_STEPS, ASV, OTAVA)
RUNS = (1, 10)
"""Runs of each commit on its night."""


class RunAll(Protocol):
    """Runs a simulation once for each seed."""

    def __call__(self, simulate: Callable[[int], Result], /) -> list[Result]:
        """Return the results, in the order of the seeds."""


def planted_table(run_all: RunAll, seeds: Sequence[int]) -> Table:
    """Return what becomes of two planted changes on machines that drift by 20 %."""
    rows, broken = [], []
    for kind, machine in MACHINES.items():
        for way, simulate in (("at once", at_once), ("--new, a commit a night", night_by_night)):
            outcomes = run_all(partial(simulate, kind))
            rows.append((machine, way, *_of_engine(outcomes)))
            wrong = [one for one in outcomes if not one.right or one.others or not one.is_over]
            if wrong:
                broken.append(f"{machine}, {way}: {len(wrong)} histories have another answer")
    return Table(
        f"{COMMITS} commits, +5 % and -4 % planted, sd 1 %: {len(seeds)} histories a row",
        (
            *("machine", "equipoise history", "both named to the commit"),
            *("histories with another name", "trials until both are named: median (range)"),
            "trials until nothing is left",
        ),
        rows,
        broken,
    )


def peers_table(run_all: RunAll, seeds: Sequence[int]) -> Table:
    """Return what asv and Otava find in the series that a nightly job has of the same commits."""
    rows = []
    for kind, machine in MACHINES.items():
        for runs in RUNS:
            begun = [truth_of(kind, seed) for seed in seeds]
            series = [nightly_series(truth, kind, runs, rng) for rng, truth in begun]
            changed = [set(truth.changed) for _, truth in begun]
            of_night = "1 run" if runs == 1 else f"median of {runs} runs"
            rows += [
                (machine, of_night, peer.name, *_found(peer, series, changed)) for peer in PEERS
            ]
    return Table(
        f"The same commits, each measured on its own night: {len(seeds)} series a row",
        (
            *("machine", "of a night", "rule", "both found at the commit"),
            *("series with another change", "other changes"),
        ),
        rows,
        (),
    )


def _found(
    peer: Peer, series: Sequence[FloatArray], changed: Sequence[set[int]]
) -> tuple[str, ...]:
    try:
        found = [set(one) for one in peer.changes(series)]
    except NoEnvironment as error:
        return (f"not installed: {error}", "", "")
    others = [len(one - truth) for one, truth in zip(found, changed, strict=True)]
    both = sum(truth <= one for one, truth in zip(found, changed, strict=True))
    return (f"{both}", f"{sum(other > 0 for other in others)}", f"{sum(others)}")


def _of_engine(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    named = [one.named_after for one in outcomes if one.named_after is not None]
    return (
        f"{sum(one.right for one in outcomes)}",
        f"{sum(one.others > 0 for one in outcomes)}",
        _spread(named),
        _spread([one.trials for one in outcomes]),
    )


def discoveries_table(run_all: RunAll, seeds: Sequence[int]) -> Table:
    """Return the false-discovery rate among pairs that differ by just the smallest effect."""
    rows, broken = [], []
    for kind in NOISES:
        for real in (0, REAL):
            named = run_all(partial(discoveries, kind, real))
            rate = statistics.fmean(one.share for one in named)
            any_false = sum(one.false > 0 for one in named)
            rows.append(
                (
                    kind,
                    f"{real}",
                    f"{100 * rate:.1f}",
                    f"{any_false}",
                    f"{statistics.fmean(one.true for one in named):.1f}" if real else "",
                )
            )
            if any_false > at_most(len(seeds), ALPHA) and rate > ALPHA:
                broken.append(f"{kind}, {real} changes: false-discovery rate {rate:.3f}")
    return Table(
        f"{PAIRS} pairs at the smallest effect: {len(seeds)} campaigns a row",
        (
            *("noise", "of them changed by 5 %", "false-discovery rate, %"),
            *("campaigns with a false name", "true names, mean"),
        ),
        rows,
        broken,
    )


def coverage_table(run_all: RunAll, seeds: Sequence[int]) -> Table:
    """Return how often any interval of the curve ever left out the truth."""
    rows, broken = [], []
    for kind in NOISES:
        missed = sum(run_all(partial(misses, kind)))
        rows.append((kind, f"{missed} of {len(seeds)}"))
        if missed > at_most(len(seeds), ALPHA):
            broken.append(f"{kind}: {missed} of {len(seeds)} curves ever missed the truth")
    return Table(
        f"Curves over {COMMITS} commits",
        ("noise", "curves of which any interval ever missed the truth"),
        rows,
        broken,
    )


TABLES: dict[str, Callable[[RunAll, Sequence[int]], Table]] = {
    "planted": planted_table,
    "peers": peers_table,
    "discoveries": discoveries_table,
    "coverage": coverage_table,
}
"""The tables, by their names on the command line."""


def _spread(values: Sequence[int]) -> str:
    if not values:
        return "never"
    return f"{statistics.median(values):.0f} ({min(values)} to {max(values)})"
