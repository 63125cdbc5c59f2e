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

CONTROLLED = 0
"""Condition that a control runs a second time."""
TIMED_OUT = math.inf
"""Cost of a trial that timed out, or could not do its work here: slower than every other trial
(rule 1)."""

ACCOUNTABLE = frozenset(Accounting.__struct_fields__) - {"counters", "unknown"} | {"cpu_s"}
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
"""Resolution of a metric, in its unit. The launcher's clock counts nanoseconds. The kernel splits
CPU time between user and system by its ticks, and rounds each down to a microsecond; except for
that rounding their sum is exact (cputime_adjust in its sources)."""


def complete_blocks(draws: Iterable[Draw], trials: Iterable[Trial]) -> dict[int, tuple[Trial, ...]]:
    """Return the measured blocks in which every drawn condition finished, by number.

    Blocks and their trials are in the order in which they ran, as in the record. A block that an
    interruption cut is left out as a whole and never completed later: otherwise a user could choose
    results by interrupting (docs/methods/interval.md).
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


def block_seconds(block: Iterable[Trial]) -> float:
    """Return the seconds from the start of a block's first trial to the end of its last.

    Pauses between blocks are left out, so a campaign that was resumed has the same sum as one
    that ran without a pause.
    """
    starts, ends = [], []
    for trial in block:
        starts.append(trial.started_at)
        ends.append(trial.started_at + (trial.accounting.wall_s or 0.0))
    return max(0.0, max(ends) - min(starts)) if starts else 0.0


def seconds_of_segments(record: RunRecord) -> float:
    """Return the seconds of a campaign's segments; a killed segment lasts until its last trial."""
    total = 0.0
    for segment, following in itertools.zip_longest(record.segments, record.segments[1:]):
        until = math.inf if following is None else following.started_at
        ends = (
            trial.started_at + (trial.accounting.wall_s or 0.0)
            for trial in record.trials
            if segment.started_at <= trial.started_at < until
        )
        ended = segment.ended_at
        if ended is None:
            ended = max(ends, default=segment.started_at)
        total += max(0.0, ended - segment.started_at)
    return total


def left_out_because(
    trial: Trial,
    complete: dict[int, tuple[Trial, ...]],
    decisive: dict[int, tuple[Trial, ...]] | None = None,
) -> str | None:
    """Return the reason why a trial is not analysed; ``None`` if it is.

    ``decisive`` are the complete blocks without the trials that washouts replaced; by default all
    complete blocks.
    """
    if trial.phase == "warmup":
        return WARMUP_RUN
    if trial.washout:
        return WASHOUT_RUN
    if trial.block not in complete:
        return CUT_BLOCK
    counted = (complete if decisive is None else decisive).get(trial.block, ())
    is_counted = any(other.condition == trial.condition for other in counted)
    return None if is_counted else BEFORE_WASHOUTS


def cut_blocks(record: RunRecord, complete: dict[int, tuple[Trial, ...]]) -> int:
    """Return the number of measured blocks that were drawn but never completed."""
    numbers = {draw.block for draw in record.draws if draw.phase == "measured"}
    return len(numbers) - len(complete)


def as_cost(sample: Sample) -> float:
    """Return a reported value as a cost: its inverse if more of the metric is better."""
    if sample.better == "lower":
        return sample.value
    return 1.0 / sample.value if sample.value else TIMED_OUT


def cost_function(
    metric: str, of_sample: Callable[[Sample], float] = as_cost
) -> Callable[[Trial], float | None]:
    """Return the function from a trial to its cost in one metric, ``None`` if unknown.

    A value reported by the workload takes precedence over the accounting of the same name.
    """
    accounted: Callable[[Accounting], float | None] | None = (
        attrgetter(metric) if metric in ACCOUNTABLE else None
    )

    def read(trial: Trial) -> float | None:
        if trial.timed_out or trial.is_unavailable:
            return TIMED_OUT
        for sample in reversed(trial.samples):
            if sample.metric == metric and sample.iteration is None:
                return of_sample(sample)
        if accounted is not None:
            return accounted(trial.accounting)
        return trial.accounting.counters.get(metric)

    return read


