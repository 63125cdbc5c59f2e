"""How often a gate over several runners is red, with known truth.

``python -m benchmarks.joins.simulate``. Each join has three slices of unlike runners, with noise of
different strength and a coin of their own. Every slice ends by its own rule, asked after every
second block. The machine that runs this is no matter.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import zlib
from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from equipoise.kinds.gate.joined_verdict import JoinedDecision, judge_joined
from equipoise.kinds.gate.verdict import judge_gate, judge_slice
from equipoise.stats.sequence import PairedBlocks
from packages.equipoise.tests.stats.simulated import (
    NOISES,
    FloatArray,
    Noise,
    costs_and_orders,
    student,
    white,
)

ALPHA, MIN_EFFECT, PLANTED = 0.05, 2.0, 5.0
FIRST_BLOCKS = 6
"""No outcome is possible before."""
SPREADS = (0.5, 1.0, 2.5)
"""How noisy the runners are, over the first."""
MIXED = (white(0.02), NOISES["spikes"], student(0.02, 2.0))


def louder(noise: Noise, factor: float) -> Noise:
    """Return a noise whose log times differ by so many times as much."""

    def scaled(generator: np.random.Generator, trials: int) -> FloatArray:
        times: FloatArray = factor * noise(generator, trials)
        return times

    return scaled


RUNNERS: dict[str, tuple[Noise, ...]] = {
    name: tuple(louder(noise, spread) for spread in SPREADS)
    for name, noise in NOISES.items()
    # Scaled, their order would no longer be an effect that the engine can learn in so few blocks.
    if name not in ("random walk", "drift of 1 % per run")
} | {"one shape each": MIXED}


class Truth(Struct, frozen=True):
    """The true change of each benchmark on each runner, in percent."""

    name: str
    changes: tuple[tuple[float, ...], ...]
    spread: float = 0.0
    """Log standard deviation of a runner's own effect, cut off at three quarters of the margin."""

    @property
    def is_slow(self) -> tuple[bool, ...]:
        """Whether each benchmark is slower by more than the margin on a runner."""
        return tuple(max(changes) > MIN_EFFECT for changes in self.changes)


SAME, ALL, ONE = (0.0,) * 3, (PLANTED,) * 3, (0.0, PLANTED, 0.0)
TRUTHS = (
    Truth("A/A, one benchmark", (SAME,)),
    Truth("A/A, one benchmark, runners differ by 0.5 %", (SAME,), 0.005),
    Truth("exactly the margin everywhere", ((MIN_EFFECT,) * 3,)),
    Truth("5 % on all runners", (ALL,)),
    Truth("5 % on one runner", (ONE,)),
    Truth("A/A, four benchmarks, runners differ by 0.5 %", (SAME,) * 4, 0.005),
    Truth("5 % on all runners, one of four benchmarks", (ALL, SAME, SAME, SAME)),
)


class Outcome(Struct, frozen=True):
    """One join, beside its truth."""

    red: int
    """Benchmarks that are slower by the join."""
    found: int
    """Slower benchmarks that are really slower, on the runners and the mean that are named."""
    wrong: int
    """Slower benchmarks with a false claim: none is slower, or one that is named is not."""
    red_slices: int
    """Slices that alone would have failed a benchmark."""
    blocks: float
    """Mean blocks of a benchmark on a runner."""
    passes: bool
    """Whether every benchmark passes."""


