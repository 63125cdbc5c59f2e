"""Python: tests with the fixture of Equipoise, of pytest-benchmark or of pytest-codspeed.

The plugin `equipoise.helpers.pytest_plugin` reports the times from inside of pytest. It asks
pytest-benchmark and pytest-codspeed for repetitions of 0.1 s, unless the user or a test sets
another time. pytest-codspeed measures wall time without its service, and writes its own results to
a private folder.

A gate of ``allocations`` or ``allocated_bytes`` counts a call of the function in place of its time:
each object, because Python then calls malloc for each. A test without a fixture is not counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from equipoise.helpers.allocation_counts import RECORDER, Counts
from equipoise.suites.running import run
from equipoise.suites.searching import first_file_with
from equipoise.suites.tool import BenchmarkTool, Command, FoundSuite, Measurement, ToolCounts

_COMMAND = ("pytest", "-q", "-p", "no:cacheprovider")
_COUNTS = "--count-allocations"
"""Word of a command that counts; pytest does not get it."""
_FILE_NAME = r"(test|bench)\w*\.py|\w+_(test|bench)\w*\.py"
_USE_OF_FIXTURE = r"^\s*(async )?def test\w*\((.*\W)?((equipoise|codspeed)_)?benchmark\b"
_USE_OF_MARKER = r"^\s*(@|pytestmark\s*=.*)pytest\.mark\.(codspeed_)?benchmark\b"
"""Marker of pytest-codspeed for a test, a class or a module."""


def _measure(command: Command, folder: Path) -> Iterator[Measurement]:
    variables = {"CODSPEED_PROFILE_FOLDER": str(folder)}
    if _COUNTS in command:
        # A late import: trials of all tools import this file.
        from equipoise.counting.allocations import counting_variables

        variables |= counting_variables(os.environ, folder)
    run([word for word in command if word != _COUNTS], folder / "output", variables)
    return iter(())


def _with_counts(command: tuple[str, ...]) -> tuple[str, ...]:
    return (*command, _COUNTS)


def _find(folder: Path) -> FoundSuite | None:
    for pattern, noun in ((_USE_OF_FIXTURE, "fixture"), (_USE_OF_MARKER, "marker")):
        file = first_file_with(folder, _FILE_NAME, pattern)
        if file is not None:
            return FoundSuite(f"{file} has a test with a benchmark {noun}", _COMMAND)
    return None


TOOL = BenchmarkTool(
    "pytest",
    measure=_measure,
    find=_find,
    tried_with="pytest-benchmark 5, pytest-codspeed 3 to 5",
    command=_COMMAND,
    counts=ToolCounts(RECORDER, Counts._fields, _with_counts),
    environment={"EQUIPOISE_GATE_TREE": "{tree}", "EQUIPOISE_GATE_INSTEAD_OF": "{own}"},
)
