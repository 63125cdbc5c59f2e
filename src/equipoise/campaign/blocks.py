"""From recorded trials to the arrays that statistics take.

This module alone decides which trials are analysed. Its rules never look at a measured time.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Contrast, Plan
from equipoise.model.record import (
    CUT_BLOCK,
    UNAVAILABLE,
    WARMUP_RUN,
    WASHOUT_RUN,
    Accounting,
    Draw,
    RunRecord,
    Sample,
    Trial,
)
from equipoise.stats.sequence import BASELINE_FIRST, CANDIDATE_FIRST, PairedBlocks

TIMED_OUT = math.inf
"""Cost of a trial that timed out, or could not do its work here: slower than every other
(rule 1)."""


ACCOUNTABLE = (frozenset(Accounting.__struct_fields__) | {"cpu_s"}) - {
    "counters",
    "unknown",
}
"""Metrics that the kernel accounts for in every trial."""

QUANTA = {
    "wall_s": 1e-9,
    "user_s": 0.004,
    "sys_s": 0.004,
    "cpu_s": 2e-6,
    "max_rss_bytes": 4096.0,
    "minor_faults": 1.0,
    "major_faults": 1.0,
    "voluntary_switches": 1.0,
    "involuntary_switches": 1.0,
}
"""Resolution of a metric, in its unit. The launcher's clock counts nanoseconds; the kernel
splits CPU time between user and system by its ticks (systems.md §1), and rounds each of the two
down to a microsecond: their sum is exact but for that (cputime_adjust in its sources)."""


_ACCOUNTING = attrgetter("accounting")
_CONDITION = attrgetter("condition")


def complete_blocks(draws: Iterable[Draw], trials: Iterable[Trial]) -> dict[int, tuple[Trial, ...]]:
    """Return the measured blocks in which every drawn condition finished, by number.

    Blocks and their trials stand in the order in which they ran, as in the record. A block that
    an interruption cut is left out as a whole and never completed later: completing it would let
    the user who interrupts choose (verdict.md §1).
    """
    by_block: dict[int, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.phase == "measured" and not trial.washout:
            by_block[trial.block].append(trial)
    sizes = {draw.block: len(draw.order) for draw in draws if draw.phase == "measured"}
    return {
        number: tuple(block)
        for number, block in by_block.items()
        if len(block) == sizes.get(number)
    }


def left_out_because(trial: Trial, complete: dict[int, tuple[Trial, ...]]) -> str | None:
    """Return why a trial is not analysed; ``None`` if it is."""
    if trial.phase == "warmup":
        return WARMUP_RUN
    if trial.washout:
        return WASHOUT_RUN
    return None if trial.block in complete else CUT_BLOCK


def cut_blocks(record: RunRecord, complete: dict[int, tuple[Trial, ...]]) -> int:
    """Return the number of measured blocks that were drawn but never completed."""
    drawn = {draw.block for draw in record.draws if draw.phase == "measured"}
    return len(drawn) - len(complete)


def is_unavailable(trial: Trial) -> bool:
    """Return whether the machine could not do the trial's work: that it ended early is no speed."""
    return trial.failure is not None and trial.failure.startswith(UNAVAILABLE)


def cost(trial: Trial, metric: str) -> float | None:
    """Return the cost of a trial in one metric; ``None`` if it is unknown."""
    return cost_in(metric)(trial)


def cost_in(metric: str) -> Callable[[Trial], float | None]:
    """Return the function that returns the cost of a trial in one metric.

    A value that the workload reported comes before the accounting of the same name.
    """
    return _reader(metric, as_cost)


def _reader(metric: str, of_sample: Callable[[Sample], float]) -> Callable[[Trial], float | None]:
    accounted: Callable[[Accounting], float | None] | None = (
        attrgetter(metric) if metric in ACCOUNTABLE else None
    )

    def read(trial: Trial) -> float | None:
        if trial.timed_out or is_unavailable(trial):
            return TIMED_OUT
        for sample in reversed(trial.samples):
            if sample.metric == metric and sample.iteration is None:
                return of_sample(sample)
        if accounted is not None:
            return accounted(trial.accounting)
        return trial.accounting.counters.get(metric)

    return read


