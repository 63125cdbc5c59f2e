"""Report a program's own metrics to Equipoise. This file has no dependencies and may be copied.

::

    from equipoise_metrics import report, timed_iterations

    report("latency_s", 0.0012, unit="s", resolution=0.0001)
    timed_iterations("request_s", handle_one_request, 200)

``EQUIPOISE_METRICS`` is the path of a file. Without this variable nothing is reported.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

METRICS_VARIABLE = "EQUIPOISE_METRICS"
"""Environment variable with the path of the file for metrics."""


def report(
    metric: str,
    value: float,
    *,
    iteration: int | None = None,
    unit: str | None = None,
    better: str = "lower",
    resolution: float | None = None,
) -> None:
    """Report one metric of the whole trial, or of one iteration (counted from 1).

    ``resolution`` is the smallest difference between values, in their unit; ``None`` if unknown.
    """
    optional_fields = {"iteration": iteration, "unit": unit, "resolution": resolution}
    _append([_line(metric, value, optional_fields, better)])


def report_unknown(metric: str, reason: str) -> None:
    """Report that a metric of the whole trial has no value, and why."""
    _append([json.dumps({"metric": metric, "value": None, "unknown_because": reason})])


def timed_iterations(metric: str, work: Callable[[], Any], count: int) -> list[float]:
    """Call a function ``count`` times; report the seconds of each call and their mean.

    All lines are written after the last call, because writing would disturb the calls.

    Returns
    -------
    The seconds of each call.
    """
    seconds = []
    for _ in range(count):
        started_s = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started_s)
    report_iterations(metric, seconds, time.get_clock_info("perf_counter").resolution)
    return seconds


def report_iterations(metric: str, seconds: list[float], resolution_s: float) -> None:
    """Report the seconds of each iteration and their mean, all with this resolution."""
    lines = [
        _line(metric, call_s, {"iteration": number, "unit": "s", "resolution": resolution_s})
        for number, call_s in enumerate(seconds, 1)
    ]
    if seconds:
        mean_s = sum(seconds) / len(seconds)
        mean_resolution_s = resolution_s / len(seconds)
        lines.append(_line(metric, mean_s, {"unit": "s", "resolution": mean_resolution_s}))
    _append(lines)


def _line(metric: str, value: float, optional_fields: dict[str, Any], better: str = "lower") -> str:
    fields = {name: value for name, value in optional_fields.items() if value is not None}
    return json.dumps({"metric": metric, "value": value, **fields, "better": better})


def _append(lines: list[str]) -> None:
    path = os.environ.get(METRICS_VARIABLE)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
