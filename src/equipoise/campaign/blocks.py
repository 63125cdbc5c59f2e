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
from equipoise.model.trial import CUT_BLOCK, WARMUP_RUN, WASHOUT_RUN, Accounting, Sample, Trial
from equipoise.stats.sequence import BASELINE_FIRST, CANDIDATE_FIRST, PairedBlocks

TIMED_OUT = math.inf
"""The cost of a trial that timed out: slower than every other (rule 1)."""


_ACCOUNTED = frozenset(field.name for field in fields(Accounting)) - {"counters", "unknown"}

BASELINE = 0

QUANTA = {
    "wall_s": 1e-9,
    "user_s": 0.004,
    "sys_s": 0.004,
    "max_rss_bytes": 4096.0,
    "minor_faults": 1.0,
    "major_faults": 1.0,
    "voluntary_switches": 1.0,
    "involuntary_switches": 1.0,
}
"""The resolution of a metric, in its unit. The launcher's clock counts nanoseconds; the kernel
splits CPU time between user and system by its ticks (systems.md §1)."""


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
    accounted: Callable[[Accounting], float | None] | None = (
        attrgetter(metric) if metric in _ACCOUNTED else None
    )

    def read(trial: Trial) -> float | None:
        if trial.timed_out:
            return TIMED_OUT
        for sample in reversed(trial.samples):
            if sample.metric == metric and sample.iteration is None:
                return _as_cost(sample)
        if accounted is not None:
            return accounted(trial.accounting)
        return trial.accounting.counters.get(metric)

    return read


def _as_cost(sample: Sample) -> float:
    """Less of a cost is better: what is better when higher counts as its inverse."""
    if sample.better == "lower":
        return sample.value
    return 1.0 / sample.value if sample.value else TIMED_OUT


def add_block(pairs: PairedBlocks, block: tuple[Trial, ...], candidate: int, plan: Plan) -> None:
    """Add one complete block to the pairs of a candidate on the primary metric.

    Raises
    ------
    UnusableInput
        A trial does not know the metric.
    """
    metric = plan.judgement.primary_metric
    read = cost_in(metric)
    costs: dict[int, float] = {}
    for trial in block:
        found = read(trial)
        if found is None:
            raise _unknown(trial, metric)
        costs[trial.condition] = found
    places = {trial.condition: place for place, trial in enumerate(block)}

    def order(first: int) -> int:
        return BASELINE_FIRST if places[first] < places[candidate] else CANDIDATE_FIRST

    if plan.control is None:
        pairs.append(costs[BASELINE], costs[candidate], order(BASELINE))
    else:
        pairs.append_pooled(
            costs[BASELINE],
            costs[plan.control],
            costs[candidate],
            order(BASELINE),
            order(plan.control),
        )


@dataclass(frozen=True, slots=True)
class BlockCosts:
    """Which condition ran at each place of each complete block, and what it cost there.

    Shapes: ``numbers`` (n,), ``orders`` and ``costs`` (n, k) for n blocks of k conditions.
    """

    numbers: NDArray[np.int64]
    orders: NDArray[np.int64]
    costs: NDArray[np.float64]

    def paired(self, candidate: int, quantum: float) -> PairedBlocks:
        """Pair a candidate with the baseline, block by block."""
        return PairedBlocks(
            self.of(BASELINE),
            self.of(candidate),
            self._orders(BASELINE, candidate),
            quantum=quantum,
        )

    def pooled(self, candidate: int, control: int, quantum: float) -> PairedBlocks:
        """Pair a candidate with the baseline and with its second run, block by block."""
        return PairedBlocks.pooled(
            self.of(BASELINE),
            self.of(control),
            self.of(candidate),
            self._orders(BASELINE, candidate),
            self._orders(control, candidate),
            quantum=quantum,
        )

    def of(self, condition: int) -> NDArray[np.float64]:
        """Shape (n,): what one condition cost in each block."""
        chosen: NDArray[np.float64] = self.costs[self.orders == condition]
        return chosen

    def _orders(self, first: int, second: int) -> NDArray[np.int8]:
        """Shape (n,): 1 where the one ran before the other, else -1."""
        places = [(self.orders == one).argmax(axis=1) for one in (first, second)]
        before = np.where(places[0] < places[1], BASELINE_FIRST, CANDIDATE_FIRST)
        return before.astype(np.int8)

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
