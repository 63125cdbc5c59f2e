"""Turns recorded trials into the arrays that the statistics use.

This module alone decides which trials are analysed. Its rules never look at a measured time. A
cost is the value of a metric, or the inverse of the value if more of the metric is better.
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
    BEFORE_WASHOUTS,
    CUT_BLOCK,
    WARMUP_RUN,
    WASHOUT_RUN,
    Accounting,
    Draw,
    RunRecord,
    Sample,
    Trial,
)
from equipoise.stats.resolution import Resolution
from equipoise.stats.sequence import BASELINE_FIRST, CANDIDATE_FIRST, PairedBlocks

CONTROLLED_CONDITION = 0
"""Index of the condition that a control runs a second time."""
TIMED_OUT = math.inf
"""Cost of a trial that timed out, or that this host cannot run (rule 1)."""
MEASURED_METRICS = frozenset(Accounting.__struct_fields__) - {"counters", "unknown"} | {"cpu_s"}
"""Metrics that Equipoise itself measures in every trial."""
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
"""Quantum (smallest step) of each metric, in its unit.

The launcher's clock counts nanoseconds. The kernel counts memory in pages of 4096 bytes. It splits
CPU time into user and system time by ticks of 4 ms (``cputime_adjust`` in the kernel's sources). It
rounds both times down to a microsecond, so the quantum of their sum is 2 µs.
"""


def complete_blocks(draws: Iterable[Draw], trials: Iterable[Trial]) -> dict[int, tuple[Trial, ...]]:
    """Return the measured blocks in which every drawn condition finished, by number.

    Blocks and their trials are in the order in which they ran. An interrupted block is left out,
    and a resumed campaign does not complete it. Otherwise users could choose results by
    interrupting blocks (docs/methods/interval.md).
    """
    trials_by_block: dict[int, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.phase == "measured" and not trial.washout:
            trials_by_block[trial.block].append(trial)
    drawn_sizes = {draw.block: len(draw.order) for draw in draws if draw.phase == "measured"}
    return {
        number: tuple(block)
        for number, block in trials_by_block.items()
        if len(block) == drawn_sizes.get(number)
    }


def block_seconds(block: Iterable[Trial]) -> float:
    """Return the seconds from the start of the first trial to the end of the last trial.

    Pauses between blocks do not count, so an interruption does not change the sum over blocks.
    """
    starts, ends = [], []
    for trial in block:
        starts.append(trial.started_at)
        ends.append(trial.started_at + (trial.accounting.wall_s or 0.0))
    return max(0.0, max(ends) - min(starts)) if starts else 0.0


def seconds_of_conditions(block: Sequence[Trial]) -> dict[int, float]:
    """Share the seconds of a block among its conditions, in proportion to their wall time."""
    wall_s = {trial.condition: trial.accounting.wall_s or 0.0 for trial in block}
    total_s = sum(wall_s.values())
    scale = block_seconds(block) / total_s if total_s > 0.0 else 0.0
    return {condition: scale * seconds for condition, seconds in wall_s.items()}


def seconds_of_segments(record: RunRecord) -> float:
    """Return the total seconds of all segments; a killed segment ends with its last trial."""
    total_s = 0.0
    for segment, next_segment in itertools.zip_longest(record.segments, record.segments[1:]):
        next_start = math.inf if next_segment is None else next_segment.started_at
        trial_ends = (
            trial.started_at + (trial.accounting.wall_s or 0.0)
            for trial in record.trials
            if segment.started_at <= trial.started_at < next_start
        )
        segment_end = segment.ended_at
        if segment_end is None:
            segment_end = max(trial_ends, default=segment.started_at)
        total_s += max(0.0, segment_end - segment.started_at)
    return total_s


def left_out_because(
    trial: Trial,
    complete: dict[int, tuple[Trial, ...]],
    decisive: dict[int, tuple[Trial, ...]] | None = None,
) -> str | None:
    """Return the reason why a trial is not analysed; ``None`` if it is analysed.

    ``complete`` has all complete blocks. ``decisive`` has the trials that decide the verdicts; by
    default, these are all trials of the complete blocks.
    """
    if trial.phase == "warmup":
        return WARMUP_RUN
    if trial.washout:
        return WASHOUT_RUN
    if trial.block not in complete:
        return CUT_BLOCK
    decisive_trials = (complete if decisive is None else decisive).get(trial.block, ())
    is_decisive = any(other.condition == trial.condition for other in decisive_trials)
    return None if is_decisive else BEFORE_WASHOUTS


def cut_block_count(record: RunRecord, complete: dict[int, tuple[Trial, ...]]) -> int:
    """Return the number of measured blocks that were drawn but never completed."""
    numbers = {draw.block for draw in record.draws if draw.phase == "measured"}
    return len(numbers) - len(complete)


def as_cost(sample: Sample) -> float:
    """Return the cost of a reported value: the inverse if more is better."""
    if sample.better == "lower":
        return sample.value
    return 1.0 / sample.value if sample.value else TIMED_OUT


def cost_function(
    metric: str, value_of: Callable[[Sample], float] = as_cost
) -> Callable[[Trial], float | None]:
    """Return a function from a trial to its cost on one metric; ``None`` is an unknown cost.

    If the workload reports a metric that Equipoise measures as well, the reported value counts.
    """
    measured_value: Callable[[Accounting], float | None] | None = (
        attrgetter(metric) if metric in MEASURED_METRICS else None
    )

    def cost_of(trial: Trial) -> float | None:
        if trial.timed_out or trial.is_unavailable:
            return TIMED_OUT
        for sample in reversed(trial.samples):
            if sample.metric == metric and sample.iteration is None:
                return value_of(sample)
        if measured_value is not None:
            return measured_value(trial.accounting)
        return trial.accounting.counters.get(metric)

    return cost_of


def values_by_metric(
    trials: Sequence[Trial],
    metrics: Iterable[str],
    value_of: Callable[[Sample], float] = attrgetter("value"),
) -> dict[str, NDArray[np.float64]]:
    """Return the values of n trials on each metric, shape (n,); NaN if unknown.

    ``value_of`` converts a reported value: by default it returns the value, and `as_cost` a cost.
    """
    metric_names = list(metrics)
    only_measured = not any(trial.samples or trial.failure is not None for trial in trials)
    if not only_measured or not MEASURED_METRICS.issuperset(metric_names):
        return {
            metric: np.array(list(map(cost_function(metric, value_of), trials)), dtype=np.float64)
            for metric in metric_names
        }
    # In one pass: there may be very many trials.
    rows = list(map(attrgetter(*metric_names), (trial.accounting for trial in trials)))
    table = np.array(rows, dtype=np.float64).reshape(len(trials), len(metric_names))
    return dict(zip(metric_names, np.ascontiguousarray(table.T), strict=True))


def resolution_of_trials(trials: Iterable[Trial], metric: str) -> Resolution | None:
    """Return the coarsest resolution that trials report for a metric, or else that in `QUANTA`.

    ``None`` if no trial reports the metric and Equipoise does not measure it.
    """
    samples = [
        sample
        for trial in trials
        for sample in trial.samples
        if sample.metric == metric and sample.iteration is None
    ]
    if not samples:
        return Resolution(QUANTA[metric]) if metric in QUANTA else None
    resolutions = [sample.resolution for sample in samples if sample.resolution is not None]
    quantum = max(resolutions, default=QUANTA.get(metric))
    return Resolution(quantum, any(sample.better == "higher" for sample in samples))


def resolution_of(blocks: Mapping[int, tuple[Trial, ...]], metric: str) -> Resolution:
    """Return the resolution of a metric from the first block that has one.

    Later blocks do not change the resolution: the tests after each block rely on the same value.
    """
    resolutions = (resolution_of_trials(block, metric) for block in blocks.values())
    return next(filter(None, resolutions), Resolution(None))


class CostsOfBlock(Struct, frozen=True):
    """Costs, positions and covariates of a single block, by index of the condition."""

    costs: dict[int, float]
    positions: dict[int, int]
    resolution: Resolution | None
    """Resolution of the metric; ``None`` if unknown."""
    covariates: dict[int, tuple[float, ...]]
    """Covariates before the trial of each condition; NaN for an unknown covariate."""

    def covariates_of(self, *conditions: int) -> NDArray[np.float64] | None:
        """Return c covariates of k conditions, shape (k, c); ``None`` if there are none."""
        values = np.array([self.covariates[condition] for condition in conditions])
        return values if values.size else None

    def order(self, baseline: int, candidate: int) -> int:
        """Return 1 if the baseline ran before the candidate, else -1."""
        is_before = self.positions[baseline] < self.positions[candidate]
        return BASELINE_FIRST if is_before else CANDIDATE_FIRST


def read_block(block: tuple[Trial, ...], plan: Plan, metric: str | None = None) -> CostsOfBlock:
    """Return the costs of a complete block on a metric, by default the primary metric.

    Raise `UnusableInput` if a trial lacks the metric.
    """
    metric = metric or plan.judgement.primary_metric
    adjust_by = plan.adjust_by
    cost_of = cost_function(metric)
    costs: dict[int, float] = {}
    for trial in block:
        cost = cost_of(trial)
        if cost is not None:
            costs[trial.condition] = cost
        else:
            _refuse_unknown_cost(plan, trial, metric)
    return CostsOfBlock(
        costs,
        {trial.condition: position for position, trial in enumerate(block)},
        resolution_of_trials(block, metric),
        {trial.condition: covariates_before(trial, adjust_by) for trial in block},
    )


def covariates_before(trial: Trial, names: Sequence[str]) -> tuple[float, ...]:
    """Return the values of covariates from before a trial; NaN if unknown."""
    values = (trial.covariates.get(name) for name in names)
    return tuple(math.nan if value is None else value for value in values)


def add_block(
    paired_blocks: PairedBlocks, block: CostsOfBlock, contrast: Contrast, plan: Plan
) -> None:
    """Add a complete block to ``paired_blocks`` if both conditions of the contrast ran in it."""
    costs, (baseline, candidate) = block.costs, contrast.pair
    if baseline not in costs or candidate not in costs:
        return
    if plan.control is None or baseline != CONTROLLED_CONDITION:
        paired_blocks.append(
            costs[baseline],
            costs[candidate],
            block.order(baseline, candidate),
            covariates=block.covariates_of(baseline, candidate),
        )
    else:
        paired_blocks.append_pooled(
            costs[baseline],
            costs[plan.control],
            costs[candidate],
            block.order(baseline, candidate),
            block.order(plan.control, candidate),
            covariates=block.covariates_of(baseline, plan.control, candidate),
        )


class CostTable(Struct, frozen=True):
    """Positions and costs of up to k conditions in all n complete blocks of a campaign."""

    numbers: NDArray[np.int64]
    """Numbers of the blocks, shape (n,)."""
    positions: NDArray[np.int64]
    """Position of each condition, shape (n, k); -1 if the block left the condition out."""
    costs: NDArray[np.float64]
    """Cost of each condition, shape (n, k); NaN if the trial is missing or has no cost."""
    end_conditions: NDArray[np.int64]
    """Indices of the first and the last condition of each block, shape (n, 2)."""
    covariates: NDArray[np.float64]
    """Values of c covariates before each trial, shape (n, k, c); NaN if unknown."""

    def paired_blocks(
        self, contrast: Contrast, *, resolution: Resolution, control: int | None = None
    ) -> PairedBlocks:
        """Return the costs of a candidate and its baseline in the blocks in which both ran.

        With a control, half of each bet compares the candidate with the baseline, and half with the
        control (docs/methods/control.md).
        """
        blocks, (baseline, candidate) = self.has_both(contrast), contrast.pair
        orders = self._orders(blocks, baseline, candidate)
        baseline_costs = self.costs[blocks, baseline]
        candidate_costs = self.costs[blocks, candidate]
        if control is None:
            return PairedBlocks(
                baseline_costs,
                candidate_costs,
                orders,
                resolution=resolution,
                covariates=self._covariates(blocks, baseline, candidate),
            )
        control_orders = self._orders(blocks, control, candidate)
        return PairedBlocks.pooled(
            baseline_costs,
            self.costs[blocks, control],
            candidate_costs,
            orders,
            control_orders,
            resolution=resolution,
            covariates=self._covariates(blocks, baseline, control, candidate),
        )

    def _covariates(
        self, blocks: NDArray[np.bool_], *conditions: int
    ) -> NDArray[np.float64] | None:
        values = self.covariates[blocks][:, conditions]
        return None if np.isnan(values).all() else np.ascontiguousarray(values)

    def has_both(self, contrast: Contrast) -> NDArray[np.bool_]:
        """Return whether both conditions of a contrast ran in each block, shape (n,)."""
        return np.asarray((self.positions[:, contrast.pair] >= 0).all(axis=1))

    def _orders(self, blocks: NDArray[np.bool_], baseline: int, candidate: int) -> NDArray[np.int8]:
        """Return 1 for each block in which the baseline ran before the candidate, else -1."""
        is_before = self.positions[blocks, baseline] < self.positions[blocks, candidate]
        return np.where(is_before, BASELINE_FIRST, CANDIDATE_FIRST).astype(np.int8)

    @property
    def end_costs(self) -> NDArray[np.float64]:
        """Costs of the first and the last trial of each block, shape (n, 2)."""
        return np.take_along_axis(self.costs, self.end_conditions, axis=1)

    @property
    def is_consecutive(self) -> NDArray[np.bool_]:
        """Whether no block is missing between each block and the block before it, shape (n,)."""
        return np.concatenate([[False], np.diff(self.numbers) == 1])


def cost_table(plan: Plan, blocks: Mapping[int, tuple[Trial, ...]], metric: str) -> CostTable:
    """Return the cost of every trial of the complete blocks on one metric.

    Raise `UnusableInput` if a trial lacks the metric.
    """
    trials = list(itertools.chain.from_iterable(blocks.values()))
    costs = values_by_metric(trials, [metric], as_cost)[metric]
    for index in np.flatnonzero(np.isnan(costs)):
        _refuse_unknown_cost(plan, trials[index], metric)
    return arrange_costs(plan, blocks, costs)


def arrange_costs(
    plan: Plan, blocks: Mapping[int, tuple[Trial, ...]], trial_costs: NDArray[np.float64]
) -> CostTable:
    """Arrange the costs of the t trials of all ``blocks``, shape (t,), by block and condition."""
    trials = list(itertools.chain.from_iterable(blocks.values()))
    block_sizes = np.fromiter(map(len, blocks.values()), np.int64, len(blocks))
    rows = np.repeat(np.arange(len(blocks)), block_sizes)
    columns = np.fromiter((trial.condition for trial in trials), np.int64, len(trials))
    shape = (len(blocks), len(plan.conditions))
    positions, costs = np.full(shape, -1, dtype=np.int64), np.full(shape, np.nan)
    block_starts = np.repeat(np.cumsum(block_sizes) - block_sizes, block_sizes)
    positions[rows, columns] = np.arange(len(trials)) - block_starts
    costs[rows, columns] = trial_costs
    covariates = np.full((*shape, len(plan.adjust_by)), np.nan)
    if plan.adjust_by:
        covariates[rows, columns] = [covariates_before(trial, plan.adjust_by) for trial in trials]
    end_conditions = [(block[0].condition, block[-1].condition) for block in blocks.values()]
    return CostTable(
        numbers=np.array(list(blocks), dtype=np.int64),
        positions=positions,
        costs=costs,
        end_conditions=np.array(end_conditions, dtype=np.int64).reshape(-1, 2),
        covariates=covariates,
    )


def _refuse_unknown_cost(plan: Plan, trial: Trial, metric: str) -> None:
    """Raise `UnusableInput`; do nothing if no comparison needs the cost of the trial."""
    if not plan.rules.needs_every_cost and all(
        trial.condition not in contrast.pair for contrast in plan.contrasts
    ):
        return
    reason, hint = trial.accounting.unknown.get(metric), "compare another metric, such as wall_s"
    if reason is None:
        reason = "the workload did not report it"
        hint = f"let the workload report {metric} in every trial, or {hint}"
    name = plan.conditions[trial.condition].name
    raise UnusableInput(
        f"the trial of {name} in block {trial.block} has no {metric}: {reason}", hint=hint
    )