def known_values(
    trials: Sequence[Trial],
    metrics: Iterable[str],
    of_sample: Callable[[Sample], float] = attrgetter("value"),
) -> dict[str, NDArray[np.float64]]:
    """Return the values of trials in each metric, shape (n,), in their order; NaN where unknown.

    Values of a metric of which more is better are not inverted; only a comparison needs `as_cost`.
    """
    names = list(metrics)
    ordinary = not any(trial.samples or trial.failure is not None for trial in trials)
    if not ordinary or not ACCOUNTABLE.issuperset(names):
        return {
            metric: np.array(list(map(cost_function(metric, of_sample), trials)), dtype=np.float64)
            for metric in names
        }
    # In one pass: there may be very many trials.
    rows = list(map(attrgetter(*names), (trial.accounting for trial in trials)))
    table = np.array(rows, dtype=np.float64).reshape(len(trials), len(names))
    return dict(zip(names, np.ascontiguousarray(table.T), strict=True))


def resolution_in(block: Iterable[Trial], metric: str) -> Resolution | None:
    """Return the resolution of a metric: the coarsest that the trials of one block report.

    ``None`` if no trial of the block reports the metric, and Equipoise does not measure it.
    """
    samples = [
        sample
        for trial in block
        for sample in trial.samples
        if sample.metric == metric and sample.iteration is None
    ]
    if not samples:
        return Resolution(QUANTA[metric]) if metric in QUANTA else None
    resolutions = [sample.resolution for sample in samples if sample.resolution is not None]
    quantum = max(resolutions, default=QUANTA.get(metric))
    return Resolution(quantum, any(sample.better == "higher" for sample in samples))


def resolution_of(blocks: Mapping[int, tuple[Trial, ...]], metric: str) -> Resolution:
    """Return the resolution of a metric, from the first block in which it is reported.

    The first block decides, so that no later value influences the bets on it.
    """
    read = (resolution_in(block, metric) for block in blocks.values())
    return next((resolution for resolution in read if resolution is not None), Resolution(None))


class BlockRead(Struct, frozen=True):
    """Cost and place of each condition in one block, on one metric."""

    costs: dict[int, float]
    places: dict[int, int]
    resolution: Resolution | None
    """Resolution of the metric; ``None`` if no trial of the block reports one."""
    covariates: dict[int, tuple[float, ...]]
    """Covariates before the trial of each condition; NaN where unknown."""

    def covariates_of(self, *conditions: int) -> NDArray[np.float64] | None:
        """Return the covariates of conditions, shape (k, c); ``None`` if there are none."""
        read = np.array([self.covariates[condition] for condition in conditions])
        return read if read.size else None

    def order(self, first: int, second: int) -> int:
        """Return 1 if the first condition ran before the second, else -1."""
        before = self.places[first] < self.places[second]
        return BASELINE_FIRST if before else CANDIDATE_FIRST


def read_block(block: tuple[Trial, ...], plan: Plan, metric: str | None = None) -> BlockRead:
    """Return the costs of one complete block on a metric, by default the primary one.

    Raise `UnusableInput` if a trial lacks the metric.
    """
    metric = metric or plan.judgement.primary_metric
    read = cost_function(metric)
    costs: dict[int, float] = {}
    for trial in block:
        cost = read(trial)
        if cost is not None:
            costs[trial.condition] = cost
        else:
            _check_needless(plan, trial, metric)
    return BlockRead(
        costs,
        {trial.condition: place for place, trial in enumerate(block)},
        resolution_in(block, metric),
        {trial.condition: covariates_before(trial, plan.adjust_by) for trial in block},
    )


def covariates_before(trial: Trial, names: Sequence[str]) -> tuple[float, ...]:
    """Return covariates read before a trial; NaN for an unknown covariate."""
    values = (trial.covariates.get(name) for name in names)
    return tuple(math.nan if value is None else value for value in values)


def add_block(pairs: PairedBlocks, block: BlockRead, contrast: Contrast, plan: Plan) -> None:
    """Add one complete block to the pairs of a contrast, if both of its conditions ran in it."""
    costs, (baseline, candidate) = block.costs, contrast.pair
    if baseline not in costs or candidate not in costs:
        return
    if plan.control is None or baseline != CONTROLLED:
        pairs.append(
            costs[baseline],
            costs[candidate],
            block.order(baseline, candidate),
            covariates=block.covariates_of(baseline, candidate),
        )
    else:
        pairs.append_pooled(
            costs[baseline],
            costs[plan.control],
            costs[candidate],
            block.order(baseline, candidate),
            block.order(plan.control, candidate),
            covariates=block.covariates_of(baseline, plan.control, candidate),
        )


