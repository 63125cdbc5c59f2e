"""Servers: started for one trial, used by its client, stopped and accounted for after it."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from equipoise.measure.launcher import Launcher, Report, Request
from equipoise.measure.servers import Servers
from equipoise.measure.surroundings import CovariateReader
from equipoise.measure.trials import Ran, TrialRunner, own_environment
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Condition, Plan, Server
from equipoise.model.trial import Draw
from tests.plans import plan_of

FETCH = "import urllib.request as u; u.urlopen('http://127.0.0.1:{port}/').read()"
HTTP = (sys.executable, "-m", "http.server", "{port}", "--bind", "127.0.0.1")
ON_A_SOCKET = """
import socket
line = socket.socket(socket.AF_UNIX)
line.bind("socket")
line.listen()
while True:
    other, _ = line.accept()
    if other.recv(4) == b"stop":
        break
    other.sendall(b"pong")
"""
FALSE, TRUE = "/bin/false", "/bin/true"
TALK = """
import socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1] + "/socket")
line.sendall(sys.argv[2].encode())
assert sys.argv[2] == "stop" or line.recv(4) == b"pong"
"""


class Stage:
    """Runs trials of one condition with a server."""

    def __init__(self, launcher_program: Path, scratch: Path) -> None:
        self.scratch = scratch
        self.program = launcher_program
        self.servers = Servers(lambda: Launcher(launcher_program), scratch)
        self.client = Launcher(launcher_program)

    def run(self, command: tuple[str, ...], server: Server) -> Ran:
        """One trial."""
        condition = Condition("served", command, server=server)
        plan: Plan = dataclasses.replace(plan_of(), conditions=(condition,))
        with CovariateReader() as beside:
            runner = TrialRunner(
                plan, self.client, self.scratch, own_environment(), beside, servers=self.servers
            )
            (run,) = runner.run_place(Draw("measured", 1, (0,), 0), 0)
            return run()

    def nothing_is_left(self) -> bool:
        """Whether no server and no folder of one is there."""
        return not list(self.scratch.glob("server-*")) and not [
            process
            for process in psutil.Process().children(recursive=True)
            if str(self.scratch) in " ".join(process.cmdline())
        ]


@pytest.fixture
def stage(launcher_program: Path, tmp_path: Path) -> Iterator[Stage]:
    made = Stage(launcher_program, tmp_path)
    with made.servers, made.client:
        yield made
    assert made.nothing_is_left()


def python(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-c", *words)


def test_a_client_finds_its_server_ready_and_the_server_is_accounted_for(stage: Stage) -> None:
    for _ in range(2):
        trial = stage.run(python(FETCH), Server(HTTP)).trial
        assert (trial.failure, trial.exit) == (None, 0)
        found = {sample.metric: sample.value for sample in trial.samples}
        assert found["server_max_rss_bytes"] > 1_000_000
        assert found["server_minor_faults"] > 0
        assert stage.nothing_is_left()


def test_a_server_on_a_socket_of_its_folder_can_be_asked_and_told_to_stop(stage: Stage) -> None:
    server = Server(
        python(ON_A_SOCKET),
        prepare=python("open('prepared', 'w')"),
        ready=python(TALK, "{folder}", "ping"),
        stop=python(TALK, "{folder}", "stop"),
    )
    client = python("import os, sys; os.stat(sys.argv[1] + '/prepared')", "{folder}")
    assert stage.run(client, server).trial.failure is None


def test_a_server_that_ends_at_once_is_told_with_its_last_words(stage: Stage) -> None:
    with pytest.raises(ConditionFailed, match=r"ended before it was ready: exit status 3.*no cfg"):
        stage.run(
            python("0"),
            Server(
                python("import sys; print('no cfg', file=sys.stderr); sys.exit(3)"), ready=(FALSE,)
            ),
        )


def test_a_server_that_is_never_ready_is_given_up(stage: Stage) -> None:
    sleeps = python("import time; time.sleep(60)", str(stage.scratch))
    with pytest.raises(ConditionFailed, match="was not ready after 0.3 s"):
        stage.run(python("0"), Server(sleeps, ready=(FALSE,), ready_s=0.3))
    assert stage.nothing_is_left()


def test_a_preparation_that_fails_is_told(stage: Stage) -> None:
    with pytest.raises(ConditionFailed, match="the prepare command of the server of served failed"):
        stage.run(python("0"), Server(HTTP, prepare=(FALSE,)))


def test_a_server_that_dies_under_its_client_fails_the_trial(stage: Stage) -> None:
    crash = "import os, sys; os.kill(int(open(sys.argv[1] + '/pid').read()), 9)"
    own = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    wait = "import os, sys; sys.exit(not os.path.exists(sys.argv[1] + '/pid'))"
    server = Server(python(own), ready=python(wait, "{folder}"))
    # The client waits a little, so that the death is seen before the server is told to stop.
    trial = stage.run(python(crash + "; import time; time.sleep(0.5)", "{folder}"), server).trial
    assert trial.failure == "its server ended: signal 9 (SIGKILL)"


def test_an_interruption_ends_the_server(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(request: Request, on_wait: object = None) -> Report:
        raise KeyboardInterrupt

    monkeypatch.setattr(stage.client, "run", interrupted)
    sleeps = python("import time; time.sleep(60)", str(stage.scratch))
    with pytest.raises(KeyboardInterrupt):
        stage.run(python("0"), Server(sleeps, ready=(TRUE,)))
    assert stage.nothing_is_left()
