"""``python -m benchmarks.validity.covariates``: what adjusting by a covariate saves, and risks.

The covariate is read before each trial and explains a part of the variance of the block
differences. Campaigns with it and without it are the same.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from rich.console import Console
from rich.table import Table
from scipy.signal import lfilter
from scipy.stats import binom

from benchmarks.validity.machine import FloatArray
from equipoise.stats.arrays import OrderArray
from equipoise.stats.sequence import PairedBlocks

ALPHA = 0.05
SD = 0.02
"""Standard deviation of the log time of a trial."""
EFFECT = 1.0
"""True effect in percent, for the number of blocks."""
COVERED = 3.0
"""True effect in percent, for the coverage."""
MAX_BLOCKS = 700
LOOKS = 200
"""Blocks of a campaign that is looked at after each, for false alarms and coverage."""
EXPLAINED = (0.0, 0.5, 0.8)
MEMORIES = (0.0, 0.9)
MAX_SHARE = 0.63
"""Blocks with a covariate of R² 0.5, as a share of those without it."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """The blocks of one campaign."""

    baseline: FloatArray
    """Shape (n,)."""
    candidate: FloatArray
    orders: OrderArray
    covariates: FloatArray
    """Shape (n, 2, 1)."""

    def pairs(self, *, adjusted: bool) -> PairedBlocks:
        """The blocks as the bets take them, with the covariate or without it."""
        covariates = self.covariates if adjusted else None
        return PairedBlocks(self.baseline, self.candidate, self.orders, covariates=covariates)


def draw(
    random: Generator,
    blocks: int,
    *,
    explained: float,
    percent: float,
    memory: float = 0.0,
    left_behind: float = 0.0,
) -> Campaign:
    """Draw one campaign.

    Parameters
    ----------
    explained
        R²: the part of the variance of block differences that the covariate explains.
    percent
        True effect.
    memory
        Autocorrelation of the covariate from trial to trial.
    left_behind
        How much higher the trial after the candidate finds the covariate, in standard deviations
        of its differences; that part slows nothing.
    """
    steps = random.standard_normal(2 * blocks)
    steps[1:] *= math.sqrt(1.0 - memory**2)
    natural = lfilter([1.0], [1.0, -memory], steps).reshape(blocks, 2)
    slope = SD * math.sqrt(explained / (1.0 - memory))
    noise = SD * math.sqrt(1.0 - explained) * random.standard_normal((blocks, 2))
    times = np.exp(slope * natural + noise)
    orders = random.choice(np.array([-1, 1], dtype=np.int8), blocks)
    candidate_second = orders == 1
    after_candidate = np.empty((blocks, 2), dtype=bool)
    after_candidate[:, 1] = ~candidate_second
    after_candidate[:, 0] = np.concatenate([[False], candidate_second[:-1]])
    read = natural + left_behind * math.sqrt(2.0 * (1.0 - memory)) * after_candidate
    rows = np.arange(blocks)
    first, second = np.where(candidate_second, 0, 1), np.where(candidate_second, 1, 0)
    return Campaign(
        baseline=times[rows, first],
        candidate=times[rows, second] * (1.0 + percent / 100.0),
        orders=orders,
        covariates=np.stack([read[rows, first], read[rows, second]], axis=1)[:, :, np.newaxis],
    )


@dataclass(frozen=True, slots=True)
class Saved:
    """Mean blocks until "no difference" is excluded."""

    explained: float
    without: float
    with_it: float
    error: float
    """Standard error of ``with_it``."""


def saved(explained: float, campaigns: int, seed: int) -> Saved:
    """Return the blocks that campaigns need by each way; all see the same times."""
    counts = np.empty((campaigns, 2))
    for campaign in range(campaigns):
        random = np.random.default_rng([seed, campaign])
        one = draw(random, MAX_BLOCKS, explained=explained, percent=EFFECT)
        ways = (one.pairs(adjusted=False), one.pairs(adjusted=True))
        counts[campaign] = [
            pairs.engine.blocks_to_exclude(0.0, ALPHA) or MAX_BLOCKS for pairs in ways
        ]
    without, with_it = counts.mean(axis=0).tolist()
    error = float(np.std(counts[:, 1]) / math.sqrt(campaigns))
    return Saved(explained, without, with_it, error)


def missed(
    campaigns: int,
    seed: int,
    *,
    explained: float,
    percent: float,
    memory: float = 0.0,
    left_behind: float = 0.0,
) -> int:
    """Return the campaigns whose interval ever leaves out the true effect."""
    truth = math.log1p(percent / 100.0)
    count = 0
    for campaign in range(campaigns):
        random = np.random.default_rng([seed, campaign])
        one = draw(
            random,
            LOOKS,
            explained=explained,
            percent=percent,
            memory=memory,
            left_behind=left_behind,
        )
        low, high = one.pairs(adjusted=True).engine.running_interval(ALPHA)
        count += not low <= truth <= high
    return count


def main() -> int:
    """Print the tables; 1 if a claim is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validity.covariates")
    parser.add_argument("--campaigns", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    campaigns, seed = options.campaigns, options.seed
    broken = []

    rows = [saved(explained, campaigns, seed) for explained in EXPLAINED]
    show(
        f"Mean blocks until no difference is excluded ({EFFECT:g} % at sd {100 * SD:g} %)",
        ("R²", "without", "with", "with / without"),
        [
            (
                f"{one.explained:g}",
                f"{one.without:.1f}",
                f"{one.with_it:.1f} ± {one.error:.1f}",
                f"{one.with_it / one.without:.3f}",
            )
            for one in rows
        ],
    )
    for one in rows:
        if one.explained == 0.5 and one.with_it - 2 * one.error > MAX_SHARE * one.without:
            broken.append(f"more than {MAX_SHARE:g} of the blocks without it at R² 0.5")

    most = int(binom.ppf(0.999, campaigns, ALPHA))
    cells = []
    for memory in MEMORIES:
        for explained in EXPLAINED:
            alarms, misses = (
                missed(campaigns, seed, explained=explained, percent=percent, memory=memory)
                for percent in (0.0, COVERED)
            )
            cells.append((f"{explained:g}", f"{memory:g}", *_shares((alarms, misses), campaigns)))
            if max(alarms, misses) > most:
                broken.append(f"more than alpha at R² {explained:g}, autocorrelation {memory:g}")
    show(
        f"Campaigns whose interval ever leaves out the truth, in {LOOKS} looks",
        ("R²", "autocorrelation", "no effect", f"{COVERED:g} %"),
        cells,
    )

    unclaimed = []
    for left_behind in (0.1, 0.3, 1.0):
        counts = [
            missed(campaigns, seed, explained=explained, percent=0.0, left_behind=left_behind)
            for explained in EXPLAINED
        ]
        unclaimed.append((f"{left_behind:g}", *_shares(counts, campaigns)))
    show(
        "Not claimed: no effect, but the candidate leaves the covariate higher",
        ("by so many sd of its differences", *(f"R² {explained:g}" for explained in EXPLAINED)),
        unclaimed,
    )
    print(f"{campaigns} campaigns a cell, alpha {ALPHA}, seed {seed}")
    for claim in broken:
        print(f"broken claim: {claim}", file=sys.stderr)
    return 1 if broken else 0


def show(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print one table."""
    table = Table(title=title)
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    Console(width=100).print(table)


def _shares(counts: Sequence[int], campaigns: int) -> list[str]:
    return [f"{100 * count / campaigns:.1f} %" for count in counts]


if __name__ == "__main__":
    sys.exit(main())
