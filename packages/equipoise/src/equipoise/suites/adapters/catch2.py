"""C++: programs with the macro ``BENCHMARK`` of Catch2, version 2.11 or later, or version 3.

The program writes its XML report into a file. Catch2 can choose test cases, but not benchmarks, so
one process runs all benchmarks. A test case that hangs is left out of the following processes. Each
process first measures its clock for about 2 s, which no option shortens; so benchmarks keep their
100 samples. Without options of the user, each warms up for 20 ms instead of 100 ms, and Catch2
leaves out its bootstrap: only the mean is read.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from equipoise.interop.formats import catch2
from equipoise.interop.reading import Reading, read_within_bounds
from equipoise.model.errors import EquipoiseError, UnusableInput
from equipoise.suites.cmake import cmake_programs
from equipoise.suites.running import run_to_end, stopped_at, times_of
from equipoise.suites.tool import (
    BenchmarkTool,
    Command,
    Failure,
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
_TEST_CASE = re.compile(r'<TestCase name="([^"]*)"')


def _measure(command: Command, folder: Path) -> Iterator[Measurement | Failure]:
    """Run a program; yield the mean of each benchmark."""
    given = next((word for word in command[1:] if _OUTPUT_OPTIONS.fullmatch(word)), None)
    if given is not None:
        raise SystemExit(f"leave out {given}: Catch2 must write its XML report to a file")
    report = folder / "report.xml"
    options = (*_SHORT_RUN, ("--reporter", "xml"), ("--out", str(report)))
    ending = run_to_end(with_options(command, options), folder / "output")
    try:
        reading = _reading(report)
    except EquipoiseError:
        if ending.problem is None:
            raise
        raise stopped_at(_running(report), ending) from None
    yield from times_of(reading.processes)
    yield from (Failure(name, f"{reading.tool}: {reason}") for name, reason in reading.failures)
    if not reading.processes and not reading.failures:
        problem = f"{reading.tool}: {command[0]} measured no benchmark"
        raise SystemExit("\n".join(filter(None, (problem, ending.problem))))
    if ending.problem is not None and not reading.failures:
        raise stopped_at(None, ending)


def _reading(report: Path) -> Reading:
    if not report.exists():
        hint = "check the command, or remove the option for the kind"
        raise UnusableInput("the program wrote no report: it does not use Catch2", hint=hint)
    return catch2.FORMAT.read(read_within_bounds("the report of Catch2", report))


def _running(report: Path) -> str | None:
    """Return the last test case of a report that is cut off."""
    text = report.read_text("utf-8", "replace") if report.exists() else ""
    names = _TEST_CASE.findall(text)
    return html.unescape(names[-1]) if names else None


def _without(command: tuple[str, ...], test_case: str) -> tuple[str, ...]:
    return (*command, "~" + re.sub(r"[\\,\[\]*]", r"\\\g<0>", test_case))


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


TOOL = BenchmarkTool(
    "catch2", measure=_measure, find=_find, tried_with="Catch2 2.13 and 3.7", without=_without
)
