"""The search path and the plugin with which a gate runs pytest."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from equipoise.suites import TOOLS
from equipoise.suites.running import TIMEOUT_VARIABLE, StoppedAt
from packages.equipoise.tests.suites.test_finding import written
from packages.equipoise.tests.suites.test_trial import reported, run

PRINTS_VARIABLES = '#!/bin/sh\nprintf \'%s\\n%s\' "$PYTHONPATH" "$PYTEST_ADDOPTS" > variables\n'


def search_path(folder: Path, program: Path, *words: str, **variables: str) -> list[str]:
    """Where Python searches modules after the plugin's folder; the program replaces pytest."""
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(PRINTS_VARIABLES)
    program.chmod(0o755)
    variables = {"PYTHONPATH": "", "PYTEST_ADDOPTS": "-x", **variables}
    assert reported(folder, "pytest", str(program), *words, folder=folder, **variables) == {}
    path, options = (folder / "variables").read_text().split("\n")
    assert options == "-x -p no:equipoise -p equipoise.helpers.pytest_plugin"
    _, *rest = path.split(os.pathsep)
    return rest


@pytest.mark.parametrize(("file", "sources"), [("src/parsing.py", "src"), ("parsing.py", ".")])
def test_the_sources_of_the_revision_come_after_the_users_search_path(
    file: str, sources: str, tmp_path: Path
) -> None:
    tree = written(tmp_path / "tree", {file: ""})
    path = search_path(tree, tmp_path / "bin/pytest", PYTHONPATH="lib")
    assert path == ["lib", str((tree / sources).resolve())]


def test_a_gate_that_counts_has_the_same_search_path(tmp_path: Path) -> None:
    tree = written(tmp_path / "tree", {"src/parsing.py": ""})
    path = search_path(tree, tmp_path / "bin/pytest", "--count-allocations", PYTHONPATH="lib")
    assert path == ["lib", str(tree / "src")]


def test_a_program_that_the_build_installed_in_the_revision_finds_its_own_packages(
    tmp_path: Path,
) -> None:
    tree = written(tmp_path / "tree", {"src/parsing.py": ""})
    assert search_path(tree, tree / ".venv/bin/pytest") == []


SUITE = """
import os

def test_good(equipoise_benchmark):
    equipoise_benchmark(len, "")

def test_bad(equipoise_benchmark):
    raise ValueError("no\\ndata")

def test_dies(equipoise_benchmark):
    if "DIES" in os.environ:
        os._exit(7)
    equipoise_benchmark(len, "")
"""


def test_a_benchmark_that_fails_or_dies_does_not_hide_the_others(tmp_path: Path) -> None:
    folder = written(tmp_path, {"test_own.py": SUITE})
    pytest_command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    variables = {
        "EQUIPOISE_GATE_TREE": str(folder),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_XDIST_WORKER": "",
        TIMEOUT_VARIABLE: "600",
    }
    values = reported(tmp_path, "pytest", *pytest_command, folder=folder, **variables)
    problem = f"pytest {pytest.__version__}: ValueError: no data"
    assert values["test_own.py::test_bad time_s"]["unknown_because"] == problem
    for name in ("good", "dies"):
        assert values[f"test_own.py::test_{name} time_s"]["value"] > 0.0
    all_failed = run("pytest", *pytest_command, "-k", "bad", folder=folder, **variables)
    assert all_failed.returncode == 1
    stopped = run("pytest", *pytest_command, folder=folder, DIES="1", **variables)
    assert stopped.returncode == StoppedAt.exit_status
    without = TOOLS["pytest"].without
    assert without is not None
    command = without(pytest_command, "test_own.py::test_dies")
    assert command is not None
    values = reported(tmp_path, "pytest", *command, folder=folder, DIES="1", **variables)
    assert "test_own.py::test_dies time_s" not in values