def joined(truth: Truth, noises: Sequence[Noise], max_blocks: int, seed: int) -> Outcome:
    """Return the outcome of one join of three slices."""
    generator = np.random.default_rng([seed, zlib.crc32(truth.name.encode())])
    limit = 0.75 * math.log1p(MIN_EFFECT / 100)
    own = np.clip(generator.normal(0.0, truth.spread, len(noises)), -limit, limit)
    slices = [
        slice_of(
            noise,
            generator,
            [math.log1p(changes[index] / 100) + own[index] for changes in truth.changes],
            max_blocks,
        )
        for index, noise in enumerate(noises)
    ]
    benchmarks = list(zip(*slices, strict=True))
    decisions = judge_joined(benchmarks, min_effect=MIN_EFFECT, alpha=ALPHA)
    margin = math.log1p(MIN_EFFECT / 100)
    slower = [
        (decision, np.array([math.log1p(change / 100) for change in changes]) + own)
        for decision, changes in zip(decisions, truth.changes, strict=True)
        if decision.outcome == "slower"
    ]
    wrong = sum(not is_true(decision, thetas, margin) for decision, thetas in slower)
    red_slices = sum(
        any(
            decision.outcome == "slower"
            for decision in judge_gate(blocks, min_effect=MIN_EFFECT, alpha=ALPHA)
        )
        for blocks in slices
    )
    return Outcome(
        red=len(slower),
        found=len(slower) - wrong,
        wrong=wrong,
        red_slices=red_slices,
        blocks=float(np.mean([len(blocks) for blocks in itertools.chain(*slices)])),
        passes=all(decision.outcome == "passes" for decision in decisions),
    )


def is_true(decision: JoinedDecision, thetas: FloatArray, margin: float) -> bool:
    """Return whether nothing that a red benchmark claims is false."""
    named = [
        theta
        for theta, outcome in zip(thetas, decision.runner_outcomes, strict=True)
        if outcome == "slower"
    ]
    if decision.mean_outcome == "slower":
        named.append(float(thetas.mean()))
    return float(thetas.max()) > margin + 1e-12 and all(theta > margin for theta in named)


def slice_of(
    noise: Noise, generator: np.random.Generator, effects: Sequence[float], max_blocks: int
) -> list[PairedBlocks]:
    """Return the blocks of every benchmark of one slice, at its end."""
    rows = [
        list(zip(*costs_and_orders(noise, generator, max_blocks, effect), strict=True))
        for effect in effects
    ]
    growing = [PairedBlocks() for _ in effects]
    is_open = [True] * len(effects)
    for number in range(max_blocks):
        for index, blocks in enumerate(growing):
            if is_open[index]:
                blocks.append(*rows[index][number])
        if number + 1 >= FIRST_BLOCKS and number % 2:
            decisions = judge_slice(growing, min_effect=MIN_EFFECT, alpha=ALPHA)
            is_open = [decision.outcome == "undecided" for decision in decisions]
            if not any(is_open):
                break
    return growing


def main(words: Sequence[str]) -> int:
    """Print a line for each truth and noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--joins", type=int, default=200, help="of each truth and noise")
    parser.add_argument("--blocks", type=int, default=200, help="at most, of a benchmark")
    parser.add_argument("--truths", default="", help="only those whose name contains this")
    parser.add_argument("--noises", default="", help="only those whose name contains this")
    asked = parser.parse_args(words)
    print(f"{asked.joins} joins of three runners a line; ± is two Monte Carlo standard errors")
    columns = ("red, %", "±", "false, %", "a slice red, %", "passes, %", "blocks")
    for truth in TRUTHS:
        if asked.truths not in truth.name:
            continue
        print(f"\n{truth.name}\n{'noise':<22}" + "".join(f"{column:>16}" for column in columns))
        for name, noises in RUNNERS.items():
            if asked.noises not in name:
                continue
            outcomes = [joined(truth, noises, asked.blocks, seed) for seed in range(asked.joins)]
            share = shares(outcomes)
            red = share(lambda outcome: outcome.red > 0)
            cells = (
                100 * red,
                200 * math.sqrt(red * (1 - red) / len(outcomes)),
                100 * share(lambda outcome: outcome.wrong > 0),
                100 * share(lambda outcome: outcome.red_slices > 0),
                100 * share(lambda outcome: outcome.passes),
                float(np.mean([outcome.blocks for outcome in outcomes])),
            )
            print(f"{name:<22}" + "".join(f"{cell:>16.1f}" for cell in cells), flush=True)
    return 0


def shares(outcomes: Sequence[Outcome]) -> Callable[[Callable[[Outcome], bool]], float]:
    """Return a function from a condition to the share of the joins that meet it."""
    return lambda condition: sum(map(condition, outcomes)) / len(outcomes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
