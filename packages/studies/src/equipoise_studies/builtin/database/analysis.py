"""Curves with their knees, what the server consumed for a transaction, and the open loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from equipoise.model.quantities import Interval, counted, joined
from equipoise.model.result import Findings, FindingTable
from equipoise_studies.study_data import StudyData, quantity, ratio_text, short

THROUGHPUT = "throughput_per_s"
THREADS = "threads"
BASELINE = "glibc"
P99 = "latency_p99_s"
TRANSACTIONS = "transactions"
CLOSED, OPEN = "closed", "open"
_BARS = "▁▂▃▄▅▆▇█"
_LATENCIES = ("latency_p50_s", "latency_p95_s", P99, "latency_max_s")
_PER_TRANSACTION = {
    "server CPU": ("server_user_s", "server_sys_s"),
    "client CPU": ("client_user_s", "client_sys_s"),
    "server faults": ("server_minor_faults",),
    "server switches": ("server_voluntary_switches", "server_involuntary_switches"),
}
"""Metrics whose sum is divided by the number of transactions, by the heading of their column."""
Levels = dict[str, str]


class Point(Struct, frozen=True):
    """One number of clients."""

    clients: int
    median: float
    interval: Interval
    """Interval of the median, at 95 %."""


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
    """Points by the number of clients, at least one."""
    knee: Knee | None
    """``None`` without a point at one client, or with no other."""


def findings(measured: StudyData) -> Findings:
    """Return curves, mechanisms and the open loop for each server and work, and the knees."""
    tables: list[FindingTable] = []
    paragraphs: list[str] = []
    answers: list[str] = []
    for where in places(measured):
        curves = curves_of(measured, THROUGHPUT, where)
        title = f"{where['server']}, {where['work']}"
        if curves:
            tables.append(_curve_table(title, curves))
            tables.append(_mechanism_table(measured, title, curves))
            paragraphs.extend(_knees(title, curves))
            answers.append(f"{title}: {_best(curves)}")
        tables.extend(_open_tables(measured, title, where))
    answer = f"{'; '.join(answers)}." if answers else ""
    return Findings(tuple(tables), tuple(paragraphs), answer)


def places(measured: StudyData) -> Iterator[Levels]:
    """Return each server with each work that it did."""
    return measured.combinations("server", "work")


def curves_of(measured: StudyData, metric: str, where: Levels) -> list[Curve]:
    """Return the curve of each setting under closed load."""
    settings = measured.levels("setting")
    curves = (
        curve_of(measured, metric, {**where, "load": CLOSED, "setting": setting})
        for setting in settings
    )
    return [curve for curve in curves if curve is not None]


def curve_of(measured: StudyData, metric: str, levels: Levels) -> Curve | None:
    """Return the curve of a metric over the clients; ``None`` where nothing was measured."""
    points: list[Point] = []
    for threads in sorted(measured.levels(THREADS), key=int):
        summary = measured.summary(metric, **levels, **{THREADS: threads})
        if summary is not None:
            points.append(Point(int(threads), summary.median, summary.median_ci))
    if not points:
        return None
    return Curve(levels, tuple(points), _knee(measured, metric, levels, points))


def _knee(measured: StudyData, metric: str, levels: Levels, points: list[Point]) -> Knee | None:
    if len(points) < 2 or points[0].clients != 1:
        return None
    clients = max(points, key=lambda point: point.median).clients
    if clients == 1:
        return Knee(1.0, (None, None), 1)
    ratio = measured.ratio(metric, THREADS, str(clients), "1", **levels)
    return None if ratio is None else Knee(ratio.ratio, ratio.ratio_ci, clients)


def _knee_text(knee: Knee | None) -> str:
    """Return the number with its interval."""
    if knee is None:
        return ""
    if knee.most_at == 1:
        return "1: more clients brought no more"
    low, high = knee.interval
    if low is None or high is None:
        return f"{short(knee.clients)} (too few blocks for an interval)"
    return f"{short(knee.clients)} ({short(low)} to {short(high)})"


def _best(curves: Sequence[Curve]) -> str:
    """Return which setting brought the most."""
    throughput, clients, setting = max(
        (point.median, point.clients, curve.levels["setting"])
        for curve in curves
        for point in curve.points
    )
    at = f"{setting} at {counted(clients, 'client')}"
    return f"{short(throughput)} transactions per s at most, with {at}"


def _curve_table(title: str, curves: Sequence[Curve]) -> FindingTable:
    clients = sorted({point.clients for curve in curves for point in curve.points})

    def row(curve: Curve) -> tuple[str, ...]:
        medians = {point.clients: point.median for point in curve.points}
        cells = (short(medians[count]) if count in medians else "" for count in clients)
        bars = _bars(list(medians.values()))
        return (curve.levels["setting"], *cells, bars, _knee_text(curve.knee))

    return FindingTable(
        f"{title}: transactions per second by clients",
        ("setting", *map(str, clients), "curve", "knee"),
        tuple(map(row, curves)),
        (
            "medians over lives of the server",
            "knee: X_max / X(1), the clients at which the server has work for all that it can use; "
            "from there on more of them mostly wait",
        ),
    )


def _bars(values: Sequence[float]) -> str:
    """Return a small picture of a curve, from zero."""
    largest = max(values)
    return "".join(_BARS[round((len(_BARS) - 1) * value / largest)] for value in values)


def _mechanism_table(measured: StudyData, title: str, curves: Sequence[Curve]) -> FindingTable:
    clients = max(point.clients for curve in curves for point in curve.points)

    def row(curve: Curve) -> tuple[str, ...]:
        levels = {**curve.levels, THREADS: str(clients)}
        setting = levels["setting"]
        return (
            setting,
            ratio_text(measured.ratio(THROUGHPUT, "setting", setting, BASELINE, **levels)),
            quantity(P99, measured.median(P99, **levels)),
            *(_per_transaction(measured, each, levels) for each in _PER_TRANSACTION.values()),
            quantity("server_pss_bytes", measured.median("server_pss_bytes", **levels)),
        )

    return FindingTable(
        f"{title}, {counted(clients, 'client')}: what one transaction takes",
        (
            "setting",
            f"throughput over {BASELINE}",
            "99 % within",
            *_PER_TRANSACTION,
            "server memory",
        ),
        tuple(map(row, curves)),
        (
            "the server's own, of all its processes, while its clients ran; medians",
            "memory: what its processes share is counted once",
        ),
    )


def _per_transaction(measured: StudyData, metrics: Sequence[str], levels: Levels) -> str:
    """Return the median over trials of a sum of metrics, for one transaction."""
    transactions = measured.values(TRANSACTIONS, **levels)
    columns = [measured.values(metric, **levels) for metric in metrics]
    if not len(transactions) or any(len(column) != len(transactions) for column in columns):
        return quantity(metrics[0], None)
    typical = float(np.median(np.sum(columns, axis=0) / np.maximum(transactions, 1.0)))
    return quantity(metrics[0], typical)


def _open_tables(measured: StudyData, title: str, where: Levels) -> Iterator[FindingTable]:
    rows: list[tuple[str, ...]] = []
    rates = measured.medians(THROUGHPUT, "setting", **where, load=OPEN)
    for setting, rate in rates.items():
        levels = {**where, "load": OPEN, "setting": setting}
        latencies = (quantity(metric, measured.median(metric, **levels)) for metric in _LATENCIES)
        rows.append((setting, short(rate), *latencies))
    if rows:
        yield FindingTable(
            f"{title}, at a fixed rate",
            ("setting", "per s", "50 % within", "95 % within", "99 % within", "the longest"),
            tuple(rows),
            ("latency from when each transaction was due: a stall is not hidden by who waits",),
        )


def _knees(title: str, curves: Sequence[Curve]) -> Iterator[str]:
    knees = {curve.levels["setting"]: curve.knee for curve in curves if curve.knee}
    if knees:
        listed = joined(f"{setting} {_knee_text(knee)}" for setting, knee in knees.items())
        at = joined(map(str, sorted({knee.most_at for knee in knees.values()})))
        yield (
            f"{title}: the knee of the curve lies at {listed} clients; the most was reached with "
            f"{at} of those that were tried. It says how many clients' work goes on at once, not "
            "what limits it: the table of what one transaction takes does."
        )
