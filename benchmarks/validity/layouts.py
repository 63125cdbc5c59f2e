"""Rows on `--layouts`: the claim across layouts where layouts differ.

``python -m benchmarks.validity.layouts`` prints more of them.
"""

from __future__ import annotations

import argparse
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from rich.console import Console
from rich.table import Table

from benchmarks.validity.campaign import ALPHA, CALLS, Blocks
from benchmarks.validity.machine import FloatArray, IntArray
from benchmarks.validity.pieces import in_pieces, source
from benchmarks.validity.shares import Share
from equipoise._native import EQUIVALENCE_BLOCKS
from equipoise.design.coin import draw_block, draw_layouts
from equipoise.model.plan import Condition, Judgement, Measure, Plan, Stopping
from equipoise.stats.layouts import judge_across_layouts
from equipoise.stats.verdict import ComparisonVerdict, judge

ROUNDS = 16
"""Blocks in each layout, at most."""
ANALYSES = (2, 4, 8, 16)
"""Blocks in each layout at the planned analyses; nothing changes between them."""
MIN_EFFECT = 1.0
"""Percent."""
FOUND_EFFECT = 3.0
"""Percent; the mean effect over layouts whose finding is counted."""
PLANS = 100
"""Number of plans whose orders are drawn: a campaign takes one of them."""
NOISE = 0.02
"""Standard deviation of the log time of a trial."""

Effects = Callable[[Generator, int], FloatArray]
"""Draws the effects of so many layouts: mean 0, standard deviation 1."""


def _normal(random: Generator, count: int) -> FloatArray:
    return random.standard_normal(count)


def _exponential(random: Generator, count: int) -> FloatArray:
    effects: FloatArray = random.standard_exponential(count) - 1.0
    return effects


def _student(random: Generator, count: int) -> FloatArray:
    effects: FloatArray = random.standard_t(3, count) / math.sqrt(3.0)
    return effects


@dataclass(frozen=True, slots=True)
class LayoutScenario:
    """Layouts in which the same change has other effects, and none on average."""

    name: str
    words: str
    layouts: int
    between: float
    """Standard deviation of the log ratios of layouts."""
    effects: Effects


@dataclass(frozen=True, slots=True)
class LayoutOutcome:
    """What one campaign over layouts said."""

    called: bool
    """Different across layouts, without a mean effect."""
    missed: bool
    """The interval across layouts left out 1 at the stop."""
    called_in_these: bool
    """Different in the layouts that were drawn, after all blocks."""
    found: bool
    """Slower across layouts, with a mean effect of 3 %."""


def _scenario(layouts: int, percent: int, kind: str, effects: Effects) -> LayoutScenario:
    return LayoutScenario(
        f"{layouts} layouts, {percent} %, {kind}",
        f"{layouts} layouts; {kind} effects with sd {percent} % between them; trials sd 2 %",
        layouts,
        percent / 100.0,
        effects,
    )


COUNTS = (6, 12, 24)
"""Numbers of layouts."""


def scenarios_of(count: int) -> tuple[LayoutScenario, ...]:
    """Return the scenarios with so many layouts."""
    kinds = (("normal", _normal), ("Student's t3", _student), ("exponential", _exponential))
    return tuple(
        _scenario(count, percent, kind, effects) for kind, effects in kinds for percent in (1, 3, 5)
    )


_GRID = {one.name: one for count in COUNTS for one in scenarios_of(count)}
LAYOUTS = tuple(
    _GRID[name]
    for kind in ("normal", "exponential")
    for name in (
        f"12 layouts, 3 %, {kind}",
        *(f"{count} layouts, 5 %, {kind}" for count in COUNTS),
    )
)
"""Scenarios of ``python -m benchmarks.validity``."""
COST = 2
"""Campaigns of another scenario that cost as much as one over layouts."""


def simulate_layouts(name: str, start: int, stop: int, seed: int) -> list[LayoutOutcome]:
    """Campaigns ``start`` up to ``stop`` of one scenario."""
    scenario = _GRID[name]
    return [
        simulate_campaign(scenario, np.random.default_rng(source(seed, name, campaign)))
        for campaign in range(start, stop)
    ]


