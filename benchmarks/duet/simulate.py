"""How often trials at once report a false difference at any look, and what they gain.

``python -m benchmarks.duet.simulate``. The time of a trial is the noise of the host times its own
noise, on CPUs of which one may be slower. Two trials at once meet the same noise of the host; in
turns, each meets its own, correlated with the one before. The coin assigns the CPUs. The machine
that runs this is no matter. Ends with 1 if a share of false differences is above alpha beyond
chance.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from equipoise.campaign.interim import latest_analysis_block
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import judge

ALPHA, MIN_EFFECT, PLANTED = 0.05, 1.0, 3.0
SLOWER_CPUS = (0.0, 0.02, 0.1, 0.5)
"""Log ratios of the times on the two CPUs."""
SHARED_NOISES = (0.0, 0.05, 0.3)
"""Log standard deviation of the host's noise."""
OWN_NOISES = (0.005, 0.03)
"""Log standard deviation of a trial's own noise."""
PERSISTENCE = 0.8
"""Correlation of the host's noise between two trials that follow each other."""


class Cell(NamedTuple):
    """What is simulated."""

    slower_cpu: float
    shared: float
    own: float
    effect: float
    at_once: bool
    heavy_tails: bool


def campaign(generator: np.random.Generator, cell: Cell, blocks: int) -> tuple[str, int]:
    """Return the verdict of a campaign and its number of blocks, or ``undecided`` at the limit."""
    moments = blocks if cell.at_once else 2 * blocks
    shocks = (
        generator.standard_t(3, moments) / math.sqrt(3.0)
        if cell.heavy_tails
        else generator.standard_normal(moments)
    )
    # Noise of the host persists from moment to moment; two trials in turns take two moments.
    noise = np.empty(moments)
    state = 0.0
    for index, shock in enumerate(shocks):
        state = PERSISTENCE * state + math.sqrt(1.0 - PERSISTENCE**2) * shock
        noise[index] = state
    host = cell.shared * (np.repeat(noise, 2) if cell.at_once else noise).reshape(blocks, 2)
    logs = host + cell.own * generator.standard_normal((blocks, 2))
    logs[:, 1] += cell.slower_cpu
    orders = np.where(generator.random(blocks) < 0.5, 1, -1)
    growing = PairedBlocks()
    for number, (row, order) in enumerate(zip(logs, orders, strict=True), start=1):
        first, second = np.exp(row)
        baseline, candidate = (first, second) if order == 1 else (second, first)
        growing.append(baseline, candidate * math.exp(cell.effect), order)
        if number != latest_analysis_block(number):
            continue
        verdict = judge([growing], min_effect=MIN_EFFECT, alpha=ALPHA)[0].verdict
        if verdict not in ("undecided", "equivalent"):
            return verdict, number
    return "undecided", blocks


def main(words: Sequence[str]) -> int:
    """Print the shares of false differences, and the blocks that a planted effect takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=400, help="of each cell")
    parser.add_argument("--blocks", type=int, default=200, help="of each campaign, at most")
    asked = parser.parse_args(words)
    limit = ALPHA + 3.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / asked.campaigns)
    print(f"{asked.campaigns} campaigns a cell, at most {asked.blocks} blocks each")
    print(
        f"{'CPU':>6}{'host':>7}{'own':>7}{'tails':>7}"
        f"{'false, %':>10}{f'{PLANTED:g} % found, %':>16}{'blocks':>8}"
        f"{'in turns, %':>13}{'blocks':>8}"
    )
    failures = 0
    for heavy_tails in (False, True):
        for slower_cpu in SLOWER_CPUS:
            for shared in SHARED_NOISES:
                for own in OWN_NOISES:
                    failures += _print_row(asked, limit, (slower_cpu, shared, own), heavy_tails)
    return 1 if failures else 0


def _print_row(
    asked: argparse.Namespace,
    limit: float,
    noises: tuple[float, float, float],
    heavy_tails: bool,  # noqa: FBT001
) -> bool:
    """Print a row; return whether its share of false differences is above the limit."""
    seed = [int(1e4 * value) for value in (*noises, float(heavy_tails))]
    generator = np.random.default_rng(seed)

    def shares(effect: float, *, at_once: bool) -> tuple[float, float]:
        cell = Cell(*noises, effect, at_once, heavy_tails)
        ends = [campaign(generator, cell, asked.blocks) for _ in range(asked.campaigns)]
        wanted = ("slower",) if effect else ("slower", "faster", "mixed")
        found = sum(verdict in wanted for verdict, _ in ends) / asked.campaigns
        return found, float(np.median([blocks for _, blocks in ends]))

    false, _ = shares(0.0, at_once=True)
    effect = math.log1p(PLANTED / 100)
    duet, turns = shares(effect, at_once=True), shares(effect, at_once=False)
    slower_cpu, shared, own = (100 * value for value in noises)
    print(
        f"{slower_cpu:>5g}%{shared:>6g}%{own:>6g}%{'heavy' if heavy_tails else 'normal':>7}"
        f"{100 * false:>10.1f}{100 * duet[0]:>16.1f}{duet[1]:>8g}"
        f"{100 * turns[0]:>13.1f}{turns[1]:>8g}",
        flush=True,
    )
    return false > limit


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
