"""``python -m benchmarks.validity.intervals``: whether the interval of a page can be trusted.

Where one ratio is true, intervals must cover it and the warning "no single ratio"
must be rare. Where none is, the interval must cover the typical ratio that the page defines, or
the page must warn. Where times have few values, the true ratio must stay inside.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from rich.console import Console
from rich.table import Table

from benchmarks.validity.machine import FloatArray
from benchmarks.validity.shares import Share
from equipoise.stats.constancy import may_have_one_ratio
from equipoise.stats.resolution import Resolution
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import MIN_WIDTH_SHARE, judge_alone

ALPHA = 0.05
EFFECT = math.log(1.03)
Noise = Callable[[Generator, int], FloatArray]
"""Log times of so many blocks, shape (n, 2), by position."""
Runs = Callable[[Generator, int], tuple[FloatArray, FloatArray]]
"""Log times of the baseline and of the candidate, shape (n,) each."""


def _two(gap: float, share: float) -> Noise:
    return lambda random, blocks: (
        gap * (random.random((blocks, 2)) < share) + random.normal(0.0, 0.01, (blocks, 2))
    )


def _autocorrelated(random: Generator, blocks: int) -> FloatArray:
    steps, times = random.normal(0.0, 0.02, 2 * blocks), np.zeros(2 * blocks)
    for trial in range(1, 2 * blocks):
        times[trial] = 0.9 * times[trial - 1] + steps[trial]
    return times.reshape(blocks, 2)


NOISES: dict[str, Noise] = {
    "Gauss 2 %": lambda random, blocks: random.normal(0.0, 0.02, (blocks, 2)),
    "t2": lambda random, blocks: 0.02 * random.standard_t(2, (blocks, 2)),
    "Cauchy": lambda random, blocks: 0.02 * random.standard_cauchy((blocks, 2)),
    "AR(1) 0.9": _autocorrelated,
    "random walk": lambda random, blocks: (
        np.cumsum(random.normal(0.0, 0.01, 2 * blocks)).reshape(blocks, 2)
        + random.normal(0.0, 0.01, (blocks, 2))
    ),
    "drift": lambda random, blocks: (
        0.01 * np.arange(2 * blocks).reshape(blocks, 2) + random.normal(0.0, 0.02, (blocks, 2))
    ),
    "slot 5 %": lambda random, blocks: (
        np.array([0.0, 0.05]) + random.normal(0.0, 0.02, (blocks, 2))
    ),
    "spikes": _two(math.log(1.5), 0.1),
    "two modes, 10 % apart": _two(math.log(1.1), 0.5),
}
FAR_MODES: dict[str, Noise] = {
    "two modes, ×2, evenly": _two(math.log(2.0), 0.5),
    "two modes, ×1.5, 70/30": _two(math.log(1.5), 0.3),
}
"""One ratio is true, but the typical ratio rests on few blocks: false warnings have no bound."""


def _fading(effect: float) -> Runs:
    def runs(random: Generator, blocks: int) -> tuple[FloatArray, FloatArray]:
        baseline, candidate = random.normal(0.0, 0.01, (2, blocks))
        return baseline, candidate + effect * (1.0 - np.arange(blocks) / blocks)

    return runs


def _mixed(slow: float, shares: tuple[float, float], times: float = 1.0) -> Runs:
    """Some runs of each condition take ``slow`` times as long, all of the candidate ``times``."""

    def runs(random: Generator, blocks: int) -> tuple[FloatArray, FloatArray]:
        logs = random.normal(0.0, 0.01, (2, blocks))
        logs += math.log(slow) * (random.random((2, blocks)) < np.array(shares)[:, np.newaxis])
        return logs[0], logs[1] + math.log(times)

    return runs


NOT_CONSTANT: dict[str, tuple[Runs, float]] = {
    "30 % of runs ×1.2": (_mixed(1.2, (0.0, 0.3)), math.nan),
    "×2 in 45 against 55 %": (_mixed(2.0, (0.45, 0.55)), math.nan),
    "1 or 2 against 1.4": (_mixed(2.0, (0.5, 0.0), 1.4), math.log(1.4) - 0.5 * math.log(2.0)),
    "+5 % that fades to 0": (_fading(0.05), math.nan),
    "+2 % that fades to 0": (_fading(0.02), math.nan),
}
"""Runs, and the typical log ratio; NaN to take it from many blocks. Of two ratios in equally many
blocks it is the middle: no sample agrees with itself on which of them has the majority."""
BLOCKS = (30, 60, 200)
_MANY = 200


@dataclass(frozen=True, slots=True)
class Page:
    """What the page of one campaign shows."""

    misses: bool
    warns: bool
    narrow: bool
    """Whether the running interval is under 0.7 times as wide as the one at the stop."""
    narrow_misses: bool
    """Whether that running interval leaves out the truth."""
    silent_outside: bool
    """Whether the estimate lies outside of the interval shown and nothing says so."""


def page_of(baseline: FloatArray, candidate: FloatArray, orders: FloatArray, truth: float) -> Page:
    """Judge one campaign as a page does."""
    pairs = PairedBlocks(np.exp(baseline), np.exp(candidate), orders.astype(np.int8))
    judged = judge_alone(pairs, 0.0, ALPHA)
    low, high = pairs.engine.running_interval(ALPHA)
    stop_low, stop_high = pairs.engine.interval_at_stop(ALPHA)
    narrow = high - low < MIN_WIDTH_SHARE * (stop_high - stop_low)
    warns = not judged.ratio_is_constant or not may_have_one_ratio(
        pairs, judged.low, judged.high, ALPHA
    )
    outside = judged.typical is not None and not judged.low <= judged.typical <= judged.high
    return Page(
        misses=not judged.low <= truth <= judged.high,
        warns=warns,
        narrow=narrow,
        narrow_misses=narrow and not low <= truth <= high,
        silent_outside=outside and not warns,
    )


def constant_pages(noise: Noise, blocks: int, campaigns: int, seed: int) -> list[Page]:
    """Return the pages of campaigns with a true +3 %."""
    pages = []
    for campaign in range(campaigns):
        random = np.random.default_rng([seed, campaign, blocks])
        orders = random.choice([-1, 1], blocks)
        times, first = noise(random, blocks), orders == 1
        baseline = np.where(first, times[:, 0], times[:, 1])
        candidate = np.where(first, times[:, 1], times[:, 0]) + EFFECT
        pages.append(page_of(baseline, candidate, orders, EFFECT))
    return pages


def other_pages(runs: Runs, blocks: int, campaigns: int, seed: int, truth: float) -> list[Page]:
    """Return the pages of campaigns in which no ratio is constant."""
    if math.isnan(truth):
        truth = _typical(runs, blocks)
    pages = []
    for campaign in range(campaigns):
        random = np.random.default_rng([seed, campaign, blocks])
        baseline, candidate = runs(random, blocks)
        pages.append(page_of(baseline, candidate, random.choice([-1, 1], blocks), truth))
    return pages


def _typical(runs: Runs, blocks: int) -> float:
    """Return the Huber centre of the block differences of many campaigns."""
    drawn = [runs(np.random.default_rng([10**6, number]), blocks) for number in range(_MANY)]
    differences = np.concatenate([candidate - baseline for baseline, candidate in drawn])
    ones = np.where(np.arange(len(differences)) % 2, 1, -1)
    centre = PairedBlocks(np.ones_like(differences), np.exp(differences), ones).engine.centre()
    assert centre is not None
    return centre[0]


def misses_of_values(
    values: tuple[float, ...], ratio: float, quantum: float | None, campaigns: int, seed: int
) -> Share:
    """How often the true ratio of times with these values is ever left out, in 200 blocks."""
    missed = []
    for campaign in range(campaigns):
        random = np.random.default_rng([seed, campaign])
        times = random.choice(values, (BLOCKS[-1], 2)) * [1.0, ratio]
        orders = random.choice(np.array([-1, 1], dtype=np.int8), BLOCKS[-1])
        pairs = PairedBlocks(times[:, 0], times[:, 1], orders, resolution=Resolution(quantum))
        missed.append(pairs.engine.blocks_to_exclude(math.log(ratio), ALPHA) is not None)
    return Share.of(missed)


def misses_of_ticks(ticks: float, unit: float, quantum: float | None, campaigns: int) -> Share:
    """How often a true ratio of 2 is ever left out where a run takes so many ticks."""
    missed = []
    for campaign in range(campaigns):
        random = np.random.default_rng([campaign, int(ticks)])
        times = ticks * np.exp(random.normal(0.0, 0.3, (BLOCKS[-1], 2))) * [1.0, 2.0]
        counted = unit * np.floor(times + random.random((BLOCKS[-1], 2)))
        orders = random.choice(np.array([-1, 1], dtype=np.int8), BLOCKS[-1])
        pairs = PairedBlocks(counted[:, 0], counted[:, 1], orders, resolution=Resolution(quantum))
        missed.append(pairs.engine.blocks_to_exclude(math.log(2.0), ALPHA) is not None)
    return Share.of(missed)


VALUES = ((1.0, 1.1), (0.1, 0.11), (10.0, 11.0), (0.123, 0.135), (1.0, 1.1, 1.2))
RATIOS = (1.03, 1.1, 1.5)
TICKS = (2.0, 3.0, 5.0, 10.0)
UNITS = (1.0, 1.0 / 60.0, 4096.0)


class Bounds:
    """Bounds that were broken."""

    def __init__(self) -> None:
        self.broken: list[str] = []

    def cell(self, share: Share, what: str, *, bound: float | None = ALPHA) -> str:
        """Return a share in per cent with its 95 % interval, and note where it is over 5 %."""
        if bound is not None and share.exceeds(bound):
            self.broken.append(share.beyond(bound, what))
        low, high = share.interval
        percent = 100.0 * share.count / max(share.total, 1)
        return f"{percent:.1f} ({100.0 * low:.1f}–{100.0 * high:.1f})"


def main() -> int:
    """Print the tables; 1 if a bound is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validity.intervals")
    parser.add_argument("--campaigns", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--table", action="append", choices=tuple(TABLES), help="only this; repeatable"
    )
    options = parser.parse_args()
    console, bounds = Console(width=110), Bounds()
    for name in options.table or TABLES:
        for table in TABLES[name](options, bounds):
            console.print(table)
    print(
        f"{options.campaigns} campaigns a row, alpha {ALPHA}, seed {options.seed}; percent with "
        "95 % intervals; every number but those of the rows without a bound may be at most 5 and "
        "chance"
    )
    print("\n".join(bounds.broken))
    return int(bool(bounds.broken))


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left")
    return table


