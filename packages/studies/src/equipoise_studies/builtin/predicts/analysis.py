"""Each primitive beside the server's throughput over the conditions: which one moves with it."""

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
from equipoise_studies.study_data import StudyData, quantity, short

SERVER = "throughput"
THROUGHPUT = "throughput_per_s"
COSTS = ("latency_s", "work_s")
"""Metrics of the primitives: seconds of one operation."""
FACTORS = ("transport", "placement", "memory")


class Point(Struct, frozen=True):
    """One condition: medians."""

    condition: str
    throughput_per_s: float
    cost_s: float


class Primitive(Struct, frozen=True):
    """One primitive over the conditions in which both it and the server were measured."""

    name: str
    points: tuple[Point, ...]
    correlation: RankCorrelation | None
    """Correlation with throughput; ``None`` for too few conditions, or where nothing changes."""


def findings(measured: StudyData) -> Findings:
    """Return the primitives by how strongly they correlate with the throughput."""
    ranked = primitives(measured)
    if not ranked:
        return Findings()
    table = FindingTable(
        "Primitives beside the server's throughput over the conditions",
        ("primitive", "rank correlation", "95 % interval", "conditions", "its cost"),
        tuple(map(_row, ranked)),
        (
            "of medians of each condition; -1: the dearer the primitive, the lower the throughput",
            "the interval is of other conditions like these, taken one by one, for one primitive "
            "that was named beforehand",
        ),
    )
    best, correlation = ranked[0], ranked[0].correlation
    if correlation is None:
        nothing = "No primitive changed over enough conditions to be ranked."
        return Findings((table,), (nothing,))
    correlated = sum(primitive.correlation is not None for primitive in ranked)
    chance = chance_level(correlation.points, correlated)
    beyond = "beyond" if abs(correlation.value) > chance else "within"
    moves, conditions = f"{best.name} moves with the throughput most", correlation.points
    number, interval = _correlation_text(correlation)
    throughputs = [point.throughput_per_s for point in best.points]
    paragraphs = (
        f"{moves}: {number} ({interval}) over {conditions} conditions, in which throughput went "
        f"from {short(min(throughputs))} to {short(max(throughputs))} per s. That is {beyond} what "
        "chance does.",
        f"How little {conditions} conditions can prove: by chance alone one correlation in twenty "
        f"is larger than {chance_level(conditions, 1):.2f}, and the largest of {correlated}, as "
        f"many as were tried here, is larger than {chance:.2f} in one study in twenty. The "
        "conditions are not drawn from anything: each is a combination of a few switches, so that "
        "a primitive moves with the throughput already if one switch turns both. It is a reason to "
        "look, not a cause; what a cause closes of the gap is what `equipoise why` tests.",
        *_opposite(ranked),
    )
    answer = (
        f"{moves} (rank correlation {number} over {conditions} conditions), {beyond} what chance "
        "does."
    )
    return Findings((table,), paragraphs, answer)


def primitives(measured: StudyData) -> list[Primitive]:
    """Return every primitive, the one that moves with the throughput most first."""
    names = [name for name in measured.levels("measured") if name != SERVER]
    known = [one for one in (_primitive(measured, name) for name in names) if one.points]
    return sorted(known, key=_strength, reverse=True)


def _strength(primitive: Primitive) -> float:
    return -1.0 if primitive.correlation is None else abs(primitive.correlation.value)


def _primitive(measured: StudyData, name: str) -> Primitive:
    points: list[Point] = []
    for condition in measured.document.conditions:
        if condition.levels.get("measured") != SERVER:
            continue
        levels = {one: condition.levels[one] for one in FACTORS if one in condition.levels}
        throughput = measured.median(THROUGHPUT, measured=SERVER, **levels)
        costs = (measured.median(metric, measured=name, **levels) for metric in COSTS)
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
        f"{quantity(COSTS[0], min(costs))} to {quantity(COSTS[0], max(costs))}",
    )


def _correlation_text(correlation: RankCorrelation | None) -> tuple[str, str]:
    """Return the number, and its interval."""
    if correlation is None:
        return "", f"under {MIN_POINTS} conditions, or nothing changes"
    low, high = correlation.interval
    if low is None or high is None:
        return f"{correlation.value:+.2f}", "too few to limit it"
    return f"{correlation.value:+.2f}", f"{low:+.2f} to {high:+.2f}"


def _opposite(ranked: list[Primitive]) -> Iterator[str]:
    names = [one.name for one in ranked if one.correlation and one.correlation.value > 0]
    if names:
        yield (
            f"{', '.join(names)}: dearer where throughput is higher; what makes them dear does "
            "the server good, or has nothing to do with it."
        )
