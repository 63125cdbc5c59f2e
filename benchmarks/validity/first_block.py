"""``python -m benchmarks.validity.first_block``: would a first block of 5 + 5 runs pay?

It is not built (docs/decisions/statistics.md). The ten first runs would have a random order out of
252, and an
e-value by permutation: exp(λT) over its mean under all orders, T the sum of the candidate's clipped
detrended log times. Its capital would go on into pairs. The command prints the
mean number of trials until "no difference" is excluded, with pairs alone and with such a block, for
the same noise and effects, and exits with 1 if the block costs trials nowhere: then it should be
built.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from rich.console import Console
from rich.table import Table

from benchmarks.validity.blocks import Noise, normal, spikes, student, walk
from benchmarks.validity.machine import FloatArray
from equipoise.stats.sequence import PairedBlocks

ALPHA = 0.05
RUNS = 5
"""Runs of each condition in the first block."""
SHIFTS = (0.5, 1.0, 2.0, 4.0)
"""Shifts, in standard deviations of a run, that the bets on the first block are made for."""
CLIP = 2.0
ORDERS = np.array(
    [
        [place in chosen for place in range(2 * RUNS)]
        for chosen in itertools.combinations(range(2 * RUNS), RUNS)
    ]
)
"""Shape (252, 10): in which places the candidate runs."""
QUESTIONS: tuple[tuple[str, Noise, float, int], ...] = (
    ("x2 at sd 2 %", normal(0.02), 1.0, 40),
    ("30 % at sd 10 %", normal(0.1), 0.3, 200),
    ("10 % at sd 2 %", normal(0.02), 0.1, 60),
    ("5 % at sd 5 %", normal(0.05), 0.05, 500),
    ("3 % at sd 2 %", normal(0.02), 0.03, 200),
    ("1 % at sd 2 %", normal(0.02), 0.01, 1000),
    ("3 % at sd 2 %, t3", student(3, 0.02), 0.03, 300),
    ("3 % at sd 1 %, random walk of 1 %", walk(0.01, 0.01), 0.03, 200),
    ("3 % at sd 2 %, 1 in 10 delayed", spikes(0.1, 0.3, 0.02), 0.03, 400),
)


def first_e_value(logs: FloatArray, candidate: FloatArray) -> float:
    """Return the e-value for "slower" of the ten first runs.

    ``logs`` (10,) are log times by position, ``candidate`` (10,) says where the candidate ran.
    """
    places = np.arange(len(logs)) - (len(logs) - 1) / 2.0
    rest = logs - np.median(logs)
    rest = rest - places * float(places @ rest) / float(places @ places)
    spread = 1.4826 * float(np.median(np.abs(rest - np.median(rest)))) or 1.0
    clipped = np.clip(rest / spread, -CLIP, CLIP)
    sums = ORDERS @ clipped
    drawn = float(clipped[candidate].sum())
    strengths = [math.sqrt(2.0) * shift / 2.0 for shift in SHIFTS]
    return float(np.mean([math.exp(a * drawn) / np.mean(np.exp(a * sums)) for a in strengths]))


def trials_needed(noise: Noise, effect: float, most: int, random: Generator) -> tuple[int, int]:
    """Return the trials of one campaign by pairs alone, and with the block before the pairs."""
    logs = noise(random, 2 * most + 2 * RUNS)
    shift = math.log1p(effect)
    alone = 2 * _pairs(logs[: 2 * most], shift, most, random, ALPHA)
    candidate = ORDERS[random.integers(len(ORDERS))]
    capital = first_e_value(logs[: 2 * RUNS] + shift * candidate, candidate)
    if capital >= 2.0 / ALPHA:
        return alone, 2 * RUNS
    level = min(0.999, ALPHA * max(capital, 1e-6))
    return alone, 2 * RUNS + 2 * _pairs(logs[2 * RUNS :], shift, most, random, level)


def _pairs(logs: FloatArray, shift: float, most: int, random: Generator, level: float) -> int:
    times = logs.reshape(-1, 2)[:most]
    orders = random.choice(np.array([-1, 1], dtype=np.int8), len(times))
    first = orders == 1
    baseline = np.where(first, times[:, 0], times[:, 1])
    candidate = np.where(first, times[:, 1], times[:, 0]) + shift
    pairs = PairedBlocks(np.exp(baseline), np.exp(candidate), orders)
    return pairs.engine.blocks_to_exclude(0.0, level) or most


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one row for each question."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validity.first_block")
    parser.add_argument("--campaigns", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    table = Table(title="Mean trials until no difference is excluded")
    for heading in ("question", "pairs", "5 + 5 first", "change"):
        table.add_column(heading, justify="left" if heading == "question" else "right")
    costs = False
    for number, (name, noise, effect, most) in enumerate(QUESTIONS):
        random = np.random.default_rng([options.seed, number])
        rows = [trials_needed(noise, effect, most, random) for _ in range(options.campaigns)]
        alone, block = np.array(rows, dtype=np.float64).T
        error = float(np.std(block - alone) / math.sqrt(len(rows)) / alone.mean())
        change = float(block.mean() / alone.mean() - 1.0)
        costs |= change > 2.0 * error
        table.add_row(
            name,
            f"{alone.mean():.1f}",
            f"{block.mean():.1f}",
            f"{100.0 * change:+.1f} ± {100.0 * error:.1f} %",
        )
    Console(width=90).print(table)
    print(f"{options.campaigns} campaigns a row, alpha {ALPHA}, seed {options.seed}")
    return int(not costs)


if __name__ == "__main__":
    sys.exit(main())