def _constant_tables(options: argparse.Namespace, bounds: Bounds) -> Iterator[Table]:
    """Yield the table of constant ratios, and of the narrow running intervals among them."""
    seen: list[Page] = []
    table = _table("A true +3 %", "noise", "blocks", "misses", "warns without cause", "bound")
    for name, noise in (NOISES | FAR_MODES).items():
        for blocks in BLOCKS:
            pages = constant_pages(noise, blocks, options.campaigns, options.seed)
            seen.extend(pages)
            bound = None if name in FAR_MODES else ALPHA
            what = f"{name}, {blocks} blocks"
            table.add_row(
                name,
                str(blocks),
                bounds.cell(Share.of(one.misses for one in pages), f"{what}: misses"),
                bounds.cell(
                    Share.of(one.warns for one in pages), f"{what}: false warnings", bound=bound
                ),
                "misses" if bound is None else "both",
            )
    yield table
    yield _narrow_table(seen, bounds)


def _other_table(options: argparse.Namespace, bounds: Bounds) -> Iterator[Table]:
    table = _table(
        "No ratio is constant",
        "runs",
        "blocks",
        "misses the typical ratio",
        "warns",
        "misses and does not warn",
        "estimate outside, unsaid",
    )
    for name, (runs, truth) in NOT_CONSTANT.items():
        for blocks in BLOCKS:
            pages = other_pages(runs, blocks, options.campaigns, options.seed, truth)
            what = f"{name}, {blocks} blocks"
            table.add_row(
                name,
                str(blocks),
                bounds.cell(Share.of(one.misses for one in pages), what, bound=None),
                bounds.cell(Share.of(one.warns for one in pages), what, bound=None),
                bounds.cell(
                    Share.of(one.misses and not one.warns for one in pages), f"{what}: unsaid"
                ),
                bounds.cell(
                    Share.of(one.silent_outside for one in pages), f"{what}: outside", bound=0.0
                ),
            )
    yield table


