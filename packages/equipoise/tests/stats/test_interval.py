"""The interval of the engine equals a direct evaluation of docs/methods/interval.md in numpy."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, special, stats

from equipoise._native import BettingSequence

FloatArray = NDArray[np.float64]
BETTORS = np.array(
    [
        [0.015, 0.0075, 0.0075],
        [0.025, 0.03125, 0.03125],
        [0.05, 0.15, 0.15],
        [0.32, 0.425, 0.425],
        [0.34, 0.925, 0.76],
        [0.25, 2.25, 0.95],
    ]
)
"""Weight, slope and cap of each bettor."""
ROUNDING = 1e-12
"""Least tolerance of a block."""
NEAR = 1e-9
"""So close to a bound the oracle is asked, but no closer, because of its rounding."""

GRID = np.linspace(-2.0, 2.0, 81) + 0.00137
"""On none of the steps that coarse differences have at hundredths."""


def scale_of(values: FloatArray, centre: float) -> float:
    deviations = np.abs(values - centre)
    spread = float(1.4826 * np.median(deviations))
    second_moment = (
        special.erf(1.5 / math.sqrt(2)) - 3.0 * stats.norm.pdf(1.5) + 4.5 * stats.norm.sf(1.5)
    )
    bounded = np.minimum(deviations, 1.5 * spread)
    return float(np.sqrt(np.mean(bounded**2) / second_moment) * (1.0 + 1.0 / len(values)))


def scale_and_slot(differences: FloatArray, orders: FloatArray) -> tuple[float, float]:
    """Scale and order effect from past blocks; the scale is 0 without blocks."""
    count = len(differences)
    if count < 3:
        return (float(np.sqrt(np.mean(differences**2))) if count else 0.0), 0.0
    plain = scale_of(differences, float(np.median(differences)))
    later, earlier = differences[orders > 0], differences[orders < 0]
    if count < 6 or len(later) == 0 or len(earlier) == 0:
        return plain, 0.0
    slot = float(np.median(later) - np.median(earlier)) / 2.0
    centre = float(np.median(later) + np.median(earlier)) / 2.0
    corrected = scale_of(differences - orders * slot, centre)
    if abs(slot) > 2.5 * corrected / math.sqrt(count):
        return corrected, slot
    return plain, 0.0


def wealth(
    differences: FloatArray,
    orders: FloatArray,
    tolerance: float,
    thetas: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """E⁺ and E⁻ after each block, each of shape (blocks, thetas)."""
    payoffs = payoffs_of(differences, orders, tolerance, thetas)
    weights, slopes, caps = (column[:, None, None] for column in BETTORS.T)
    stakes = np.clip(slopes * payoffs, -caps, caps)
    slower = (weights * np.cumprod(1 + stakes, axis=1)).sum(axis=0)
    faster = (weights * np.cumprod(1 - stakes, axis=1)).sum(axis=0)
    return slower, faster


def payoffs_of(
    differences: FloatArray,
    orders: FloatArray,
    tolerance: float,
    thetas: FloatArray,
) -> FloatArray:
    """Payoffs of each block for a bet on "slower", of shape (blocks, thetas)."""
    payoffs = np.empty((len(differences), len(thetas)))
    tolerance = max(tolerance, ROUNDING)
    for block in range(len(differences)):
        scale, slot = scale_and_slot(differences[:block], orders[:block])
        distance = differences[block] - orders[block] * slot - thetas
        width = max(1.25 * scale, tolerance)
        beyond = np.sign(distance) * np.maximum(np.abs(distance) - tolerance, 0.0)
        payoffs[block] = np.sign(beyond) if width == 0 else np.clip(beyond / width, -1, 1)
    return payoffs


def block_that_reaches(payoffs: FloatArray, bar: float) -> int | None:
    """Number of the block after which the wealth reached the bar; ``None`` if it never did.

    A payoff is clamped to the value with which a win reaches the bar exactly.
    """
    weights, slopes, caps = BETTORS.T
    shares = weights.copy()
    for block, payoff in enumerate(payoffs.tolist(), start=1):

        def missing_after(won: float, shares: FloatArray = shares) -> float:
            return float(bar - np.sum(shares * (1 + np.minimum(slopes * won, caps))))

        most = abs(payoff)
        if most and missing_after(most) < 0:
            most = float(optimize.brentq(missing_after, 0.0, most, xtol=1e-15))
        shares = shares * (1 + np.clip(slopes * np.clip(payoff, -most, most), -caps, caps))
        if shares.sum() >= bar * (1 - 1e-12):
            return block
    return None


def engine(differences: FloatArray, orders: FloatArray, tolerance: float = 0.0) -> BettingSequence:
    return BettingSequence(
        np.ascontiguousarray(differences, dtype=np.float64),
        np.ascontiguousarray(orders, dtype=np.int8),
        np.full(len(differences), tolerance),
    )


@st.composite
def blocks(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    """Campaigns of up to 60 blocks, some with an order effect, an effect, or coarse differences."""
    count = draw(st.integers(1, 60))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    spread = draw(st.sampled_from([0.001, 0.02, 0.3]))
    orders = generator.choice([-1.0, 1.0], count)
    differences = generator.standard_t(3, count) * spread
    differences += draw(st.sampled_from([0.0, 0.01, -0.2]))
    differences += orders * draw(st.sampled_from([0.0, 0.05]))
    if draw(st.booleans()):
        differences = np.round(differences, 2)
    return differences, orders


@settings(max_examples=150, deadline=None)
@given(blocks(), st.sampled_from([0.0, 0.015]), st.sampled_from([0.05, 0.3]))
def test_the_running_interval_has_the_ratios_that_the_wealth_never_excluded(
    campaign: tuple[FloatArray, FloatArray], tolerance: float, level: float
) -> None:
    differences, orders = campaign
    low, high = engine(differences, orders, tolerance).running_interval(level)
    finite = [bound for bound in (low, high) if math.isfinite(bound)]
    grid = GRID[::8]
    thetas = np.concatenate([grid, [bound + near for bound in finite for near in (-NEAR, NEAR)]])
    payoffs = payoffs_of(differences, orders, tolerance, thetas)
    slower, faster = (
        np.array([block_that_reaches(sign * payoff, 2.0 / level) for payoff in payoffs.T])
        for sign in (1.0, -1.0)
    )
    assert np.array_equal(slower != None, thetas < low)  # noqa: E711
    assert np.array_equal(faster != None, thetas > high)  # noqa: E711
    in_full = wealth(differences, orders, tolerance, thetas)
    for reached, untruncated in zip((slower, faster), in_full, strict=True):
        for block, whole in zip(reached, untruncated.T, strict=True):
            crossings = np.flatnonzero(whole >= 2.0 / level)
            # A clamp at the bar is never later.
            assert not len(crossings) or block <= crossings[0] + 1


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.05, 0.3, 0.9]))
def test_larger_payoffs_never_reach_the_bar_later(seed: int, level: float) -> None:
    """Hence each side excludes a half-line of ratios."""
    generator = np.random.default_rng(seed)
    count = int(generator.integers(1, 80))
    smaller = np.clip(generator.normal(0.2, 0.8, count), -1, 1)
    larger = np.clip(
        smaller + generator.exponential(0.1, count) * (generator.random(count) < 0.3), -1, 1
    )
    after_smaller, after_larger = (
        block_that_reaches(payoffs, 2.0 / level) for payoffs in (smaller, larger)
    )
    assert after_smaller is None or (after_larger or math.inf) <= after_smaller


@settings(max_examples=100, deadline=None)
@given(blocks(), st.sampled_from([0.05, 0.005]))
def test_the_interval_at_the_stop_has_the_ratios_that_the_final_wealth_does_not_exclude(
    campaign: tuple[FloatArray, FloatArray], level: float
) -> None:
    differences, orders = campaign
    betting = engine(differences, orders)
    low, high = betting.interval_at_stop(level)
    thetas = np.append(GRID, 0.0)
    slower, faster = wealth(differences, orders, 0.0, thetas)
    assert np.array_equal(slower[-1, :-1] >= 2.0 / level, GRID < low)
    assert np.array_equal(faster[-1, :-1] >= 2.0 / level, GRID > high)
    by_hand = math.log((slower[-1, -1] + faster[-1, -1]) / 2.0)
    assert math.isclose(betting.ln_e_value(), by_hand, rel_tol=1e-9, abs_tol=1e-9)


@settings(max_examples=100, deadline=None)
@given(blocks(), st.sampled_from([0.0, 0.015]))
def test_exchanging_the_two_conditions_mirrors_the_interval(
    campaign: tuple[FloatArray, FloatArray], tolerance: float
) -> None:
    differences, orders = campaign
    low, high = engine(differences, orders, tolerance).running_interval(0.05)
    mirrored = engine(-differences, -orders, tolerance).running_interval(0.05)
    assert mirrored == (-high, -low)


@settings(max_examples=100, deadline=None)
@given(blocks(), st.floats(0.001, 0.5), st.floats(0.001, 0.5))
def test_a_smaller_level_never_has_a_narrower_interval(
    campaign: tuple[FloatArray, FloatArray], level: float, other_level: float
) -> None:
    betting = engine(*campaign)
    for interval in (betting.running_interval, betting.interval_at_stop):
        wide_low, wide_high = interval(min(level, other_level))
        low, high = interval(max(level, other_level))
        assert wide_low <= low
        assert high <= wide_high


@settings(max_examples=60, deadline=None)
@given(blocks())
def test_a_further_block_never_widens_the_running_interval(
    campaign: tuple[FloatArray, FloatArray],
) -> None:
    differences, orders = campaign
    growing = engine(differences[:0], orders[:0])
    low, high = growing.running_interval(0.05)
    assert (low, high) == (-math.inf, math.inf)
    for difference, order in zip(differences.tolist(), orders.tolist(), strict=True):
        growing.push(difference, int(order), 0.0)
        new_low, new_high = growing.running_interval(0.05)
        assert low <= new_low + 1e-14
        assert new_high <= high + 1e-14
        low, high = new_low, new_high


@settings(max_examples=60, deadline=None)
@given(blocks())
def test_the_interval_at_the_stop_is_never_empty(campaign: tuple[FloatArray, FloatArray]) -> None:
    low, high = engine(*campaign).interval_at_stop(0.5)
    assert low <= high
