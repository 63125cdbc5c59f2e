"""JavaScript: scripts that use tinybench, versions 2 to 6.

tinybench has no file of results. So Node first loads a module of Equipoise that writes the mean
time of each task when a run ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from equipoise.interop.reading import (
    DECODE_ERRORS,
    TIME,
    Process,
    number_equal_names,
    quote,
    read_within_bounds,
)
from equipoise.suites.node import INSTALL, install_line, manifest_in, short_runs
from equipoise.suites.running import run, times_of
from equipoise.suites.tool import BenchmarkTool, Command, FoundSuite, Measurement

_SCRIPTS = ("bench", "benchmark")
_COMMAND = ("npm", "run", _SCRIPTS[0])
_USE_OF_VITEST = re.compile(r"\bvitest\s")
_RESULTS_NAME = "the results of tinybench"


class _Task(Struct):
    """A line of the results: a task, and its mean time or the reason why it has none."""

    version: str
    """Version of tinybench."""
    task: str
    bench: str | None = None
    """Name of the series of tasks; ``None`` if the script gave none."""
    mean_ms: float | None = None
    failure: str | None = None

    @property
    def name(self) -> str:
        return self.task if self.bench is None else f"{self.bench} > {self.task}"


def _measure(command: Command, folder: Path) -> Iterator[Measurement]:
    results = folder / "tinybench.jsonl"
    run(command, folder / "output", short_runs(results))
    if not results.exists():
        raise SystemExit(f"{command[0]} ran no benchmark of tinybench 2 to 6")
    yield from times_of(_processes(results))


def _processes(results: Path) -> Iterator[Process]:
    tasks: list[_Task] = []
    for number, line in read_within_bounds(_RESULTS_NAME, results).lines():
        try:
            tasks.append(msgspec.json.decode(line, type=_Task))
        except DECODE_ERRORS as error:
            raise SystemExit(f"{_RESULTS_NAME}: line {number} cannot be read: {error}") from None
    names = number_equal_names(task.name for task in tasks)
    for name, task in zip(names, tasks, strict=True):
        if task.mean_ms is None:
            problem = " ".join((task.failure or "it has no time").split())
            raise SystemExit(f"tinybench {task.version}: {quote(name)} failed: {problem}")
        yield Process(name, {TIME: task.mean_ms / 1000})


def _find(folder: Path) -> FoundSuite | None:
    manifest = manifest_in(folder)
    if manifest is None or not manifest.depends_on("tinybench"):
        return None
    for script in _SCRIPTS:
        line = manifest.scripts.get(script)
        if line is not None and not _USE_OF_VITEST.search(line):
            evidence = f"package.json depends on tinybench, and has the script {script}"
            return FoundSuite(evidence, ("npm", "run", script), install_line(folder))
    return None


TOOL = BenchmarkTool("tinybench", measure=_measure, find=_find, command=_COMMAND, build=INSTALL)
