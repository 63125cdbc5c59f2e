"""The text that sysbench 1.x prints: one run is one process, and so one trial.

What is compared is the mean time of an event as the clock saw it: total time over the number of
events, the inverse of the throughput. The latency figures stand beside it, and the lines of
``--report-interval`` are iterations. Several runs in one file, one after the other, are several
trials; the name of the file is the condition's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from equipoise.interop.reading import BENCHMARK, Format, Process, Reading, SourceFile

METRIC = "event_s"
_HEAD = re.compile(r"sysbench (\S+)")
_INTERVAL = re.compile(r"\[ \S+ \] thds: \d+ (?:eps|tps): ([\d.]+)")
_TOTAL_TIME = "total time"
_EVENTS = "total number of events"
_LATENCIES = {"min": "least", "avg": "mean", "max": "greatest"}
_PERCENTILE = re.compile(r"(\d+)th percentile")
_NUMBER = re.compile(r"\s+(.+?):\s+([\d.]+)s?\s*(\(.*)?$")


@dataclass(slots=True)
class _Run:
    figures: dict[str, float] = field(default_factory=dict)
    intervals: list[float] = field(default_factory=list)
    in_latency: bool = False


def _recognises(file: SourceFile) -> bool:
    return re.search(r"^sysbench \d", file.begins(65536), re.MULTILINE) is not None


def _read(file: SourceFile) -> Reading:
    version: str | None = None
    runs: list[_Run] = []
    for _, line in file.lines():
        if head := _HEAD.match(line):
            version = version or head[1]
            runs.append(_Run())
        elif runs:
            _note(runs[-1], line)
    return Reading(
        tool="sysbench" if version is None else f"sysbench {version}",
        metric=METRIC,
        processes=tuple(_processes(file, runs)),
        compared=BENCHMARK,
    )


def _note(run: _Run, line: str) -> None:
    if line and not line[0].isspace():
        run.in_latency = line.startswith("Latency (ms)")
    if interval := _INTERVAL.match(line):
        run.intervals.append(float(interval[1]))
    elif found := _NUMBER.match(line):
        name, value = found[1], float(found[2])
        if not run.in_latency:
            run.figures.setdefault(name, value)
        elif percentile := _PERCENTILE.match(name):
            run.figures[f"latency_p{percentile[1]}_s"] = value * 1e-3
        elif name in _LATENCIES:
            run.figures[f"latency_{_LATENCIES[name]}_s"] = value * 1e-3
        elif name == "sum":
            run.figures["latency_sum_s"] = value * 1e-3


def _processes(file: SourceFile, runs: list[_Run]) -> Iterator[Process]:
    for place, run in enumerate(runs, start=1):
        total, events = run.figures.get(_TOTAL_TIME), run.figures.get(_EVENTS)
        if not total or not events:
            raise file.unusable(
                f"run {place} of sysbench has no total time or no events: is it cut off?"
            )
        values = {METRIC: total / events, "wall_s": total, "events": events}
        values |= {name: one for name, one in run.figures.items() if name.startswith("latency_")}
        iterations = {"events_per_s": run.intervals} if run.intervals else {}
        yield Process(file.path.stem, values, iterations)


FORMAT = Format("sysbench", "sysbench … run > FILE", _recognises, _read)
