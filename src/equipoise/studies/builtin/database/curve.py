"""Throughput against the number of clients, and where more of them begin to wait."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.model.result import Interval
from equipoise.studies.measured import Measured

THROUGHPUT = "throughput_per_s"
THREADS = "threads"

Levels = dict[str, str]


@dataclass(frozen=True, slots=True)
class Point:
    """One number of clients."""

    clients: int
    median: float
    interval: Interval
    """Of the median, at 95 %."""


@dataclass(frozen=True, slots=True)
class Knee:
    """The number of clients at which a server has work for everything that it can use.

    With few clients throughput grows as theirs, N X(1); with many it stays at its most. The two
    bounds cross at N* = X_max / X(1): from there on a further client mostly waits (asymptotic
    bounds: Lazowska, Zahorjan, Graham and Sevcik, Quantitative System Performance, 1984,
    chapter 5, with no time to think).
    """

    clients: float
    interval: Interval
    """The confidence sequence at 95 % of the ratio within blocks; ``None`` where still unlimited.
    Where the most is was chosen by its median, which the interval does not know."""
    most_at: int
    """The number of clients with the largest median."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The curve of one condition but for its clients."""

    levels: Levels
    points: tuple[Point, ...]
    """At least one, by the number of clients."""
    knee: Knee | None
    """``None`` without a point at one client, or with no other."""


def curve_of(measured: Measured, metric: str, levels: Levels) -> Curve | None:
    """The curve of a metric over the clients; ``None`` where nothing was measured."""
    points: list[Point] = []
    for threads in sorted(measured.levels(THREADS), key=int):
        condition = measured.condition(**levels, **{THREADS: threads})
        found = None if condition is None else condition.metrics.get(metric)
        if found is not None:
            points.append(Point(int(threads), found.median, found.median_ci))
    if not points:
        return None
    return Curve(levels, tuple(points), _knee(measured, metric, levels, points))


def _knee(measured: Measured, metric: str, levels: Levels, points: list[Point]) -> Knee | None:
    if len(points) < 2 or points[0].clients != 1:
        return None
    most = max(points, key=lambda point: point.median)
    if most.clients == 1:
        return Knee(1.0, (None, None), 1)
    ratio = measured.ratio(metric, {**levels, THREADS: str(most.clients)}, {**levels, THREADS: "1"})
    if ratio is None:
        return None
    return Knee(ratio.ratio, ratio.ratio_ci, most.clients)
