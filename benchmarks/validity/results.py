"""Everything that is simulated, and what it adds up to."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from benchmarks.validity.layouts import (
    COST,
    LAYOUTS,
    LayoutSummary,
    simulate_layouts,
    summarise_layouts,
)
from benchmarks.validity.pieces import in_pieces
from benchmarks.validity.pooled import POOLED, PooledSummary, simulate_pools, summarise_pools
from benchmarks.validity.scenarios import SCENARIOS
from benchmarks.validity.simulate import simulate
from benchmarks.validity.summary import Summary, broken_claims, summarise
from benchmarks.validity.tables import TextTable, across_layouts, pooled_stops, tables_of

NAMES = (
    *(one.name for one in SCENARIOS),
    *(one.name for one in POOLED),
    *(one.name for one in LAYOUTS),
)
"""Every scenario, in the order in which it is simulated."""


@dataclass(frozen=True, slots=True)
class Results:
    """Summaries of the scenarios that were simulated."""

    single: tuple[Summary, ...]
    pooled: tuple[PooledSummary, ...]
    layouts: tuple[LayoutSummary, ...]

    def tables(self) -> tuple[TextTable, ...]:
        """Return the tables, in the order in which they are shown."""
        return (
            *(tables_of(self.single) if self.single else ()),
            *((pooled_stops(self.pooled),) if self.pooled else ()),
            *((across_layouts(self.layouts),) if self.layouts else ()),
        )

    def broken_claims(self) -> list[str]:
        """Return what Equipoise claims and this shows to be wrong."""
        return [
            *(words for one in self.single for words in broken_claims(one)),
            *(words for one in self.pooled for words in one.broken_claims()),
            *(words for one in self.layouts for words in one.broken_claims()),
        ]


def simulate_all(
    names: Collection[str],
    campaigns: int,
    *,
    seed: int,
    workers: int,
    progress: Callable[[str], None] = lambda _: None,
) -> Results:
    """Simulate the scenarios of these names.

    Parameters
    ----------
    names
        From ``NAMES``.
    campaigns
        Of a scenario; one whose campaigns cost more has as many fewer.
    seed, workers, progress
        As for ``in_pieces``.
    """
    single = [one for one in SCENARIOS if one.name in names]
    pooled = [one for one in POOLED if one.name in names]
    layouts = [one for one in LAYOUTS if one.name in names]
    outcomes = simulate(single, campaigns, seed=seed, workers=workers, progress=progress)
    pools = in_pieces(
        {one.name: max(1, campaigns // one.cost) for one in pooled},
        simulate_pools,
        seed=seed,
        workers=workers,
        progress=progress,
    )
    over_layouts = in_pieces(
        {one.name: max(1, campaigns // COST) for one in layouts},
        simulate_layouts,
        seed=seed,
        workers=workers,
        progress=progress,
    )
    return Results(
        tuple(summarise(one, outcomes[one.name]) for one in single),
        tuple(summarise_pools(one, pools[one.name]) for one in pooled),
        tuple(summarise_layouts(one, over_layouts[one.name]) for one in layouts),
    )
