"""Pairs of smallest total distance, by a minimum-cost flow, with a proof that they are optimal.

The flow is solved on a sparse graph of near pairs. Its dual prices then bound the distance of every
other pair from below. Pairs that are cheaper than their prices join the graph, until there are
none: the pairs are then optimal among all admissible pairs (column generation; Ahuja, Magnanti and
Orlin 1993, Network Flows, chapters 9 and 11).
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise_matching.designs.distance import (
    Candidates,
    Distances,
    Start,
    concatenated,
)
from equipoise_matching.matching.units import Floats, Indices, Truths
from equipoise_matching.shared.extras import require

SOLVER_BITS = 56
"""The solver's costs times its number of nodes stay below 2^56, so that no price overflows."""
COST_BITS = 36
"""Distances become whole numbers below 2^36, or fewer if the graph is large."""
FIRST_PENALTY = 16
"""First penalty for a unit without a pair, as a multiple of the largest distance."""
MARGIN_SHARE = 0.02
"""Pairs join the graph if they are cheaper than their prices and this share of the mean distance."""
PAIRS_OF_A_ROUND = 16
"""Largest number of pairs of a unit that join the graph in the first round; then it doubles."""


@dataclass(frozen=True, slots=True)
class Degrees:
    """In how many pairs each unit of an arm is: from ``minimum`` to ``maximum``.

    Up to ``max_omitted`` units may be in no pair, if the minimum is 1.
    """

    minimum: int
    maximum: int
    max_omitted: int = 0


