"""Reads asv's folder of results: a file for each machine, commit and environment.

``results/benchmarks.json`` has units and parameters, ``results/MACHINE/COMMIT-ENV.json`` has values
(asv 0.6 documentation, "Benchmark suite layout and file formats", version 2). A value is a median,
or the return value of a ``track_`` benchmark. Results of old versions of a benchmark are left out.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from equipoise.interop.reading import Format, SourceFile, quote, read_within_bounds
from equipoise.interop.series.reading import (
    SeriesReading,
    SeriesValue,
    convert,
    utc_time_of_seconds,
)
from equipoise.model.quantities import counted

BENCHMARKS = "benchmarks.json"
MACHINE = "machine.json"
MAX_FILES = 20_000
"""Maximum number of files in a folder of results."""
_FORMAT_VERSION = 2
_UPDATE_HINT = "run `asv update`, which converts old results"


class _Benchmark(Struct):
    type: str = "time"
    """Kind of the measured value, which becomes the metric."""
    unit: str | None = None
    version: str | None = None
    param_names: list[str] = []


class _ResultsFile(Struct):
    commit_hash: str
    result_columns: list[str]
    results: dict[str, list[Any]]
    """Cells of the columns, by name of the benchmark."""
    env_name: str = ""
    date: float | None = None
    params: dict[str, Any] = {}

    @property
    def setting(self) -> str:
        """Machine and environment."""
        return ", ".join(filter(None, (str(self.params.get("machine", "")), self.env_name)))


def _recognises(file: SourceFile) -> bool:
    return file.is_folder and _results_folder(file.path) is not None


def _results_folder(path: Path) -> Path | None:
    """Return the folder of results: the path itself, or ``results`` in a project."""
    folders = (path, path / "results", path / ".asv" / "results")
    return next((folder for folder in folders if (folder / BENCHMARKS).is_file()), None)


def _read(file: SourceFile) -> SeriesReading:
    folder = _results_folder(file.path) if file.is_folder else None
    if folder is None:
        raise file.error(
            f"this is not a results folder of asv, which contains {BENCHMARKS}",
            "give the folder that asv.conf.json names as results_dir",
        )
    benchmarks_path = folder / BENCHMARKS
    benchmarks = _benchmarks(read_within_bounds(str(benchmarks_path), benchmarks_path))
    paths = [path for path in sorted(folder.glob("*/*.json")) if path.name != MACHINE]
    if len(paths) > MAX_FILES:
        raise file.error(f"the folder has more than {MAX_FILES} files", "give fewer results")
    values: list[SeriesValue] = []
    outdated_count = 0
    for path in paths:
        results_file = read_within_bounds(str(path), path)
        results = convert(results_file, _json_object(results_file), _ResultsFile, "asv")
        for name, row in results.results.items():
            cells = dict(zip(results.result_columns, row, strict=False))
            benchmark = benchmarks.get(name)
            if benchmark is None or cells.get("version") not in (None, benchmark.version):
                outdated_count += 1
                continue
            values += _benchmark_values(results_file, name, benchmark, results, cells)
    values.sort(key=lambda value: value.date or "")
    note = f"Left out: {counted(outdated_count, 'result')} of another version of a benchmark."
    return SeriesReading("asv", tuple(values), (note,) if outdated_count else ())


def _json_object(file: SourceFile) -> Mapping[str, Any]:
    """Return the object in a file, which is JSON with NaN and Infinity."""
    try:
        content = json.loads(file.content)
    except (ValueError, RecursionError) as error:
        raise file.error(f"this is not a result of asv: {error}") from error
    if not isinstance(content, dict):
        raise file.error("this is not a result of asv, which is a JSON object")
    if content.get("version") != _FORMAT_VERSION:
        problem = (
            f"the version of the file is {quote(content.get('version'))}, not {_FORMAT_VERSION}"
        )
        raise file.error(problem, _UPDATE_HINT)
    return content


def _benchmarks(file: SourceFile) -> dict[str, _Benchmark]:
    return {
        name: convert(file, description, _Benchmark, "asv")
        for name, description in _json_object(file).items()
        if name != "version"
    }


def _benchmark_values(
    file: SourceFile,
    name: str,
    benchmark: _Benchmark,
    results: _ResultsFile,
    cells: Mapping[str, Any],
) -> Iterator[SeriesValue]:
    """Yield the value of each combination of parameters; NaN if the benchmark failed."""
    level_lists, numbers = cells.get("params") or [], cells.get("result")
    if not isinstance(level_lists, list) or not all(isinstance(item, list) for item in level_lists):
        raise file.error(f"{quote(name)} has parameters that are not lists")
    if numbers is None:
        numbers = []
    if not isinstance(numbers, list):
        raise file.error(f"{quote(name)} has a result that is not a list")
    date = None if results.date is None else utc_time_of_seconds(results.date / 1000.0)
    for levels, number in zip(itertools.product(*level_lists), numbers, strict=False):
        if number is not None and not isinstance(number, int | float):
            raise file.error(f"{quote(name)} has a result that is not a number")
        yield SeriesValue(
            benchmark=_with_levels(name, benchmark.param_names, levels),
            metric=benchmark.type,
            unit=benchmark.unit,
            setting=results.setting,
            commit=results.commit_hash,
            date=date,
            value=_float_value(number),
        )


def _float_value(number: float | None) -> float:
    try:
        return float("nan") if number is None else float(number)
    except OverflowError:
        return float("inf")


def _with_levels(name: str, parameter_names: Sequence[str], levels: Sequence[Any]) -> str:
    """Return the name of a benchmark with parameters, such as ``time_loop(scale=1)``."""
    if not levels:
        return name
    pairs = itertools.zip_longest(parameter_names[: len(levels)], levels, fillvalue="")
    parameters = (f"{param}={level}" if param else str(level) for param, level in pairs)
    return f"{name}({', '.join(parameters)})"


FORMAT = Format(
    "asv", "the folder `results` that `asv run` writes", _recognises, _read, reads_folders=True
)
