"""The launcher, through the real program: nothing that a trial starts outlives it."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import equipoise
from equipoise.measure.launcher import Containment, Launcher, Report, Request
from equipoise.model.errors import EquipoiseError
from equipoise.model.plan import Output

PATIENCE_S = 30.0


def numbers(path: Path) -> list[int]:
    return [int(word) for word in path.read_text().split()]


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def is_running(pid: int) -> bool:
    """A zombie that nobody reaps runs no more."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return "State:\tZ" not in status


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.01)


def test_a_timeout_ends_every_descendant(
    launcher: Launcher, tmp_path: Path, shell: Callable[[str], Request]
) -> None:
    script = (
        "sleep 300 & echo $! >> pids; setsid sleep 300 & echo $! >> pids;"
        "sh -c 'trap \"\" TERM; echo $$ >> pids; sleep 300; :' & wait"
    )
    report = launcher.run(dataclasses.replace(shell(script), timeout_s=1.5))
    assert report.timed_out
    assert (report.exit, report.signal) == (None, signal.SIGKILL)
    assert report.left_behind >= 3
    pids = numbers(tmp_path / "pids")
    assert len(pids) == 3
    assert alive(pids) == []


def test_a_daemon_that_is_left_behind_is_ended(
    run: Callable[[str], Report], tmp_path: Path
) -> None:
    report = run(
        "setsid sh -c 'echo $$ > pids; exec sleep 300' & while [ ! -s pids ]; do :; done; exit 4"
    )
    assert report.exit == 4
    assert report.left_behind == 1
    assert alive(numbers(tmp_path / "pids")) == []


def test_a_process_that_forks_on_and_on_is_ended(
    run: Callable[[str], Report], launcher: Launcher
) -> None:
    hop = "import os\nwhile True:\n    if os.fork(): os._exit(0)\n    os.setsid()"
    report = run(f"echo '{hop}' > hop.py; {sys.executable} -S hop.py & sleep 0.5")
    assert report.exit == 0
    assert Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text() == ""


def test_an_interruption_ends_the_trial(
    launcher: Launcher, tmp_path: Path, shell: Callable[[str], Request]
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launcher.run(shell("setsid sleep 300 & echo $$ $! > pids; wait"), interrupt)
    assert alive(numbers(tmp_path / "pids")) == []
    with pytest.raises(EquipoiseError, match="closed"):
        launcher.run(shell("exit 0"))


def test_a_launcher_that_dies_is_an_error_and_takes_the_trial_along(
    launcher: Launcher, tmp_path: Path, shell: Callable[[str], Request]
) -> None:
    def kill() -> None:
        os.kill(launcher.pid, signal.SIGKILL)

    with pytest.raises(EquipoiseError, match="SIGKILL"):
        launcher.run(shell("echo $$ > pids; exec sleep 300"), kill)
    pids = numbers(tmp_path / "pids")
    wait_until(lambda: not any(map(is_running, pids)), "the trial ends with its launcher")


def test_a_launcher_told_to_stop_cleans_up(
    launcher: Launcher, tmp_path: Path, shell: Callable[[str], Request]
) -> None:
    def stop() -> None:
        os.kill(launcher.pid, signal.SIGTERM)

    with pytest.raises(EquipoiseError, match="the launcher died"):
        launcher.run(shell("setsid sleep 300 & echo $$ $! > pids; wait"), stop)
    assert alive(numbers(tmp_path / "pids")) == []


def test_an_interrupt_from_the_terminal_is_left_to_the_caller(
    launcher: Launcher, shell: Callable[[str], Request]
) -> None:
    launcher.run(shell("exit 0"))
    os.kill(launcher.pid, signal.SIGINT)
    assert launcher.run(shell("exit 0")).exit == 0
    assert os.getpgid(launcher.pid) != os.getpgrp()


CALLER = """
import sys
from pathlib import Path
from equipoise.measure.launcher import Launcher, Request
script = "setsid sleep 300 & echo $PPID $$ $! > new; mv new pids; wait"
with Launcher(Path(sys.argv[1]), containment=sys.argv[2]) as launcher:
    launcher.run(Request((sys.argv[3], "-c", script), {"PATH": sys.argv[4]}, sys.argv[5]))
"""


def test_a_killed_caller_leaves_no_process(
    containment: Containment, tmp_path: Path, program: Callable[[str], str], launcher_program: Path
) -> None:
    arguments = [launcher_program, containment, program("sh"), os.environ["PATH"], tmp_path]
    source = str(Path(equipoise.__file__).resolve().parents[1])
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER, *arguments], env={**os.environ, "PYTHONPATH": source}
    )
    pids = tmp_path / "pids"
    try:
        wait_until(pids.exists, "the trial starts")
    finally:
        caller.kill()
        caller.wait()
    wait_until(lambda: not any(map(is_running, numbers(pids))), "launcher and trial end")


def test_no_cgroup_stays_when_the_launcher_ends(
    tmp_path: Path, program: Callable[[str], str], launcher_program: Path
) -> None:
    with Launcher(launcher_program, containment="cgroup") as launcher:
        report = launcher.run(
            Request(
                (program("cat"), "/proc/self/cgroup"),
                {},
                "/",
                output=Output("file", f"{tmp_path}/c"),
            )
        )
    if "cgroup" in report.unknown:
        pytest.skip(f"no cgroup here: {report.unknown['cgroup']}")
    (own,) = [
        line.removeprefix("0::")
        for line in (tmp_path / "c").read_text().splitlines()
        if line.startswith("0::")
    ]
    assert "/equipoise-" in own
    points = [
        line.split()[4]
        for line in Path("/proc/self/mountinfo").read_text().splitlines()
        if " - cgroup2 " in line
    ]
    assert not any(Path(point, own.strip("/")).exists() for point in points)
