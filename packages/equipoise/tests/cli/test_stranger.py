"""A stranger types what README.md shows, with other names, and gets the right answer.

``benchmarks/stranger/run.py`` has all questions; those that take seconds are asked here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.stranger.run import BEGINS, QUESTIONS, README, line_of, with_names

ROOT = README.parent


@pytest.mark.parametrize("beginning", [line for lines in BEGINS.values() for line in lines])
def test_readme_has_the_line_that_a_stranger_types(beginning: str) -> None:
    assert line_of(README.read_text(encoding="utf-8"), beginning).startswith(beginning)


def test_every_question_has_a_line_of_readme() -> None:
    assert set(BEGINS) == set(QUESTIONS)


def test_a_line_that_readme_no_longer_has_ends_the_benchmark() -> None:
    with pytest.raises(SystemExit, match="0 lines that begin with 'equipoise compare A'"):
        line_of("`equipoise compare B`", "equipoise compare A")
    with pytest.raises(SystemExit, match="no longer has 'C'"):
        with_names("equipoise compare A B", {"C": "c"})


@pytest.mark.parametrize("question", ["functions", "log"])
def test_a_stranger_gets_the_right_answer(question: str, tmp_path: Path) -> None:
    folders = (str(Path(sys.executable).parent), os.environ["PATH"])
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/stranger/run.py", "--only", question],
        cwd=tmp_path,
        env={**os.environ, "PATH": os.pathsep.join(folders), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, "WRONG" in done.stdout) == (0, False), done.stdout + done.stderr
    assert "\n  right, " in done.stdout
