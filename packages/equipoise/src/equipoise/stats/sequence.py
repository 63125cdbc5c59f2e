"""Blocks of one candidate and the baseline for the betting engine (docs/methods/interval.md).

The engine bets on the *difference* of each block, a log ratio. A difference up to the *tolerance*
of its block is a tie (`stats.resolution`).
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from msgspec import Struct

from equipoise._native import BettingSequence
from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import Interval
from equipoise.stats.arrays import FloatArray, OrderArray, as_costs
from equipoise.stats.resolution import (
    NO_RESOLUTION,
    TIE_QUANTA,
    PastValues,
    Resolution,
    tie_tolerance,
)

BASELINE_FIRST = 1
CANDIDATE_FIRST = -1
"""This constant and `BASELINE_FIRST` are the two orders of a block, as the engine needs them."""


def block_differences(
    baseline: FloatArray, candidate: FloatArray, quantum: float | FloatArray
) -> FloatArray:
    """Return ln(candidate) - ln(baseline) in each block, shape (n,).

    ``quantum``, the smallest step of the metric, is one number for all blocks or has shape (n,).

    A difference is ±inf if one trial timed out or cost nothing. A tie is NaN: both trials timed
    out, both cost nothing, or one cost nothing and the other less than 1.5 quanta.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = np.log(candidate) - np.log(baseline)
    smaller, larger = np.minimum(baseline, candidate), np.maximum(baseline, candidate)
    differences[(smaller == 0) & (larger < TIE_QUANTA * quantum)] = np.nan
    return differences


