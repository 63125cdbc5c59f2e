"""Python: tests with the fixture of Equipoise, of pytest-benchmark or of pytest-codspeed.

The plugin `equipoise.helpers.pytest_plugin` reports the times from inside of pytest, also where
Equipoise is not installed in the environment of the suite. It asks pytest-benchmark and
pytest-codspeed for repetitions of 0.1 s, unless the user or a test sets another time.
pytest-codspeed measures wall time without its service, and writes its own results to a private
folder.

Unless the environment of pytest is in the revision, Python imports the sources of the revision
before installed packages: from the folder ``src``, or else from the working folder.

A gate of ``allocations`` or ``allocated_bytes`` counts a call of the function in place of its time:
each object, because Python then calls malloc for each. A test without a fixture is not counted.
"""

from __future__ import annotations

import ast
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from equipoise import helpers
from equipoise.helpers import executed_files
from equipoise.helpers.allocation_counts import RECORDER, Counts
from equipoise.helpers.asv_program import REVISION_TREE_VARIABLE
from equipoise.model.revisions import SourcePlace
from equipoise.suites.running import TIMEOUT_VARIABLE, run_to_end, stopped_at
from equipoise.suites.searching import first_file_with, folders_up_to, place_in, text_in
from equipoise.suites.tool import BenchmarkTool, Command, FoundSuite, Measurement, ToolCounts

COMMAND = ("pytest", "-q", "-p", "no:cacheprovider")
ENVIRONMENT = {REVISION_TREE_VARIABLE: "{tree}", "EQUIPOISE_GATE_INSTEAD_OF": "{own}"}
TRIED_WITH = "pytest-benchmark 5, pytest-codspeed 3 to 5"
_PLUGIN = "equipoise.helpers.pytest_plugin"
_RUNNING_VARIABLE = "EQUIPOISE_PYTEST_RUNNING"
"""Variable of the plugin, which only an environment with pytest imports."""
_COUNTS = "--count-allocations"
"""Word of a command that counts; pytest does not get it."""
_FILE_NAME = r"(test|bench)\w*\.py|\w+_(test|bench)\w*\.py"
_USE_OF_FIXTURE = r"^\s*(async )?def test\w*\((.*\W)?((equipoise|codspeed)_)?benchmark\b"
_USE_OF_MARKER = r"^\s*(@|pytestmark\s*=.*)pytest\.mark\.(codspeed_)?benchmark\b"
"""Marker of pytest-codspeed for a test, a class or a module."""


def _measure(command: Command, folder: Path) -> Iterator[Measurement]:
    variables: Mapping[str, str] = {}
    if _COUNTS in command:
        # A late import: trials of all tools import this file.
        from equipoise.counting.allocations import counting_variables

        variables = counting_variables(os.environ, folder)
    run_pytest([word for word in command if word != _COUNTS], folder, variables)
    return iter(())


def run_pytest(command: Command, folder: Path, variables: Mapping[str, str]) -> None:
    """Run pytest with the plugin and with further environment variables.

    ``folder`` is empty, and gets the output of pytest. Raise `SystemExit` if pytest fails, and
    `StoppedAt` if it does in a benchmark that is known.
    """
    modules = folder / "modules"
    # Without `__init__.py`, an installed Equipoise has precedence.
    package = modules / "equipoise"
    package.mkdir(parents=True)
    (package / "helpers").symlink_to(Path(helpers.__file__).parent)
    if os.environ.get(executed_files.FOLDER_VARIABLE):
        (modules / "sitecustomize.py").symlink_to(executed_files.__file__)
    search_path = (str(modules), *_given("PYTHONPATH"), *_sources(command[0]))
    # pytest refuses a plugin with two names; the entry point is the other one.
    options = (*_given("PYTEST_ADDOPTS"), "-p", "no:equipoise", "-p", _PLUGIN)
    own_variables = {
        "CODSPEED_PROFILE_FOLDER": str(folder),
        "PYTHONPATH": os.pathsep.join(search_path),
        "PYTEST_ADDOPTS": " ".join(options),
    }
    running = folder / "running"
    if TIMEOUT_VARIABLE in os.environ:
        own_variables[_RUNNING_VARIABLE] = str(running)
    ending = run_to_end(command, folder / "output", {**variables, **own_variables})
    if ending.problem is not None:
        raise stopped_at(text_in(running) or None, ending)


def _without(command: tuple[str, ...], test: str) -> tuple[str, ...]:
    return (*command, "--deselect", test)


def _with_counts(command: tuple[str, ...]) -> tuple[str, ...]:
    return (*command, _COUNTS)


def _sources(program: str) -> tuple[str, ...]:
    """Return the folder with the sources of the revision; none if its build installed them."""
    here = Path.cwd()
    found = Path(shutil.which(program) or program).absolute()
    if found.is_relative_to(here) or found.is_relative_to(
        os.environ.get(REVISION_TREE_VARIABLE, here)
    ):
        return ()
    sources = here / "src"
    return (str(sources if sources.is_dir() else here),)


def _given(variable: str) -> list[str]:
    value = os.environ.get(variable)
    return [value] if value else []


def _find(folder: Path) -> FoundSuite | None:
    for pattern, noun in ((_USE_OF_FIXTURE, "fixture"), (_USE_OF_MARKER, "marker")):
        file = first_file_with(folder, _FILE_NAME, pattern)
        if file is not None:
            return FoundSuite(f"{file} has a test with a benchmark {noun}", COMMAND)
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
    tried_with=TRIED_WITH,
    command=COMMAND,
    counts=ToolCounts(RECORDER, Counts._fields, _with_counts),
    environment=ENVIRONMENT,
    places=_places,
    without=_without,
)
