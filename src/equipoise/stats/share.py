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
from equipoise.model.interval import Interval
from equipoise.stats.arrays import BoolArray, FloatArray

STAKES = np.array([0.1, 0.3, 0.6, 0.9])
"""The shares of the money that are staked (verdict.md §1)."""

CLIP = 1.25
"""A bet pays all at so many robust standard deviations (verdict.md §1)."""

BLOCKS_FOR_A_SCALE = 3
"""So many blocks are bet on by sign alone."""

MAD_TO_SD = 1.4826

COARSE, FINE = 0.1, 0.02
"""Steps between the shares that are tried, far from and near to what a share can well be."""
SHARES_TRIED: FloatArray = np.unique(
    np.round(
        np.concatenate(
            (
                np.arange(-3.0, -1.0, COARSE),
                np.arange(-1.0, 2.0 + FINE / 2, FINE),
                np.arange(2.0, 4.0 + COARSE / 2, COARSE),
            )
        ),
        2,
    )
)
"""An end of the set at the first or the last means that it may go on beyond. The limits of
`equipoise.stats.intervention` are among them, so that they are judged exactly."""

ZOOM = 100
"""So many shares are tried between two neighbours, to see the end of a set, or one that lies
between them."""
ZOOMS = 2
"""To a hundredth of a hundredth of a step."""

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


class ClosingBlocks:
    """The blocks of one intervention on one scale, as they come; see `closed_share`.

    Parameters
    ----------
    level
        1 minus the coverage of the set.

    Raises
    ------
    UnusableInput
        If the level does not lie between 0 and 1.
    """

    def __init__(self, level: float) -> None:
        if not 0 < level < 1:
            raise UnusableInput(
                f"the level is {level}", hint="give a number between 0 and 1, such as 0.05"
            )
        self._level = level
        self._gaps: list[float] = []
        self._gaps_with: list[float] = []
        self._bets = _Bets(SHARES_TRIED, level)

    def append(self, gap: float, gap_with: float) -> None:
        """Take the next block; the two as for `closed_share`."""
        self._gaps.append(gap)
        self._gaps_with.append(gap_with)
        self._bets.take(gap, gap_with)

    def so_far(self) -> ClosedShare:
        """What is known after these blocks, its ends rounded outwards to shares that were tried."""
        estimate = _estimate(np.array(self._gaps), np.array(self._gaps_with))
        return ClosedShare(estimate, self._tried() or self._narrow(estimate))

    def exactly(self) -> ClosedShare:
        """What is known after these blocks, its ends as they are."""
        gaps, gaps_with = np.array(self._gaps), np.array(self._gaps_with)
        estimate = _estimate(gaps, gaps_with)
        pieces = tuple(_sharpened(piece, gaps, gaps_with, self._level) for piece in self._tried())
        return ClosedShare(estimate, pieces or self._narrow(estimate))

    def _tried(self) -> tuple[Reach, ...]:
        return _pieces(SHARES_TRIED, self._bets.kept)

    def _narrow(self, estimate: float | None) -> tuple[Reach, ...]:
        """A set that lies between two shares tried: the gap is very large beside its noise."""
        if estimate is None:
            return ()
        gaps, gaps_with = np.array(self._gaps), np.array(self._gaps_with)
        return _between(estimate, gaps, gaps_with, self._level)


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
    in some blocks and falls in others where the gap is small beside its noise. Each end is the
    nearest share that was seen to lie outside.
    """
    if len(gaps) != len(gaps_with):
        raise UnusableInput(
            f"{len(gaps)} gaps without the intervention and {len(gaps_with)} with it",
            hint="give one of each for every block",
        )
    blocks = ClosingBlocks(level)
    for gap, gap_with in zip(gaps, gaps_with, strict=True):
        blocks.append(float(gap), float(gap_with))
    return blocks.exactly()


def fits(share: float, gaps: FloatArray, gaps_with: FloatArray, *, level: float) -> bool:
    """Whether this one share lies in the set of :func:`closed_share`."""
    return bool(_fit(np.array([share]), gaps, gaps_with, level)[0])


def share_words(share: float | None, interval: Interval) -> str:
    """``97 % [94, 99]``; an end that is not known is ``…``."""
    if share is None:
        return "unknown"
    low, high = interval
    if low is None and high is None:
        return f"about {_percent(share)} %"
    ends = ", ".join("…" if one is None else _percent(one) for one in (low, high))
    return f"{_percent(share)} % [{ends}]"


def _percent(share: float) -> str:
    return f"{round(100 * share)}"


class _Bets:
    """Bets on some shares; one that was excluded never comes back, and is bet on no more."""

    def __init__(self, shares: FloatArray, level: float) -> None:
        self._shares = shares
        self._limit = np.log(2.0 / level)
        self.kept: BoolArray = np.ones(len(shares), dtype=bool)
        self._up = np.zeros((len(STAKES), len(shares)))
        self._down = np.zeros_like(self._up)
        self._past = np.empty((0, len(shares)))

    def take(self, gap: float, gap_with: float) -> None:
        """Bet on one block."""
        if not len(self._shares):
            return
        with np.errstate(invalid="ignore"):
            # Of a gap without end, all of it leaves nothing.
            left = np.where(self._shares == 1.0, 0.0, (1.0 - self._shares) * gap)
            remainder = gap_with - left
        payoff = _payoff(remainder, self._past)
        self._up += np.log1p(STAKES[:, None] * payoff)
        self._down += np.log1p(-STAKES[:, None] * payoff)
        if np.isfinite(gap) and np.isfinite(gap_with):
            self._past = np.vstack((self._past, remainder))
        kept = np.maximum(_ln_wealth(self._up), _ln_wealth(self._down)) < self._limit
        if not kept.all():
            self.kept[np.flatnonzero(self.kept)[~kept]] = False
            self._shares, self._past = self._shares[kept], self._past[:, kept]
            self._up, self._down = self._up[:, kept], self._down[:, kept]


def _fit(shares: FloatArray, gaps: FloatArray, gaps_with: FloatArray, level: float) -> BoolArray:
    """Which of the shares were never excluded."""
    bets = _Bets(shares, level)
    for gap, gap_with in zip(gaps, gaps_with, strict=True):
        bets.take(float(gap), float(gap_with))
    return bets.kept


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


def _pieces(shares: FloatArray, inside: BoolArray) -> tuple[Reach, ...]:
    """The runs of shares that fit, each from the last one outside to the next one outside."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], inside, [False]))))
    return tuple(
        (
            float(shares[first - 1]) if first > 0 else None,
            float(shares[beyond]) if beyond < len(shares) else None,
        )
        for first, beyond in zip(edges[::2], edges[1::2], strict=True)
    )


