"""Reads the text of ``go test -bench``: each run is a process, and each line is an iteration.

A run begins at ``goos:`` or ``pkg:``, and ends at ``PASS``, ``ok`` or ``FAIL``. Each of these lines
increases the number of the process, so some numbers have no benchmark. A line of a benchmark has
the name, the number of loops, and pairs of a value and a unit (golang/proposal 14313).
"""

from __future__ import annotations

import re
from collections import defaultdict

from equipoise.interop.reading import (
    TIME,
    Format,
    Reading,
    SourceFile,
    finite_number,
    process_of,
    quote,
)

PACKAGE = "package"
"""Factor whose levels are Go packages."""
_BENCHMARK_LINE = re.compile(r"Benchmark\S*\s+\d+\s+\S")
_HOST_LINE = re.compile(r"(goos|goarch|cpu): (.*)")
_TIME_UNIT = "ns/op"
_LOOP_COUNT = "loop_iterations"
"""Metric with the number of times that a benchmark ran its loop."""
_BenchmarkKey = tuple[int, str, str]
"""Number of the process, package and name of the benchmark."""


def _recognises(file: SourceFile) -> bool:
    beginning = file.beginning(65536)
    return re.search(rf"^{_BENCHMARK_LINE.pattern}", beginning, re.MULTILINE) is not None


def _read(file: SourceFile) -> Reading:
    environment: dict[str, str] = {}
    iterations: dict[_BenchmarkKey, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    package, process_number = "", 0
    for line_number, line in file.lines():
        if _BENCHMARK_LINE.match(line):
            name, values = _values_of_line(file, line_number, line)
            for metric, value in values.items():
                iterations[process_number, package, name][metric].append(value)
        elif line.startswith(("PASS", "FAIL", "ok  ", "goos: ", "pkg: ")):
            process_number += 1
            if line.startswith("pkg: "):
                package = line.removeprefix("pkg: ")
        if host_match := _HOST_LINE.match(line):
            environment.setdefault(host_match[1], host_match[2])
    return Reading(
        tool="go test -bench",
        metric=TIME,
        processes=tuple(
            process_of(name, by_metric, levels={PACKAGE: package} if package else {})
            for (_, package, name), by_metric in iterations.items()
        ),
        environment=environment,
        metrics_without_time_order=(_LOOP_COUNT,),
    )


def _values_of_line(file: SourceFile, line_number: int, line: str) -> tuple[str, dict[str, float]]:
    name, count, *pairs = line.split()
    values = {_LOOP_COUNT: float(count)}
    for text, unit in zip(pairs[::2], pairs[1::2], strict=False):
        value = finite_number(text)
        if value is None:
            raise file.error(f"line {line_number}: {quote(text)} is not a number of {quote(unit)}")
        metric, factor = (TIME, 1e-9) if unit == _TIME_UNIT else (unit, 1.0)
        values[metric] = value * factor
    if len(pairs) % 2 or TIME not in values:
        raise file.error(
            f"line {line_number} is truncated or has no {_TIME_UNIT}: {quote(line.strip())}"
        )
    return name, values


FORMAT = Format("go", "go test -bench . > FILE", _recognises, _read)
