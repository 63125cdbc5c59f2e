"""Go: the benchmarks of ``go test``, each for 0.1 s in place of 1 s.

A gate of ``allocations`` or ``allocated_bytes`` adds ``-benchmem``, and compares those of an
operation.

``go test`` links again on every run. If linking takes long, link once: ``--build 'go test -c -o
bench.test' -- ./bench.test -test.run '^$' -test.bench . -test.benchtime 0.1s``.

A benchmark that hangs or panics is left out with ``-skip``, in every package that has its name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from equipoise.interop.formats import go_bench
from equipoise.interop.reading import Process, read_within_bounds
from equipoise.model.revisions import SourcePlace
from equipoise.suites.running import Ending, StoppedAt, run_to_end, stopped_at, times_of
from equipoise.suites.searching import first_file_with, folders_up_to, place_in, text_in
from equipoise.suites.tool import (
    BenchmarkTool,
    Command,
    Failure,
    FoundSuite,
    Measurement,
    ToolCounts,
)

_COMMAND = tuple("go test -run ^$ -bench . -benchtime 0.1s -count 1 ./...".split())
_COUNTS = {"allocs/op": ("allocations", None), "B/op": ("allocated_bytes", "B")}
"""Metrics and units of an operation, by the unit in Go's output."""
_BUILD = "go test -run '^$' ./..."
_MODULE_LINE = re.compile(r"^module\s+(\S+)", re.MULTILINE)
_FUNCTION_LINE = re.compile(r"func (Benchmark\w*)\(")
_CPU_SUFFIX = re.compile(r"-\d+$")
_NAME_LINE = re.compile(r"Benchmark\S*")
_LOG_PLACE = re.compile(r"^\s+\S+\.go:\d+: ")
_BROKEN_PACKAGE = re.compile(r"^FAIL\t\S+ \[(build|setup) failed\]")
_BENCHMARK_NAME = re.compile(r"(?P<package>.+?)\.(?P<function>Benchmark\w*)(/.*)?(-\d+)?")


def _measure(command: Command, folder: Path) -> Iterator[Measurement | Failure]:
    output = folder / "output"
    ending = run_to_end(_with_names(command), output)
    processes = list(_processes(output))
    failures = list(_failures(output, ending, processes))
    yield from times_of(processes)
    for process in processes:
        for unit, (metric, metric_unit) in _COUNTS.items():
            if unit in process.values:
                name = f"{process.benchmark} {metric}"
                yield Measurement(name, process.values[unit], metric_unit)
    yield from failures
    if not failures:
        ending.require_success()


def _with_names(command: Command) -> Command:
    """Return a command that prints the name of each benchmark before it runs.

    Without its name, nobody knows which benchmark hangs, and text of a benchmark splits its line.
    """
    if _is_go(command) and "test" in command[1:2]:
        return (*command[:2], "-v", *command[2:])
    return (*command, "-test.v") if _is_test_program(command) else command


def _is_test_program(command: Command) -> bool:
    return any(word.startswith("-test.") for word in command)


def _is_go(command: Command) -> bool:
    return os.path.basename(command[0]) == "go"


def _failures(output: Path, ending: Ending, processes: Sequence[Process]) -> Iterator[Failure]:
    """Yield the benchmarks without a time; raise `StoppedAt` for one that ended its program."""
    suffixes = (_CPU_SUFFIX.search(process.benchmark) for process in processes)
    suffix = next((match[0] for match in suffixes if match), "")
    package, running = "", None
    logged: list[str] = []
    reasons: dict[str, str] = {}
    with output.open(encoding="utf-8", errors="replace") as lines:
        for line in map(str.rstrip, lines):
            words = line.split()
            if line.startswith("pkg: "):
                package = f"{words[1]}."
            elif _NAME_LINE.fullmatch(line):
                running = line
                logged = []
            elif line.startswith("    "):
                logged.append(_LOG_PLACE.sub("", line).strip())
            elif line.startswith("--- FAIL: Benchmark"):
                running = None
                name = f"{package}{words[2]}{suffix}"
                reasons[name] = ": ".join(filter(None, ("it failed", " ".join(logged))))
            elif line.startswith(("panic: ", "fatal error: ")) and running is not None:
                raise StoppedAt(f"{package}{running}", line)
            elif line.startswith(("PASS", "FAIL", "ok  ", "--- ")) or line.startswith("Benchmark"):
                running = None
                if _BROKEN_PACKAGE.search(line):
                    reasons[words[1]] = " ".join(words[2:]).strip("[]")
    if ending.timed_out:
        raise stopped_at(running and f"{package}{running}", ending)
    # A benchmark with sub-benchmarks fails with them, and has no time of its own.
    names = reasons.keys()
    for name, reason in reasons.items():
        parent = name.removesuffix(suffix)
        if not any(other.startswith(f"{parent}/") for other in names):
            yield Failure(name, reason)


def _without(command: tuple[str, ...], benchmark: str) -> tuple[str, ...] | None:
    """Return the command with an option that skips a benchmark in every package (Go 1.20)."""
    option = "-skip" if _is_go(command) else "-test.skip"
    name = "Benchmark" + benchmark.partition(".Benchmark")[2]
    pattern = "/".join(f"^{re.escape(part)}$" for part in name.split("/"))
    if option in command[:-1]:
        place = command.index(option) + 1
        return (*command[:place], f"{command[place]}|{pattern}", *command[place + 1 :])
    if _is_go(command) and "test" in command[1:2]:
        return (*command[:2], option, pattern, *command[2:])
    return (*command, option, pattern) if _is_test_program(command) else None


def _with_counts(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command that reports allocations; a program of tests has another option."""
    return (*command, "-benchmem" if _is_go(command) else "-test.benchmem")


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


def _places(tree: Path, folder: Path, names: Iterable[str]) -> dict[str, SourcePlace]:
    """Return the place of each benchmark whose package and function are certain.

    The name of a benchmark has its package and its function: ``example.org/text.BenchmarkParse-8``.
    """
    places: dict[str, SourcePlace] = {}
    roots = [parent for parent in folders_up_to(tree, folder) if (parent / "go.mod").is_file()]
    module = _MODULE_LINE.search(text_in(roots[0] / "go.mod")) if roots else None
    functions = cache(_functions)
    for name in names:
        parts = _BENCHMARK_NAME.fullmatch(name)
        if module is None or parts is None:
            continue
        package, prefix = f"{parts['package']}/", f"{module[1]}/"
        if not package.startswith(prefix):
            continue
        found = functions(roots[0] / package[len(prefix) :]).get(parts["function"], [])
        place = place_in(tree, found[0][0], [number for _, number in found]) if found else None
        if place is not None:
            places[name] = place
    return places


def _functions(package: Path) -> dict[str, list[tuple[Path, int]]]:
    """Return the file and the line of each function of a package that is a benchmark."""
    functions: dict[str, list[tuple[Path, int]]] = {}
    # Unlike `Path.is_dir`, this accepts every name.
    for path in sorted(package.glob("*_test.go")) if os.path.isdir(package) else ():
        for number, text in enumerate(text_in(path).splitlines(), start=1):
            if match := _FUNCTION_LINE.match(text):
                functions.setdefault(match[1], []).append((path, number))
    return functions


TOOL = BenchmarkTool(
    "go",
    measure=_measure,
    find=_find,
    tried_with="Go 1.26",
    command=_COMMAND,
    build=_BUILD,
    places=_places,
    without=_without,
    counts=ToolCounts(
        "go test -benchmem", tuple(metric for metric, _ in _COUNTS.values()), _with_counts
    ),
)
