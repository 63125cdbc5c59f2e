"""The real launcher program: no process that a trial starts outlives the trial."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec.structs
import pytest

import equipoise
from equipoise.measure.abandoned import leaves_of, own_cgroup
from equipoise.measure.launcher import Containment, Launcher, Request
from equipoise.measure.leftovers import clear_leftovers
from equipoise.measure.scratch import scratch_folder
from equipoise.measure.workload_metrics import METRICS_VARIABLE
from equipoise.model.errors import EquipoiseError
from equipoise.model.plan import Output
from packages.equipoise.tests.measure.conftest import Run, Shell, program
from packages.equipoise.tests.measure.processes import is_running

PATIENCE_S = 300.0

WRITES_PIDS = "echo $$ $! > new; mv new pids"
"""Once the file is there, all that is looked for runs."""


def numbers(path: Path) -> list[int]:
    return [int(word) for word in path.read_text().split()]


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.01)


def test_a_timeout_ends_every_descendant(launcher: Launcher, tmp_path: Path, shell: Shell) -> None:
    script = (
        "sleep 300 & echo $! >> pids; setsid sleep 300 & echo $! >> pids;"
        "sh -c 'trap \"\" TERM; sleep 300; :' & echo $! >> pids; wait"
    )
    report = launcher.run(msgspec.structs.replace(shell(script), timeout_s=3.0))
    assert report.timed_out
    assert (report.exit, report.signal) == (None, signal.SIGKILL)
    assert report.left_behind >= 3
    pids = numbers(tmp_path / "pids")
    assert len(pids) == 3
    assert alive(pids) == []


def test_a_daemon_that_is_left_behind_is_ended(run: Run, tmp_path: Path) -> None:
    report = run(
        "setsid sh -c 'echo $$ > pids; exec sleep 300' & while [ ! -s pids ]; do :; done; exit 4"
    )
    assert report.exit == 4
    assert report.left_behind == 1
    assert alive(numbers(tmp_path / "pids")) == []


def test_a_process_that_forks_on_and_on_is_ended(run: Run, launcher: Launcher) -> None:
    hop = "import os\nwhile True:\n    if os.fork(): os._exit(0)\n    os.setsid()"
    report = run(f"echo '{hop}' > hop.py; {sys.executable} -S hop.py & sleep 0.5")
    assert report.exit == 0
    assert Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text() == ""


def test_an_interruption_ends_the_trial(launcher: Launcher, tmp_path: Path, shell: Shell) -> None:
    def interrupt() -> None:
        if (tmp_path / "pids").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launcher.run(shell(f"setsid sleep 300 & {WRITES_PIDS}; wait"), interrupt)
    assert alive(numbers(tmp_path / "pids")) == []
    with pytest.raises(EquipoiseError, match="closed"):
        launcher.run(shell("exit 0"))


def test_a_launcher_that_dies_is_an_error_and_takes_the_trial_along(
    launcher: Launcher, tmp_path: Path, shell: Shell
) -> None:
    def kill() -> None:
        if (tmp_path / "pids").exists():
            os.kill(launcher.pid, signal.SIGKILL)

    with pytest.raises(EquipoiseError, match="SIGKILL"):
        launcher.run(shell(f"{WRITES_PIDS}; exec sleep 300"), kill)
    pids = numbers(tmp_path / "pids")
    wait_until(lambda: not any(map(is_running, pids)), "the trial ends with its launcher")


def test_a_launcher_told_to_stop_cleans_up(
    launcher: Launcher, tmp_path: Path, shell: Shell
) -> None:
    def stop() -> None:
        if (tmp_path / "pids").exists():
            os.kill(launcher.pid, signal.SIGTERM)

    with pytest.raises(EquipoiseError, match="the launcher died"):
        launcher.run(shell(f"setsid sleep 300 & {WRITES_PIDS}; wait"), stop)
    assert alive(numbers(tmp_path / "pids")) == []


def test_an_interrupt_from_the_terminal_is_left_to_the_caller(
    launcher: Launcher, shell: Shell
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
    containment: Containment, tmp_path: Path, launcher_program: Path
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


def test_no_cgroup_stays_when_the_launcher_ends(tmp_path: Path, launcher_program: Path) -> None:
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


def daemon(containment: Containment) -> str:
    """A script that starts a daemon: a process forked twice, in its own session.

    In a cgroup it is found even without its environment.
    """
    forgets = "env -i " if containment == "cgroup" else ""
    return (
        f"setsid sh -c '{forgets}sleep 300 & echo $! > new' & wait; echo $PPID >> new;"
        "mv new pids; sleep 300"
    )


def skip_without(containment: Containment, launcher: Launcher, request: Request) -> None:
    reason = launcher.run(request).unknown.get("cgroup")
    if containment == "cgroup" and reason is not None:
        pytest.skip(f"no cgroup here: {reason}")


def test_processes_of_a_trial_end_if_only_the_launcher_is_killed(
    containment: Containment, tmp_path: Path, launcher_program: Path, shell: Shell
) -> None:
    with (
        scratch_folder() as scratch,
        Launcher(launcher_program, containment=containment, scratch=scratch) as launcher,
    ):
        skip_without(containment, launcher, shell("exit 0"))
        request = shell(daemon(containment))
        named = {**request.environment, METRICS_VARIABLE: f"{scratch}/metrics.jsonl"}
        launcher.begin(msgspec.structs.replace(request, environment=named))
        wait_until((tmp_path / "pids").exists, "the daemon starts")
        os.kill(launcher.pid, signal.SIGKILL)
        with pytest.raises(EquipoiseError, match="the launcher died during a trial"):
            launcher.finish()
        assert not any(map(is_running, numbers(tmp_path / "pids")))
        cgroup = own_cgroup()
        assert cgroup is None or leaves_of(scratch.name, cgroup) == []


DIES = """
import sys
from pathlib import Path
from equipoise.measure.launcher import Launcher, Request
from equipoise.measure.scratch import scratch_folder
with (
    scratch_folder() as scratch,
    Launcher(Path(sys.argv[1]), containment=sys.argv[2], scratch=scratch) as launcher,
):
    named = {"PATH": sys.argv[4], "EQUIPOISE_METRICS": f"{scratch}/metrics.jsonl"}
    launcher.run(Request((sys.argv[3], "-c", sys.argv[6]), named, sys.argv[5]))
