"""Reads the text of ``cargo bench`` without criterion, or of criterion's ``bencher`` format.

Each benchmark has a line: ``test NAME ... bench:  1,234 ns/iter (+/- 56)``. The time is libtest's
median over many samples. The text does not contain these samples, so a process has no iterations.
"""

from __future__ import annotations

import re

from equipoise.interop.reading import (
    TIME,
    Format,
    Process,
    Reading,
    SourceFile,
    finite_number,
    numbered,
    quote,
)

_TIME_LINE = re.compile(r"test (?P<name>.+?)\s+\.\.\. bench:\s+(?P<value>[0-9][0-9,.]*) ns/iter")
_BENCHMARK_LINE = re.compile(r"test .*\bbench:")
"""Line of a benchmark, even if its time cannot be read."""


def _recognises(file: SourceFile) -> bool:
    return any(_TIME_LINE.match(line) for line in file.beginning(65536).splitlines())


def _read(file: SourceFile) -> Reading:
    names: list[str] = []
    times: list[float] = []
    for line_number, line in file.lines():
        if match := _TIME_LINE.match(line):
            name, seconds = match["name"], finite_number(match["value"].replace(",", ""))
            if seconds is None:
                raise file.error(f"line {line_number}: {quote(match['value'])} is not a number")
            names.append(name)
            times.append(1e-9 * seconds)
        elif _BENCHMARK_LINE.match(line):
            raise file.error(
                f"line {line_number}: a benchmark has no readable time",
                "save the unchanged output of cargo bench",
            )
    processes = (
        Process(name, {TIME: seconds}) for name, seconds in zip(numbered(names), times, strict=True)
    )
    return Reading(tool="cargo bench", metric=TIME, processes=tuple(processes))


FORMAT = Format("libtest", "cargo bench > FILE (without criterion)", _recognises, _read)