@dataclass(frozen=True, slots=True)
class Certificate:
    """A proof of optimality: no admissible pairs have a total distance below ``lower_bound``.

    Parameters
    ----------
    total_distance
        Sum of the distances of the pairs.
    lower_bound
        Value of the dual solution. The solver has whole numbers, so it is below the total distance
        by the rounding of the distances.
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
class PairFlow:
    """The pairs of a flow.

    ``unmet`` (n1,) and (n2,) are the pairs that each unit lacks to its minimum.
    """

    pairs: Candidates
    first_unmet: Indices
    second_unmet: Indices
    certificate: Certificate


def cheapest_pairs(
    distances: Distances,
    start: Start,
    first: Degrees,
    second: Degrees,
    is_in: tuple[Truths, Truths],
) -> PairFlow:
    """Return the pairs of smallest total distance in which each unit has its degree.

    ``is_in`` (n1,) and (n2,) are false for units that need no pair. If the degrees cannot hold, as
    few units as possible lack pairs. If it is possible, each unit of the first arm has at least one.

    Raise `UnusableInput` if the package ortools is not installed.
    """
    n1, n2 = distances.shape
    most_pairs = first.minimum * int(is_in[0].sum()) + second.minimum * int(is_in[1].sum())
    candidates, rounds = start.candidates, 0
    # A small penalty keeps more digits of the distances. It is enough unless a unit stays unmet.
    for penalty in (FIRST_PENALTY, most_pairs + 1):
        costs = _Costs.of(distances, penalty)
        while True:
            rounds += 1
            graph = _Graph.of(candidates, distances.shape, first, second, is_in, costs)
            flow, costs = _solved(graph, costs)
            if costs != graph.costs:
                continue
            prices = _prices(graph, flow)
            limit = PAIRS_OF_A_ROUND << min(rounds - 1, 16)
            added = _cheaper_pairs(distances, start, candidates, graph, flow, prices, limit)
            if not len(added):
                break
            candidates = concatenated([candidates, added])
        unmet = graph.unmet(flow)
        if not unmet[0].any() and not unmet[1].any():
            break
    chosen = candidates.subset(flow[: len(candidates)] > 0)
    lower_bound = graph.lower_bound(prices, flow, unmet, most_pairs)
    total = math.fsum(chosen.distance)
    certificate = Certificate(total, min(lower_bound, total), len(candidates), rounds)
    order = np.lexsort((chosen.second, chosen.first))
    return PairFlow(chosen.subset(order), *unmet, certificate)


@dataclass(frozen=True, slots=True)
class _Costs:
    """How distances become whole numbers: distance / unit, and the cost of a missing pair."""

    unit: float
    penalty: int
    penalty_multiple: int

    @classmethod
    def of(cls, distances: Distances, penalty_multiple: int, bits: int = COST_BITS) -> _Costs:
        largest = distances.upper_bound()
        nodes = sum(distances.shape) + 8
        # The last of several missing pairs costs the penalty twice.
        top = min(2**bits, 2**SOLVER_BITS // (nodes * 2 * penalty_multiple))
        return cls(largest / top or 1.0, penalty_multiple * (top + 1), penalty_multiple)

    def coarser(self) -> _Costs:
        """Return costs that are smaller by a factor of 64, after an overflow."""
        return _Costs(self.unit * 64, self.penalty // 64, self.penalty_multiple)

    def rounded(self, distance: Floats) -> Indices:
        """Return distances as whole numbers of units."""
        return np.rint(distance / self.unit).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Graph:
    """A minimum-cost flow problem, whose first arcs are the candidate pairs.

    Nodes are the units of the first arm, then those of the second, then four others. A unit of the
    first arm supplies its minimum, and gets more from ``source``. A unit of the second arm takes its
    minimum, and passes more on to ``sink``. ``omitted`` nodes stand in for units that are left out.
    """

    tail: Indices
    head: Indices
    capacity: Indices
    cost: Indices
    supply: Indices
    shape: tuple[int, int]
    costs: _Costs
    first_penalties: slice
    """Arcs whose flow are missing pairs of units of the first arm."""
    second_penalties: slice

    @classmethod
    def of(
        cls,
        pairs: Candidates,
        shape: tuple[int, int],
        first: Degrees,
        second: Degrees,
        is_in: tuple[Truths, Truths],
        costs: _Costs,
    ) -> _Graph:
        n1, n2 = shape
        source, sink, first_omitted, second_omitted = range(n1 + n2, n1 + n2 + 4)
        rows, columns = np.arange(n1), np.arange(n1, n1 + n2)
        first_minimum, second_minimum = first.minimum * is_in[0], second.minimum * is_in[1]
        spare = int(first_minimum.sum() + second_minimum.sum()) + second.max_omitted
        penalty = costs.penalty
        arcs = [
            (pairs.first, n1 + pairs.second, 1, costs.rounded(pairs.distance)),
            # A missing last pair costs more: first each unit gets a pair, then some get several.
            (rows, sink, np.minimum(first_minimum, 1), penalty * min(first.minimum, 2)),
            (rows, sink, np.maximum(first_minimum - 1, 0), penalty),
            (source, columns, second_minimum, penalty),
            (source, rows, max(min(first.maximum, n2) - first.minimum, 0) * is_in[0], 0),
            (columns, sink, max(min(second.maximum, n1) - second.minimum, 0) * is_in[1], 0),
            (source, sink, spare + first.max_omitted, 0),
            (rows, first_omitted, min(first.max_omitted, 1) * is_in[0], 0),
            (source, first_omitted, first.max_omitted, 0),
            (second_omitted, columns, min(second.max_omitted, 1) * is_in[1], 0),
            (second_omitted, sink, second.max_omitted, 0),
        ]
        broadcast = [np.broadcast_arrays(*(np.atleast_1d(part) for part in arc)) for arc in arcs]
        ends = np.cumsum([len(arc[0]) for arc in broadcast])
        tail, head, capacity, cost = (
            np.concatenate([arc[part] for arc in broadcast]).astype(np.int64) for part in range(4)
        )
        supply = np.zeros(n1 + n2 + 4, dtype=np.int64)
        supply[rows], supply[columns] = first_minimum, -second_minimum
        supply[source] = spare + first.max_omitted
        supply[first_omitted], supply[second_omitted] = -first.max_omitted, second.max_omitted
        supply[sink] = -supply.sum()
        return cls(
            *(tail, head, capacity, cost, supply, shape, costs),
            slice(int(ends[0]), int(ends[2])),
            slice(int(ends[2]), int(ends[3])),
        )

    def unmet(self, flow: Indices) -> tuple[Indices, Indices]:
        """Return the missing pairs of each unit of both arms."""
        n1, n2 = self.shape
        first, second = flow[self.first_penalties], flow[self.second_penalties]
        return first[:n1] + first[n1:], second

    def lower_bound(
        self, prices: Indices, flow: Indices, unmet: tuple[Indices, Indices], most_pairs: int
    ) -> float:
        """Return the dual value as a distance, less the penalties and the rounding of distances."""
        reduced = self.cost + prices[self.tail] - prices[self.head]
        saturated = np.minimum(reduced, 0) * self.capacity
        # Whole numbers of Python do not overflow.
        dual = sum(saturated[saturated < 0].tolist())
        dual -= sum(map(int.__mul__, self.supply.tolist(), prices.tolist()))
        penalties = slice(self.first_penalties.start, self.second_penalties.stop)
        dual -= sum(map(int.__mul__, self.cost[penalties].tolist(), flow[penalties].tolist()))
        return (dual - most_pairs / 2) * self.costs.unit


def _solved(graph: _Graph, costs: _Costs) -> tuple[Indices, _Costs]:
    """Return an optimal flow on each arc; if the costs overflow, coarser costs to try again."""
    require("ortools", "minimum-cost flows", "flow")
    min_cost_flow: Any = importlib.import_module("ortools.graph.python.min_cost_flow")
    solver = min_cost_flow.SimpleMinCostFlow()
    is_open = graph.capacity > 0
    arcs = solver.add_arcs_with_capacity_and_unit_cost(
        graph.tail[is_open].astype(np.int32),
        graph.head[is_open].astype(np.int32),
        graph.capacity[is_open],
        graph.cost[is_open],
    )
    solver.set_nodes_supplies(np.arange(len(graph.supply), dtype=np.int32), graph.supply)
    status = solver.solve()
    if status == solver.BAD_COST_RANGE:
        return np.zeros(len(graph.tail), dtype=np.int64), costs.coarser()
    assert status == solver.OPTIMAL, f"the solver ended with {status}"
    flow = np.zeros(len(graph.tail), dtype=np.int64)
    flow[is_open] = solver.flows(arcs)
    return flow, costs


def _prices(graph: _Graph, flow: Indices) -> Indices:
    """Return dual prices: cost + price of the tail - price of the head is 0 or more if an arc has
    capacity left, and 0 or less if it has flow.

    They are the shortest distances from the sink in the residual graph (Bellman and Ford), except
    that a unit of the second arm has the lowest possible price. So few other pairs seem cheap.
    """
    has_capacity, has_flow = flow < graph.capacity, flow > 0
    tail = np.concatenate([graph.tail[has_capacity], graph.head[has_flow]])
    head = np.concatenate([graph.head[has_capacity], graph.tail[has_flow]])
    cost = np.concatenate([graph.cost[has_capacity], -graph.cost[has_flow]])
    order = np.argsort(head, kind="stable")
    tail, head, cost = tail[order], head[order], cost[order]
    heads, starts = np.unique(head, return_index=True)
    n1, n2 = graph.shape
    sink = n1 + n2 + 1
    prices = np.full(len(graph.supply), 4 * graph.costs.penalty, dtype=np.int64)
    prices[sink] = 0
    for _ in range(len(prices) + 1):
        shortest = np.minimum.reduceat(prices[tail] + cost, starts)
        is_shorter = shortest < prices[heads]
        if not is_shorter.any():
            break
        prices[heads[is_shorter]] = shortest[is_shorter]
    else:
        raise AssertionError("the flow is not optimal: its residual graph has a negative cycle")
    is_second = (tail >= n1) & (tail < n1 + n2)
    lowest = np.full(len(prices), np.iinfo(np.int64).min)
    np.maximum.at(lowest, tail[is_second], prices[head[is_second]] - cost[is_second])
    seconds = slice(n1, n1 + n2)
    has_arc = lowest[seconds] > np.iinfo(np.int64).min
    # A unit without an arc has no admissible pair, so its price is never high enough.
    prices[seconds] = np.where(has_arc, lowest[seconds], -prices[seconds])
    return prices


def _cheaper_pairs(
    distances: Distances,
    start: Start,
    known: Candidates,
    graph: _Graph,
    flow: Indices,
    prices: Indices,
    limit: int,
) -> Candidates:
    """Return pairs outside the graph that cost less than their prices; none if none does.

    Pairs that cost a little more come with them, because the next prices may be higher.
    """
    n1, n2 = graph.shape
    if len(known) >= n1 * n2 or not _is_open(start):
        return known.subset(np.zeros(0, dtype=np.int64))
    unit = graph.costs.unit
    used = known.subset(flow[: len(known)] > 0)
    # Pairs in use may cost less than their prices. They must not take the places of new pairs.
    limits = limit + np.bincount(used.first, minlength=n1)
    margin = MARGIN_SHARE * float(used.distance.mean()) if len(used) else 0.0
    first, second = -prices[:n1], prices[n1 : n1 + n2]
    half_margin = margin / 2 + unit
    found = distances.cheaper(
        first * unit + half_margin, second * unit + half_margin, limits, start
    )
    keys = np.sort(known.first * n2 + known.second)
    found_keys = found.first * n2 + found.second
    places = np.minimum(np.searchsorted(keys, found_keys), len(keys) - 1)
    found = found.subset(keys[places] != found_keys)
    cost = graph.costs.rounded(found.distance)
    is_cheaper = cost < first[found.first] + second[found.second]
    return found if is_cheaper.any() else found.subset(is_cheaper)


def _is_open(start: Start) -> bool:
    """Return whether there may be admissible pairs that are not candidates yet."""
    return bool(np.isfinite(start.first_radius).any() and np.isfinite(start.second_radius).any())
