"""Python: tests with the fixture of Equipoise, of pytest-benchmark or of pytest-codspeed.

The plugin `equipoise.helpers.pytest_plugin` reports the times from inside of pytest. It asks
pytest-benchmark and pytest-codspeed for repetitions of 0.1 s, unless the user or a test sets
another time. pytest-codspeed measures wall time without its service, and writes its own results to
a private folder.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from equipoise.model.revisions import SourcePlace
from equipoise.suites.running import run
from equipoise.suites.searching import first_file_with, folders_up_to, place_in, text_in
from equipoise.suites.tool import BenchmarkTool, Command, FoundSuite, Measurement

_COMMAND = ("pytest", "-q", "-p", "no:cacheprovider")
_FILE_NAME = r"(test|bench)\w*\.py|\w+_(test|bench)\w*\.py"
_USE_OF_FIXTURE = r"^\s*(async )?def test\w*\((.*\W)?((equipoise|codspeed)_)?benchmark\b"
_USE_OF_MARKER = r"^\s*(@|pytestmark\s*=.*)pytest\.mark\.(codspeed_)?benchmark\b"
"""Marker of pytest-codspeed for a test, a class or a module."""


def _measure(command: Command, folder: Path) -> Iterator[Measurement]:
    run(command, folder / "output", {"CODSPEED_PROFILE_FOLDER": str(folder)})
    return iter(())


def _find(folder: Path) -> FoundSuite | None:
    for pattern, noun in ((_USE_OF_FIXTURE, "fixture"), (_USE_OF_MARKER, "marker")):
        file = first_file_with(folder, _FILE_NAME, pattern)
        if file is not None:
            return FoundSuite(f"{file} has a test with a benchmark {noun}", _COMMAND)
    return None


def _places(tree: Path, folder: Path, names: Iterable[str]) -> dict[str, SourcePlace]:
    """Return the place of each test whose file and function are certain.

    The name of a test begins with the path of its file from pytest's root folder, which is the
    folder of the gate or above it: ``FILE::TestLong::test_lines[100]``.
    """
    parsed = cache(_parse)
    places: dict[str, SourcePlace] = {}
    for name in names:
        file, *definitions = name.partition("[")[0].split("::")
        paths = [parent / file for parent in folders_up_to(tree, folder)]
        # Unlike `Path.is_file`, this accepts every name.
        existing_paths = [path for path in paths if os.path.isfile(path)]
        if len(existing_paths) == 1 and definitions:
            path = existing_paths[0]
            place = place_in(tree, path, _definition_lines(parsed(path), definitions))
            if place is not None:
                places[name] = place
    return places


def _parse(path: Path) -> list[ast.stmt]:
    try:
        return ast.parse(text_in(path)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _definition_lines(statements: Iterable[ast.stmt], names: Sequence[str]) -> list[int]:
    """Return the lines of all definitions of a function, which may be inside classes."""
    name, *inner_names = names
    lines: list[int] = []
    for statement in statements:
        match statement:
            case ast.ClassDef() if statement.name == name and inner_names:
                lines += _definition_lines(statement.body, inner_names)
            case ast.FunctionDef() | ast.AsyncFunctionDef() if statement.name == name:
                if not inner_names:
                    lines.append(statement.lineno)
    return lines


TOOL = BenchmarkTool(
    "pytest",
    measure=_measure,
    find=_find,
    tried_with="pytest-benchmark 5, pytest-codspeed 3 to 5",
    command=_COMMAND,
    environment={"EQUIPOISE_GATE_TREE": "{tree}", "EQUIPOISE_GATE_INSTEAD_OF": "{own}"},
    places=_places,
)
