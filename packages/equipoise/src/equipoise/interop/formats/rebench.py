"""Reads ReBench's data file: each invocation is a process.

The file is tab-separated, and ``#`` begins a comment. Newer versions write the names of the columns
in a line that begins with ``invocation``. Older versions have the first 12 or 13 of `_COLUMNS`.

A criterion is a metric, and ``total`` is compared. An executor is a program that runs benchmarks;
executors are compared on the same benchmark. An execution is one start of ReBench, which a comment
marks. Each execution numbers its invocations separately.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec
from msgspec import Struct

from equipoise.interop.reading import (
    DECODE_ERRORS,
    TIME,
    Format,
    Process,
    Reading,
    SourceFile,
    finite_number,
    mean,
    quote,
    seconds_per,
)

EXECUTOR = "executor"
_TOTAL_CRITERION = "total"
_REQUIRED_COLUMNS = ("invocation", "iteration", "value", "unit", "criterion", "benchmark")
_FACTOR_COLUMNS = (EXECUTOR, "suite", "extraArgs", "cores", "inputSize", "varValue")
_COLUMNS = (*_REQUIRED_COLUMNS, *_FACTOR_COLUMNS, "machine")
_MIN_COLUMNS = len(_COLUMNS) - 1
"""Number of columns of old versions, which lack the machine."""
_COLUMNS_WITHOUT_FACTOR = frozenset({*_REQUIRED_COLUMNS, "runId"})
"""Columns that are not factors; every other column of a file is a factor."""
_START_PREFIX = "# Execution Start: "
_HOST_PREFIX = "# Environment: "
_HEADER_PREFIX = "invocation\t"


class _Invocation(Struct, frozen=True):
    """Identity of an invocation of a benchmark."""

    execution: int
    """Number of the execution, from 1; 0 if the file has no marks."""
    number: str
    """Number of the invocation within the execution."""
    benchmark: str
    levels: tuple[tuple[str, str], ...]


def _recognises(file: SourceFile) -> bool:
    for line in file.beginning(65536).splitlines():
        if line and not line.startswith(("#", _HEADER_PREFIX)):
            cells = line.split("\t")
            return len(cells) >= _MIN_COLUMNS and cells[0].isdigit() and cells[1].isdigit()
    return False


def _read(file: SourceFile) -> Reading:
    values: dict[_Invocation, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    environment: dict[str, Any] = {}
    columns: tuple[str, ...] = _COLUMNS
    execution = 0
    for line_number, line in file.lines():
        if line.startswith("#!"):
            execution += 1
            environment.setdefault("command", line.removeprefix("#!"))
        elif line.startswith(_START_PREFIX):
            environment.setdefault("started", line.removeprefix(_START_PREFIX))
        elif line.startswith(_HOST_PREFIX):
            environment.setdefault(
                "host", _host(file, line_number, line.removeprefix(_HOST_PREFIX))
            )
        elif line.startswith(_HEADER_PREFIX):
            columns = tuple(line.split("\t"))
        elif line and not line.startswith("#"):
            cells = _cells(file, line_number, line, columns)
            invocation, metric, value = _measurement(file, line_number, cells, execution)
            values[invocation][metric].append(value)
    processes = tuple(
        Process(invocation.benchmark, _means(iterations), iterations, dict(invocation.levels))
        for invocation, iterations in values.items()
    )
    return Reading(
        tool="ReBench",
        metric=next((metric for process in processes for metric in process.values), TIME),
        processes=processes,
        environment=environment,
        compared_factor=EXECUTOR,
    )


def _host(file: SourceFile, line_number: int, text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except DECODE_ERRORS as error:
        raise file.error(f"line {line_number} does not describe the host: {error}") from error


def _cells(
    file: SourceFile, line_number: int, line: str, columns: tuple[str, ...]
) -> dict[str, str]:
    texts = line.split("\t")
    if len(texts) != len(columns) and (columns != _COLUMNS or len(texts) != _MIN_COLUMNS):
        raise file.error(f"line {line_number} has {len(texts)} columns, not {len(columns)}")
    cells = dict(zip(columns, texts, strict=False))
    if missing_columns := [name for name in _REQUIRED_COLUMNS if name not in cells]:
        raise file.error(f"line {line_number} has no column {missing_columns[0]}")
    return cells


def _measurement(
    file: SourceFile, line_number: int, cells: dict[str, str], execution: int
) -> tuple[_Invocation, str, float]:
    value = finite_number(cells["value"])
    if value is None:
        raise file.error(f"line {line_number}: {quote(cells['value'])} is not a number")
    unit, criterion = cells["unit"], cells["criterion"]
    factor = seconds_per(unit)
    if factor is None:
        metric, factor = f"{criterion}_{unit}", 1.0
    else:
        metric = TIME if criterion == _TOTAL_CRITERION else f"{criterion}_s"
    levels = tuple(
        (name, level)
        for name, level in cells.items()
        if name not in _COLUMNS_WITHOUT_FACTOR and level not in ("", "None")
    )
    invocation = _Invocation(execution, cells["invocation"], cells["benchmark"], levels)
    return invocation, metric, value * factor


def _means(iterations: dict[str, list[float]]) -> dict[str, float]:
    """Return the mean of each metric; if ``total`` is a time, it comes first."""
    mean_values = {metric: mean(values) for metric, values in iterations.items()}
    return {TIME: mean_values.pop(TIME), **mean_values} if TIME in mean_values else mean_values


FORMAT = Format("rebench", "rebench (its data file)", _recognises, _read)
