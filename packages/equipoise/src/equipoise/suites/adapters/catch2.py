"""C++: programs with the macro ``BENCHMARK`` of Catch2, version 2.11 or later, or version 3.

The program writes its XML report into a file. Catch2 can choose test cases, but not benchmarks, so
one process runs all benchmarks. Each process first measures its clock for about 2 s, which no
option shortens; so benchmarks keep their 100 samples. Without options of the user, each warms up
for 20 ms instead of 100 ms, and Catch2 leaves out its bootstrap: only the mean is read.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from equipoise.interop.formats import catch2
from equipoise.interop.reading import Reading, read_within_bounds
from equipoise.model.errors import EquipoiseError
from equipoise.suites.cmake import cmake_programs
from equipoise.suites.running import run, times_of
from equipoise.suites.tool import (
    BenchmarkTool,
    Command,
    FoundSuite,
    Measurement,
    with_options,
)

_SHORT_RUN = (
    ("--benchmark-warmup-time", "20"),
    ("--benchmark-no-analysis",),
)
_OUTPUT_OPTIONS = re.compile(r"(--reporter|--out)(=.*)?|-[ro].*")
_LIBRARY = re.compile(r"Catch2(?:::Catch2\w*)?|Catch2WithMain")
_INCLUDE = r"^[ \t]*#[ \t]*include[ \t]*[<\"](?:catch2/)?catch[\w./]*\.hpp[>\"]"
_BENCHMARK = r"^[^/\n]*\bBENCHMARK(_ADVANCED)?\s*\("
_GOOGLE_BENCHMARK = r"[<\"]benchmark/benchmark\.h[>\"]"
_TAG = "[!benchmark]"
_BENCHMARK_WITH_TAG = r"^[^/\n]*\bT\w*_CASE\w*\s*\([^;{]*\[!benchmark\]"
_MAX_FAILURES = 3
"""Number of failures that an error message names."""


def _measure(command: Command, folder: Path) -> Iterator[Measurement]:
    """Run a program; yield the mean of each benchmark."""
    given = next((word for word in command[1:] if _OUTPUT_OPTIONS.fullmatch(word)), None)
    if given is not None:
        raise SystemExit(f"leave out {given}: Catch2 must write its XML report to a file")
    report = folder / "report.xml"
    output = folder / "output"
    try:
        options = (*_SHORT_RUN, ("--reporter", "xml"), ("--out", str(report)))
        run(with_options(command, options), output)
    except SystemExit as error:
        raise SystemExit(_failure(report, str(error))) from None
    if not report.exists():
        raise SystemExit(f"{command[0]} wrote no report: it does not use Catch2")
    reading = _reading(report)
    if reading.notes:
        raise SystemExit(_described(reading))
    if not reading.processes:
        raise SystemExit(f"{reading.tool}: {command[0]} measured no benchmark")
    yield from times_of(reading.processes)


def _reading(report: Path) -> Reading:
    return catch2.FORMAT.read(read_within_bounds("the report of Catch2", report))


def _failure(report: Path, error: str) -> str:
    """Return the failed test cases of a report; without any, the error of the command."""
    with contextlib.suppress(EquipoiseError):
        reading = _reading(report)
        if reading.notes:
            return _described(reading)
        if not reading.processes:
            error = f"{error}, and {reading.tool} measured no benchmark"
    return "\n".join(line for line in error.splitlines() if line.strip())


def _described(reading: Reading) -> str:
    rest = len(reading.notes) - _MAX_FAILURES
    more = f"; and {rest} more" if rest > 0 else ""
    return f"{reading.tool}: {'; '.join(reading.notes[:_MAX_FAILURES])}{more}"


def _find(folder: Path) -> FoundSuite | None:
    for program in cmake_programs(folder):
        is_linked = any(_LIBRARY.fullmatch(library) for library in program.libraries)
        source = program.source_with(_BENCHMARK)
        if source is None or not (is_linked or program.source_with(_INCLUDE)):
            continue
        if program.source_with(_GOOGLE_BENCHMARK):
            # Its macro has the same name.
            continue
        # Tests with this tag run only if they are chosen.
        tags = (_TAG,) if program.source_with(_BENCHMARK_WITH_TAG) else ()
        evidence = (
            f"{program.file} builds {program.name}, and {source.name} has a BENCHMARK of Catch2"
        )
        return FoundSuite(evidence, (*program.command, *tags), program.build)
    return None


TOOL = BenchmarkTool("catch2", measure=_measure, find=_find, tried_with="Catch2 2.13 and 3.7")
