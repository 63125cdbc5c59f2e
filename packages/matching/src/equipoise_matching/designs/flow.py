"""Pairs of smallest total distance, by a minimum-cost flow, with a proof that they are optimal.

The flow is solved on a sparse graph of near pairs (``flow.rs``). Its dual prices then bound the
distance of every other pair from below. Pairs that are cheaper than their prices join the graph,
until there are none: the pairs are then optimal among all admissible pairs (column generation;
Ahuja, Magnanti and Orlin 1993, Network Flows, sections 9.7 and 11.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from equipoise_matching import _native
from equipoise_matching.designs.distance import Candidates, Distances, Start, concatenated
from equipoise_matching.matching.units import Floats, Indices

COST_BITS = 44
"""Distances become whole numbers below 2^44, or fewer if there are very many units."""
PENALTY_BITS = 58
"""A missing pair costs less than 2^58, so that no sum of a path overflows."""
MARGIN_SHARE = 0.02
"""Pairs also join the graph if they cost this share of the mean distance more than their prices."""
PAIRS_OF_A_ROUND = 4
"""Largest number of pairs of a unit that join the graph in the first three rounds; it doubles after
each later round."""


@dataclass(frozen=True, slots=True, eq=False)
class Degrees:
    """In how many pairs each unit of an arm is: from ``minimum`` to ``maximum``, shapes (n,).

    A unit stands for ``rows`` (n,) equal rows. Up to ``max_omitted`` units may be in no pair, if
    their minimum is 1.
    """

    minimum: Indices
    maximum: Indices
    rows: Indices
    max_omitted: int = 0

    @property
    def simple_missing(self) -> Indices:
        """How many pairs a unit may lack at the simple penalty, shape (n,)."""
        return np.where(self.minimum > self.rows, self.minimum - self.rows, self.minimum)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A proof of optimality: no admissible pairs have a total distance below ``lower_bound``.

    Parameters
    ----------
    total_distance
        Sum of the distances of the pairs.
    lower_bound
        Value of the dual solution, less the rounding of distances to whole numbers.
    arcs
        Number of pairs in the last graph.
    rounds
        Number of graphs that were solved.
    """

    total_distance: float
    lower_bound: float
    arcs: int
    rounds: int

    @property
    def gap(self) -> float:
        """Largest possible excess of the total distance over the smallest one."""
        return self.total_distance - self.lower_bound


@dataclass(frozen=True, slots=True, eq=False)
class FlowResult:
    """Pairs of smallest total distance, sorted.

    ``times`` (pairs,) is how often each pair is formed, more than once only for units of several
    rows. ``missing`` has the pairs that each unit of both arms lacks to its minimum: (n1,), (n2,).
    """

    pairs: Candidates
    times: Indices
    missing: tuple[Indices, Indices]
    certificate: Certificate


