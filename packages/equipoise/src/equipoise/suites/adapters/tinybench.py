"""JavaScript: scripts that use tinybench, versions 2 to 6.

tinybench has no file of results. So Node first loads a module of Equipoise that writes the
median time of each task when a run ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from equipoise.interop.reading import TIME, Process, number_equal_names, quote
from equipoise.suites.node import INSTALL, install_line, manifest_in, short_runs, tasks_in
from equipoise.suites.running import run, times_of
from equipoise.suites.tool import BenchmarkTool, Command, FoundSuite, Measurement

_SCRIPTS = ("bench", "benchmark")
_COMMAND = ("npm", "run", _SCRIPTS[0])
_USE_OF_VITEST = re.compile(r"\bvitest\s")


def _measure(command: Command, folder: Path) -> Iterator[Measurement]:
    results = folder / "tinybench.jsonl"
    run(command, folder / "output", short_runs(results))
    if not results.exists():
        raise SystemExit(f"{command[0]} ran no benchmark of tinybench 2 to 6")
    yield from times_of(_processes(results))


def _processes(results: Path) -> Iterator[Process]:
    tasks = tasks_in(results)
    names = number_equal_names(task.name for task in tasks)
    for name, task in zip(names, tasks, strict=True):
        if task.median_ms is None:
            raise SystemExit(f"tinybench {task.version}: {quote(name)} failed: {task.problem}")
        yield Process(name, {TIME: task.median_ms / 1000})


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


TOOL = BenchmarkTool(
    "tinybench",
    measure=_measure,
    find=_find,
    tried_with="tinybench 2.9 to 6.2",
    command=_COMMAND,
    build=INSTALL,
)
