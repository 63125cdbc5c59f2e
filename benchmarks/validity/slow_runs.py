"""``python -m benchmarks.validity.slow_runs``: ``equivalent`` where slow runs differ, or are alike.

A campaign compares two programs whose typical runs take the same. Some of the runs of one, or of
both, are slow. It is looked at after every block and stops at its verdict. "Before" is the rule
that looked at the ratio of means without its standard error, from 30 blocks on.
"""

from __future__ import annotations

import argparse
import functools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from rich.console import Console
from rich.table import Table

from benchmarks.validity.machine import FloatArray
from benchmarks.validity.shares import Share
from equipoise._native import EQUIVALENCE_LEVELS
from equipoise.analysis.wording import slow_runs_sentence
from equipoise.model.plan import PRIMARY_METRIC
from equipoise.model.result import SlowRuns
from equipoise.stats.describe import ln_ratio_of_means
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.slow_runs import (
    LEVEL_SHARE,
    MIN_RUNS_FOR_EQUIVALENT,
    blocks_to_show,
    means_allow_equivalence,
    slow_run_counts,
    slow_run_test,
    unseen_share,
)
from equipoise.stats.verdict import judge, margin_of

ALPHA = 0.05
MIN_EFFECT = 1.0
"""Percent."""
BLOCKS_BEFORE = 30
"""Blocks from which the rule before said ``equivalent``."""
BLOCKS, BLOCKS_WITH_TAIL = 200, 400
"""Blocks of a campaign at most."""
LIGHT = 0.003
"""Standard deviation of the log time of a run that is not slow."""
DEARER = 1.03
"""Blocks that light tails may need now, over those before."""
KEPT = 0.5
"""Part of the campaigns called equivalent before that must still be, with equal slow runs."""

Delays = Callable[[Generator, int], FloatArray]
"""Draws by which factor so many runs are slower, in logarithms; 0 for most."""


def none(random: Generator, runs: int) -> FloatArray:
    """Return no delay."""
    return np.zeros(runs)


def slow(share: float, factor: float) -> Delays:
    """Return a share of runs that take a multiple of the time."""
    return lambda random, runs: np.where(random.random(runs) < share, math.log(factor), 0.0)


