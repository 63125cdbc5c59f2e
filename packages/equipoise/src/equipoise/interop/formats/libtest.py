"""The text of ``cargo bench`` without criterion, and of criterion's ``--output-format bencher``.

A line for each benchmark: ``test NAME ... bench:  1,234 ns/iter (+/- 56)``, in newer compilers with
decimals. The number is libtest's own median over many samples, the deviation is between them; the
samples are not in the text, so that a process has no iterations.
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
    quoted,
)

_LINE = re.compile(r"test (?P<name>.+?)\s+\.\.\. bench:\s+(?P<value>[0-9][0-9,.]*) ns/iter")
_ABOUT_ONE = re.compile(r"test .*\bbench:")
"""Line of a benchmark, with or without a readable time; other lines of a build do not match."""


def _recognises(file: SourceFile) -> bool:
    return any(_LINE.match(line) for line in file.begins(65536).splitlines())


def _read(file: SourceFile) -> Reading:
    processes: dict[str, Process] = {}
    for number, line in file.lines():
        if match := _LINE.match(line):
            name, seconds = match["name"], finite_number(match["value"].replace(",", ""))
            if name in processes:
                raise file.unusable(
                    f"line {number}: two benchmarks are called {quoted(name)}",
                    "run them apart, or rename one",
                )
            if seconds is None:
                raise file.unusable(f"line {number}: {quoted(match['value'])} is no number")
            processes[name] = Process(name, {TIME: 1e-9 * seconds})
        elif _ABOUT_ONE.match(line):
            raise file.unusable(
                f"line {number}: a benchmark without a time that can be read",
                "save what cargo bench prints as it is",
            )
    return Reading(tool="cargo bench", metric=TIME, processes=tuple(processes.values()))


FORMAT = Format("libtest", "cargo bench > FILE (without criterion)", _recognises, _read)
