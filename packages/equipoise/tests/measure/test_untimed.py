"""Hooks run in a shell, untimed; the error of a failed hook ends with its last lines."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from equipoise.measure.untimed import run_hook
from equipoise.model.errors import ConditionFailed
from packages.equipoise.tests.measure.processes import is_running

ENVIRONMENT = {"PATH": os.environ["PATH"]}
PATIENCE_S = 300.0


def prepare(line: str, folder: Path, timeout_s: float = PATIENCE_S, **variables: str) -> None:
    run_hook("prepare", "old", line, {**ENVIRONMENT, **variables}, str(folder), timeout_s)


def test_a_hook_runs_in_the_working_folder_with_its_environment(tmp_path: Path) -> None:
    prepare("echo $WORD > made", tmp_path, WORD="hello")
    assert (tmp_path / "made").read_text(encoding="ascii") == "hello\n"


def test_a_failing_hook_names_itself_its_status_and_its_last_lines(tmp_path: Path) -> None:
    with pytest.raises(ConditionFailed) as caught:
        prepare("echo out; echo oh no >&2; exit 4", tmp_path)
    assert "prepare of old failed: exit status 4" in caught.value.what
    assert "oh no" in caught.value.what
    assert "|| true" in str(caught.value.hint)


def test_a_hook_that_dies_of_a_signal_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConditionFailed, match=r"signal 9 \(SIGKILL\)"):
        prepare("kill -KILL $$", tmp_path)


def test_a_hook_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(ConditionFailed, match=r"timed out after 2 s"):
        prepare("sleep 1000 & echo $! > child; wait", tmp_path, 2.0)
    child = int((tmp_path / "child").read_text(encoding="ascii"))
    wait_until_gone(child)


def test_a_hook_may_leave_a_server_in_the_background(tmp_path: Path) -> None:
    prepare("sleep 1000 & echo $! > server", tmp_path)
    server = int((tmp_path / "server").read_text(encoding="ascii"))
    os.kill(server, 0)
    os.kill(server, signal.SIGKILL)


def wait_until_gone(process: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while is_running(process):
        assert time.monotonic() < deadline, f"process {process} is still there"
        time.sleep(0.01)