def skewed(share: float, typical: float) -> Delays:
    """Return a share of runs with a lognormal delay of this median, in parts of a run."""
    return lambda random, runs: np.where(
        random.random(runs) < share,
        np.log1p(typical * np.exp(0.8 * random.standard_normal(runs))),
        0.0,
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """Campaigns of one kind, and what is claimed of them."""

    name: str
    baseline: Delays
    candidate: Delays
    noise: float = LIGHT
    tail: float | None = None
    """``--tail``, in percent."""
    most: float | None = None
    """Largest share of campaigns that may be called equivalent."""
    keeps: bool = False
    """Whether at least half of those called equivalent before must still be."""
    is_light: bool = False
    """Whether its blocks may grow by 3 % at most."""
    has_no_difference: bool = False
    """Whether exchanging the two changes nothing: then the test of slow runs has its level."""


def missed(share: float, blocks: int = MIN_RUNS_FOR_EQUIVALENT) -> float:
    """Return the chance that so many runs hold no slow one, but at least alpha."""
    return max(ALPHA, (1.0 - share) ** blocks)


CELLS = (
    Cell("no slow runs, sd 2 %", none, none, 0.02, is_light=True, has_no_difference=True),
    Cell("no slow runs, sd 1 %", none, none, 0.01, has_no_difference=True),
    Cell("no slow runs, sd 0.3 %", none, none, has_no_difference=True),
    Cell("candidate 10 % ×1.2", none, slow(0.1, 1.2), most=ALPHA),
    Cell("candidate 10 % ×1.15", none, slow(0.1, 1.15), most=ALPHA),
    Cell("candidate 5 % ×1.4", none, slow(0.05, 1.4), most=ALPHA),
    Cell("candidate 2 % ×3", none, slow(0.02, 3.0), most=missed(0.02)),
    Cell("candidate 1 % ×10", none, slow(0.01, 10.0), most=missed(0.01)),
    Cell("candidate 2 % ×3, --tail 2", none, slow(0.02, 3.0), tail=2.0, most=ALPHA),
    Cell("candidate 1 % ×10, --tail 1", none, slow(0.01, 10.0), tail=1.0, most=ALPHA),
    Cell("2 % ×2 against 2 % ×4 (p99 doubled)", slow(0.02, 2.0), slow(0.02, 4.0)),
    Cell("5 % ×1.5 against 9 % ×1.5", slow(0.05, 1.5), slow(0.09, 1.5)),
    Cell("lognormal delays, doubled, 4 %", skewed(0.04, 0.3), skewed(0.04, 0.6)),
    Cell("both 5 % ×1.5", slow(0.05, 1.5), slow(0.05, 1.5), keeps=True, has_no_difference=True),
    Cell("both 10 % ×2", slow(0.1, 2.0), slow(0.1, 2.0), keeps=True, has_no_difference=True),
    Cell("both 2 % ×3", slow(0.02, 3.0), slow(0.02, 3.0), keeps=True, has_no_difference=True),
    Cell("both 1 % ×10", slow(0.01, 10.0), slow(0.01, 10.0), keeps=True, has_no_difference=True),
    Cell(
        "both 4 %, lognormal delays",
        skewed(0.04, 0.3),
        skewed(0.04, 0.3),
        keeps=True,
        has_no_difference=True,
    ),
    Cell(
        "both 5 % ×1.5, sd 2 %",
        slow(0.05, 1.5),
        slow(0.05, 1.5),
        0.02,
        keeps=True,
        has_no_difference=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one campaign."""

    before: int | None
    """Block after which it was called equivalent before; ``None`` if never."""
    by_means: int | None
    """The same with the bound of the means in place of the ratio alone, from 30 blocks on too."""
    now: int | None
    is_silent: bool
    """Whether ``equivalent`` came without a sentence on slow runs."""
    has_named: bool
    """Whether the test of slow runs ever named a condition, in all blocks that it might have."""
    different: bool
    """Whether it was called faster, slower or mixed."""


def blocks_of(cell: Cell) -> int:
    """Return the number of blocks of a campaign at most."""
    return BLOCKS if cell.tail is None else BLOCKS_WITH_TAIL


def campaign(cell: Cell, random: Generator) -> Outcome:
    """Simulate one campaign."""
    blocks, margin = blocks_of(cell), margin_of(MIN_EFFECT)
    baseline, candidate = (
        np.exp(cell.noise * random.standard_normal(blocks) + delays(random, blocks))
        for delays in (cell.baseline, cell.candidate)
    )
    orders = random.choice(np.array([-1, 1], dtype=np.int8), blocks)

    @functools.cache
    def pairs_after(count: int) -> PairedBlocks:
        return PairedBlocks(baseline[:count], candidate[:count], orders[:count])

    least = 1 if cell.tail is None else blocks_to_show(cell.tail / 100.0, ALPHA)
    called = different_at(pairs_after, blocks, max(least, 1))
    within = within_from(pairs_after(blocks), margin)
    end = blocks if called is None else called - 1

    def first(blocks_at_least: int, allows: Callable[[int], bool]) -> int | None:
        counts = range(max(within, blocks_at_least, least), end + 1)
        return next((count for count in counts if allows(count)), None)

    def by_ratio(count: int) -> bool:
        return abs(ln_ratio_of_means(baseline[:count], candidate[:count])) <= margin

    def by_means(count: int) -> bool:
        return means_allow_equivalence(baseline[:count], candidate[:count], margin)

    def is_equivalent(count: int) -> bool:
        (judged,) = judge((pairs_after(count),), min_effect=MIN_EFFECT, alpha=ALPHA)
        return judged.verdict == "equivalent"

    now = first(
        MIN_RUNS_FOR_EQUIVALENT,
        # Where no constant ratio fits, the interval is that of this block, and may be wider.
        lambda count: by_means(count) and is_equivalent(count),
    )
    silent = now is not None and not tells(baseline[:now], candidate[:now], margin)
    test = slow_run_test(baseline, candidate, margin=margin, alpha=ALPHA)
    return Outcome(
        first(BLOCKS_BEFORE, by_ratio),
        first(BLOCKS_BEFORE, by_means),
        now,
        silent,
        test.side != 0,
        called is not None,
    )


def within_from(pairs: PairedBlocks, margin: float) -> int:
    """Return the block from which the interval lies within the margin; beyond all if never."""
    level = ALPHA * EQUIVALENCE_LEVELS
    after = [pairs.engine.blocks_to_exclude(side * margin, level) for side in (-1.0, 1.0)]
    return max(len(pairs) + 1 if one is None else one for one in after)


def different_at(pairs_after: Callable[[int], PairedBlocks], blocks: int, least: int) -> int | None:
    """Return the block after which a campaign is called faster, slower or mixed; ``None`` if never.

    Such a call needs an interval without 0; it is looked at after every block from there on.
    """
    first = pairs_after(blocks).engine.blocks_to_exclude(0.0, ALPHA)
    if first is None:
        return None
    for count in range(max(first, least), blocks + 1):
        (judged,) = judge((pairs_after(count),), min_effect=MIN_EFFECT, alpha=ALPHA)
        if judged.verdict == "equivalent":
            return None
        if judged.verdict != "undecided":
            return count
    return None


def tells(baseline: FloatArray, candidate: FloatArray, margin: float) -> bool:
    """Return whether the sentence of the verdict names slow runs, seen or too rare to be."""
    counts = slow_run_counts(baseline, candidate, margin)
    seen = SlowRuns(
        counts.factor,
        counts.baseline,
        counts.candidate,
        counts.runs,
        unseen_share(counts.runs, ALPHA),
    )
    sentence = slow_runs_sentence(seen, "old", "new", metric=PRIMARY_METRIC)
    has_counts = "times their median" in sentence or "no slow runs were seen" in sentence
    return has_counts and "rarer than 1 in" in sentence


def percent(share: Share) -> str:
    """Return a share with its Monte Carlo standard error, in percent."""
    part = share.count / share.total
    return f"{100 * part:.1f} ± {100 * math.sqrt(part * (1 - part) / share.total):.1f}"


def problems_of(cell: Cell, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield each claim that the campaigns of a cell show to be broken."""
    now = Share.of(one.now is not None for one in outcomes)
    before = Share.of(one.before is not None for one in outcomes)
    named = Share.of(one.has_named for one in outcomes)
    if cell.most is not None and now.exceeds(cell.most):
        yield f"{cell.name}: equivalent in more than {100 * cell.most:.1f} %"
    if any(one.is_silent for one in outcomes):
        yield f"{cell.name}: equivalent without a sentence on slow runs"
    lost = Share(before.count - now.count, before.count)
    if cell.keeps and before.count and lost.exceeds(1.0 - KEPT):
        yield f"{cell.name}: equivalent in less than half of the campaigns of before"
    if cell.has_no_difference and named.exceeds(LEVEL_SHARE * ALPHA):
        yield f"{cell.name}: the test of slow runs names a condition too often"
    if cell.has_no_difference and Share.of(one.different for one in outcomes).exceeds(ALPHA):
        yield f"{cell.name}: called different in more than alpha"
    if cell.is_light:
        ratio = mean_blocks(cell, outcomes, "now") / mean_blocks(cell, outcomes, "before")
        if ratio > DEARER:
            yield f"{cell.name}: {ratio:.3f} times as many blocks as before"


def mean_blocks(cell: Cell, outcomes: Sequence[Outcome], rule: str) -> float:
    """Return the mean number of blocks; an undecided campaign has all of them."""
    return float(np.mean([getattr(one, rule) or blocks_of(cell) for one in outcomes]))


def bound_of(cell: Cell) -> str:
    """Return what is claimed of a cell."""
    if cell.most is not None:
        return f"at most {100 * cell.most:.1f}"
    if cell.keeps:
        return "at least half of before"
    return f"blocks at most ×{DEARER}" if cell.is_light else ""


def main() -> int:
    """Print a row for each cell; 1 if a claim is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validity.slow_runs")
    parser.add_argument("--campaigns", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cell", action="append", help="only cells whose name holds this")
    options = parser.parse_args()
    table = Table(title="Campaigns called equivalent, in percent ± Monte Carlo standard error")
    for heading in ("cell", "before", "now", "claimed", "blocks before", "by means", "blocks now"):
        table.add_column(heading, justify="left" if heading == "cell" else "right")
    for heading in ("without a sentence", "test names one", "different"):
        table.add_column(heading, justify="right")
    problems: list[str] = []
    for place, cell in enumerate(CELLS):
        if options.cell and not any(part in cell.name for part in options.cell):
            continue
        outcomes = [
            campaign(cell, np.random.default_rng([options.seed, place, number]))
            for number in range(options.campaigns)
        ]
        table.add_row(
            cell.name,
            percent(Share.of(one.before is not None for one in outcomes)),
            percent(Share.of(one.now is not None for one in outcomes)),
            bound_of(cell),
            f"{mean_blocks(cell, outcomes, 'before'):.1f}",
            f"{mean_blocks(cell, outcomes, 'by_means'):.1f}",
            f"{mean_blocks(cell, outcomes, 'now'):.1f}",
            str(sum(one.is_silent for one in outcomes)),
            percent(Share.of(one.has_named for one in outcomes)),
            percent(Share.of(one.different for one in outcomes)),
        )
        problems.extend(problems_of(cell, outcomes))
    Console(width=160).print(table)
    print(
        f"{options.campaigns} campaigns a row of at most {BLOCKS} blocks, with --tail "
        f"{BLOCKS_WITH_TAIL}; alpha {ALPHA}, min-effect {MIN_EFFECT:g} %, seed {options.seed}"
    )
    print(f"the test of slow runs has level {LEVEL_SHARE * ALPHA:g}, at any look")
    for problem in problems:
        print(f"broken: {problem}")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
