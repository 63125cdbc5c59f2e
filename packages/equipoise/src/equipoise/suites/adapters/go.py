"""Go: the benchmarks of ``go test``, each for 0.1 s in place of 1 s.

``go test`` links again on every run. If linking takes long, link once: ``--build 'go test -c -o
bench.test' -- ./bench.test -test.run '^$' -test.bench . -test.benchtime 0.1s``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from equipoise.interop.formats import go_bench
from equipoise.interop.reading import Process, read_within_bounds
from equipoise.suites.running import run, times_of
from equipoise.suites.searching import first_file_with
from equipoise.suites.tool import BenchmarkTool, Command, FoundSuite, Measurement

_COMMAND = tuple("go test -run ^$ -bench . -benchtime 0.1s -count 1 ./...".split())
_BUILD = "go test -run '^$' ./..."


def _measure(command: Command, folder: Path) -> Iterator[Measurement]:
    output = folder / "output"
    run(command, output)
    yield from times_of(_processes(output))


def _processes(output: Path) -> Iterator[Process]:
    if not output.stat().st_size:
        return
    for process in go_bench.FORMAT.read(read_within_bounds("the output of go", output)).processes:
        package = process.levels.get(go_bench.PACKAGE)
        name = process.benchmark if package is None else f"{package}.{process.benchmark}"
        yield Process(name, process.values)


def _find(folder: Path) -> FoundSuite | None:
    if not (folder / "go.mod").is_file():
        return None
    file = first_file_with(folder, r".*_test\.go", r"^func Benchmark\w*\(")
    if file is None:
        return None
    return FoundSuite(f"go.mod, and {file} has a benchmark", _COMMAND, _BUILD)


TOOL = BenchmarkTool(
    "go", measure=_measure, find=_find, tried_with="Go 1.26", command=_COMMAND, build=_BUILD
)
