"""What conftest.py promises about a session of tests, on planted ones."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).resolve().parents[2] / "conftest.py"

LIVE = """
import pytest
@pytest.mark.live("no-such-program", package="no-such-package")
def test_beside_a_peer(): pass
def test_alone(): pass
"""

# Of its own session and orphaned: no process tree leads to it.
LEAVES_A_PROCESS = """
import subprocess
def test_that_leaves_a_process():
    subprocess.run(["sh", "-c", "setsid sleep 900 >/dev/null 2>&1 &"], check=True)
"""


def session(folder: Path, test: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A session over one planted file."""
    conftest = CONFTEST.read_text()
    assert "\nGRACE_S = 20.0\n" in conftest
    # What is left on purpose is not waited for.
    (folder / "conftest.py").write_text(conftest.replace("GRACE_S = 20.0", "GRACE_S = 0.0"))
    (folder / "test_planted.py").write_text(test)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = live\n")
    own = {name: value for name, value in os.environ.items() if name != "CI"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(
        command,
        # None of what is installed here takes part.
        env=own | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_a_live_test_says_what_it_misses_in_the_last_line(tmp_path: Path) -> None:
    done = session(tmp_path, LIVE)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == (
        "1 passed, 0 failed, 1 skipped: "
        "test_beside_a_peer misses no-such-program: apt-get install no-such-package"
    )


def test_where_nothing_may_be_missing_a_skipped_live_test_fails(tmp_path: Path) -> None:
    done = session(tmp_path, LIVE, CI="true")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("1 passed, 1 failed, 0 skipped: ")
    assert "misses no-such-program" in done.stdout


def test_the_sum_is_written_for_whoever_adds_up(tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    session(tmp_path, LIVE, EQUIPOISE_TEST_SUMMARY=str(summary))
    told = json.loads(summary.read_text())
    assert (told["passed"], told["failed"], len(told["skipped"])) == (1, 0, 1)


def test_an_orphan_that_outlives_the_session_fails_it(tmp_path: Path) -> None:
    done = session(tmp_path, LEAVES_A_PROCESS)
    assert done.returncode == 1
    assert "processes left behind by tests" in done.stdout
    assert "sleep 900" in done.stdout


def test_every_file_that_starts_early_exists() -> None:
    (names,) = (
        ast.literal_eval(node.value)
        for node in ast.parse(CONFTEST.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LONG_FILES"
    )
    assert [name for name in names if not (CONFTEST.parent / name).is_file()] == []
