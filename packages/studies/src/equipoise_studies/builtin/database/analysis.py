"""Throughput by clients, the number of clients that saturates a server, and costs of a transaction.

A workload is a server with the work that its clients request. A setting is one change of the
server, such as its allocator. A knee is the number of clients that saturates the server. Under
closed load, a client waits for each answer. Under open load, transactions start at a fixed rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from equipoise.model.quantities import Interval, counted, joined
from equipoise.model.result import Findings, FindingTable
from equipoise_studies.study_data import StudyData, number_text, quantity_text, ratio_text

THROUGHPUT = "throughput_per_s"
THREADS = "threads"
"""Factor with the number of clients."""
BASELINE = "glibc"
"""Setting with which all other settings are compared."""
P99 = "latency_p99_s"
TRANSACTIONS = "transactions"
CLOSED, OPEN = "closed", "open"
"""Kinds of load, explained above."""
_BARS = "▁▂▃▄▅▆▇█"
"""Bars of a curve in a table, the lowest first."""
_LATENCIES = ("latency_p50_s", "latency_p95_s", P99, "latency_max_s")
"""Metrics of the table at a fixed rate, in the order of its columns."""
_PER_TRANSACTION = {
    "server CPU": ("server_user_s", "server_sys_s"),
    "client CPU": ("client_user_s", "client_sys_s"),
    "server faults": ("server_minor_faults",),
    "server switches": ("server_voluntary_switches", "server_involuntary_switches"),
}
"""Metrics by the heading of their column; a cell has their sum for one transaction."""
Levels = dict[str, str]
"""Levels by factor."""


class Point(Struct, frozen=True):
    """A median at a number of clients."""

    clients: int
    median: float
    interval: Interval
    """Interval of the median, at 95 %."""


class Knee(Struct, frozen=True):
    """The number of clients that saturates a server: N* = X_max / X(1).

    X(1) is the throughput with one client, and X_max is the largest throughput. More clients than
    N* mostly wait (asymptotic bounds: Lazowska, Zahorjan, Graham and Sevcik, Quantitative System
    Performance, 1984, chapter 5).
    """

    clients: float
    interval: Interval
    """Confidence sequence of the knee at 95 %, as if X_max had been chosen before the measurement.
    ``None`` for a bound that is not known yet."""
    best_clients: int
    """Number of clients with the largest median."""


class Curve(Struct, frozen=True):
    """Medians of a condition by the number of clients."""

    levels: Levels
    points: tuple[Point, ...]
    """Points by the number of clients, at least one."""
    knee: Knee | None
    """Knee; ``None`` without a point for one client, or without further points."""


def findings(data: StudyData) -> Findings:
    """Return the tables of each server and work, the knees, and the largest throughputs."""
    tables: list[FindingTable] = []
    paragraphs: list[str] = []
    answers: list[str] = []
    for workload in workloads(data):
        curves = curves_of(data, THROUGHPUT, workload)
        title = f"{workload['server']}, {workload['work']}"
        if curves:
            tables.append(_curve_table(title, curves))
            tables.append(_transaction_table(data, title, curves))
            paragraphs.extend(_knee_sentence(title, curves))
            answers.append(f"{title}: {_best_phrase(curves)}")
        tables.extend(_fixed_rate_tables(data, title, workload))
    answer = f"{'; '.join(answers)}." if answers else ""
    return Findings(tuple(tables), tuple(paragraphs), answer)


def workloads(data: StudyData) -> Iterator[Levels]:
    """Yield the combinations of server and work in the campaign."""
    return data.combinations("server", "work")


def curves_of(data: StudyData, metric: str, workload: Levels) -> list[Curve]:
    """Return the curve of each setting under closed load."""
    settings = data.levels("setting")
    curves = (
        curve_of(data, metric, {**workload, "load": CLOSED, "setting": setting})
        for setting in settings
    )
    return [curve for curve in curves if curve is not None]


def curve_of(data: StudyData, metric: str, levels: Levels) -> Curve | None:
    """Return the curve of a metric over the clients; ``None`` without measurements."""
    points: list[Point] = []
    for threads in sorted(data.levels(THREADS), key=int):
        summary = data.summary(metric, **levels, **{THREADS: threads})
        if summary is not None:
            points.append(Point(int(threads), summary.median, summary.median_ci))
    if not points:
        return None
    return Curve(levels, tuple(points), _knee_of(data, metric, levels, points))


def _knee_of(data: StudyData, metric: str, levels: Levels, points: list[Point]) -> Knee | None:
    if len(points) < 2 or points[0].clients != 1:
        return None
    best_clients = max(points, key=lambda point: point.median).clients
    if best_clients == 1:
        return Knee(1.0, (None, None), 1)
    ratio = data.ratio(metric, THREADS, str(best_clients), "1", **levels)
    return None if ratio is None else Knee(ratio.ratio, ratio.ratio_ci, best_clients)


def _knee_text(knee: Knee | None) -> str:
    if knee is None:
        return ""
    if knee.best_clients == 1:
        return "1: more clients do not increase it"
    low, high = knee.interval
    if low is None or high is None:
        return f"{number_text(knee.clients)} (too few blocks for an interval)"
    return f"{number_text(knee.clients)} ({number_text(low)} to {number_text(high)})"


def _best_phrase(curves: Sequence[Curve]) -> str:
    throughput, clients, setting = max(
        (point.median, point.clients, curve.levels["setting"])
        for curve in curves
        for point in curve.points
    )
    best = f"{setting} at {counted(clients, 'client')}"
    return f"at most {number_text(throughput)} transactions per s, with {best}"


def _curve_table(title: str, curves: Sequence[Curve]) -> FindingTable:
    clients = sorted({point.clients for curve in curves for point in curve.points})

    def row(curve: Curve) -> tuple[str, ...]:
        medians = {point.clients: point.median for point in curve.points}
        cells = (number_text(medians[count]) if count in medians else "" for count in clients)
        bars = _bars(list(medians.values()))
        return (curve.levels["setting"], *cells, bars, _knee_text(curve.knee))

    return FindingTable(
        f"{title}: transactions per second by clients",
        ("setting", *map(str, clients), "curve", "knee"),
        tuple(map(row, curves)),
        (
            "medians over lives of the server",
            "knee: X_max / X(1), the number of clients that saturates the server; more clients "
            "mostly wait",
        ),
    )


def _bars(values: Sequence[float]) -> str:
    """Return values above 0 as a row of bars, each as high as its value."""
    largest = max(values)
    return "".join(_BARS[round((len(_BARS) - 1) * value / largest)] for value in values)


def _transaction_table(data: StudyData, title: str, curves: Sequence[Curve]) -> FindingTable:
    clients = max(point.clients for curve in curves for point in curve.points)

    def row(curve: Curve) -> tuple[str, ...]:
        levels = {**curve.levels, THREADS: str(clients)}
        setting = levels["setting"]
        return (
            setting,
            ratio_text(data.ratio(THROUGHPUT, "setting", setting, BASELINE, **levels)),
            quantity_text(P99, data.median(P99, **levels)),
            *(_per_transaction(data, metrics, levels) for metrics in _PER_TRANSACTION.values()),
            quantity_text("server_pss_bytes", data.median("server_pss_bytes", **levels)),
        )

    return FindingTable(
        f"{title}, {counted(clients, 'client')}: cost of one transaction",
        (
            "setting",
            f"throughput over {BASELINE}",
            "99 % within",
            *_PER_TRANSACTION,
            "server memory",
        ),
        tuple(map(row, curves)),
        (
            "medians over all processes of the server, while its clients ran",
            "memory: pages that its processes share count once",
        ),
    )


def _per_transaction(data: StudyData, metrics: Sequence[str], levels: Levels) -> str:
    """Return the sum of the metrics for one transaction, as a median over trials."""
    transactions = data.values(TRANSACTIONS, **levels)
    summands = [data.values(metric, **levels) for metric in metrics]
    if not len(transactions) or any(len(values) != len(transactions) for values in summands):
        return quantity_text(metrics[0], None)
    median = float(np.median(np.sum(summands, axis=0) / np.maximum(transactions, 1.0)))
    return quantity_text(metrics[0], median)


def _fixed_rate_tables(data: StudyData, title: str, workload: Levels) -> Iterator[FindingTable]:
    rows: list[tuple[str, ...]] = []
    rates = data.medians(THROUGHPUT, "setting", **workload, load=OPEN)
    for setting, rate in rates.items():
        levels = {**workload, "load": OPEN, "setting": setting}
        latencies = (quantity_text(metric, data.median(metric, **levels)) for metric in _LATENCIES)
        rows.append((setting, number_text(rate), *latencies))
    if rows:
        yield FindingTable(
            f"{title}, at a fixed rate",
            ("setting", "per s", "50 % within", "95 % within", "99 % within", "the longest"),
            tuple(rows),
            ("latency from the time at which each transaction was due, so that stalls count",),
        )


def _knee_sentence(title: str, curves: Sequence[Curve]) -> Iterator[str]:
    knees = {curve.levels["setting"]: curve.knee for curve in curves if curve.knee}
    if knees:
        listed = joined(f"{setting} {_knee_text(knee)}" for setting, knee in knees.items())
        best = joined(map(str, sorted({knee.best_clients for knee in knees.values()})))
        yield (
            f"{title}: the knee of the curve is at {listed} clients; the maximum was at {best} "
            "clients. The knee is the number of clients that the server can serve at once. The "
            "cost of one transaction shows the limiting resource."
        )
