"""``python -m benchmarks.validity.engines``: blocks to a verdict, by both engines."""

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
from equipoise.model.plan import FIRST_ENGINE, LATEST_ENGINE
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
    most_blocks: int
    excluded: tuple[float, ...] = (0.0,)
    """Effects in percent that must all be excluded."""
    one_sided: bool = False
    """Whether each side stands for itself where the engine allows it."""
    bar: float | None = None
    """Mean blocks that the latest engine may need (docs/decisions.md)."""
    bar_of_first: float | None = None
    """Part of the first engine's blocks that the latest one may need."""


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
        bar_of_first=0.88,
    ),
    Question(
        "gate of 2 %: 5 % at sd 5 %",
        normal(0.05),
        5.0,
        700,
        (2.0,),
        one_sided=True,
        bar_of_first=0.88,
    ),
)
FIRST_TRY = 32
"""Blocks that are bet on first; twice as many each time until they suffice."""


def blocks_needed(question: Question, engine: int, random: Generator) -> int:
    """Return the blocks until one campaign excludes what is asked; the most if it never does."""
    blocks = question.most_blocks
    times = question.noise(random, 2 * blocks).reshape(blocks, 2)
    orders = random.choice(np.array([-1, 1], dtype=np.int8), blocks)
    first = orders == 1
    baseline = np.where(first, times[:, 0], times[:, 1])
    candidate = np.where(first, times[:, 1], times[:, 0]) + math.log1p(question.effect / 100.0)
    count = min(FIRST_TRY, blocks)
    while True:
        first = slice(count)
        pairs = PairedBlocks(
            np.exp(baseline[first]), np.exp(candidate[first]), orders[first], engine=engine
        )
        level = ALPHA * (pairs.rules.equivalence_levels if question.one_sided else 1.0)
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


def mean_blocks(question: Question, engine: int, campaigns: int, seed: int) -> tuple[float, float]:
    """Return the mean number of blocks and its standard error, over campaigns of their own."""
    counts = [
        blocks_needed(question, engine, np.random.default_rng([seed, campaign]))
        for campaign in range(campaigns)
    ]
    return float(np.mean(counts)), float(np.std(counts) / math.sqrt(campaigns))


def main() -> int:
    """Print one row for each question, seen by both engines; 1 if a mean is over its bar."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validity.engines")
    parser.add_argument("--campaigns", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    table = Table(title="Mean blocks until the interval leaves out what is asked")
    for heading in ("question", "first release", "now", "now / first", "at most"):
        table.add_column(heading, justify="left" if heading == "question" else "right")
    missed = []
    for question in QUESTIONS:
        (old, old_error), (new, new_error) = (
            mean_blocks(question, engine, options.campaigns, options.seed)
            for engine in (FIRST_ENGINE, LATEST_ENGINE)
        )
        bar = _bar(question, old)
        table.add_row(
            question.name,
            f"{old:.1f} ± {old_error:.1f}",
            f"{new:.1f} ± {new_error:.1f}",
            f"{new / old:.2f}",
            "" if bar is None else f"{bar:.1f}",
        )
        if bar is not None and new - 2.0 * new_error > bar:
            missed.append(question.name)
    Console(width=100).print(table)
    print(f"{options.campaigns} campaigns a row, alpha {ALPHA}, seed {options.seed}")
    if missed:
        print(f"over the bar by more than two standard errors: {', '.join(missed)}")
    return int(bool(missed))


def _bar(question: Question, first: float) -> float | None:
    return question.bar if question.bar_of_first is None else question.bar_of_first * first


if __name__ == "__main__":
    sys.exit(main())
