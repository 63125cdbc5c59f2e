"""Finds the suite of benchmarks of a folder by its files."""

from __future__ import annotations

import shlex
from pathlib import Path

from msgspec import Struct

from equipoise.model.errors import UnusableInput
from equipoise.suites import TOOLS
from equipoise.suites.tool import BenchmarkTool, FoundSuite


class ToolSuite(Struct, frozen=True):
    """A suite that was found, and its tool."""

    tool: BenchmarkTool
    suite: FoundSuite

    @property
    def options(self) -> str:
        """Options of `equipoise gate` that name this suite, as a part of a shell line."""
        tool, suite = self.tool, self.suite
        words = ["--kind", tool.name]
        if suite.build != tool.build and suite.build is not None:
            words += ["--build", suite.build]
        if suite.command != tool.command:
            words += ["--", *suite.command]
        return shlex.join(words)


def suites_in(folder: Path, tool_name: str | None = None) -> tuple[ToolSuite, ...]:
    """Return the suites that a folder has, at most one for each tool, or for the named tool."""
    tools = TOOLS.values() if tool_name is None else (TOOLS[tool_name],)
    found = ((tool, tool.find(folder)) for tool in tools)
    return tuple(ToolSuite(tool, suite) for tool, suite in found if suite is not None)


def only_suite_in(folder: Path, tool_name: str | None = None) -> ToolSuite:
    """Return the suite of a folder; with the name of a tool, the suite of this tool.

    Raise `UnusableInput` if the folder has no suite, or several.
    """
    suites = suites_in(folder, tool_name)
    if not suites:
        kind = "" if tool_name is None else f"--kind {tool_name} "
        raise UnusableInput(
            f"there is no suite of {tool_name or ', '.join(TOOLS)} in {folder}",
            hint=f"name a command: equipoise gate --baseline main {kind}--build make -- ./bench",
        )
    if len(suites) > 1:
        evidence = "; ".join(f"{found.tool.name} ({found.suite.evidence})" for found in suites)
        raise UnusableInput(
            f"there are {len(suites)} suites in {folder}: {evidence}",
            hint=f"choose one, such as equipoise gate {suites[0].options}",
        )
    return suites[0]
