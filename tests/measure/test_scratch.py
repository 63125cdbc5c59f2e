"""The folder of a sitting, and what a sitting that was killed leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from equipoise.measure.own_metrics import VARIABLE
from equipoise.measure.scratch import clear_leftovers, scratch_folder

HOLDS_ONE = """
import subprocess, sys, time
from equipoise.measure.scratch import scratch_folder
with scratch_folder() as folder:
    name = {"EQUIPOISE_METRICS": f"{folder}/metrics.jsonl"}
    by_variable = subprocess.Popen(["/bin/sleep", "60"], env=name, stdout=subprocess.DEVNULL)
    by_folder = subprocess.Popen(["/bin/sleep", "60"], cwd=folder, stdout=subprocess.DEVNULL)
    print(folder, by_variable.pid, by_folder.pid, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where scratch folders are made."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    yield tmp_path


def test_a_folder_is_removed_at_the_end_and_nobody_clears_it_before(home: Path) -> None:
    with scratch_folder() as folder:
        (folder / "metrics.jsonl").touch()
        assert clear_leftovers() == ()
        assert folder.is_dir()
    assert list(home.iterdir()) == []


def test_what_a_killed_sitting_left_is_ended_and_removed(home: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS_ONE], stdout=subprocess.PIPE, text=True
    ) as killed:
        assert killed.stdout is not None
        folder, *pids = killed.stdout.readline().split()
        assert clear_leftovers() == ()
        killed.send_signal(signal.SIGKILL)
    (left,) = clear_leftovers()
    assert (left.folder, left.processes) == (folder, 2)
    assert left.words().endswith(f"{folder} and 2 processes of it")
    assert list(home.iterdir()) == []
    for pid in pids:
        assert not os.path.exists(f"/proc/{pid}/exe")


@pytest.mark.parametrize("name", ["other-xyz", "equipoise-of-another-program"])
def test_what_is_no_scratch_folder_stays(home: Path, name: str) -> None:
    (home / name).mkdir()
    assert clear_leftovers() == ()
    assert (home / name).is_dir()


def test_the_variable_by_which_a_process_is_found_is_that_of_trials() -> None:
    assert VARIABLE in HOLDS_ONE