def cheapest_pairs(
    distances: Distances, start: Start, first: Degrees, second: Degrees
) -> FlowResult:
    """Return the pairs of smallest total distance in which each unit has its degree.

    If the degrees cannot hold, as few pairs as possible are missing, and as few rows as possible
    have none.
    """
    n1, n2 = distances.shape
    most_pairs = int(first.minimum.sum() + second.minimum.sum())
    largest = distances.upper_bound()
    top = min(2**COST_BITS, 2**PENALTY_BITS // (most_pairs + 1))
    unit = largest / top or 1.0
    penalty = (most_pairs + 1) * (top + 1)
    flow = _native.PairFlow(
        (first.minimum, first.maximum, first.rows),
        (second.minimum, second.maximum, second.rows),
        (first.max_omitted, second.max_omitted),
        penalty,
    )
    candidates, added, rounds = start.candidates.subset(slice(0)), start.candidates, 0
    while len(added) or not rounds:
        flow.add(added.first, added.second, _whole(added.distance, unit))
        candidates = _merged(candidates, added, n2)
        prices = flow.prices(0), flow.prices(1)
        units, times = flow.pairs()
        chosen = _pairs_among(candidates, *units, n2)
        limit = PAIRS_OF_A_ROUND << min(max(rounds - 2, 0), 16)
        limits = limit + np.bincount(chosen.first, minlength=n1)
        added = _cheaper_pairs(distances, start, candidates, chosen, prices, limits, unit)
        rounds += 1
    missing, arms = (flow.missing(0), flow.missing(1)), (first, second)
    dual = _dual_value(candidates, unit, prices, arms, penalty)
    for arm, lacking in zip(arms, missing, strict=True):
        doubly = np.maximum(lacking - arm.simple_missing, 0)
        dual -= penalty * int(lacking.sum() + doubly.sum())
    total = math.fsum(chosen.distance * times)
    lower_bound = min((dual - most_pairs / 2) * unit, total)
    certificate = Certificate(total, lower_bound, len(candidates), rounds)
    return FlowResult(chosen, times, missing, certificate)


def _whole(distance: Floats, unit: float) -> Indices:
    """Return distances as whole numbers of units."""
    return np.rint(distance / unit).astype(np.int64)


def _merged(known: Candidates, added: Candidates, n2: int) -> Candidates:
    """Return the pairs of both, sorted."""
    merged = concatenated([known, added])
    return merged.subset(np.argsort(merged.first * n2 + merged.second, kind="stable"))


def _pairs_among(candidates: Candidates, first: Indices, second: Indices, n2: int) -> Candidates:
    """Return the candidates with these units; the candidates are sorted."""
    keys = candidates.first * n2 + candidates.second
    return candidates.subset(np.searchsorted(keys, first * n2 + second))


def _cheaper_pairs(
    distances: Distances,
    start: Start,
    known: Candidates,
    chosen: Candidates,
    prices: tuple[Indices, Indices],
    limits: Indices,
    unit: float,
) -> Candidates:
    """Return pairs outside the graph that cost less than their prices; none if none does.

    Pairs that cost a little more come with them, because the next prices may be higher.
    """
    n1, n2 = distances.shape
    nothing = known.subset(slice(0))
    if len(known) >= n1 * n2 or not _is_open(start):
        return nothing
    margin = MARGIN_SHARE * float(chosen.distance.mean()) if len(chosen) else 0.0
    half_margin = np.float64(margin / 2 + unit)
    found = distances.cheaper(
        half_margin - prices[0] * unit, half_margin + prices[1] * unit, limits, start
    )
    if not len(found):
        return nothing
    keys, found_keys = known.first * n2 + known.second, found.first * n2 + found.second
    places = np.minimum(np.searchsorted(keys, found_keys), max(len(keys) - 1, 0))
    if len(keys):
        found = found.subset(keys[places] != found_keys)
    cost = _whole(found.distance, unit)
    is_cheaper = cost < prices[1][found.second] - prices[0][found.first]
    return found if is_cheaper.any() else nothing


def _is_open(start: Start) -> bool:
    """Return whether there may be admissible pairs that are not candidates yet."""
    return bool(np.isfinite(start.first_radius).any() and np.isfinite(start.second_radius).any())


def _dual_value(
    candidates: Candidates,
    unit: float,
    prices: tuple[Indices, Indices],
    arms: tuple[Degrees, Degrees],
    penalty: int,
) -> int:
    """Return a lower bound of the cost of any pairs, in units (Lagrange's relaxation of degrees).

    Whatever the prices, the bound holds if no pair outside the graph costs less than its prices.
    """
    reduced = _whole(candidates.distance, unit)
    reduced += prices[0][candidates.first] - prices[1][candidates.second]
    is_cheap = reduced < 0
    cheap = candidates.subset(is_cheap)
    capacity = arms[0].rows[cheap.first] * arms[1].rows[cheap.second]
    capacity = np.minimum(capacity, arms[0].maximum[cheap.first])
    capacity = np.minimum(capacity, arms[1].maximum[cheap.second])
    value = _sum_of_products(reduced[is_cheap], capacity)
    for arm, price, sign in zip(arms, prices, (1, -1), strict=True):
        gains = sign * price
        value -= _sum_of_products(gains, arm.minimum)
        value -= _sum_of_products(np.maximum(gains, 0), np.maximum(arm.maximum - arm.minimum, 0))
        # A missing pair is worth its penalty; the last of several of a row is worth it twice.
        simple = arm.simple_missing
        value += _sum_of_products(np.minimum(gains + penalty, 0), simple)
        value += _sum_of_products(np.minimum(gains + 2 * penalty, 0), arm.minimum - simple)
        omitted = np.minimum(np.sort(gains[arm.minimum == 1])[: arm.max_omitted], 0)
        value += _sum_of_products(omitted, np.ones_like(omitted))
    return value


def _sum_of_products(left: Indices, right: Indices) -> int:
    """Return the sum of the products, without overflow."""
    bits = [int(np.abs(side).max(initial=0)).bit_length() for side in (left, right)]
    if sum(bits) + len(left).bit_length() < 63:
        return int(left @ right)
    return sum(map(int.__mul__, left.tolist(), right.tolist()))
