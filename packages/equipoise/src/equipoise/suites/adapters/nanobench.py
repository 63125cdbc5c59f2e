"""C++: programs with ankerl::nanobench, which print a table.

nanobench has no options on the command line, and by default measures each benchmark for a few
milliseconds. One process runs all benchmarks. The table may be a part of what the program prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from equipoise.interop.formats import nanobench
from equipoise.interop.reading import read_within_bounds
from equipoise.suites.cmake import cmake_programs
from equipoise.suites.running import run_to_end, times_of
from equipoise.suites.tool import BenchmarkTool, Command, Failure, FoundSuite, Measurement

_LIBRARIES = frozenset({"nanobench", "nanobench::nanobench"})
_INCLUDE = r"^[ \t]*#[ \t]*include[ \t]*[<\"](?:[\w./-]+/)?nanobench\.h[>\"]"
_RUN = r"\bnanobench\b[^;]*\bBench\b"
_NO_TABLE_HINT = "let it print to standard output"


def _measure(command: Command, folder: Path) -> Iterator[Measurement | Failure]:
    """Run a program; yield the median of each benchmark."""
    output = folder / "output"
    ending = run_to_end(command, output)
    has_output = output.stat().st_size > 0
    if ending.problem is not None or not has_output:
        ending.require_success()
        raise SystemExit(f"{command[0]} printed no table of nanobench: {_NO_TABLE_HINT}")
    reading = nanobench.FORMAT.read(read_within_bounds("the output of nanobench", output))
    if not reading.processes and not reading.failures:
        raise SystemExit(f"{command[0]} printed no table of nanobench: {_NO_TABLE_HINT}")
    yield from times_of(reading.processes)
    yield from (Failure(name, f"nanobench: {reason}") for name, reason in reading.failures)


def _find(folder: Path) -> FoundSuite | None:
    for program in cmake_programs(folder):
        source = program.source_with(_INCLUDE)
        is_linked = not _LIBRARIES.isdisjoint(program.libraries)
        if source is not None and (is_linked or program.source_with(_RUN)):
            evidence = f"{program.file} builds {program.name}, and {source.name} uses nanobench"
            return FoundSuite(evidence, program.command, program.build)
    return None


TOOL = BenchmarkTool("nanobench", measure=_measure, find=_find, tried_with="nanobench 4.0")