"""


def test_processes_of_a_trial_end_at_the_next_start_if_caller_and_launcher_are_killed(
    containment: Containment,
    tmp_path: Path,
    launcher_program: Path,
    monkeypatch: pytest.MonkeyPatch,
    launcher: Launcher,
    shell: Shell,
) -> None:
    skip_without(containment, launcher, shell("exit 0"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    arguments = [launcher_program, containment, program("sh"), os.environ["PATH"], tmp_path]
    source = str(Path(equipoise.__file__).resolve().parents[1])
    caller = subprocess.Popen(
        [sys.executable, "-c", DIES, *arguments, daemon(containment)],
        env={**os.environ, "PYTHONPATH": source},
    )
    try:
        wait_until((tmp_path / "pids").exists, "the daemon starts")
        assert clear_leftovers().removed_folders == ()
        sleeping, its_launcher = numbers(tmp_path / "pids")
        # The caller must not notice it.
        caller.send_signal(signal.SIGSTOP)
        os.kill(its_launcher, signal.SIGKILL)
    finally:
        caller.kill()
        caller.wait()
    assert is_running(sleeping)
    (cleared,) = clear_leftovers().removed_folders
    assert cleared.killed_processes >= 1
    assert not is_running(sleeping)
    assert not Path(cleared.folder).exists()


def test_a_cgroup_of_the_user_that_only_looks_like_ours_stays(
    launcher_program: Path, shell: Shell
) -> None:
    parent = own_cgroup()
    if parent is None:
        pytest.skip("no cgroup of version 2 here")
    own = [parent / "equipoise-4194305-notes", parent / f"equipoise-4194305-{os.getpid()}"]
    try:
        for folder in own:
            try:
                folder.mkdir()
            except OSError as error:
                pytest.skip(f"no cgroup here: {error}")
        with Launcher(launcher_program, containment="cgroup") as launcher:
            assert launcher.run(shell("exit 0")).exit == 0
        clear_leftovers()
        assert all(folder.is_dir() for folder in own)
    finally:
        for folder in own:
            if folder.is_dir():
                folder.rmdir()


DENIED = """#!{python}
import os, sys
sys.path.insert(0, {root!r})
from packages.equipoise.tests.measure.forbidding import CLONE3, forbid
forbid(CLONE3, {error})
os.execv({launcher!r}, sys.argv)
"""


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOSYS])
def test_without_clone3_a_trial_runs_in_a_process_group_with_a_reason(
    error: int, tmp_path: Path, launcher_program: Path, shell: Shell
) -> None:
    denied = tmp_path / "denied"
    root = str(Path(__file__).resolve().parents[4])
    denied.write_text(
        DENIED.format(python=sys.executable, root=root, error=error, launcher=str(launcher_program))
    )
    denied.chmod(0o755)
    with Launcher(denied, containment="cgroup") as launcher:
        for _ in range(2):
            report = launcher.run(shell("setsid sleep 300 & exit 3"))
            assert (report.exit, report.containment) == (3, "process_group")
            assert report.left_behind == 1
    reason = report.unknown["cgroup"]
    if "cannot make a cgroup" in reason or "no mounted cgroup" in reason:
        pytest.skip(f"no cgroup here: {reason}")
    assert reason.startswith(f"clone3 into the cgroup: {os.strerror(error)}")