def simulate_campaign(scenario: LayoutScenario, random: Generator) -> LayoutOutcome:
    """Run one campaign over layouts to its verdict, without a mean effect and with one."""
    orders, places = _drawn(scenario.layouts, int(random.integers(PLANS)))
    noise = NOISE * random.standard_normal(orders.shape)
    effects = scenario.between * scenario.effects(random, scenario.layouts)
    without = _run(orders, noise, effects[places - 1])
    stop = _first_verdict(without, places, scenario.layouts)
    (these,) = judge([without.paired()], min_effect=MIN_EFFECT, alpha=ALPHA)
    shifted = _run(orders, noise, effects[places - 1] + math.log1p(FOUND_EFFECT / 100.0))
    return LayoutOutcome(
        called=stop.verdict in CALLS,
        missed=not stop.low <= 0.0 <= stop.high,
        called_in_these=these.verdict in CALLS,
        found=_first_verdict(shifted, places, scenario.layouts).verdict == "slower",
    )


@functools.cache
def _drawn(layouts: int, seed: int) -> tuple[IntArray, IntArray]:
    """Return the conditions in their order, shape (n, 2), and the layout of each block."""
    plan = Plan(
        study="compare",
        conditions=(Condition("baseline", ("a",)), Condition("candidate", ("b",))),
        measure=Measure(working_folder="/", warmup=0),
        stopping=Stopping(blocks=ROUNDS * layouts, min_seconds=0.0),
        judgement=Judgement(alpha=ALPHA),
        seed=seed,
        layouts=draw_layouts(seed, layouts, "on"),
    )
    draws = [draw_block(plan, "measured", block) for block in range(1, ROUNDS * layouts + 1)]
    return np.array([draw.order for draw in draws]), np.array([draw.layout for draw in draws])


def _run(orders: IntArray, noise: FloatArray, effects: FloatArray) -> Blocks:
    # Condition 1 is the candidate.
    return Blocks(orders, np.exp(noise + orders * effects[:, np.newaxis]), 0.0)


def _first_verdict(blocks: Blocks, places: IntArray, layouts: int) -> ComparisonVerdict:
    """Return the first verdict across layouts, or the last analysis."""
    due = {rounds * layouts for rounds in ANALYSES}
    # `equivalent` also waits for its least number of blocks.
    due.add(EQUIVALENCE_BLOCKS)
    for count in sorted(due):
        (judged,) = judge_across_layouts(
            [blocks.paired(count)],
            [places[:count]],
            layout_count=layouts,
            min_effect=MIN_EFFECT,
            alpha=ALPHA,
        )
        if judged.verdict != "undecided":
            break
    return judged


@dataclass(frozen=True, slots=True)
class LayoutSummary:
    """What the campaigns of one scenario add up to."""

    scenario: LayoutScenario
    called: Share
    missed: Share
    called_in_these: Share
    found: Share

    def broken_claims(self) -> list[str]:
        """Return what Equipoise claims and this shows to be wrong."""
        claims = [
            (self.called, "false alarms across layouts"),
            (self.missed, "misses of the mean over layouts"),
        ]
        return [
            f"{self.scenario.name}: {share.beyond(ALPHA, what)}"
            for share, what in claims
            if share.exceeds(ALPHA)
        ]


def summarise_layouts(scenario: LayoutScenario, outcomes: Sequence[LayoutOutcome]) -> LayoutSummary:
    """Add up the campaigns of one scenario."""
    return LayoutSummary(
        scenario,
        Share.of(one.called for one in outcomes),
        Share.of(one.missed for one in outcomes),
        Share.of(one.called_in_these for one in outcomes),
        Share.of(one.found for one in outcomes),
    )


def main() -> None:
    """Print how often the claim is wrong and how often it is found, for every kind of effects."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validity.layouts")
    parser.add_argument("--campaigns", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    grid = [one for count in COUNTS for one in scenarios_of(count)]
    outcomes = in_pieces(
        {one.name: options.campaigns for one in grid},
        simulate_layouts,
        seed=options.seed,
        workers=options.workers,
    )
    table = Table(title="The claim across layouts, percent of campaigns")
    for heading in ("effects", *(f"{count} layouts" for count in COUNTS)):
        table.add_column(heading, justify="left" if heading == "effects" else "right")
    for row in zip(*(scenarios_of(count) for count in COUNTS), strict=True):
        cells = []
        for one in row:
            summary = summarise_layouts(one, outcomes[one.name])
            shares = (summary.called, summary.missed, summary.found)
            cells.append(" · ".join(f"{100 * one.count / one.total:.1f}" for one in shares))
        table.add_row(row[0].name.partition(", ")[2], *cells)
    Console(width=100).print(table)
    print(
        "wrong without a mean effect · interval misses · finds a mean of "
        f"{FOUND_EFFECT:g} %; {options.campaigns} campaigns a cell, seed {options.seed}"
    )


if __name__ == "__main__":
    main()
