"""ReBench's data file: an invocation is a process, its iterations are iterations.

The file is tab-separated. Newer versions name the columns in a line that begins with
``invocation``; older versions have the first 12 or 13 of `_COLUMNS` and no such line. Lines that
begin with ``#`` are comments. The criterion ``total`` is compared; other criteria become more
metrics. Executors are compared on the same benchmark. ReBench may start again in the same file,
with a comment; the same invocation number then means another process.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

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
_TOTAL = "total"
_REQUIRED = ("invocation", "iteration", "value", "unit", "criterion", "benchmark")
_LEVELS = (EXECUTOR, "suite", "extraArgs", "cores", "inputSize", "varValue")
_COLUMNS = (*_REQUIRED, *_LEVELS, "machine")
_MIN_COLUMNS = len(_COLUMNS) - 1
_NOT_LEVELS = frozenset({*_REQUIRED, "runId"})
_START = "# Execution Start: "
_HOST = "# Environment: "
_HEADER = "invocation\t"


class _Key(Struct, frozen=True):
    """Key of one invocation."""

    execution: int
    invocation: str
    benchmark: str
    levels: tuple[tuple[str, str], ...]


def _recognises(file: SourceFile) -> bool:
    for line in file.beginning(65536).splitlines():
        if line and not line.startswith(("#", _HEADER)):
            parts = line.split("\t")
            return len(parts) >= _MIN_COLUMNS and parts[0].isdigit() and parts[1].isdigit()
    return False


def _read(file: SourceFile) -> Reading:
    by_key: dict[_Key, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    environment: dict[str, Any] = {}
    columns: tuple[str, ...] = _COLUMNS
    execution = 0
    for number, line in file.lines():
        if line.startswith("#!"):
            execution += 1
            environment.setdefault("command", line.removeprefix("#!"))
        elif line.startswith(_START):
            environment.setdefault("started", line.removeprefix(_START))
        elif line.startswith(_HOST):
            environment.setdefault("host", _host(file, number, line.removeprefix(_HOST)))
        elif line.startswith(_HEADER):
            columns = tuple(line.split("\t"))
        elif line and not line.startswith("#"):
            key, metric, value = _measurement(file, number, _cells(file, number, line, columns))
            by_key[replace(key, execution=execution)][metric].append(value)
    processes = tuple(
        Process(key.benchmark, _means(iterations), iterations, dict(key.levels))
        for key, iterations in by_key.items()
    )
    return Reading(
        tool="ReBench",
        metric=next((metric for process in processes for metric in process.values), TIME),
        processes=processes,
        environment=environment,
        compared_factor=EXECUTOR,
    )


def _host(file: SourceFile, number: int, text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except DECODE_ERRORS as error:
        raise file.error(f"line {number} does not describe the host: {error}") from error


def _cells(file: SourceFile, number: int, line: str, columns: tuple[str, ...]) -> dict[str, str]:
    parts = line.split("\t")
    if len(parts) != len(columns) and (columns != _COLUMNS or len(parts) != _MIN_COLUMNS):
        raise file.error(
            f"line {number} has {len(parts)} columns, not {len(columns)}: is it cut off?"
        )
    cells = dict(zip(columns, parts, strict=False))
    if missing := [name for name in _REQUIRED if name not in cells]:
        raise file.error(f"line {number} has no column {missing[0]}")
    return cells


def _measurement(file: SourceFile, number: int, cells: dict[str, str]) -> tuple[_Key, str, float]:
    value = finite_number(cells["value"])
    if value is None:
        raise file.error(f"line {number}: {quote(cells['value'])} is not a number")
    unit, criterion = cells["unit"], cells["criterion"]
    factor = seconds_per(unit)
    if factor is None:
        metric, factor = f"{criterion}_{unit}", 1.0
    else:
        metric = TIME if criterion == _TOTAL else f"{criterion}_s"
    levels = tuple(
        (name, level)
        for name, level in cells.items()
        if name not in _NOT_LEVELS and level not in ("", "None")
    )
    key = _Key(0, cells["invocation"], cells["benchmark"], levels)
    return key, metric, value * factor


def _means(iterations: dict[str, list[float]]) -> dict[str, float]:
    """Return the mean of each metric, the criterion ``total`` first if it is a time."""
    means = {metric: mean(values) for metric, values in iterations.items()}
    return {TIME: means.pop(TIME), **means} if TIME in means else means


FORMAT = Format("rebench", "rebench (its data file)", _recognises, _read)