def known_costs(trials: Sequence[Trial], metrics: Iterable[str]) -> dict[str, NDArray[np.float64]]:
    """Return the costs of trials in each metric, shape (n,), in their order; NaN where unknown."""
    return _known(trials, metrics, as_cost)


def known_values(trials: Sequence[Trial], metrics: Iterable[str]) -> dict[str, NDArray[np.float64]]:
    """Return reported values of trials in each metric, shape (n,), in their order; else NaN.

    Only a comparison uses the inverse of a metric of which more is better.
    """
    return _known(trials, metrics, attrgetter("value"))


def _known(
    trials: Sequence[Trial], metrics: Iterable[str], of_sample: Callable[[Sample], float]
) -> dict[str, NDArray[np.float64]]:
    named = list(metrics)
    ordinary = not any(trial.samples or trial.failure is not None for trial in trials)
    if not ordinary or not ACCOUNTABLE.issuperset(named):
        return {
            metric: np.array(list(map(_reader(metric, of_sample), trials)), dtype=np.float64)
            for metric in named
        }
    # In one pass: there may be very many trials.
    rows = list(map(attrgetter(*named), map(_ACCOUNTING, trials)))
    table = np.array(rows, dtype=np.float64).reshape(len(trials), len(named))
    return dict(zip(named, np.ascontiguousarray(table.T), strict=True))


def as_cost(sample: Sample) -> float:
    """Return a reported value as a cost: the inverse of a metric of which more is better."""
    if sample.better == "lower":
        return sample.value
    return 1.0 / sample.value if sample.value else TIMED_OUT


class BlockRead(Struct, frozen=True):
    """Cost and place of each condition in one block, on one metric."""

    costs: dict[int, float]
    places: dict[int, int]

    def order(self, first: int, second: int) -> int:
        """Return 1 if the first condition ran before the second, else -1."""
        before = self.places[first] < self.places[second]
        return BASELINE_FIRST if before else CANDIDATE_FIRST


def read_block(block: tuple[Trial, ...], plan: Plan, metric: str | None = None) -> BlockRead:
    """Return the costs of one complete block on a metric, by default the primary one.

    Raises
    ------
    UnusableInput
        A trial does not know the metric.
    """
    metric = metric or plan.judgement.primary_metric
    read = cost_in(metric)
    costs: dict[int, float] = {}
    for trial in block:
        known = read(trial)
        if known is not None:
            costs[trial.condition] = known
        elif _must_know(plan, trial):
            raise _unknown(trial, metric)
    return BlockRead(costs, {trial.condition: place for place, trial in enumerate(block)})


def add_block(pairs: PairedBlocks, block: BlockRead, contrast: Contrast, plan: Plan) -> None:
    """Add one complete block to the pairs of a contrast, if both of its conditions ran in it."""
    baseline, candidate = contrast.baseline, contrast.candidate
    if baseline not in block.costs or candidate not in block.costs:
        return
    costs = block.costs
    if plan.control is None:
        pairs.append(costs[baseline], costs[candidate], block.order(baseline, candidate))
    else:
        pairs.append_pooled(
            costs[baseline],
            costs[plan.control],
            costs[candidate],
            block.order(baseline, candidate),
            block.order(plan.control, candidate),
        )


