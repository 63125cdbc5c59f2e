"""Each primitive beside the server's throughput over the conditions: which one moves with it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from equipoise.model.findings import Findings, FindingTable
from equipoise.model.result import ResultDocument
from equipoise.stats.rank_correlation import (
    LEAST_POINTS,
    RankCorrelation,
    chance_level,
    rank_correlation,
)
from equipoise.studies.study_data import StudyData, quantity, short

SERVER = "throughput"
THROUGHPUT = "throughput_per_s"
COSTS = ("latency_s", "work_s")
"""Metrics of the primitives: seconds of one operation."""
FACTORS = ("transport", "placement", "memory")
MOST_SHOWN = 3


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
    """With the throughput; ``None`` for too few conditions, or where nothing changes."""


def findings(document: ResultDocument) -> Findings:
    """Return the primitives by how strongly they correlate with the throughput."""
    found = primitives(StudyData(document))
    if not found:
        return Findings()
    known = [one for one in found if one.correlation is not None]
    return Findings((_table(found),), tuple(_paragraphs(found, known)), _answer(known))


def primitives(measured: StudyData) -> list[Primitive]:
    """Return every primitive, the one that moves with the throughput most first."""
    names = [name for name in measured.levels("measured") if name != SERVER]
    found = [one for one in (_primitive(measured, name) for name in names) if one.points]
    return sorted(found, key=_strength, reverse=True)


def _strength(one: Primitive) -> float:
    return -1.0 if one.correlation is None else abs(one.correlation.value)


def _primitive(measured: StudyData, name: str) -> Primitive:
    points: list[Point] = []
    for condition in measured.document.conditions:
        if condition.levels.get("measured") != SERVER:
            continue
        levels = {one: condition.levels[one] for one in FACTORS if one in condition.levels}
        throughput = measured.median(THROUGHPUT, measured=SERVER, **levels)
        costs = (measured.median(one, measured=name, **levels) for one in COSTS)
        cost = next((one for one in costs if one is not None), None)
        if throughput is not None and cost is not None:
            points.append(Point(" ".join(levels.values()), throughput, cost))
    correlation = rank_correlation(
        np.array([one.cost_s for one in points]),
        np.array([one.throughput_per_s for one in points]),
    )
    return Primitive(name, tuple(points), correlation)


def correlation_text(found: RankCorrelation | None) -> tuple[str, str]:
    """Return the number, and its interval."""
    if found is None:
        return "", f"under {LEAST_POINTS} conditions, or nothing changes"
    low, high = found.interval
    words = "too few to limit it" if low is None or high is None else f"{low:+.2f} to {high:+.2f}"
    return f"{found.value:+.2f}", words


def _table(found: list[Primitive]) -> FindingTable:
    rows: list[tuple[str, ...]] = []
    for one in found:
        costs = [point.cost_s for point in one.points]
        rows.append(
            (
                one.name,
                *correlation_text(one.correlation),
                str(len(one.points)),
                f"{quantity(COSTS[0], min(costs))} to {quantity(COSTS[0], max(costs))}",
            )
        )
    return FindingTable(
        "Primitives beside the server's throughput over the conditions",
        ("primitive", "rank correlation", "95 % interval", "conditions", "its cost"),
        tuple(rows),
        (
            "of medians of each condition; -1: the dearer the primitive, the lower the throughput",
            "the interval is of other conditions like these, taken one by one, for one primitive "
            "that was named beforehand",
        ),
    )


def _answer(known: list[Primitive]) -> str:
    if not known or known[0].correlation is None:
        return ""
    best, found = known[0], known[0].correlation
    number, _ = correlation_text(found)
    return (
        f"{best.name} moves with the throughput most (rank correlation {number} over "
        f"{found.points} conditions), {_beyond_chance(found, len(known))} what chance does."
    )


def _beyond_chance(found: RankCorrelation, tried: int) -> str:
    return "beyond" if abs(found.value) > chance_level(found.points, tried) else "within"


def _paragraphs(found: list[Primitive], known: list[Primitive]) -> Iterator[str]:
    if not known:
        yield "No primitive changed over enough conditions to be ranked."
        return
    best = known[0]
    assert best.correlation is not None, "what is known has one"
    points = best.correlation.points
    throughputs = [point.throughput_per_s for point in best.points]
    alone, several = chance_level(points, 1), chance_level(points, len(known))
    number, interval = correlation_text(best.correlation)
    beyond = _beyond_chance(best.correlation, len(known))
    yield (
        f"{best.name} moves with the throughput most: {number} ({interval}) over {points} "
        f"conditions, in which throughput went from {short(min(throughputs))} to "
        f"{short(max(throughputs))} per s. That is {beyond} what chance does."
    )
    yield (
        f"How little {points} conditions can prove: by chance alone one correlation in twenty is "
        f"larger than {alone:.2f}, and the largest of {len(known)}, as many as were tried here, is "
        f"larger than {several:.2f} in one study in twenty. The conditions are not drawn from "
        "anything: each is a combination of a few switches, so that a primitive moves with the "
        "throughput already if one switch turns both. It is a reason to look, not a cause; what a "
        "cause closes of the gap is what `equipoise why` tests."
    )
    opposite = [one.name for one in known if one.correlation and one.correlation.value > 0]
    if opposite:
        yield (
            f"{', '.join(opposite)}: dearer where throughput is higher; what makes them dear does "
            "the server good, or has nothing to do with it."
        )
