"""Print docs/reference/benchmark-tools.md out of the adapters: commands, builds and notes."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

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

| kind | tried with | default command | default build |
| --- | --- | --- | --- |"""
FOUND = "as the files say"


def main() -> None:
    """Print the page."""
    print(TOP)
    for tool in TOOLS.values():
        command = f"`{' '.join(tool.command)}`" if tool.command else FOUND
        build = f"`{tool.build}`" if tool.build else "none" if tool.command else FOUND
        print(f"| `{tool.name}` | {tool.tried_with} | {command} | {build} |")
    for tool in TOOLS.values():
        print(f"\n## {tool.name}\n\n{notes_of(tool)}")


def notes_of(tool: BenchmarkTool) -> str:
    """Return the docstring of the tool's file, as Markdown."""
    source = Path(inspect.getfile(tool.measure)).read_text(encoding="utf-8")
    notes = ast.get_docstring(ast.parse(source)) or ""
    return notes.replace("``", "`").rstrip()


if __name__ == "__main__":
    main()
