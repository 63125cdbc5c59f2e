"""Python: suites of asv (airspeed velocity). Each benchmark runs in processes of its own.

asv itself would make environments, and run the whole suite in one call. So the command is instead
the Python with the package asv_runner and what the project needs, and options of ``asv run``:
``--config``, ``--bench``, ``--attribute``. `equipoise.helpers.asv_program` runs in that Python, and
calls the functions of asv_runner that asv calls.

- Each combination of parameters is a benchmark: ``range.Iteration.time_keys(10)``.
- A benchmark without the attribute ``repeat`` takes samples for 0.1 s. Its other attributes hold.
- Another process runs ``setup_cache`` before each trial, untimed.
- ``time_s`` is the mean of the samples of ``time_*`` and ``timeraw_*``. ``mem_*`` and ``peakmem_*``
  have ``memory_bytes`` instead, and ``track_*`` has ``tracked_value``. A gate compares one of these
  metrics: ``--metrics memory_bytes -- python3 --bench mem_``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from equipoise.helpers import asv_program, executed_files
from equipoise.interop.reading import DECODE_ERRORS, TIME
from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import joined
from equipoise.shared.spelling import option
from equipoise.suites.running import READ_HINT, run
from equipoise.suites.searching import files_named
from equipoise.suites.tool import (
    BenchmarkTool,
    Command,
    FoundSuite,
    Listing,
    Measurement,
    PrintedLines,
)

_PYTHON = "python3"
_TIMED_TYPE = "time"
_METRICS = {_TIMED_TYPE: TIME, "memory": "memory_bytes", "peakmemory": "memory_bytes"}
"""Metric of each type of benchmark; benchmarks of other types track a value."""
_UNITS = {TIME: "s", "memory_bytes": "B"}
_TRACKED = "tracked_value"


class _Results(Struct, frozen=True):
    """Content of the file of results."""

    type: str = ""
    value: float | None = None
    error: str | None = None
    """Sentence about the failure; ``None`` if there is a value."""


class _ListedBenchmark(Struct, frozen=True):
    name: str
    type: str
    params: tuple[str | None, ...]
    """Combinations of parameters; ``None`` for a benchmark without parameters."""


class _ListedSuite(Struct, frozen=True):
    benchmarks: tuple[_ListedBenchmark, ...]
    is_chosen: bool
    """Whether the user chose these benchmarks with ``--bench``."""


def _measure(command: Command, folder: Path) -> Iterator[Measurement]:
    """Run a command with a single benchmark; yield its value."""
    program, *arguments = command
    results_file = folder / "results.json"
    recorder = (executed_files.__file__,) if os.environ.get(executed_files.FOLDER_VARIABLE) else ()
    words = (*recorder, asv_program.__file__, *arguments, f"--results={results_file}")
    run((program, *words), folder / "output")
    try:
        results = msgspec.json.decode(results_file.read_bytes(), type=_Results)
    except OSError:
        raise SystemExit(f"{program} wrote no results: it is not a Python with asv") from None
    except DECODE_ERRORS as error:
        raise SystemExit(f"the results of {program} cannot be read: {error}; {READ_HINT}") from None
    if results.error is not None or results.value is None:
        raise SystemExit(results.error or "the benchmark has no value")
    metric = _METRICS.get(results.type, _TRACKED)
    yield Measurement(metric, results.value, _UNITS.get(metric))


def _list(printed_lines: PrintedLines) -> Mapping[str, tuple[str, ...] | None]:
    """Return the options that choose each benchmark with each combination of parameters.

    Raise `UnusableInput` if the list is not complete.
    """
    try:
        suite = msgspec.json.decode("".join(printed_lines("--list")), type=_ListedSuite)
    except msgspec.DecodeError as error:
        raise UnusableInput(
            f"the list of the benchmarks of asv cannot be read: {error}",
            hint="choose fewer benchmarks: add --bench REGEX to the command",
        ) from None
    metrics = {_METRICS.get(benchmark.type, _TRACKED) for benchmark in suite.benchmarks}
    if len(metrics) > 1 and suite.is_chosen:
        raise UnusableInput(
            f"--bench chooses benchmarks with the metrics {joined(sorted(metrics))}",
            hint="choose benchmarks with one metric, such as --bench time_",
        )
    if metrics and TIME not in metrics and not suite.is_chosen:
        raise UnusableInput(
            f"the benchmarks of asv have no time, but {joined(sorted(metrics))}",
            hint=f"add {option('metrics', min(metrics))} -- {_PYTHON} --bench .",
        )
    return {
        asv_program.full_name(benchmark.name, params): _selection(benchmark, params)
        if suite.is_chosen or benchmark.type == _TIMED_TYPE
        else None
        for benchmark in suite.benchmarks
        for params in benchmark.params
    }


def _selection(benchmark: _ListedBenchmark, params: str | None) -> tuple[str, ...]:
    name = f"--run={benchmark.name}"
    return (name,) if params is None else (name, f"--params={params}")


def _find(folder: Path) -> FoundSuite | None:
    for path in files_named(folder, r"asv\.conf\.jsonc?"):
        file = path.relative_to(folder)
        is_found_by_asv = file.parent == Path()
        options = () if is_found_by_asv else ("--config", str(file))
        return FoundSuite(f"{file} configures asv", (_PYTHON, *options))
    return None


TOOL = BenchmarkTool(
    "asv",
    measure=_measure,
    find=_find,
    tried_with="asv 0.6, asv_runner 0.1 to 0.3",
    environment={
        asv_program.REVISION_TREE_VARIABLE: "{tree}",
        asv_program.USER_TREE_VARIABLE: "{own}",
    },
    records_files=True,
    listing=Listing(_list, script=(asv_program.__file__,)),
)
