"""Curves with their knees, what the server consumed for a transaction, and the open loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from equipoise.model.findings import Findings, FindingTable
from equipoise.model.interval import Interval
from equipoise.model.result import ResultDocument
from equipoise.studies.study_data import StudyData, joined, quantity, short

THROUGHPUT = "throughput_per_s"
THREADS = "threads"
Levels = dict[str, str]


class Point(Struct, frozen=True):
    """One number of clients."""

    clients: int
    median: float
    interval: Interval
    """Of the median, at 95 %."""


class Knee(Struct, frozen=True):
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


class Curve(Struct, frozen=True):
    """The curve of one condition but for its clients."""

    levels: Levels
    points: tuple[Point, ...]
    """At least one, by the number of clients."""
    knee: Knee | None
    """``None`` without a point at one client, or with no other."""


def curve_of(measured: StudyData, metric: str, levels: Levels) -> Curve | None:
    """Return the curve of a metric over the clients; ``None`` where nothing was measured."""
    points: list[Point] = []
    for threads in sorted(measured.levels(THREADS), key=int):
        condition = measured.condition(**levels, **{THREADS: threads})
        found = None if condition is None else condition.metrics.get(metric)
        if found is not None:
            points.append(Point(int(threads), found.median, found.median_ci))
    if not points:
        return None
    return Curve(levels, tuple(points), _knee(measured, metric, levels, points))


def _knee(measured: StudyData, metric: str, levels: Levels, points: list[Point]) -> Knee | None:
    if len(points) < 2 or points[0].clients != 1:
        return None
    most = max(points, key=lambda point: point.median)
    if most.clients == 1:
        return Knee(1.0, (None, None), 1)
    ratio = measured.ratio(metric, {**levels, THREADS: str(most.clients)}, {**levels, THREADS: "1"})
    if ratio is None:
        return None
    return Knee(ratio.ratio, ratio.ratio_ci, most.clients)


BASELINE = "glibc"
P99 = "latency_p99_s"
TRANSACTIONS = "transactions"
CLOSED, OPEN = "closed", "open"
_BARS = "▁▂▃▄▅▆▇█"
_LATENCIES = ("latency_p50_s", "latency_p95_s", P99, "latency_max_s")

_KNEE_NOTE = (
    "knee: X_max / X(1), the clients at which the server has work for all that it can use; from "
    "there on more of them mostly wait"
)

_EACH = (
    ("server CPU", ("server_user_s", "server_sys_s")),
    ("client CPU", ("client_user_s", "client_sys_s")),
    ("server faults", ("server_minor_faults",)),
    ("server switches", ("server_voluntary_switches", "server_involuntary_switches")),
)
"""What one transaction takes."""


def findings(document: ResultDocument) -> Findings:
    """For each server and work the curves, the mechanisms and the open loop; how the knees lie."""
    measured = StudyData(document)
    tables: list[FindingTable] = []
    paragraphs: list[str] = []
    for where in places(measured):
        curves = curves_of(measured, THROUGHPUT, where)
        title = f"{where['server']}, {where['work']}"
        if curves:
            tables.append(_curve_table(title, curves))
            tables.append(_mechanism_table(measured, title, curves))
            paragraphs.extend(_paragraphs(title, curves))
        tables.extend(_open_tables(measured, title, where))
    return Findings(tuple(tables), tuple(paragraphs), _answer(measured))


def _answer(measured: StudyData) -> str:
    """Return which setting brought the most, on each server and work."""
    parts: list[str] = []
    for where in places(measured):
        reached = [
            (point.median, point.clients, curve.levels["setting"])
            for curve in curves_of(measured, THROUGHPUT, where)
            for point in curve.points
        ]
        if reached:
            most, clients, setting = max(reached)
            parts.append(
                f"{where['server']}, {where['work']}: {short(most)} transactions per s at most, "
                f"with {setting} at {clients} {'client' if clients == 1 else 'clients'}"
            )
    return f"{'; '.join(parts)}." if parts else ""


def places(measured: StudyData) -> Iterator[Levels]:
    """Return each server with each work that it did."""
    return measured.combinations("server", "work")


def curves_of(measured: StudyData, metric: str, where: Levels) -> list[Curve]:
    """Return the curve of each setting under closed load."""
    found = (
        curve_of(measured, metric, {**where, "load": CLOSED, "setting": setting})
        for setting in measured.levels("setting")
    )
    return [curve for curve in found if curve is not None]


def knee_text(knee: Knee | None) -> str:
    """Return the number with its interval."""
    if knee is None:
        return ""
    if knee.most_at == 1:
        return "1: more clients brought no more"
    low, high = knee.interval
    if low is None or high is None:
        return f"{short(knee.clients)} (too few blocks for an interval)"
    return f"{short(knee.clients)} ({short(low)} to {short(high)})"


def _curve_table(title: str, curves: Sequence[Curve]) -> FindingTable:
    clients = sorted({point.clients for curve in curves for point in curve.points})
    rows: list[tuple[str, ...]] = []
    for curve in curves:
        medians = {point.clients: point.median for point in curve.points}
        rows.append(
            (
                curve.levels["setting"],
                *(short(medians[one]) if one in medians else "" for one in clients),
                _bars([medians[one] for one in clients if one in medians]),
                knee_text(curve.knee),
            )
        )
    return FindingTable(
        f"{title}: transactions per second by clients",
        ("setting", *map(str, clients), "curve", "knee"),
        tuple(rows),
        ("medians over lives of the server", _KNEE_NOTE),
    )


def _bars(values: Sequence[float]) -> str:
    """Return a small picture of a curve, from zero."""
    most = max(values)
    places = (round((len(_BARS) - 1) * value / most) for value in values)
    return "".join(_BARS[place] for place in places)


def _mechanism_table(measured: StudyData, title: str, curves: Sequence[Curve]) -> FindingTable:
    threads = str(max(point.clients for curve in curves for point in curve.points))
    rows: list[tuple[str, ...]] = []
    for curve in curves:
        levels = {**curve.levels, THREADS: threads}
        ratio = measured.ratio(THROUGHPUT, levels, {**levels, "setting": BASELINE})
        rows.append(
            (
                levels["setting"],
                "" if ratio is None else ratio.text(),
                quantity(P99, measured.median(P99, **levels)),
                *(_for_one(measured, metrics, levels) for _, metrics in _EACH),
                quantity("server_pss_bytes", measured.median("server_pss_bytes", **levels)),
            )
        )
    return FindingTable(
        f"{title}, {threads} {'client' if threads == '1' else 'clients'}: "
        "what one transaction takes",
        (
            "setting",
            f"throughput over {BASELINE}",
            "99 % within",
            *(name for name, _ in _EACH),
            "server memory",
        ),
        tuple(rows),
        (
            "the server's own, of all its processes, while its clients ran; medians",
            "memory: what its processes share is counted once",
        ),
    )


def _for_one(measured: StudyData, metrics: Sequence[str], levels: Levels) -> str:
    """Return the median over trials of a sum of metrics, for one transaction."""
    transactions = measured.values(TRANSACTIONS, **levels)
    columns = [measured.values(metric, **levels) for metric in metrics]
    if not len(transactions) or any(len(column) != len(transactions) for column in columns):
        return quantity(metrics[0], None)
    typical = float(np.median(np.sum(columns, axis=0) / np.maximum(transactions, 1.0)))
    return quantity(metrics[0], typical)


def _open_tables(measured: StudyData, title: str, where: Levels) -> Iterator[FindingTable]:
    rows: list[tuple[str, ...]] = []
    for setting in measured.levels("setting"):
        levels = {**where, "load": OPEN, "setting": setting}
        rate = measured.median(THROUGHPUT, **levels)
        if rate is not None:
            latencies = (quantity(one, measured.median(one, **levels)) for one in _LATENCIES)
            rows.append((setting, short(rate), *latencies))
    if rows:
        yield FindingTable(
            f"{title}, at a fixed rate",
            ("setting", "per s", "50 % within", "95 % within", "99 % within", "the longest"),
            tuple(rows),
            ("latency from when each transaction was due: a stall is not hidden by who waits",),
        )


def _paragraphs(title: str, curves: Sequence[Curve]) -> Iterator[str]:
    with_knees = [(curve.levels["setting"], curve.knee) for curve in curves if curve.knee]
    if not with_knees:
        return
    listed = joined(f"{setting} {knee_text(knee)}" for setting, knee in with_knees)
    at = sorted({knee.most_at for _, knee in with_knees})
    yield (
        f"{title}: the knee of the curve lies at {listed} clients; the most was reached with "
        f"{joined(map(str, at))} of those that were tried. It says how many clients' work goes on "
        "at once, not what limits it: the table of what one transaction takes does."
    )