class BlockCosts(Struct, frozen=True):
    """Place and cost of each condition in each complete block.

    Shapes: ``numbers`` (n,), ``places`` and ``costs`` (n, k), ``ends`` (n, 2), for n blocks of up
    to k conditions.
    """

    numbers: NDArray[np.int64]
    places: NDArray[np.int64]
    """Place of each condition; -1 if it was left out of the block."""
    costs: NDArray[np.float64]
    """Cost of each condition; NaN if it was left out of the block, or failed without a cost."""
    ends: NDArray[np.int64]
    """Conditions that ran first and last."""
    covariates: NDArray[np.float64]
    """Covariates before each trial; NaN where unknown. Shape (n, k, c) for c covariates."""

    def paired(
        self,
        contrast: Contrast,
        *,
        resolution: Resolution,
        control: int | None = None,
    ) -> PairedBlocks:
        """Return a candidate paired with its baseline, in the blocks in which both ran.

        With a control, half of each bet is on the candidate against the control.
        """
        both, (baseline, candidate) = self.both(contrast), contrast.pair
        orders = self._orders(both, baseline, candidate)
        below, above = self.costs[both, baseline], self.costs[both, candidate]
        if control is None:
            return PairedBlocks(
                below,
                above,
                orders,
                resolution=resolution,
                covariates=self._covariates(both, baseline, candidate),
            )
        twin_orders = self._orders(both, control, candidate)
        twin = self.costs[both, control]
        return PairedBlocks.pooled(
            below,
            twin,
            above,
            orders,
            twin_orders,
            resolution=resolution,
            covariates=self._covariates(both, baseline, control, candidate),
        )

    def _covariates(
        self, blocks: NDArray[np.bool_], *conditions: int
    ) -> NDArray[np.float64] | None:
        """Return the covariates of conditions, shape (n, k, c); ``None`` if all are unknown."""
        read = self.covariates[blocks][:, conditions]
        return None if np.isnan(read).all() else np.ascontiguousarray(read)

    def both(self, contrast: Contrast) -> NDArray[np.bool_]:
        """Return whether both conditions of a contrast ran in each block, shape (n,)."""
        return np.asarray((self.places[:, contrast.pair] >= 0).all(axis=1))

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

    Raise `UnusableInput` if a trial lacks the metric.
    """
    trials = list(itertools.chain.from_iterable(blocks.values()))
    costs = known_values(trials, [metric], as_cost)[metric]
    for place in np.flatnonzero(np.isnan(costs)):
        _check_needless(plan, trials[place], metric)
    return place_costs(plan, blocks, costs)


def place_costs(
    plan: Plan, blocks: Mapping[int, tuple[Trial, ...]], trial_costs: NDArray[np.float64]
) -> BlockCosts:
    """Return the costs of trials by block and place.

    Parameters
    ----------
    trial_costs
        Costs of the trials of all blocks, one block after the other, shape (t,).
    """
    trials = list(itertools.chain.from_iterable(blocks.values()))
    sizes = np.fromiter(map(len, blocks.values()), np.int64, len(blocks))
    rows = np.repeat(np.arange(len(blocks)), sizes)
    columns = np.fromiter((trial.condition for trial in trials), np.int64, len(trials))
    shape = (len(blocks), len(plan.conditions))
    places, costs = np.full(shape, -1, dtype=np.int64), np.full(shape, np.nan)
    begins = np.repeat(np.cumsum(sizes) - sizes, sizes)
    places[rows, columns] = np.arange(len(trials)) - begins
    costs[rows, columns] = trial_costs
    covariates = np.full((*shape, len(plan.adjust_by)), np.nan)
    if plan.adjust_by:
        covariates[rows, columns] = [covariates_before(trial, plan.adjust_by) for trial in trials]
    ends = [(block[0].condition, block[-1].condition) for block in blocks.values()]
    return BlockCosts(
        numbers=np.array(list(blocks), dtype=np.int64),
        places=places,
        costs=costs,
        ends=np.array(ends, dtype=np.int64).reshape(-1, 2),
        covariates=covariates,
    )


def _check_needless(plan: Plan, trial: Trial, metric: str) -> None:
    """Refuse an unknown cost that the result needs; costs of interventions may be unknown."""
    if not plan.rules.needs_every_cost and all(
        trial.condition not in contrast.pair for contrast in plan.contrasts
    ):
        return
    reason = trial.accounting.unknown.get(metric, "the workload did not report it")
    raise UnusableInput(
        f"a trial of block {trial.block} has no {metric}: {reason}",
        hint="compare a metric that every trial has, such as wall_s",
    )
