"""Hooks run through a shell, untimed; a failing one is told with its last words."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from equipoise.measure.untimed import Hook, run_hook
from equipoise.model.errors import ConditionFailed

ENVIRONMENT = {"PATH": os.environ["PATH"]}


def hook(line: str) -> Hook:
    return Hook("prepare", "old", line)


def test_a_hook_runs_in_the_working_folder_with_its_environment(tmp_path: Path) -> None:
    run_hook(hook("echo $WORD > made"), {**ENVIRONMENT, "WORD": "hello"}, str(tmp_path), 10.0)
    assert (tmp_path / "made").read_text(encoding="ascii") == "hello\n"


def test_a_failing_hook_names_itself_its_status_and_its_last_lines(tmp_path: Path) -> None:
    with pytest.raises(ConditionFailed) as caught:
        run_hook(hook("echo out; echo oh no >&2; exit 4"), ENVIRONMENT, str(tmp_path), 10.0)
    assert "--prepare of old failed: exit status 4" in caught.value.what
    assert "oh no" in caught.value.what
    assert "|| true" in str(caught.value.hint)


def test_a_hook_that_dies_of_a_signal_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConditionFailed, match=r"signal 9 \(SIGKILL\)"):
        run_hook(hook("kill -KILL $$"), ENVIRONMENT, str(tmp_path), 10.0)


def test_a_hook_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(ConditionFailed, match=r"timed out after 0\.2 s"):
        run_hook(hook("sleep 1000 & echo $! > child; wait"), ENVIRONMENT, str(tmp_path), 0.2)
    child = int((tmp_path / "child").read_text(encoding="ascii"))
    wait_until_gone(child)


def test_a_hook_may_leave_a_server_in_the_background(tmp_path: Path) -> None:
    run_hook(hook("sleep 1000 & echo $! > server"), ENVIRONMENT, str(tmp_path), 10.0)
    server = int((tmp_path / "server").read_text(encoding="ascii"))
    os.kill(server, 0)
    os.kill(server, signal.SIGKILL)


def wait_until_gone(process: int) -> None:
    for _ in range(200):
        try:
            state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").split()[2]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.01)
    raise AssertionError(f"process {process} is still there")
