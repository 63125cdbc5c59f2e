"""From recorded trials to the arrays that statistics take.

Which trials count is decided here and only here, by rules that never look at a time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.record import RunRecord
from equipoise.model.trial import CUT_BLOCK, WARMUP_RUN, WASHOUT_RUN, Accounting, Trial
from equipoise.stats.sequence import BASELINE_FIRST, CANDIDATE_FIRST, PairedBlocks

TIMED_OUT = math.inf
"""The cost of a trial that timed out: slower than every other (rule 1)."""


_ACCOUNTED = frozenset(field.name for field in fields(Accounting))

QUANTA = {"wall_s": 1e-9}
"""The resolution of a metric, in its unit: the launcher's clock counts nanoseconds."""


def complete_blocks(plan: Plan, trials: Iterable[Trial]) -> dict[int, tuple[Trial, ...]]:
    """The measured blocks in which every condition finished, by number.

    Blocks and their trials stand in the order in which they ran, as in the record.

    A block that an interruption cut is left out whole and never completed later: completing
    it would let whoever interrupts choose (verdict.md §1).
    """
    by_block: dict[int, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.phase == "measured" and not trial.washout:
            by_block[trial.block].append(trial)
    size = len(plan.conditions)
    return {number: tuple(block) for number, block in by_block.items() if len(block) == size}


def left_out_because(trial: Trial, complete: dict[int, tuple[Trial, ...]]) -> str | None:
    """Why a trial is not analysed; ``None`` if it is."""
    if trial.phase == "warmup":
        return WARMUP_RUN
    if trial.washout:
        return WASHOUT_RUN
    return None if trial.block in complete else CUT_BLOCK


def cut_blocks(record: RunRecord, complete: dict[int, tuple[Trial, ...]]) -> int:
    """How many measured blocks were drawn but never completed."""
    drawn = {draw.block for draw in record.draws if draw.phase == "measured"}
    return len(drawn) - len(complete)


def cost(trial: Trial, metric: str) -> float | None:
    """What a trial cost in one metric; ``None`` if that is not known."""
    return cost_in(metric)(trial)


def cost_in(metric: str) -> Callable[[Trial], float | None]:
    """Give the function that tells what a trial cost in one metric.

    What the workload reported itself comes before what was accounted under the same name.
    """
    accounted = attrgetter(metric) if metric in _ACCOUNTED else None

    def read(trial: Trial) -> float | None:
        if trial.timed_out:
            return TIMED_OUT
        for sample in reversed(trial.samples):
            if sample.metric == metric and sample.iteration is None:
                return sample.value
        return None if accounted is None else accounted(trial.accounting)

    return read


def pair_in(
    block: tuple[Trial, ...], candidate: int, metric: str, baseline: int = 0
) -> tuple[float, float, int]:
    """Cost of the baseline, cost of the candidate, and the order of the two in one block.

    Raises
    ------
    UnusableInput
        A trial of either does not know the metric.
    """
    first = next(trial for trial in block if trial.condition == baseline)
    second = next(trial for trial in block if trial.condition == candidate)
    read = cost_in(metric)
    costs = (read(first), read(second))
    if costs[0] is None or costs[1] is None:
        raise _unknown(first if costs[0] is None else second, metric)
    order = BASELINE_FIRST if first.position < second.position else CANDIDATE_FIRST
    return costs[0], costs[1], order


@dataclass(frozen=True, slots=True)
class BlockCosts:
    """Which condition ran at each place of each complete block, and what it cost there.

    Shapes: ``numbers`` (n,), ``orders`` and ``costs`` (n, k) for n blocks of k conditions.
    """

    numbers: NDArray[np.int64]
    orders: NDArray[np.int64]
    costs: NDArray[np.float64]

    def paired(self, candidate: int, quantum: float, baseline: int = 0) -> PairedBlocks:
        """Pair a candidate with the baseline, block by block."""
        at_baseline, at_candidate = self.orders == baseline, self.orders == candidate
        first = at_baseline.argmax(axis=1) < at_candidate.argmax(axis=1)
        return PairedBlocks(
            self.costs[at_baseline],
            self.costs[at_candidate],
            np.where(first, BASELINE_FIRST, CANDIDATE_FIRST),
            quantum=quantum,
        )

    @property
    def follows(self) -> NDArray[np.bool_]:
        """Shape (n,): whether a block ran right after the one before it in these arrays."""
        return np.concatenate([[False], np.diff(self.numbers) == 1])


def block_costs(blocks: Mapping[int, tuple[Trial, ...]], metric: str) -> BlockCosts:
    """Gather what every trial of the complete blocks cost in one metric.

    Raises
    ------
    UnusableInput
        A trial does not know the metric.
    """
    read = cost_in(metric)
    trials = [trial for block in blocks.values() for trial in block]
    costs = [read(trial) for trial in trials]
    if None in costs:
        raise _unknown(trials[costs.index(None)], metric)
    shape = (len(blocks), -1)
    return BlockCosts(
        numbers=np.array(list(blocks), dtype=np.int64),
        orders=np.array([trial.condition for trial in trials], dtype=np.int64).reshape(shape),
        costs=np.array(costs, dtype=np.float64).reshape(shape),
    )


def _unknown(trial: Trial, metric: str) -> UnusableInput:
    reason = trial.accounting.unknown.get(metric, "the workload did not report it")
    return UnusableInput(
        f"a trial of block {trial.block} has no {metric}: {reason}",
        mend="compare a metric that every trial has, such as wall_s",
    )
