"""`make` says what is missing, one line with the hint for each thing."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from packages.equipoise.tests.programs import finished

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "scripts"
NEEDED = ("cargo", "rustc", "cc", "make", "python3")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder to be the whole path: a shell's needs and a working stand-in for each tool."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in ("sh", "dirname"):
        found = shutil.which(program)
        assert found is not None
        (folder / program).symlink_to(found)
    for program in NEEDED:
        stand_in(folder, program, "exit 0")
    stand_in(folder, "rustc", "echo 'rustc 1.89.0 (29483883e 2025-08-04)'")
    stand_in(folder, "python3", f"exec '{sys.executable}' \"$@\"")
    return folder


def stand_in(folder: Path, program: str, body: str) -> None:
    (folder / program).write_text(f"#!/bin/sh\n{body}\n")
    (folder / program).chmod(0o755)


def check(tools: Path) -> tuple[int, list[str]]:
    done = finished([SCRIPTS / "check_tools.sh"], env={"PATH": str(tools)})
    return done.returncode, done.stderr.splitlines()


def test_where_everything_is_there_nothing_is_said(tools: Path) -> None:
    assert check(tools) == (0, [])


@pytest.mark.parametrize("program", NEEDED)
def test_each_missing_tool_gets_its_line(tools: Path, program: str) -> None:
    (tools / program).unlink()
    status, lines = check(tools)
    assert status == 1
    assert len(lines) == 1
    assert "Hint:" in lines[0]


def test_everything_that_is_missing_is_named_at_once(tools: Path) -> None:
    for program in NEEDED:
        (tools / program).unlink()
    status, lines = check(tools)
    assert status == 1
    assert len(lines) == 4


@pytest.mark.parametrize("version", ["1.88.0", "0.99.0"])
def test_an_old_rust_is_as_good_as_none(tools: Path, version: str) -> None:
    stand_in(tools, "rustc", f"echo 'rustc {version} (abc 2025-01-01)'")
    _, lines = check(tools)
    assert len(lines) == 1
    assert "Rust 1.89" in lines[0]


def test_a_rust_of_the_next_major_version_is_new_enough(tools: Path) -> None:
    stand_in(tools, "rustc", "echo 'rustc 2.0.0 (abc 2030-01-01)'")
    assert check(tools) == (0, [])


def test_a_python_without_venv_is_passed_over_for_one_with_it(tools: Path) -> None:
    stand_in(tools, "python3", "exit 1")
    stand_in(tools, "python3.11", f"exec '{sys.executable}' \"$@\"")
    assert check(tools) == (0, [])
    found = finished([SCRIPTS / "find_python.sh"], env={"PATH": str(tools)}, check=True)
    assert found.stdout.strip() == str(tools / "python3.11")
