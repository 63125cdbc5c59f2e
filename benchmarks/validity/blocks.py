"""``python -m benchmarks.validity.blocks``: blocks to a verdict, and the most that it may need."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from rich.console import Console
from rich.table import Table

from benchmarks.validity.machine import FloatArray
from equipoise._native import EQUIVALENCE_LEVELS
from equipoise.stats.sequence import PairedBlocks

ALPHA = 0.05
Noise = Callable[[Generator, int], FloatArray]
"""Log times of so many trials, shape (n,)."""


def normal(sd: float) -> Noise:
    """Return independent normal noise."""
    return lambda random, trials: sd * random.standard_normal(trials)


def student(freedom: int, sd: float) -> Noise:
    """Return Student's t with this standard deviation."""
    scale = sd / math.sqrt(freedom / (freedom - 2))
    return lambda random, trials: scale * random.standard_t(freedom, trials)


def walk(step: float, sd: float) -> Noise:
    """Return a random walk with normal noise on top."""
    return lambda random, trials: (
        np.cumsum(step * random.standard_normal(trials)) + sd * random.standard_normal(trials)
    )


def spikes(share: float, mean: float, sd: float) -> Noise:
    """Return normal noise with exponential delays in a share of the trials."""
    return lambda random, trials: (
        sd * random.standard_normal(trials)
        + (random.random(trials) < share) * random.exponential(mean, trials)
    )


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of campaigns with a true effect, and how many blocks they may have."""

    name: str
    noise: Noise
    effect: float
    """Percent."""
    max_blocks: int
    excluded: tuple[float, ...] = (0.0,)
    """Effects in percent that must all be excluded."""
    one_sided: bool = False
    """Whether each side of the interval stands for itself."""
    bar: float | None = None
    """Mean blocks that the bets may need (docs/decisions/statistics.md)."""


QUESTIONS = (
    Question("1 % at sd 2 %", normal(0.02), 1.0, 1000, bar=86.0),
    Question("3 % at sd 2 %", normal(0.02), 3.0, 200, bar=14.2),
    Question("1 % at sd 0.5 %", normal(0.005), 1.0, 100),
    Question("3 % at sd 5 %", normal(0.05), 3.0, 700),
    Question("10 % at sd 2 %", normal(0.02), 10.0, 60),
    Question("50 % at sd 2 %", normal(0.02), 50.0, 60, bar=7.0),
    Question("0.3 % at sd 2 %", normal(0.02), 0.3, 6000),
    Question("1 % at sd 2 %, t3", student(3, 0.02), 1.0, 1500),
    Question("3 % at sd 2 %, t3", student(3, 0.02), 3.0, 200),
    Question("3 % at sd 1 %, random walk of 1 %", walk(0.01, 0.01), 3.0, 200),
    Question("3 % at sd 2 %, 1 in 10 delayed", spikes(0.1, 0.3, 0.02), 3.0, 300),
    Question(
        "equivalent within 1 % at sd 2 %",
        normal(0.02),
        0.0,
        1000,
        (-1.0, 1.0),
        one_sided=True,
        bar=113.9,
    ),
    Question(
        "gate of 2 %: 5 % at sd 5 %",
        normal(0.05),
        5.0,
        700,
        (2.0,),
        one_sided=True,
        bar=60.5,
    ),
)
FIRST_TRY = 32
"""Blocks that are bet on first; twice as many each time until they suffice."""


def blocks_needed(question: Question, random: Generator) -> int:
    """Return the blocks until one campaign excludes what is asked; the most if it never does."""
    blocks = question.max_blocks
    times = question.noise(random, 2 * blocks).reshape(blocks, 2)
    orders = random.choice(np.array([-1, 1], dtype=np.int8), blocks)
    first = orders == 1
    baseline = np.where(first, times[:, 0], times[:, 1])
    candidate = np.where(first, times[:, 1], times[:, 0]) + math.log1p(question.effect / 100.0)
    count = min(FIRST_TRY, blocks)
    while True:
        first = slice(count)
        pairs = PairedBlocks(np.exp(baseline[first]), np.exp(candidate[first]), orders[first])
        level = ALPHA * (EQUIVALENCE_LEVELS if question.one_sided else 1.0)
        after = [
            pairs.engine.blocks_to_exclude(math.log1p(effect / 100.0), level)
            for effect in question.excluded
        ]
        needed = [one for one in after if one is not None]
        if len(needed) == len(after):
            return max(needed)
        if count == blocks:
            return blocks
        count = min(2 * count, blocks)


def mean_blocks(question: Question, campaigns: int, seed: int) -> tuple[float, float]:
    """Return the mean number of blocks and its standard error, over campaigns of their own."""
    counts = [
        blocks_needed(question, np.random.default_rng([seed, campaign]))
        for campaign in range(campaigns)
    ]
    return float(np.mean(counts)), float(np.std(counts) / math.sqrt(campaigns))


def main() -> int:
    """Print one row for each question; return 1 if a mean is over its bar."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validity.blocks")
    parser.add_argument("--campaigns", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    table = Table(title="Mean blocks until the interval leaves out what is asked")
    for heading in ("question", "blocks", "at most"):
        table.add_column(heading, justify="left" if heading == "question" else "right")
    missed = []
    for question in QUESTIONS:
        mean, error = mean_blocks(question, options.campaigns, options.seed)
        bar = question.bar
        table.add_row(
            question.name, f"{mean:.1f} ± {error:.1f}", "" if bar is None else f"{bar:.1f}"
        )
        if bar is not None and mean - 2.0 * error > bar:
            missed.append(question.name)
    Console(width=100).print(table)
    print(f"{options.campaigns} campaigns a row, alpha {ALPHA}, seed {options.seed}")
    if missed:
        print(f"over the bar by more than two standard errors: {', '.join(missed)}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