def _narrow_table(pages: list[Page], bounds: Bounds) -> Table:
    table = _table(
        "Running intervals under 0.7 times as wide as the one at the stop, a true +3 %",
        "campaigns",
        "of all",
        "the running one misses",
        "the one shown misses",
    )
    narrow = [one for one in pages if one.narrow]
    table.add_row(
        str(len(pages)),
        bounds.cell(Share(len(narrow), len(pages)), "", bound=None),
        bounds.cell(Share.of(one.narrow_misses for one in narrow), "", bound=None),
        bounds.cell(Share.of(one.misses for one in narrow), "narrow: shown misses"),
    )
    return table


def _values_table(options: argparse.Namespace, bounds: Bounds) -> Iterator[Table]:
    table = _table(
        "Times with few values: misses the true ratio",
        "values",
        *(f"×{ratio}" for ratio in RATIOS),
        *(f"×{ratio}, inferred ticks" for ratio in RATIOS),
    )
    for values in VALUES:
        cells = (
            bounds.cell(
                misses_of_values(values, ratio, quantum, options.campaigns, options.seed),
                f"values {values}, ×{ratio}: misses",
            )
            for quantum in (0.0, None)
            for ratio in RATIOS
        )
        table.add_row(", ".join(map(str, values)), *cells)
    yield table


def _ticks_table(options: argparse.Namespace, bounds: Bounds) -> Iterator[Table]:
    table = _table(
        "Coarse clocks, sd 30 %: misses a true ×2",
        "ticks a run",
        "told",
        *(f"inferred, tick {unit:.4g}" for unit in UNITS),
    )
    for ticks in TICKS:
        ways = ((1.0, 1.0), *((unit, None) for unit in UNITS))
        cells = (
            bounds.cell(
                misses_of_ticks(ticks, unit, quantum, options.campaigns), f"{ticks} ticks: misses"
            )
            for unit, quantum in ways
        )
        table.add_row(f"{ticks:g}", *cells)
    yield table


TABLES: dict[str, Callable[[argparse.Namespace, Bounds], Iterator[Table]]] = {
    "constant": _constant_tables,
    "changing": _other_table,
    "values": _values_table,
    "ticks": _ticks_table,
}
"""All tables by name."""


if __name__ == "__main__":
    sys.exit(main())
