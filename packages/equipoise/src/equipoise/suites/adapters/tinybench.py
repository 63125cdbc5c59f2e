"""JavaScript: scripts that use tinybench, versions 2 to 6.

tinybench has no file of results. So Node first loads a module of Equipoise that writes the
median time of each task when a run ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from equipoise.interop.reading import TIME, Process, number_equal_names
from equipoise.suites.node import INSTALL, install_line, manifest_in, short_runs, tasks_in
from equipoise.suites.running import run_to_end, stopped_at, times_of
from equipoise.suites.searching import text_in
from equipoise.suites.tool import BenchmarkTool, Command, Failure, FoundSuite, Measurement

_SCRIPTS = ("bench", "benchmark")
_COMMAND = ("npm", "run", _SCRIPTS[0])
_NO_BENCHMARK_HINT = "install one of these versions, and let the script call run()"
_USE_OF_VITEST = re.compile(r"\bvitest\s")


def _measure(command: Command, folder: Path) -> Iterator[Measurement | Failure]:
    results, running = folder / "tinybench.jsonl", folder / "running"
    ending = run_to_end(command, folder / "output", short_runs(results, running))
    if ending.problem is not None:
        raise stopped_at(text_in(running) or None, ending)
    if not results.exists():
        raise SystemExit(f"{command[0]} ran no benchmark of tinybench 2 to 6: {_NO_BENCHMARK_HINT}")
    tasks = tasks_in(results)
    for name, task in zip(number_equal_names(task.name for task in tasks), tasks, strict=True):
        if task.median_ms is None:
            yield Failure(name, f"tinybench {task.version}: {task.problem}")
        else:
            yield from times_of([Process(name, {TIME: task.median_ms / 1000})])


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
