"""Blocks of one candidate and the baseline, as the betting engine takes them.

See docs/methods/interval.md.

Also: P(the candidate is slower in a block), and the points of a chart of the confidence sequence.
"""

from __future__ import annotations

import copy
import itertools
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


def block_differences(
    baseline: FloatArray, candidate: FloatArray, quantum: float | FloatArray
) -> FloatArray:
    """Return ln(candidate) - ln(baseline) in each block, shape (n,).

    ``quantum`` is one number for all blocks, or has shape (n,).

    A difference is ±inf where one of the two timed out or cost nothing. It is NaN, a tie, where
    both did, and where one cost nothing and the other less than 1.5 quanta.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = np.log(candidate) - np.log(baseline)
    smaller, larger = np.minimum(baseline, candidate), np.maximum(baseline, candidate)
    differences[(smaller == 0) & (larger < TIE_QUANTA * quantum)] = np.nan
    return differences


class PairedBlocks:
    """The blocks of one candidate and the baseline on one metric, in the order in which they ran.

    They grow with the campaign, so that an interim analysis does not bet on all blocks again.

    Raise `UnusableInput` if a cost is negative or not a number, an order is neither 1 nor -1, or
    the lengths differ. Raise `ValueError` if there are too many covariates.

    Parameters
    ----------
    baseline, candidate
        Shape (n,): costs; +inf for a trial that timed out, which counts as slowest.
    orders
        Shape (n,): 1 where the baseline ran before the candidate, -1 where the candidate did.
    resolution
        Resolution of the metric; by default it has none.
    covariates
        Shape (n, 2, c), c at most 8: readings before the baseline's and before the candidate's
        trial; NaN where unknown. A covariate that the program itself moves (its own run delay, say)
        must not be among them: adjusting by it would remove the effect, too.
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
        self._past = PastValues(resolution)
        below, above, checked = _checked(baseline, candidate, orders)
        differences, tolerances = self._learn(below, above)
        readings = None if covariates is None else _readings(below, above, covariates)
        self.engine = BettingSequence(differences, checked, tolerances, readings)
        """The bets on these blocks."""
        self.verdicts: dict[tuple[str, float, float], Any] = {}
        """Verdicts on the blocks so far (`equipoise.stats.verdict`); a new block clears them."""
        self._baseline: list[float] = below.tolist()
        self._own_baseline: list[float] = below.tolist()
        self._candidate: list[float] = above.tolist()
        self._differences_of_blocks: list[float] = differences.tolist()
        self._orders: list[int] = checked.tolist()
        self._tolerances_of_blocks: list[float] = tolerances.tolist()

    @classmethod
    def pooled(
        cls,
        baseline: FloatArray,
        twin: FloatArray,
        candidate: FloatArray,
        orders: OrderArray,
        twin_orders: OrderArray,
        *,
        resolution: Resolution = NO_RESOLUTION,
        covariates: FloatArray | None = None,
    ) -> Self:
        """Return the blocks of a campaign whose baseline ran twice in each block (the control).

        Half of the stake is on the candidate against the baseline, half on the candidate against
        its twin; ``baseline`` then holds the mean of the two (docs/methods/control.md).

        Parameters and errors are those of the class; orders are 1 where the baseline (its twin) ran
        before the candidate, else -1. Covariates have shape (n, 3, c): readings before the
        baseline's, its twin's and the candidate's trial.
        """
        blocks = cls(resolution=resolution)
        known = itertools.repeat(None, len(baseline)) if covariates is None else covariates
        for *row, read in zip(baseline, twin, candidate, orders, twin_orders, known, strict=True):
            blocks.append_pooled(*row, covariates=read)
        return blocks

    def set_resolution(self, resolution: Resolution) -> None:
        """Set the resolution of the metric, unless a block already has a finite cost."""
        if self._past.is_empty:
            self._past = PastValues(resolution)

    def append_pooled(
        self,
        baseline: float,
        twin: float,
        candidate: float,
        order: int,
        twin_order: int,
        *,
        covariates: FloatArray | None = None,
    ) -> None:
        """Add the next block of a baseline that ran twice (see ``pooled``).

        ``covariates`` are of shape (3, c).
        """
        below, above, orders = _checked(
            [baseline, twin], [candidate, candidate], [order, twin_order]
        )
        tolerances = self._tolerances(below, above)
        differences = self._differences(below, above, self._past.quantum)
        self._past.add(below.tolist(), [float(candidate)])
        self.engine.push_pooled(
            (float(differences[0]), float(differences[1])),
            (int(orders[0]), int(orders[1])),
            (float(tolerances[0]), float(tolerances[1])),
            (None, None)
            if covariates is None
            else (
                _readings_of_block(below[:1], above[:1], covariates[[0, 2]]),
                _readings_of_block(below[1:], above[1:], covariates[[1, 2]]),
            ),
        )
        mean = 0.5 * (float(baseline) + float(twin))
        self._own_baseline.append(float(baseline))
        self._remember(mean, candidate, differences, orders, float(tolerances.max()))

    def append(
        self,
        baseline: float,
        candidate: float,
        order: int,
        *,
        covariates: FloatArray | None = None,
    ) -> None:
        """Add the next block; parameters are those of the class, ``covariates`` of shape (2, c)."""
        below, above, orders = _checked([baseline], [candidate], [order])
        differences, tolerances = self._learn(below, above)
        readings = None if covariates is None else _readings_of_block(below, above, covariates)
        self.engine.push(float(differences[0]), int(orders[0]), float(tolerances[0]), readings)
        self._own_baseline.append(float(baseline))
        self._remember(baseline, candidate, differences, orders, float(tolerances[0]))

    def _remember(
        self,
        baseline: float,
        candidate: float,
        differences: FloatArray,
        orders: OrderArray,
        tolerance: float,
    ) -> None:
        """Keep a block that the engine received, with the first pair's difference and order."""
        self._baseline.append(float(baseline))
        self._candidate.append(float(candidate))
        self._differences_of_blocks.append(float(differences[0]))
        self._orders.append(int(orders[0]))
        self._tolerances_of_blocks.append(tolerance)
        self.verdicts.clear()

    def unadjusted(self) -> Self:
        """Return the same blocks as if no covariate had been read; do not add blocks to them."""
        without = copy.copy(self)
        without.engine, without.verdicts = self.engine.unadjusted(), {}
        return without

    def _learn(self, below: FloatArray, above: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the differences and tolerances of the next blocks, and remember their costs."""
        if self._past.is_exact:
            return self._differences(below, above, 0.0), np.zeros_like(below)
        quanta, tolerances = np.zeros_like(below), np.empty_like(below)
        for place, (cost, other) in enumerate(zip(below.tolist(), above.tolist(), strict=True)):
            if self._past.is_empty:
                tolerances[place] = self._tolerances(below[[place]], above[[place]])[0]
            else:
                tolerances[place] = self._past.tolerance()
            if not (cost and other):
                # Only a tie with 0 needs the quantum of the costs so far, which may be slow to
                # infer.
                quanta[place] = self._past.quantum
            self._past.add([cost], [other])
        return self._differences(below, above, quanta), tolerances

    def _tolerances(self, below: FloatArray, above: FloatArray) -> FloatArray:
        """Return the tolerances of the pairs of one block; the first block sets its own."""
        if not self._past.is_empty:
            return np.full_like(below, self._past.tolerance())
        values = self._past.values
        return tie_tolerance(values(below), values(above), self._past.quantum)

    def _differences(
        self, below: FloatArray, above: FloatArray, quantum: float | FloatArray
    ) -> FloatArray:
        # An infinite cost may be a timeout, which is never a tie with less than that.
        return block_differences(below, above, 0.0 if self._past.are_inverse else quantum)

    @property
    def tolerances(self) -> FloatArray:
        """Shape (n,): log difference in each block that the resolution of the metric can hide."""
        return np.array(self._tolerances_of_blocks)

    @property
    def differences(self) -> FloatArray:
        """Shape (n,): log cost of the candidate minus that of the baseline itself, not of its twin.

        ±inf where one timed out, NaN for a tie (`block_differences`).
        """
        return np.array(self._differences_of_blocks)

    @property
    def orders(self) -> OrderArray:
        """Shape (n,): 1 where the baseline itself ran before the candidate, else -1."""
        return np.array(self._orders, dtype=np.int8)

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self.engine)

    @property
    def baseline(self) -> FloatArray:
        """Shape (n,): the costs of the baseline; with a twin, the mean of both."""
        return np.array(self._baseline)

    @property
    def own_baseline(self) -> FloatArray:
        """Shape (n,): the costs of the baseline itself, without its twin."""
        return np.array(self._own_baseline)

    @property
    def candidate(self) -> FloatArray:
        """Shape (n,): the costs of the candidate."""
        return np.array(self._candidate)


def _checked(
    baseline: FloatArray | Sequence[float],
    candidate: FloatArray | Sequence[float],
    orders: OrderArray | Sequence[int],
) -> tuple[FloatArray, FloatArray, OrderArray]:
    """Return the costs and the orders of blocks as arrays."""
    below, above = as_costs(baseline, "the baseline"), as_costs(candidate, "the candidate")
    places = np.array(orders, dtype=np.int64, ndmin=1)
    if not ((places == BASELINE_FIRST) | (places == CANDIDATE_FIRST)).all():
        raise UnusableInput(
            "an order is neither 1 (baseline first) nor -1 (candidate first)",
            hint="give one of the two for every block",
        )
    if not len(below) == len(above) == len(places):
        raise UnusableInput(
            f"{len(below)} costs of the baseline, {len(above)} of the candidate and "
            f"{len(places)} orders",
            hint="give one of each for every block",
        )
    return below, above, places.astype(np.int8)


def _readings(
    below: FloatArray, above: FloatArray, covariates: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the differences and sums within each block, from which the engine learns a slope."""
    first, second = covariates[:, 0], covariates[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        cost_sums = np.log(below) + np.log(above)
    return second - first, second + first, cost_sums


def _readings_of_block(
    below: FloatArray, above: FloatArray, covariates: FloatArray
) -> tuple[list[float], list[float], float]:
    """Return the readings of one block; its covariates have shape (2, c)."""
    differences, sums, cost_sums = _readings(below, above, covariates[np.newaxis])
    return differences[0].tolist(), sums[0].tolist(), float(cost_sums[0])


class SlowerShare(Struct, frozen=True):
    """Fraction of blocks in which the candidate was slower."""

    share: float | None
    """Fraction of the decided blocks; ``None`` if no block is decided."""
    interval: Interval
    """Interval that is exact after any number of interim analyses, if the probability is
    constant."""
    slower: int
    decided: int
    """Blocks without a tie; a difference below the clock's resolution is a tie."""


def probability_slower(blocks: PairedBlocks, *, level: float) -> SlowerShare:
    """Return the share of blocks in which the candidate was slower, with a confidence sequence.

    It is the running beta(½, ½)-binomial mixture (Robbins 1970; Howard et al. 2021) on the sign of
    the block differences. The level is 1 minus the coverage.
    """
    slower, decided, low, high = blocks.engine.slower_count(level)
    if decided == 0:
        return SlowerShare(None, (None, None), 0, 0)
    return SlowerShare(slower / decided, (low, high), slower, decided)


class SequencePoint(Struct, frozen=True):
    """One interim analysis of a comparison; ratios are ``None`` where unknown or unlimited."""

    block: int
    """Complete blocks so far, from 1."""
    ratio: float | None
    low: float | None
    high: float | None