class PairedBlocks:
    """The blocks of one candidate and the baseline on one metric, in the order in which they ran.

    New blocks can be added, so that an interim analysis does not bet on all blocks again.

    ``baseline`` and ``candidate``, shape (n,), are costs; +inf for a trial that timed out.
    ``orders``, shape (n,), are 1 if the baseline ran before the candidate, else -1. By default the
    metric has no smallest step. ``covariates``, shape (n, 2, c), are readings before the trials of
    both conditions; NaN where unknown. c is at most 8. A program must not influence its own
    covariate: an adjustment by that covariate would remove the effect, too.

    Raise `UnusableInput` if a cost is negative or NaN, an order is neither 1 nor -1, or the lengths
    differ. Raise `ValueError` if there are too many covariates.
    """

    def __init__(
        self,
        baseline: FloatArray | Sequence[float] = (),
        candidate: FloatArray | Sequence[float] = (),
        orders: OrderArray | Sequence[int] = (),
        *,
        resolution: Resolution = NO_RESOLUTION,
        covariates: FloatArray | None = None,
    ) -> None:
        self._past_values = PastValues(resolution)
        baseline_costs, candidate_costs, signs = _checked_arrays(baseline, candidate, orders)
        differences, tolerances = self._add_past_values(baseline_costs, candidate_costs)
        readings = (
            None if covariates is None else _readings(baseline_costs, candidate_costs, covariates)
        )
        self.engine = BettingSequence(differences, signs, tolerances, readings)
        """The bets on these blocks."""
        self.verdicts: dict[tuple[str, float, float], Any] = {}
        """Cache of the verdicts on the blocks so far, and of numbers that they share
        (`equipoise.stats.verdict`)."""
        self._baseline: list[float] = baseline_costs.tolist()
        self._own_baseline: list[float] = baseline_costs.tolist()
        self._candidate: list[float] = candidate_costs.tolist()
        self._recorded_differences: list[float] = differences.tolist()
        self._orders: list[int] = signs.tolist()
        self._recorded_tolerances: list[float] = tolerances.tolist()

    @classmethod
    def pooled(
        cls,
        baseline: FloatArray,
        control: FloatArray,
        candidate: FloatArray,
        orders: OrderArray,
        control_orders: OrderArray,
        *,
        resolution: Resolution = NO_RESOLUTION,
        covariates: FloatArray | None = None,
    ) -> Self:
        """Return the blocks of a campaign whose baseline ran twice in each block.

        The second run is the *control*. Each of the two runs has half of the stake. The property
        ``baseline`` is the mean of the two runs (docs/methods/control.md).

        Parameters and errors are as in the class. ``orders`` and ``control_orders`` are 1 if the
        baseline, or the control, ran before the candidate, else -1. Covariates have shape
        (n, 3, c): readings before the trials of the baseline, the control and the candidate.
        """
        blocks = cls(resolution=resolution)
        all_covariates = itertools.repeat(None, len(baseline)) if covariates is None else covariates
        for *costs_and_orders, readings in zip(
            baseline, control, candidate, orders, control_orders, all_covariates, strict=True
        ):
            blocks.append_pooled(*costs_and_orders, covariates=readings)
        return blocks

    def set_resolution(self, resolution: Resolution) -> None:
        """Set the resolution of the metric, unless a block already has a finite cost."""
        if self._past_values.is_empty:
            self._past_values = PastValues(resolution)

    def append_pooled(
        self,
        baseline: float,
        control: float,
        candidate: float,
        order: int,
        control_order: int,
        *,
        covariates: FloatArray | None = None,
    ) -> None:
        """Add the next block of a baseline that ran twice; ``covariates`` have shape (3, c)."""
        baseline_costs, candidate_costs, orders = _checked_arrays(
            [baseline, control], [candidate, candidate], [order, control_order]
        )
        tolerances = self._next_tolerances(baseline_costs, candidate_costs)
        differences = self._next_differences(
            baseline_costs, candidate_costs, self._past_values.quantum
        )
        self._past_values.add(baseline_costs.tolist(), [float(candidate)])
        self.engine.push_pooled(
            (float(differences[0]), float(differences[1])),
            (int(orders[0]), int(orders[1])),
            (float(tolerances[0]), float(tolerances[1])),
            (None, None)
            if covariates is None
            else (
                _readings_of_block(baseline_costs[:1], candidate_costs[:1], covariates[[0, 2]]),
                _readings_of_block(baseline_costs[1:], candidate_costs[1:], covariates[[1, 2]]),
            ),
        )
        mean_baseline = 0.5 * (float(baseline) + float(control))
        self._own_baseline.append(float(baseline))
        self._append_to_lists(
            mean_baseline,
            float(candidate),
            float(differences[0]),
            int(orders[0]),
            float(tolerances.max()),
        )

    def append(
        self, baseline: float, candidate: float, order: int, *, covariates: FloatArray | None = None
    ) -> None:
        """Add the next block; parameters are as in the class, ``covariates`` of shape (2, c)."""
        baseline, candidate, order = float(baseline), float(candidate), int(order)
        # Plain numbers are faster than arrays of one number.
        if not (
            baseline >= 0.0 and candidate >= 0.0 and order in (BASELINE_FIRST, CANDIDATE_FIRST)
        ):
            _checked_arrays([baseline], [candidate], [order])
        difference, tolerance = self._add_past_block(baseline, candidate)
        readings = (
            None
            if covariates is None
            else _readings_of_block(np.array([baseline]), np.array([candidate]), covariates)
        )
        self.engine.push(difference, order, tolerance, readings)
        self._own_baseline.append(baseline)
        self._append_to_lists(baseline, candidate, difference, order, tolerance)

    def _append_to_lists(
        self, baseline: float, candidate: float, difference: float, order: int, tolerance: float
    ) -> None:
        self._baseline.append(baseline)
        self._candidate.append(candidate)
        self._recorded_differences.append(difference)
        self._orders.append(order)
        self._recorded_tolerances.append(tolerance)
        self.verdicts.clear()

    def unadjusted(self) -> Self:
        """Return the same blocks as if no covariate had been read; do not add blocks to them."""
        unadjusted_blocks = copy.copy(self)
        unadjusted_blocks.engine, unadjusted_blocks.verdicts = self.engine.unadjusted(), {}
        return unadjusted_blocks

    def _add_past_values(
        self, baseline: FloatArray, candidate: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Add the costs of the next blocks, and return the blocks' differences and tolerances."""
        if self._past_values.has_no_quantum:
            return self._next_differences(baseline, candidate, 0.0), np.zeros_like(baseline)
        quanta, tolerances = np.zeros_like(baseline), np.empty_like(baseline)
        for index, (cost, other_cost) in enumerate(
            zip(baseline.tolist(), candidate.tolist(), strict=True)
        ):
            if self._past_values.is_empty:
                tolerances[index] = self._next_tolerances(baseline[[index]], candidate[[index]])[0]
            else:
                tolerances[index] = self._past_values.tolerance()
            if not (cost and other_cost):
                # Only costs of 0 need the quantum, which may be slow to infer.
                quanta[index] = self._past_values.quantum
            self._past_values.add([cost], [other_cost])
        return self._next_differences(baseline, candidate, quanta), tolerances

    def _add_past_block(self, baseline: float, candidate: float) -> tuple[float, float]:
        """Do the same as `_add_past_values` for one block."""
        past_values, tolerance, quantum = self._past_values, 0.0, 0.0
        smaller, larger = min(baseline, candidate), max(baseline, candidate)
        if not past_values.has_no_quantum:
            if past_values.is_empty:
                costs = np.array([baseline]), np.array([candidate])
                tolerance = float(self._next_tolerances(*costs)[0])
            else:
                tolerance = past_values.tolerance()
            if not smaller and not past_values.has_inverse_costs:
                quantum = past_values.quantum
            past_values.add([baseline], [candidate])
        if smaller == 0 and larger < TIE_QUANTA * quantum:
            return math.nan, tolerance
        with contextlib.nullcontext() if smaller else np.errstate(divide="ignore"):
            log_baseline, log_candidate = np.log([baseline, candidate]).tolist()
        return log_candidate - log_baseline, tolerance

    def _next_tolerances(self, baseline: FloatArray, candidate: FloatArray) -> FloatArray:
        """Return the tolerances of the pairs of one block; the first block uses its own costs."""
        if not self._past_values.is_empty:
            return np.full_like(baseline, self._past_values.tolerance())
        values_of = self._past_values.values
        return tie_tolerance(values_of(baseline), values_of(candidate), self._past_values.quantum)

    def _next_differences(
        self, baseline: FloatArray, candidate: FloatArray, quantum: float | FloatArray
    ) -> FloatArray:
        # For an inverse cost, infinity may be a timeout, which is never a tie with another cost.
        return block_differences(
            baseline, candidate, 0.0 if self._past_values.has_inverse_costs else quantum
        )

    @property
    def tolerances(self) -> FloatArray:
        """Shape (n,): tolerance of each block."""
        return np.array(self._recorded_tolerances)

    @property
    def differences(self) -> FloatArray:
        """Shape (n,): log cost of the candidate minus log cost of the baseline's own run.

        The difference is ±inf where one trial timed out, NaN for a tie (`block_differences`).
        """
        return np.array(self._recorded_differences)

    @property
    def orders(self) -> OrderArray:
        """Shape (n,): 1 if the baseline's own run was before the candidate's, else -1."""
        return np.array(self._orders, dtype=np.int8)

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self.engine)

    @property
    def baseline(self) -> FloatArray:
        """Shape (n,): costs of the baseline; with a control, the means of both runs."""
        return np.array(self._baseline)

    @property
    def own_baseline(self) -> FloatArray:
        """Shape (n,): costs of the baseline's own runs, without the control."""
        return np.array(self._own_baseline)

    @property
    def candidate(self) -> FloatArray:
        """Shape (n,): costs of the candidate."""
        return np.array(self._candidate)


