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

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from equipoise.helpers.equipoise_metrics import METRICS_VARIABLE
from equipoise.interop.reading import TIME, read_within_bounds
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
        listed = folder / "benchmarks"
        words = [word for word in command if word != _LIST]
        run_pytest(words, folder, {_LIST_VARIABLE: str(listed)})
        print(listed.read_text(encoding="ascii"), end="")
        return
    node = next((word for word in command if word.startswith(_NODE)), None)
    if node is None:
        raise SystemExit(f"{command[0]} has no benchmark to run")
    metrics = folder / "metrics.jsonl"
    variables = {_NODE_VARIABLE: node.removeprefix(_NODE), METRICS_VARIABLE: str(metrics)}
    run_pytest([word for word in command if word != node], folder, variables)
    if not metrics.exists():
        raise SystemExit(f"{node.removeprefix(_NODE)} measured nothing")
    for _, text in read_within_bounds("the metrics of pytest", metrics).lines():
        line = msgspec.json.decode(text, type=_Line)
        if line.iteration is None:
            yield Measurement(TIME, line.value, "s")


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
    listing=Listing(_list, is_by_adapter=True),
    records_files=True,
)
