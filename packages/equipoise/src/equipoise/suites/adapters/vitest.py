"""JavaScript: the benchmarks of vitest.

A benchmark is measured for 0.1 s, unless the code sets another time. For that, Equipoise adds a
module to ``NODE_OPTIONS``, which needs Node 20 or later. If benchmarks import built files, the
build line builds them, too: ``--build 'npm ci && npm run build'``.

The times are medians of calls, in vitest 1 means. They come from the file of ``--outputJson``
(vitest 1.5 to 4), or from the JSON report of tests (vitest 5). vitest 5 would run several files at
once, so it gets ``--no-file-parallelism``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from equipoise.interop.formats import vitest
from equipoise.interop.reading import MEDIAN_TIME, TIME, read_within_bounds
from equipoise.suites.node import (
    INSTALL,
    install_line,
    installed_version,
    manifest_in,
    short_runs,
    tasks_in,
)
from equipoise.suites.running import run_to_end, stopped_at
from equipoise.suites.searching import files_named, text_in
from equipoise.suites.tool import BenchmarkTool, Command, Failure, FoundSuite, Measurement

_NO_BENCHMARK_HINT = "check the names of its files and the option -t"
_COMMAND = ("npx", "vitest", "bench", "--run")
_BENCHMARK_FILE = r".*\.(bench|benchmark)\.[cm]?[jt]sx?"
_OLDEST_VERSION = (1, 5)
"""First version with ``--outputJson``."""
_FIRST_VERSION_WITH_REPORT = (5, 0)
_RESULTS_OPTION = "--outputJson"
_PARALLEL_OPTIONS = ("--fileParallelism", "--no-file-parallelism", "--maxWorkers")


def _measure(command: Command, folder: Path) -> Iterator[Measurement | Failure]:
    version = installed_version("vitest")
    results, tasks, running = (folder / name for name in ("results.json", "tasks.jsonl", "running"))
    variables = short_runs(tasks, running)
    ending = run_to_end(_with_results(command, version, results), folder / "output", variables)
    if ending.timed_out:
        raise stopped_at(text_in(running) or None, ending)
    if not results.exists():
        ending.require_success()
        raise SystemExit(f"{command[0]} wrote no results of vitest {version}: is it vitest bench?")
    file = read_within_bounds(f"the results of vitest {version}", results)
    reading = vitest.reading_of(file, Path.cwd())
    for process in reading.processes:
        median_s = process.values.get(MEDIAN_TIME, process.values[TIME])
        yield Measurement(f"{process.benchmark} {TIME}", median_s, "s")
    reasons = _failures(tasks)
    for name, reason in reading.failures:
        reason = reasons.get(name.rpartition(vitest.NAME_SEPARATOR)[2], reason)
        yield Failure(name, f"vitest {version}: {reason}")
    if ending.problem is not None and not reading.failures:
        ending.require_success()
    if not reading.processes and not reading.failures:
        raise SystemExit(f"vitest {version}: it measured no benchmark: {_NO_BENCHMARK_HINT}")


def _failures(tasks: Path) -> dict[str, str]:
    """Return the errors of benchmarks, which vitest 1 to 4 does not print, by their names."""
    found = tasks_in(tasks) if tasks.exists() else ()
    return {task.task: task.problem for task in found if task.failure is not None}


def _with_results(command: Command, version: str, results: Path) -> Command:
    """Return the command with options of a version of vitest that write results to a file."""
    numbers = _version_numbers(version)
    if numbers < _OLDEST_VERSION:
        raise SystemExit(f"vitest {version} cannot write its results: install vitest 1.5 or newer")
    if any(argument.partition("=")[0] == _RESULTS_OPTION for argument in command):
        raise SystemExit(f"remove {_RESULTS_OPTION}, because Equipoise sets it")
    if numbers < _FIRST_VERSION_WITH_REPORT:
        return _with_options(command, [_RESULTS_OPTION, str(results)])
    options = ["--reporter=default", "--reporter=json", f"--outputFile.json={results}"]
    if not any(argument.partition("=")[0] in _PARALLEL_OPTIONS for argument in command):
        options.append("--no-file-parallelism")
    return _with_options(command, options)


def _with_options(command: Command, options: Sequence[str]) -> Command:
    """Return the command with options; ``npm run`` needs ``--`` before the options of a script."""
    is_script_of_npm = os.path.basename(command[0]) == "npm" and "--" not in command
    return (*command, *(("--",) if is_script_of_npm else ()), *options)


def _version_numbers(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    numbers = version.split(".")[:2]
    if not all(number.isdecimal() for number in numbers):
        raise SystemExit(f"the version of vitest is unknown: {version or 'it is empty'}")
    return tuple(map(int, numbers))


def _find(folder: Path) -> FoundSuite | None:
    manifest = manifest_in(folder)
    if manifest is None or not manifest.depends_on("vitest"):
        return None
    for file in files_named(folder, _BENCHMARK_FILE):
        evidence = f"package.json depends on vitest, and {file.relative_to(folder)} is a benchmark"
        return FoundSuite(evidence, _COMMAND, install_line(folder))
    return None


TOOL = BenchmarkTool(
    "vitest",
    measure=_measure,
    find=_find,
    tried_with="vitest 1.6 to 5.1",
    command=_COMMAND,
    build=INSTALL,
)