def _checked_arrays(
    baseline: FloatArray | Sequence[float],
    candidate: FloatArray | Sequence[float],
    orders: OrderArray | Sequence[int],
) -> tuple[FloatArray, FloatArray, OrderArray]:
    baseline, candidate = as_costs(baseline, "the baseline"), as_costs(candidate, "the candidate")
    signs = np.array(orders, dtype=np.int64, ndmin=1)
    if not ((signs == BASELINE_FIRST) | (signs == CANDIDATE_FIRST)).all():
        raise UnusableInput(
            "an order of a block is neither 1 (baseline first) nor -1 (candidate first)",
            hint="give 1 or -1 as the order of every block",
        )
    if not len(baseline) == len(candidate) == len(signs):
        raise UnusableInput(
            f"there are {len(baseline)} costs of the baseline, {len(candidate)} of the candidate "
            f"and {len(signs)} orders",
            hint="give one cost of each condition, and one order, for every block",
        )
    return baseline, candidate, signs.astype(np.int8)


def _readings(
    baseline: FloatArray, candidate: FloatArray, covariates: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return each block's differences and sums of the covariates, and sum of the log costs."""
    baseline_readings, candidate_readings = covariates[:, 0], covariates[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        cost_sums = np.log(baseline) + np.log(candidate)
    return candidate_readings - baseline_readings, candidate_readings + baseline_readings, cost_sums


def _readings_of_block(
    baseline: FloatArray, candidate: FloatArray, covariates: FloatArray
) -> tuple[list[float], list[float], float]:
    """Return the same values as `_readings`, for one block; ``covariates`` have shape (2, c)."""
    differences, sums, cost_sums = _readings(baseline, candidate, covariates[np.newaxis])
    return differences[0].tolist(), sums[0].tolist(), float(cost_sums[0])


class SlowerShare(Struct, frozen=True):
    """Fraction of blocks in which the candidate was slower."""

    share: float | None
    """Fraction of the blocks without a tie; ``None`` without such blocks."""
    interval: Interval
    """Interval, exact after any number of interim analyses if the probability is constant."""
    slower: int
    """Number of blocks in which the candidate was slower."""
    decided: int
    """Number of blocks without a tie."""


def probability_slower(blocks: PairedBlocks, *, level: float) -> SlowerShare:
    """Return the share of blocks in which the candidate was slower, with a confidence sequence.

    The confidence sequence is the running beta(½, ½)-binomial mixture (Robbins 1970; Howard et al.
    2021) on the signs of the block differences. ``level`` is 1 minus the coverage.
    """
    slower, decided, low, high = blocks.engine.slower_count(level)
    if decided == 0:
        return SlowerShare(None, (None, None), 0, 0)
    return SlowerShare(slower / decided, (low, high), slower, decided)


class SequencePoint(Struct, frozen=True):
    """Result of one interim analysis; a ratio or bound is ``None`` if unknown or unlimited."""

    block: int
    """Number of complete blocks so far."""
    ratio: float | None
    low: float | None
    high: float | None
