"""Python: the benchmarks of ``pytest``, each in processes of its own.

A process of ``pytest`` runs all benchmarks, so each block has all of them. Here a process runs one
benchmark, so the gate leaves out decided benchmarks, and gives the budget to those that it can
decide. Each process starts pytest and imports the project again: 0.8 s in place of 0.12 s for a
benchmark of pytest-benchmark. So choose it if few of many benchmarks need many blocks, for example
with ``--touched``.

Fixtures of a module or a session are made for each benchmark, and no benchmark runs after another
one. So times may differ from those of ``pytest``, in both revisions alike.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from equipoise.helpers.equipoise_metrics import METRICS_VARIABLE
from equipoise.interop.reading import DECODE_ERRORS, TIME, read_within_bounds
from equipoise.suites.adapters.pytest import COMMAND, ENVIRONMENT, TRIED_WITH, run_pytest
from equipoise.suites.tool import (
    BenchmarkTool,
    Command,
    Listing,
    Measurement,
    PrintedLines,
)

_LIST_VARIABLE = "EQUIPOISE_PYTEST_LIST"
_NODE_VARIABLE = "EQUIPOISE_PYTEST_NODE"
"""Variables of `equipoise.helpers.pytest_plugin`, which only an environment with pytest imports."""
_LIST = "--list-benchmarks"
_NODE = "--benchmark-node="
"""Beginning of the word with the id of a benchmark; pytest does not get this word."""


class _Line(Struct, frozen=True):
    """A line of the file of metrics."""

    metric: str
    value: float
    iteration: int | None = None


def _measure(command: Command, folder: Path) -> Iterator[Measurement]:
    if _LIST in command:
        _print_list([word for word in command if word != _LIST], folder)
        return
    word = next((word for word in command if word.startswith(_NODE)), None)
    if word is None:
        raise SystemExit(f"name a benchmark for {command[0]}: {_NODE}ID")
    node, metrics = word.removeprefix(_NODE), folder / "metrics.jsonl"
    variables = {_NODE_VARIABLE: node, METRICS_VARIABLE: str(metrics)}
    run_pytest([other for other in command if other != word], folder, variables)
    seconds = _seconds_of(node, metrics) if metrics.exists() else None
    if seconds is None:
        raise SystemExit(f"{node} measured no time")
    yield Measurement(TIME, seconds, "s")


def _print_list(command: Command, folder: Path) -> None:
    """Print the id of each benchmark in JSON, one a line."""
    listed = folder / "benchmarks"
    run_pytest(command, folder, {_LIST_VARIABLE: str(listed)})
    if not listed.exists():
        raise SystemExit(f"{command[0]} lists no benchmark: it is not pytest, or has no tests")
    # The gate reads the list from standard output.
    with os.fdopen(os.dup(1), "wb") as output:
        output.write(listed.read_bytes())


def _seconds_of(node: str, metrics: Path) -> float | None:
    """Return the mean seconds of a benchmark in a file of metrics; ``None`` if it has none."""
    try:
        lines = [
            msgspec.json.decode(text, type=_Line)
            for _, text in read_within_bounds("the metrics of pytest", metrics).lines()
        ]
    except DECODE_ERRORS as error:
        raise SystemExit(f"the metrics of {node} cannot be read: {error}") from None
    means = (
        line.value for line in lines if line.metric == f"{node} {TIME}" and line.iteration is None
    )
    return next(means, None)


def _list(printed_lines: PrintedLines) -> Mapping[str, tuple[str, ...]]:
    names = [msgspec.json.decode(line, type=str) for line in printed_lines(_LIST)]
    return {name: (f"{_NODE}{name}",) for name in names}


TOOL = BenchmarkTool(
    "pytest-each",
    measure=_measure,
    find=lambda folder: None,
    tried_with=TRIED_WITH,
    command=COMMAND,
    environment=ENVIRONMENT,
    listing=Listing(_list, is_printed_by_adapter=True),
    records_files=True,
)
