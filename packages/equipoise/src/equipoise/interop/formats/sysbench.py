"""Reads the text that sysbench 1.x prints: each run is a process.

The compared metric is the mean time of an event: the total time divided by the number of events.
Other numbers, such as latencies and queries, are further metrics. The lines of
``--report-interval`` are iterations. The condition has the name of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct, field

from equipoise.interop.reading import BENCHMARK, Format, Process, Reading, SourceFile, with_version

METRIC = "event_s"
"""Metric of the mean seconds of an event, which is compared."""
_VERSION_LINE = re.compile(r"sysbench (\S+)")
_INTERVAL_LINE = re.compile(r"\[ \S+ \] thds: \d+ ")
_DECIMAL = r"(\d+(?:\.\d+)?)"
_INTERVAL_VALUE = re.compile(rf"(?:lat \(ms,(\d+)%\)|(eps|tps|qps|err/s|reconn/s)): {_DECIMAL}")
# The following tables have metrics, or parts of their names, by the names that sysbench prints.
_RATE_METRICS = {
    "eps": "events_per_s",
    "tps": "events_per_s",
    "qps": "queries_per_s",
    "err/s": "errors_per_s",
    "reconn/s": "reconnects_per_s",
}
_TOTAL_TIME = "total time"
_EVENT_COUNT = "total number of events"
_LATENCY_STATISTICS = {"min": "least", "avg": "mean", "max": "greatest", "sum": "sum"}
_PERCENTILE_NAME = re.compile(r"(\d+)th percentile")
_COUNT_METRICS = {
    "read": "queries_read",
    "write": "queries_write",
    "other": "queries_other",
    "total": "queries",
    "transactions": "transactions",
    "ignored errors": "ignored_errors",
    "reconnects": "reconnects",
}
_THREADS_LINE = re.compile(rf"\s+(events|execution time) \(avg/stddev\):\s+{_DECIMAL}/{_DECIMAL}")
_THREAD_METRICS = {
    "events": ("thread_events_mean", "thread_events_deviation"),
    "execution time": ("thread_time_mean_s", "thread_time_deviation_s"),
}
"""Metrics of the mean and the standard deviation over threads."""
_NUMBER_LINE = re.compile(rf"\s+(.+?):\s+{_DECIMAL}s?\s*(\(.*)?$")


class _Run(Struct):
    numbers: dict[str, float] = field(default_factory=dict)
    """Numbers by the names that sysbench prints."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Values by metric."""
    intervals: dict[str, list[float]] = field(default_factory=dict)
    """Values of each metric in the lines of ``--report-interval``."""
    is_in_latency: bool = False
    """Whether the next lines are latencies."""


def _recognises(file: SourceFile) -> bool:
    return re.search(r"^sysbench \d", file.beginning(65536), re.MULTILINE) is not None


def _read(file: SourceFile) -> Reading:
    version: str | None = None
    runs: list[_Run] = []
    for _, line in file.lines():
        if version_match := _VERSION_LINE.match(line):
            version = version or version_match[1]
            runs.append(_Run())
        elif runs:
            _read_line(runs[-1], line)
    return Reading(
        tool=with_version("sysbench", version),
        metric=METRIC,
        processes=tuple(_processes(file, runs)),
        compared_factor=BENCHMARK,
    )


def _read_line(run: _Run, line: str) -> None:
    if line and not line[0].isspace():
        run.is_in_latency = line.startswith("Latency (ms)")
    if _INTERVAL_LINE.match(line):
        for percent, rate, value in _INTERVAL_VALUE.findall(line):
            metric, factor = (
                (f"latency_p{percent}_s", 1e-3) if percent else (_RATE_METRICS[rate], 1.0)
            )
            run.intervals.setdefault(metric, []).append(float(value) * factor)
    elif match := _THREADS_LINE.match(line):
        mean_and_deviation = map(float, match.groups()[1:])
        run.metrics.update(zip(_THREAD_METRICS[match[1]], mean_and_deviation, strict=True))
    elif match := _NUMBER_LINE.match(line):
        name, value = match[1], float(match[2])
        if run.is_in_latency:
            run.metrics.update(_latency_metric(name, value))
        else:
            run.numbers.setdefault(name, value)


def _latency_metric(name: str, milliseconds: float) -> dict[str, float]:
    percentile = _PERCENTILE_NAME.match(name)
    statistic = f"p{percentile[1]}" if percentile else _LATENCY_STATISTICS.get(name)
    return {f"latency_{statistic}_s": milliseconds * 1e-3} if statistic else {}


def _processes(file: SourceFile, runs: list[_Run]) -> Iterator[Process]:
    for run_number, run in enumerate(runs, start=1):
        total_s, events = run.numbers.get(_TOTAL_TIME), run.numbers.get(_EVENT_COUNT)
        if not total_s or not events:
            raise file.error(f"run {run_number} of sysbench has no total time or no events")
        values = {METRIC: total_s / events, "wall_s": total_s, "events": events, **run.metrics}
        values |= {
            metric: run.numbers[name]
            for name, metric in _COUNT_METRICS.items()
            if name in run.numbers
        }
        yield Process(file.path.stem, values, run.intervals)


FORMAT = Format("sysbench", "sysbench … run > FILE", _recognises, _read)
