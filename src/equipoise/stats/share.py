"""The share of a gap that an intervention closes, valid however long one looks (verdict.md §7).

A block holds four conditions: A, B, and both with the intervention, A_w and B_w. The share s is
what of the gap between A and B is gone between A_w and B_w. If it is s, then exchanging A with B
and A_w with B_w at once only flips the sign of

    z(s) = (B_w - A_w) - (1 - s)(B - A)

in logarithms (or in the unit of the metric, for a gap that adds up instead of multiplying), and
the random order of the block makes that sign a fair coin, given the past.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.model.errors import UnusableInput
from equipoise.stats.arrays import BoolArray, FloatArray

STAKES = np.array([0.1, 0.3, 0.6, 0.9])
"""The shares of the money that are staked (verdict.md §1)."""

CLIP = 1.25
"""A bet pays all at so many robust standard deviations (verdict.md §1)."""

BLOCKS_FOR_A_SCALE = 3
"""So many blocks are bet on by sign alone."""

MAD_TO_SD = 1.4826

LOWEST, HIGHEST, STEP = -3.0, 4.0, 0.01
"""The shares that are tried; an end of the set there means that it may go on beyond."""

REFINEMENTS = 20
"""Halvings of a step between a share inside the set and its neighbour outside."""

Reach = tuple[float | None, float | None]
"""From, to; ``None`` where the set reaches the last share that is tried."""


@dataclass(frozen=True, slots=True)
class ClosedShare:
    """What share of a gap is closed, on one scale."""

    estimate: float | None
    """One minus the median gap with the intervention over the median gap without it; ``None``
    if that is no number."""
    pieces: tuple[Reach, ...]
    """The whole confidence set: intervals that do not touch. Empty if no share fits the blocks."""

    @property
    def low(self) -> float | None:
        """The lower end of the set; ``None`` if there is none."""
        return self.pieces[0][0] if self.pieces else None

    @property
    def high(self) -> float | None:
        """The upper end of the set; ``None`` if there is none."""
        return self.pieces[-1][1] if self.pieces else None

    def lies_within(self, low: float, high: float) -> bool:
        """Whether the set is not empty and no share outside of the two fits."""
        if self.low is None or self.high is None:
            return False
        return low <= self.low and self.high <= high


def closed_share(gaps: FloatArray, gaps_with: FloatArray, *, level: float) -> ClosedShare:
    """The share of the gap that the intervention closes, with its confidence sequence.

    Parameters
    ----------
    gaps, gaps_with
        Shape (n,): the difference candidate minus baseline in each block without and with the
        intervention, in the order of the blocks; both in log units or both in the metric's unit.
        ±inf where one of a pair timed out, NaN where both did.
    level
        1 minus the coverage of the whole sequence: the set after *every* number of blocks holds
        the true share in all but this share of campaigns (Ville's inequality).

    Raises
    ------
    UnusableInput
        If the lengths differ, or the level does not lie between 0 and 1.

    Notes
    -----
    verdict.md §7 with the bets of §1. The scale of z(s) is learnt from past blocks; the set is
    ``{s : max over n of E±_n(s) < 2 / level}``. It need not be one interval, since z(s) rises
    in some blocks and falls in others where the gap is small beside its noise.
    """
    if len(gaps) != len(gaps_with):
        raise UnusableInput(
            f"{len(gaps)} gaps without the intervention and {len(gaps_with)} with it",
            mend="give one of each for every block",
        )
    if not 0 < level < 1:
        raise UnusableInput(
            f"the level is {level}", mend="give a number between 0 and 1, such as 0.05"
        )
    shares = np.arange(LOWEST, HIGHEST + STEP / 2, STEP)
    inside = _fit(shares, gaps, gaps_with, level)
    return ClosedShare(_estimate(gaps, gaps_with), _pieces(shares, inside, gaps, gaps_with, level))


def fits(share: float, gaps: FloatArray, gaps_with: FloatArray, *, level: float) -> bool:
    """Whether this one share lies in the set of :func:`closed_share`."""
    return bool(_fit(np.array([share]), gaps, gaps_with, level)[0])


def _fit(shares: FloatArray, gaps: FloatArray, gaps_with: FloatArray, level: float) -> BoolArray:
    """Which of the shares were never excluded."""
    up = np.zeros((len(STAKES), len(shares)))
    down = np.zeros_like(up)
    most = np.full(len(shares), -np.inf)
    past = np.empty((0, len(shares)))
    for gap, gap_with in zip(gaps, gaps_with, strict=True):
        with np.errstate(invalid="ignore"):
            remainder = gap_with - (1.0 - shares) * gap
        payoff = _payoff(remainder, past)
        up += np.log1p(STAKES[:, None] * payoff)
        down += np.log1p(-STAKES[:, None] * payoff)
        most = np.maximum(most, np.maximum(_ln_wealth(up), _ln_wealth(down)))
        if np.isfinite(remainder).all():
            past = np.vstack((past, remainder))
    kept: BoolArray = most < np.log(2.0 / level)
    return kept


def _payoff(remainder: FloatArray, past: FloatArray) -> FloatArray:
    """Between -1 and 1 for each share; a block that says nothing of a share pays nothing."""
    known = np.where(np.isnan(remainder), 0.0, remainder)
    if len(past) < BLOCKS_FOR_A_SCALE:
        signs: FloatArray = np.sign(known)
        return signs
    scale = MAD_TO_SD * np.median(np.abs(past - np.median(past, axis=0)), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        paid = np.clip(known / (CLIP * scale), -1.0, 1.0)
    payoff: FloatArray = np.where(scale > 0, paid, np.sign(known))
    return payoff


def _ln_wealth(logs: FloatArray) -> FloatArray:
    """ln of the mean over the stakes, shape (shares,)."""
    largest = logs.max(axis=0)
    wealth: FloatArray = largest + np.log(np.mean(np.exp(logs - largest), axis=0))
    return wealth


def _estimate(gaps: FloatArray, gaps_with: FloatArray) -> float | None:
    known = ~(np.isnan(gaps) | np.isnan(gaps_with))
    if not known.any():
        return None
    gap, gap_with = float(np.median(gaps[known])), float(np.median(gaps_with[known]))
    if gap == 0 or not np.isfinite([gap, gap_with]).all():
        return None
    return 1.0 - gap_with / gap


def _pieces(
    shares: FloatArray,
    inside: BoolArray,
    gaps: FloatArray,
    gaps_with: FloatArray,
    level: float,
) -> tuple[Reach, ...]:
    """The runs of shares that fit, their ends found between the shares that were tried."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], inside, [False]))))
    pieces: list[Reach] = []
    for first, beyond in zip(edges[::2], edges[1::2], strict=True):
        last = beyond - 1
        low = high = None
        if first > 0:
            low = _edge(shares[first], shares[first - 1], gaps, gaps_with, level)
        if beyond < len(shares):
            high = _edge(shares[last], shares[beyond], gaps, gaps_with, level)
        pieces.append((low, high))
    return tuple(pieces)


def _edge(
    inside: float, outside: float, gaps: FloatArray, gaps_with: FloatArray, level: float
) -> float:
    """The outermost share between the two that was seen to lie on the safe side: outside."""
    for _ in range(REFINEMENTS):
        middle = 0.5 * (inside + outside)
        if fits(middle, gaps, gaps_with, level=level):
            inside = middle
        else:
            outside = middle
    return float(outside)
