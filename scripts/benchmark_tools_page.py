"""Print docs/reference/benchmark-tools.md out of the adapters: commands, builds and notes."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from equipoise.counting.run import METRICS
from equipoise.suites import TOOLS
from equipoise.suites.tool import BenchmarkTool

TOP = """# Benchmark tools

<!-- Written by `make docs` out of the adapters of the tools. -->
This page shows how the gate, the search for a commit and the history run the suite of each
benchmark tool. To gate a suite, read [gate a suite of
benchmarks](../how-to/gate-benchmark-suites.md).

```sh
equipoise gate
```

The gate alone finds the suite of the current folder by its files; `--kind` names its tool. One
process of a tool is **one trial**, with one value for each benchmark that it runs. The tool's
repetitions are never trials. Words after `--` replace the default command, and `--build` replaces
the default build. Options of a short run are added unless you set them yourself.

The last column has the [counts](../how-to/count-events.md#count-in-a-gate) of each benchmark that
`--metrics` may name instead of its time. `max_rss_bytes` needs a tool that runs each benchmark in
processes of its own.

| kind | tried with | default command | default build | counts |
| --- | --- | --- | --- | --- |"""
FOUND = "as the files say"


def main() -> None:
    """Print the page."""
    print(TOP)
    for tool in TOOLS.values():
        command = f"`{' '.join(tool.command)}`" if tool.command else FOUND
        build = f"`{tool.build}`" if tool.build else "none" if tool.command else FOUND
        print(f"| `{tool.name}` | {tool.tried_with} | {command} | {build} | {counts_of(tool)} |")
    for tool in TOOLS.values():
        print(f"\n## {tool.name}\n\n{notes_of(tool)}")


def counts_of(tool: BenchmarkTool) -> str:
    """Return the counts of each benchmark: those of the tool, or those of Equipoise."""
    if tool.counts is not None:
        metrics = tool.counts.metrics
    else:
        has_iterations = tool.listing is not None and tool.listing.iterations is not None
        metrics = METRICS if has_iterations else ()
    return ", ".join(f"`{metric}`" for metric in metrics) or "none"


def notes_of(tool: BenchmarkTool) -> str:
    """Return the docstring of the tool's file, as Markdown."""
    source = Path(inspect.getfile(tool.measure)).read_text(encoding="utf-8")
    notes = ast.get_docstring(ast.parse(source)) or ""
    return notes.replace("``", "`").rstrip()


if __name__ == "__main__":
    main()
