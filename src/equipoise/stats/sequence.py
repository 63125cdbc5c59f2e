"""Blocks of one candidate and the baseline, as the betting engine takes them (verdict.md §1).

Beside the ratio: P(the candidate is slower in a block), and the points of a chart of the
confidence sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from msgspec import Struct

from equipoise._native import BettingSequence
from equipoise.model.errors import UnusableInput
from equipoise.model.interval import Interval
from equipoise.stats.arrays import FloatArray, OrderArray, as_costs

BASELINE_FIRST = 1
CANDIDATE_FIRST = -1

TIE_QUANTA = 1.5
"""Two readings of equal times can differ by a whole quantum; half a quantum more leaves room for
the rounding of the ratio under test (verdict.md §1)."""


def tie_tolerance(baseline: FloatArray, candidate: FloatArray, quantum: float) -> FloatArray:
    """Return 1.5 clock quanta in log units: relative to the smaller of the two costs.

    Parameters
    ----------
    baseline, candidate
        Shape (n,): costs, in the unit of ``quantum``.
    quantum
        The resolution of the metric; 0 for one without.

    Returns
    -------
    Shape (n,); 0 where the smaller cost is 0, which ``block_differences`` deals with.
    """
    smaller = np.minimum(baseline, candidate)
    tolerance = np.zeros_like(smaller)
    np.divide(TIE_QUANTA * quantum, smaller, out=tolerance, where=smaller > 0)
    return tolerance


def block_differences(baseline: FloatArray, candidate: FloatArray, quantum: float) -> FloatArray:
    """Return ln(candidate) - ln(baseline) in each block, shape (n,).

    ±inf where one of the two timed out or cost nothing. NaN, a tie, where both did, and where one
    cost nothing and the other less than 1.5 quanta.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = np.log(candidate) - np.log(baseline)
    smaller, larger = np.minimum(baseline, candidate), np.maximum(baseline, candidate)
    differences[(smaller == 0) & (larger < TIE_QUANTA * quantum)] = np.nan
    return differences


class PairedBlocks:
    """The blocks of one candidate and the baseline on one metric, in the order in which they ran.

    Grows with the campaign, so that an interim analysis does not bet on all blocks again.

    Parameters
    ----------
    baseline, candidate
        Shape (n,): costs; +inf for a trial that timed out, which counts as slowest.
    orders
        Shape (n,): 1 where the baseline ran before the candidate, -1 where the candidate did.
    quantum
        The resolution of the metric in its own unit; 0 for one without.

    Raises
    ------
    UnusableInput
        If a cost is negative or no number, an order is neither 1 nor -1, or the lengths differ.
    """

    def __init__(
        self,
        baseline: FloatArray | Sequence[float] = (),
        candidate: FloatArray | Sequence[float] = (),
        orders: OrderArray | Sequence[int] = (),
        *,
        quantum: float = 0.0,
    ) -> None:
        self._quantum = quantum
        self.engine = BettingSequence(*self._bets(baseline, candidate, orders))
        """The bets on these blocks."""
        self._baseline = list(map(float, baseline))
        self._candidate = list(map(float, candidate))

    @classmethod
    def pooled(
        cls,
        baseline: FloatArray,
        twin: FloatArray,
        candidate: FloatArray,
        orders: OrderArray,
        twin_orders: OrderArray,
        *,
        quantum: float = 0.0,
    ) -> Self:
        """Return the blocks of a campaign whose baseline ran twice in each block (the control).

        Half of the stake is on the candidate against the baseline, half on the candidate against
        its twin; ``baseline`` then holds the mean of the two (verdict.md §6).

        Parameters and errors as for the whole; orders are 1 where the baseline (its twin) ran
        before the candidate, else -1.
        """
        blocks = cls(quantum=quantum)
        for row in zip(baseline, twin, candidate, orders, twin_orders, strict=True):
            blocks.append_pooled(*row)
        return blocks

    def append_pooled(
        self, baseline: float, twin: float, candidate: float, order: int, twin_order: int
    ) -> None:
        """Add the next block of a baseline that ran twice; as for ``pooled``."""
        bets = self._bets([baseline, twin], [candidate, candidate], [order, twin_order])
        self.engine.push_pooled(*(tuple(bet.tolist()) for bet in bets))
        self._baseline.append(0.5 * (float(baseline) + float(twin)))
        self._candidate.append(float(candidate))

    def append(self, baseline: float, candidate: float, order: int) -> None:
        """Add the next block; parameters and errors as for the whole."""
        differences, orders, tolerances = self._bets([baseline], [candidate], [order])
        self.engine.push(float(differences[0]), int(orders[0]), float(tolerances[0]))
        self._baseline.append(float(baseline))
        self._candidate.append(float(candidate))

    def _bets(
        self,
        baseline: FloatArray | Sequence[float],
        candidate: FloatArray | Sequence[float],
        orders: OrderArray | Sequence[int],
    ) -> tuple[FloatArray, OrderArray, FloatArray]:
        """Check blocks; return their differences, orders and tolerances."""
        below, above = as_costs(baseline, "the baseline"), as_costs(candidate, "the candidate")
        places = np.array(orders, dtype=np.int64, ndmin=1)
        if not np.isin(places, (BASELINE_FIRST, CANDIDATE_FIRST)).all():
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
        differences = block_differences(below, above, self._quantum)
        tolerances = tie_tolerance(below, above, self._quantum)
        return differences, places.astype(np.int8), tolerances

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self.engine)

    @property
    def baseline(self) -> FloatArray:
        """Shape (n,): the costs of the baseline."""
        return np.array(self._baseline)

    @property
    def candidate(self) -> FloatArray:
        """Shape (n,): the costs of the candidate."""
        return np.array(self._candidate)


class SlowerShare(Struct, frozen=True):
    """Fraction of blocks in which the candidate was slower."""

    share: float | None
    """Fraction of the blocks that were no tie; ``None`` if there is none."""
    interval: Interval
    """Exact after any number of interim analyses, if the probability is the same in every block."""
    slower: int
    decided: int
    """Blocks that were no tie; ties, by the clock's resolution too, are left out."""


def probability_slower(blocks: PairedBlocks, *, level: float) -> SlowerShare:
    """Return the share of blocks in which the candidate was slower, with a confidence sequence.

    The beta(½, ½)-binomial mixture (Robbins 1970; Howard et al. 2021) on the sign of the block
    differences, running; at level 1 minus the coverage.
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