def _between(
    estimate: float, gaps: FloatArray, gaps_with: FloatArray, level: float
) -> tuple[Reach, ...]:
    """A set that lies between two shares tried, as near to its estimate as it must be then."""
    place = int(np.searchsorted(SHARES_TRIED, estimate))
    if not 0 < place < len(SHARES_TRIED):
        return ()
    low, high = SHARES_TRIED[place - 1], SHARES_TRIED[place]
    for _ in range(ZOOMS):
        shares = np.linspace(low, high, ZOOM + 1)
        pieces = _pieces(shares, _fit(shares, gaps, gaps_with, level))
        if pieces:
            return pieces
        nearest = int(np.clip(np.searchsorted(shares, estimate), 1, ZOOM))
        low, high = shares[nearest - 1], shares[nearest]
    return ()


def _sharpened(piece: Reach, gaps: FloatArray, gaps_with: FloatArray, level: float) -> Reach:
    """A piece whose ends are shares tried, with its ends as they are."""
    low, high = piece
    if low is not None:
        neighbour = SHARES_TRIED[np.searchsorted(SHARES_TRIED, low) + 1]
        low = _edge(low, neighbour, gaps, gaps_with, level)
    if high is not None:
        neighbour = SHARES_TRIED[np.searchsorted(SHARES_TRIED, high) - 1]
        high = _edge(high, neighbour, gaps, gaps_with, level)
    return (low, high)


def _edge(
    outside: float, inside: float, gaps: FloatArray, gaps_with: FloatArray, level: float
) -> float:
    """The last share outside, on the way from one that is outside to one inside."""
    for _ in range(ZOOMS):
        shares = np.linspace(outside, inside, ZOOM + 1)
        first = int(np.argmax(_fit(shares, gaps, gaps_with, level)))
        outside, inside = shares[first - 1], shares[first]
    return float(outside)
