"""Projects for live tests of benchmark tools that `scripts/test_tools.sh` fetched."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from packages.equipoise.tests.repositories import MadeRepository, repository

EXAMPLES = Path(__file__).parents[5] / "docs/examples/suites"
TEST_TOOLS = Path(
    os.environ.get("EQUIPOISE_TEST_TOOLS", Path.home() / ".cache/equipoise-test-tools")
)
gates_a_suite = pytest.mark.skipif(
    "EQUIPOISE_TEST_TOOLS" not in os.environ,
    reason="takes minutes: make test-suites, or EQUIPOISE_TEST_TOOLS (scripts/test_tools.sh)",
)
"""Mark of tests that gate, or compile, the whole suite of a tool."""
GATE_OPTIONS = ("--min-effect", "50", "--budget", "400", "--json", "-")
"""Options for a decision on a busy host."""


def fetched_tool(name: str, file: str) -> Path:
    """The folder of a tool, which has this file; without it, the test is skipped."""
    folder = TEST_TOOLS / name
    if not (folder / file).exists():
        pytest.skip(f"misses {name}: scripts/test_tools.sh {name}")
    return folder


def example_with_more_work(folder: Path, tool: str, little: str, much: str) -> MadeRepository:
    """The example of a tool; the later of two revisions does more than the work of its patch.

    A busy host shows much work, but not 5 %.
    """
    project = repository(folder / "project")
    shutil.copytree(EXAMPLES / tool, project.path, dirs_exist_ok=True)
    patch = (EXAMPLES / tool / "slower.patch").read_text()
    assert little in patch
    project.write("slower.patch", patch.replace(little, much))
    project.commit()
    project.git("apply", "slower.patch")
    project.commit()
    return project
