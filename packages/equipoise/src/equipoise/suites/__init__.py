"""Benchmark tools whose suites `equipoise gate` runs as they are.

In reading order:

- ``tool.py``: the description of a tool
- ``adapters``: the tools, a file each; a new tool is a new file with a ``TOOL``
- ``finding.py``: finds the suite of a folder
- ``searching.py``: searches a folder for files with a text
- ``cmake.py``: finds the programs that CMake builds
- ``trial.py``: runs one process of a tool, and reports what it measured
- ``counted_trial.py``: counts what one iteration of a benchmark does
- ``running.py``: runs a tool's command
- ``node.py``: the common parts of the tools of Node
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from equipoise.suites import adapters
from equipoise.suites.tool import BenchmarkTool


def _tools() -> dict[str, BenchmarkTool]:
    modules = (
        import_module(f"{adapters.__name__}.{module.name}")
        for module in pkgutil.iter_modules(adapters.__path__)
    )
    tools: list[BenchmarkTool] = [module.TOOL for module in modules]
    return {tool.name: tool for tool in tools}


TOOLS = _tools()
"""All tools by name, in the order of the names of their files."""
