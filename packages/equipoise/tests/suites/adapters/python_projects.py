"""Repositories with a suite in Python, and environments that have its tools."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from packages.equipoise.tests.repositories import MadeRepository, repository

ROOT = Path(__file__).parents[5]
TEST_TOOLS = Path(
    os.environ.get("EQUIPOISE_TEST_TOOLS", Path.home() / ".cache/equipoise-test-tools")
)


def python_of(environment: str, tool: str) -> str:
    """Path of the Python of an environment; skip the test if there is none."""
    python = TEST_TOOLS / "python" / environment / "bin/python"
    if not python.exists():
        pytest.skip(f"misses {python}: scripts/test_tools.sh {tool}")
    return str(python)


def example_project(folder: Path, tool: str) -> MadeRepository:
    """A repository with the example of a tool; its later commit has ``slower.patch``."""
    project = repository(folder / "project")
    example = ROOT / "docs/examples/suites" / tool
    shutil.copytree(example, project.path, dirs_exist_ok=True)
    patch = folder / "slower.patch"
    (project.path / patch.name).rename(patch)
    project.commit()
    project.git("tag", "before")
    project.git("apply", str(patch))
    project.commit()
    return project
