"""One simulated campaign as Equipoise would run, look at and judge it.

The coin, the bets and the verdict are Equipoise's own code.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.validity.machine import FloatArray, IntArray, Machine, measure
from equipoise.design.coin import draw_block
from equipoise.model.plan import Condition, Measure, Plan, Stopping
from equipoise.model.plan import Judgement as PlannedJudgement
from equipoise.model.record import Phase
from equipoise.model.result import Verdict
from equipoise.stats.carry_over import carry_over, should_warn
from equipoise.stats.resolution import Resolution
from equipoise.stats.sequence import (
    BASELINE_FIRST,
    CANDIDATE_FIRST,
    PairedBlocks,
    probability_slower,
)
from equipoise.stats.verdict import judge, margin_of

ALPHA = 0.05
BLOCKS = 200
WARMUP = 1

CALLS = ("faster", "slower", "mixed")
"""Verdicts that tell the two conditions apart."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The first verdict, looked for after every block."""

    verdict: Verdict
    blocks: int


@dataclass(frozen=True, slots=True)
class Blocks:
    """The measured blocks of one campaign."""

    orders: IntArray
    """Shape (n, 2): the condition at each place."""
    costs: FloatArray
    """Shape (n, 2): what it cost there."""
    quantum: float | None

    @property
    def signs(self) -> IntArray:
        """Shape (n,): 1 where the baseline ran first, -1 where the candidate did."""
        return np.where(self.orders[:, 0] == 0, BASELINE_FIRST, CANDIDATE_FIRST)

    def of(self, condition: int) -> FloatArray:
        """Shape (n,): the costs of one condition."""
        costs: FloatArray = self.costs[self.orders == condition]
        return costs

    def paired(self, count: int | None = None) -> PairedBlocks:
        """The first ``count`` blocks, as the engine takes them; all by default."""
        return PairedBlocks(
            self.of(0)[:count],
            self.of(1)[:count],
            self.signs[:count].tolist(),
            resolution=Resolution(self.quantum),
        )


def draw_orders(seed: int) -> IntArray:
    """What the coin says for the warm-up and for every block; shape (WARMUP + BLOCKS, 2)."""
    plan = Plan(
        study="compare",
        conditions=(Condition("baseline", ("a",)), Condition("candidate", ("b",))),
        measure=Measure(working_folder="/", warmup=WARMUP, vary_environment_size=False),
        stopping=Stopping(blocks=BLOCKS, min_seconds=0.0),
        judgement=PlannedJudgement(alpha=ALPHA),
        seed=seed,
    )
    phases: list[tuple[Phase, int]] = [("warmup", WARMUP), ("measured", BLOCKS)]
    return np.array(
        [
            draw_block(plan, phase, block).order
            for phase, count in phases
            for block in range(1, count + 1)
        ]
    )


def run(machine: Machine, orders: IntArray, effect: float) -> Blocks:
    """Run the campaign; the warm-up is run and left out."""
    times = measure(machine, orders.ravel(), effect)
    return Blocks(orders[WARMUP:], times.reshape(-1, 2)[WARMUP:], machine.quantum_told)


def first_verdict(blocks: Blocks, whole: PairedBlocks, min_effect: float) -> Stop:
    """Judge after every block until there is a verdict.

    A verdict needs an interval that leaves out 0, or one that leaves out both ends of
    ±min_effect. Blocks before any of that was ever excluded are undecided without a look.

    Parameters
    ----------
    whole
        All blocks, as paired by ``blocks``.
    min_effect
        In percent.
    """
    engine, rules = whole.engine, whole.rules
    margin = margin_of(min_effect)
    needed = [engine.blocks_to_exclude(0.0, ALPHA)]
    if margin > 0:
        level = rules.equivalence_levels * ALPHA
        ends = [engine.blocks_to_exclude(end, level) for end in (-margin, margin)]
        if None not in ends and len(whole) >= rules.equivalence_blocks:
            needed.append(max(rules.equivalence_blocks, *filter(None, ends)))
    possible = [count for count in needed if count is not None]
    if not possible:
        return Stop("undecided", len(whole))
    looked_at = blocks.paired(min(possible))
    signs = blocks.signs
    while True:
        verdict = judge([looked_at], min_effect=min_effect, alpha=ALPHA)[0].verdict
        count = len(looked_at)
        if verdict != "undecided" or count == len(whole):
            return Stop(verdict, count)
        looked_at.append(
            float(whole.baseline[count]), float(whole.candidate[count]), int(signs[count])
        )


def covers_always(whole: PairedBlocks, effect: float) -> bool:
    """Whether no interval, after any block, left out the log ratio ``effect``."""
    return whole.engine.blocks_to_exclude(effect, ALPHA) is None


def covers_probability(whole: PairedBlocks, probability: float) -> bool:
    """Whether the running interval of P(candidate slower) holds it after all blocks.

    The interval never grows again, so it held it after every block.
    """
    low, high = probability_slower(whole, level=ALPHA).interval
    return low is None or high is None or low <= probability <= high


def warns_of_carry_over(blocks: Blocks, count: int, min_effect: float) -> bool:
    """Whether a campaign that stops after ``count`` blocks warns of carry-over."""
    measured = carry_over(blocks.orders[:count], blocks.costs[:count], candidate=1)
    return measured is not None and should_warn(measured, min_effect=min_effect)
