"""The text of ``go test -bench``: lines of ``-count`` are iterations of one test process.

A process ends at ``PASS``, ``ok`` or ``FAIL`` and begins at ``goos:`` or ``pkg:``: a file to which
several runs of ``go test`` were appended holds several processes. The form is that of the Go
benchmark data format (golang/proposal 14313): a name, a count of iterations, then pairs of a value
and its unit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from equipoise.interop.reading import TIME, Format, Process, Reading, SourceFile, mean, quoted

PACKAGE = "package"
_LINE = re.compile(r"Benchmark\S*\s+\d+\s+\S")
_HEAD = re.compile(r"(goos|goarch|cpu): (.*)")
_NANOSECONDS = "ns/op"
_ITERATIONS = "loop_iterations"


def _recognises(file: SourceFile) -> bool:
    head = file.begins(65536)
    return re.search(rf"^{_LINE.pattern}", head, re.MULTILINE) is not None


def _read(file: SourceFile) -> Reading:
    environment: dict[str, str] = {}
    processes: list[Process] = []
    package = ""
    measured: dict[str, dict[str, list[float]]] = {}

    def end_of_process() -> None:
        processes.extend(_processes(measured, package))
        measured.clear()

    for number, line in file.lines():
        if _LINE.match(line):
            name, values = _values(file, number, line)
            for metric, value in values.items():
                measured.setdefault(name, {}).setdefault(metric, []).append(value)
        elif line.startswith(("PASS", "FAIL", "ok  ", "goos: ")):
            end_of_process()
        elif line.startswith("pkg: "):
            end_of_process()
            package = line.removeprefix("pkg: ")
        if head := _HEAD.match(line):
            environment.setdefault(head[1], head[2])
    end_of_process()
    return Reading(
        tool="go test -bench",
        metric=TIME,
        processes=tuple(processes),
        environment=environment,
        no_series=(_ITERATIONS,),
    )


def _processes(measured: dict[str, dict[str, list[float]]], package: str) -> Iterator[Process]:
    for name, metrics in measured.items():
        values = {metric: mean(own) for metric, own in metrics.items()}
        levels = {PACKAGE: package} if package else {}
        yield Process(name, values, {metric: list(own) for metric, own in metrics.items()}, levels)


def _values(file: SourceFile, number: int, line: str) -> tuple[str, dict[str, float]]:
    name, count, *pairs = line.split()
    values = {_ITERATIONS: float(count)}
    for text, unit in zip(pairs[::2], pairs[1::2], strict=False):
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise file.unusable(f"line {number}: {quoted(text)} is no number of {quoted(unit)}")
        if unit == _NANOSECONDS:
            values[TIME] = value * 1e-9
        else:
            values[unit] = value
    if len(pairs) % 2 or TIME not in values:
        raise file.unusable(
            f"line {number} is cut off or has no {_NANOSECONDS}: {quoted(line.strip())}"
        )
    return name, values


FORMAT = Format("go", "go test -bench . > FILE", _recognises, _read)
