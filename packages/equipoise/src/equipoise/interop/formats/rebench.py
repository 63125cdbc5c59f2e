"""ReBench's data file: an invocation is a process, its iterations are iterations.

Tab-separated; newer versions name the columns in a line that begins with ``invocation``, older ones
have the first 12 or 13 of `_COLUMNS` and no such line. Lines that begin with ``#`` are comments.
What is compared is the criterion ``total``; other criteria stand beside it. Executors are compared
on the same benchmark. ReBench may start anew in the same file, with a comment; invocations of the
same number after it are others.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from equipoise.interop.reading import (
    NOT_DECODED,
    TIME,
    Format,
    Process,
    Reading,
    SourceFile,
    finite_number,
    mean,
    quoted,
    seconds_in,
)

EXECUTOR = "executor"
_TOTAL = "total"
_MEASURED = ("invocation", "iteration", "value", "unit", "criterion", "benchmark")
_LEVELS = (EXECUTOR, "suite", "extraArgs", "cores", "inputSize", "varValue")
_COLUMNS = (*_MEASURED, *_LEVELS, "machine")
_LEAST = len(_COLUMNS) - 1
_NO_LEVELS = frozenset({*_MEASURED, "runId"})
_START = "# Execution Start: "
_HOST = "# Environment: "
_HEADER = "invocation\t"


class _Key(Struct, frozen=True):
    """What tells one invocation from others."""

    execution: int
    invocation: str
    benchmark: str
    levels: tuple[tuple[str, str], ...]


def _recognises(file: SourceFile) -> bool:
    for line in file.begins(65536).splitlines():
        if line and not line.startswith(("#", _HEADER)):
            parts = line.split("\t")
            return len(parts) >= _LEAST and parts[0].isdigit() and parts[1].isdigit()
    return False


def _read(file: SourceFile) -> Reading:
    measured: dict[_Key, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
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
            measured[replace(key, execution=execution)][metric].append(value)
    processes = tuple(
        Process(key.benchmark, _means(iterations), iterations, dict(key.levels))
        for key, iterations in measured.items()
    )
    return Reading(
        tool="ReBench",
        metric=next((metric for process in processes for metric in process.values), TIME),
        processes=processes,
        environment=environment,
        compared=EXECUTOR,
    )


def _host(file: SourceFile, number: int, text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except NOT_DECODED as error:
        raise file.unusable(f"line {number} does not describe the host: {error}") from error


def _cells(file: SourceFile, number: int, line: str, columns: tuple[str, ...]) -> dict[str, str]:
    parts = line.split("\t")
    if len(parts) != len(columns) and (columns != _COLUMNS or len(parts) != _LEAST):
        raise file.unusable(
            f"line {number} has {len(parts)} columns, not {len(columns)}: is it cut off?"
        )
    cells = dict(zip(columns, parts, strict=False))
    if missing := [name for name in _MEASURED if name not in cells]:
        raise file.unusable(f"line {number} has no column {missing[0]}")
    return cells


def _measurement(file: SourceFile, number: int, cells: dict[str, str]) -> tuple[_Key, str, float]:
    value = finite_number(cells["value"])
    if value is None:
        raise file.unusable(f"line {number}: {quoted(cells['value'])} is no value")
    unit, criterion = cells["unit"], cells["criterion"]
    factor = seconds_in(unit)
    if factor is None:
        metric, factor = f"{criterion}_{unit}", 1.0
    else:
        metric = TIME if criterion == _TOTAL else f"{criterion}_s"
    levels = tuple(
        (name, level)
        for name, level in cells.items()
        if name not in _NO_LEVELS and level not in ("", "None")
    )
    key = _Key(0, cells["invocation"], cells["benchmark"], levels)
    return key, metric, value * factor


def _means(iterations: dict[str, list[float]]) -> dict[str, float]:
    """Return the mean of each metric, the criterion ``total`` first where it is a time."""
    means = {metric: mean(values) for metric, values in iterations.items()}
    return {TIME: means.pop(TIME), **means} if TIME in means else means


FORMAT = Format("rebench", "rebench (its data file)", _recognises, _read)
