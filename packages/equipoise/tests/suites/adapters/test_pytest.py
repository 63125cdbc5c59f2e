"""The search path and the plugin with which a gate runs pytest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from packages.equipoise.tests.suites.test_finding import written
from packages.equipoise.tests.suites.test_trial import reported

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
