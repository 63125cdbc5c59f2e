"""Repositories with a suite in Python, and environments that have its tools."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from packages.equipoise.tests.repositories import MadeRepository, repository
from packages.equipoise.tests.suites.adapters.example_projects import EXAMPLES, TEST_TOOLS


def python_of(environment: str, tool: str) -> str:
    """Path of the Python of an environment; skip the test if there is none."""
    python = TEST_TOOLS / "python" / environment / "bin/python"
    if not python.exists():
        pytest.skip(f"misses {python}: scripts/test_tools.sh {tool}")
    return str(python)


def example_project(folder: Path, tool: str) -> MadeRepository:
    """A repository with the example of a tool; its later commit has ``slower.patch``."""
    project = repository(folder / "project")
    shutil.copytree(EXAMPLES / tool, project.path, dirs_exist_ok=True)
    patch = folder / "slower.patch"
    (project.path / patch.name).rename(patch)
    project.commit()
    project.git("tag", "before")
    project.git("apply", str(patch))
    project.commit()
    return project