class BlockCosts(Struct, frozen=True):
    """Place and cost of each condition in each complete block.

    Shapes: ``numbers`` (n,), ``places`` and ``costs`` (n, k), ``ends`` (n, 2), for n blocks of up
    to k conditions.
    """

    numbers: NDArray[np.int64]
    places: NDArray[np.int64]
    """-1 for a condition that was left out of the block."""
    costs: NDArray[np.float64]
    """NaN for a condition that was left out of the block, or failed in it without a cost."""
    ends: NDArray[np.int64]
    """Conditions that ran first and last."""

    def paired(self, contrast: Contrast, quantum: float | None, engine: int) -> PairedBlocks:
        """Return a candidate paired with its baseline, in the blocks in which both ran."""
        both = self.both(contrast)
        return PairedBlocks(
            self.costs[both, contrast.baseline],
            self.costs[both, contrast.candidate],
            self._orders(both, contrast.baseline, contrast.candidate),
            quantum=quantum,
            engine=engine,
        )

    def pooled(
        self, contrast: Contrast, control: int, quantum: float | None, engine: int
    ) -> PairedBlocks:
        """Return a candidate paired with its baseline and with the baseline's second run."""
        both = self.both(contrast)
        return PairedBlocks.pooled(
            self.costs[both, contrast.baseline],
            self.costs[both, control],
            self.costs[both, contrast.candidate],
            self._orders(both, contrast.baseline, contrast.candidate),
            self._orders(both, control, contrast.candidate),
            quantum=quantum,
            engine=engine,
        )

    def both(self, contrast: Contrast) -> NDArray[np.bool_]:
        """Return whether both conditions of a contrast ran in each block, shape (n,)."""
        ran = (self.places[:, contrast.baseline] >= 0) & (self.places[:, contrast.candidate] >= 0)
        return np.asarray(ran)

    def _orders(self, blocks: NDArray[np.bool_], first: int, second: int) -> NDArray[np.int8]:
        """Return 1 where the first condition ran before the second, else -1."""
        before = self.places[blocks, first] < self.places[blocks, second]
        return np.where(before, BASELINE_FIRST, CANDIDATE_FIRST).astype(np.int8)

    @property
    def end_costs(self) -> NDArray[np.float64]:
        """Costs of the first and the last trial of each block, shape (n, 2)."""
        return np.take_along_axis(self.costs, self.ends, axis=1)

    @property
    def follows(self) -> NDArray[np.bool_]:
        """Whether each block ran right after the block before it in these arrays, shape (n,)."""
        return np.concatenate([[False], np.diff(self.numbers) == 1])


def block_costs(plan: Plan, blocks: Mapping[int, tuple[Trial, ...]], metric: str) -> BlockCosts:
    """Return the cost of every trial of the complete blocks in one metric.

    Raises
    ------
    UnusableInput
        A trial does not know the metric.
    """
    trials = list(itertools.chain.from_iterable(blocks.values()))
    known = known_costs(trials, [metric])[metric]
    for place in np.flatnonzero(np.isnan(known)):
        if _must_know(plan, trials[place]):
            raise _unknown(trials[place], metric)
    return costs_placed(plan, blocks, known)


def costs_placed(
    plan: Plan, blocks: Mapping[int, tuple[Trial, ...]], known: NDArray[np.float64]
) -> BlockCosts:
    """Return the blocks with the cost of every trial in its place.

    Parameters
    ----------
    known
        Costs of the trials of all blocks, one block after the other, shape (t,).
    """
    trials = list(itertools.chain.from_iterable(blocks.values()))
    sizes = np.fromiter(map(len, blocks.values()), np.int64, len(blocks))
    rows = np.repeat(np.arange(len(blocks)), sizes)
    columns = np.fromiter(map(_CONDITION, trials), np.int64, len(trials))
    shape = (len(blocks), len(plan.conditions))
    places, costs = np.full(shape, -1, dtype=np.int64), np.full(shape, np.nan)
    begins = np.repeat(np.cumsum(sizes) - sizes, sizes)
    places[rows, columns] = np.arange(len(trials)) - begins
    costs[rows, columns] = known
    ends = [(block[0].condition, block[-1].condition) for block in blocks.values()]
    return BlockCosts(
        numbers=np.array(list(blocks), dtype=np.int64),
        places=places,
        costs=costs,
        ends=np.array(ends, dtype=np.int64).reshape(-1, 2),
    )


def _must_know(plan: Plan, trial: Trial) -> bool:
    """Return whether the result needs this trial; an intervention may end without an outcome."""
    return plan.explains is None or trial.condition in {
        index for contrast in plan.contrasts for index in (contrast.baseline, contrast.candidate)
    }


def _unknown(trial: Trial, metric: str) -> UnusableInput:
    reason = trial.accounting.unknown.get(metric, "the workload did not report it")
    return UnusableInput(
        f"a trial of block {trial.block} has no {metric}: {reason}",
        hint="compare a metric that every trial has, such as wall_s",
    )
