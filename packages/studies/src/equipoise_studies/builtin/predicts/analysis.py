"""Correlate the cost of each primitive with a server's throughput over the conditions.

A primitive is an operation of the system, such as a TCP connection. A condition is, for example, an
allocator with a transport. Under each condition both the server and every primitive are measured.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from equipoise.model.result import Findings, FindingTable
from equipoise_studies.rank_correlation import (
    MIN_POINTS,
    RankCorrelation,
    chance_level,
    rank_correlation,
)
from equipoise_studies.study_data import StudyData, number_text, quantity_text

SERVER = "throughput"
"""Level of the factor ``measured`` for the server; every other level is a primitive."""
THROUGHPUT = "throughput_per_s"
"""Metric of the server."""
COSTS = ("latency_s", "work_s")
"""Metrics of the primitives: seconds of one operation. Each primitive reports one of them."""
FACTORS = ("transport", "placement", "memory")
"""Factors whose levels make a condition."""


class Point(Struct, frozen=True):
    """Medians of the server's throughput and of a primitive's cost under one condition."""

    condition: str
    throughput_per_s: float
    cost_s: float


class Primitive(Struct, frozen=True):
    """A primitive, with the conditions under which it and the server were measured."""

    name: str
    points: tuple[Point, ...]
    correlation: RankCorrelation | None
    """Correlation with throughput; ``None`` for too few conditions, or if a value never changes."""


def findings(data: StudyData) -> Findings:
    """Return the primitives, ordered by the strength of their correlation with the throughput."""
    ranked = primitives(data)
    if not ranked:
        return Findings()
    table = FindingTable(
        "Primitives and the server's throughput over the conditions",
        ("primitive", "rank correlation", "95 % interval", "conditions", "its cost"),
        tuple(map(_row, ranked)),
        (
            "of the medians of the conditions; -1: throughput always falls as the cost rises",
            "the interval is for one primitive, chosen before the measurement, and for conditions "
            "drawn like these",
        ),
    )
    best, correlation = ranked[0], ranked[0].correlation
    if correlation is None:
        paragraph = "No primitive changed over enough conditions to be ranked."
        return Findings((table,), (paragraph,))
    correlation_count = sum(primitive.correlation is not None for primitive in ranked)
    chance = chance_level(correlation.points, correlation_count)
    position = "beyond" if abs(correlation.value) > chance else "within"
    condition_count = correlation.points
    strongest = f"{best.name} correlates most with the throughput"
    number, interval = _correlation_text(correlation)
    throughputs = [point.throughput_per_s for point in best.points]
    paragraphs = (
        f"{strongest}: {number} ({interval}) over {condition_count} conditions, in which "
        f"throughput was {number_text(min(throughputs))} to {number_text(max(throughputs))} per s. "
        f"That is {position} the range of chance.",
        f"{condition_count} conditions prove little: by chance alone, a correlation exceeds "
        f"{chance_level(condition_count, 1):.2f} in one study in twenty. The largest of "
        f"{correlation_count} correlations, one for each primitive, exceeds {chance:.2f} in one "
        "study in twenty. The conditions are not a random sample: each is a combination of a few "
        "switches. One switch that changes both makes a primitive correlate with the throughput. A "
        "correlation is a reason to look, not a cause; `equipoise why` tests causes.",
        *_opposite_sentence(ranked),
    )
    answer = (
        f"{strongest} (rank correlation {number} over {condition_count} conditions), {position} "
        "the range of chance."
    )
    return Findings((table,), paragraphs, answer)


def primitives(data: StudyData) -> list[Primitive]:
    """Return the primitives; the strongest correlation with the throughput comes first."""
    names = [name for name in data.levels("measured") if name != SERVER]
    candidates = (_primitive(data, name) for name in names)
    known = [primitive for primitive in candidates if primitive.points]
    return sorted(known, key=_strength, reverse=True)


def _strength(primitive: Primitive) -> float:
    return -1.0 if primitive.correlation is None else abs(primitive.correlation.value)


def _primitive(data: StudyData, name: str) -> Primitive:
    points: list[Point] = []
    for condition in data.document.conditions:
        if condition.levels.get("measured") != SERVER:
            continue
        levels = {
            factor: condition.levels[factor] for factor in FACTORS if factor in condition.levels
        }
        throughput = data.median(THROUGHPUT, measured=SERVER, **levels)
        costs = (data.median(metric, measured=name, **levels) for metric in COSTS)
        cost = next((cost for cost in costs if cost is not None), None)
        if throughput is not None and cost is not None:
            points.append(Point(" ".join(levels.values()), throughput, cost))
    correlation = rank_correlation(
        np.array([point.cost_s for point in points]),
        np.array([point.throughput_per_s for point in points]),
    )
    return Primitive(name, tuple(points), correlation)


def _row(primitive: Primitive) -> tuple[str, ...]:
    costs = [point.cost_s for point in primitive.points]
    return (
        primitive.name,
        *_correlation_text(primitive.correlation),
        str(len(costs)),
        f"{quantity_text(COSTS[0], min(costs))} to {quantity_text(COSTS[0], max(costs))}",
    )


def _correlation_text(correlation: RankCorrelation | None) -> tuple[str, str]:
    if correlation is None:
        return "", f"under {MIN_POINTS} conditions, or no change"
    low, high = correlation.interval
    if low is None or high is None:
        return f"{correlation.value:+.2f}", "too few for limits"
    return f"{correlation.value:+.2f}", f"{low:+.2f} to {high:+.2f}"


def _opposite_sentence(ranked: list[Primitive]) -> Iterator[str]:
    names = [
        primitive.name
        for primitive in ranked
        if primitive.correlation and primitive.correlation.value > 0
    ]
    if names:
        yield (
            f"{', '.join(names)}: a higher cost goes with a higher throughput, so this cost does "
            "not explain a slow server."
        )
