"""C++: programs that use Google Benchmark. Each benchmark runs in processes of its own.

- ``--benchmark_filter`` of the user chooses the benchmarks. A filter that begins with ``-`` leaves
  benchmarks out.
- ``--benchmark_min_time`` is 0.05 s, unless the user or the benchmark sets another time.
- The metrics are ``time_s`` and ``cpu_time_s``, the wall and CPU time of one iteration.
- A gate of ``simulated_instructions`` or ``allocations`` counts one iteration: the difference of
  100 and 200 iterations, or of N and 2·N with ``--benchmark_min_time=Nx``. It needs version 1.8.
- Benchmarks with one name run in one process, and their time is the mean.
- A benchmark that reports an error or skips itself is not compared, and the gate ends with status
  3. The filter ``--benchmark_filter=-NAME`` leaves it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from equipoise.interop.formats import google_benchmark
from equipoise.interop.reading import TIME, read_within_bounds
from equipoise.suites.cmake import cmake_programs
from equipoise.suites.running import run
from equipoise.suites.tool import (
    BenchmarkTool,
    Command,
    FoundSuite,
    Listing,
    Measurement,
    PrintedLines,
)

_REGEX_CHARACTERS = re.compile(r"[.\[\\()*+?{|^$]")
"""Special characters of POSIX extended regular expressions."""
_LIST_OPTION = "--benchmark_list_tests"
_LIBRARIES = frozenset({"benchmark::benchmark", "benchmark::benchmark_main"})


def _measure(command: Command, folder: Path) -> Iterator[Measurement]:
    """Run a command with a single benchmark; yield its times and its number of iterations."""
    # Results go to a file, because the program may print, too.
    results = folder / "results.json"
    run((*command, f"--benchmark_out={results}", "--benchmark_out_format=json"), folder / "output")
    if not results.exists():
        raise SystemExit(
            f"{command[0]} wrote no results: it does not use Google Benchmark, or ended early"
        )
    reading = google_benchmark.FORMAT.read(read_within_bounds("the results", results))
    if reading.notes or not reading.processes:
        problem = "; ".join(reading.notes) or "the program measured no benchmark"
        raise SystemExit(f"{reading.tool}: {problem}")
    values = reading.processes[0].values
    yield Measurement(TIME, values[TIME], "s")
    yield Measurement("cpu_time_s", values["cpu_s"], "s")
    yield Measurement("iterations", values["iterations"])


def _list(printed_lines: PrintedLines) -> Mapping[str, tuple[str, ...]]:
    # A program may print other lines, too. These lines also appear if no benchmark is chosen.
    other_lines = {*printed_lines(_LIST_OPTION, _filter_option(""))}
    names = (line for line in printed_lines(_LIST_OPTION) if line not in other_lines)
    return {name: (_filter_option(name),) for name in names}


def _filter_option(name: str) -> str:
    return "--benchmark_filter=^" + _REGEX_CHARACTERS.sub(r"\\\g<0>", name) + "$"


def _find(folder: Path) -> FoundSuite | None:
    for program in cmake_programs(folder):
        if not _LIBRARIES.isdisjoint(program.libraries):
            evidence = f"{program.file} links {program.name} with benchmark::benchmark"
            return FoundSuite(evidence, program.command, program.build)
    return None


TOOL = BenchmarkTool(
    "google-benchmark",
    measure=_measure,
    find=_find,
    tried_with="Google Benchmark 1.7, 1.9",
    # The library's default is 0.5 s.
    listing=Listing(
        _list,
        short_run=(("--benchmark_min_time=0.05",),),
        iterations="--benchmark_min_time={}x",
    ),
)
