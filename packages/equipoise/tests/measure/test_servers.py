"""Servers as workloads, and their folders."""

from __future__ import annotations

import os
import pwd
import socket
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from equipoise.measure.launcher import Launcher, Report, Request
from equipoise.measure.servers import Servers, servers
from equipoise.measure.servers.processes import LOOPBACK, accepts, free_port
from equipoise.measure.trials import TrialReport
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Server
from packages.equipoise.tests.measure.serving import Stage, python

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
FOLDER = "{folder}"
HAS_PID = ("/usr/bin/test", "-s", "{folder}/pid")
"""The file of the server's number is there, and it is not empty any more."""
TALK = """
import socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1] + "/socket")
line.sendall(sys.argv[2].encode())
assert sys.argv[2] == "stop" or line.recv(4) == b"pong"
"""


def metrics(ran: TrialReport) -> dict[str, float]:
    assert ran.trial.failure is None
    return {sample.metric: sample.value for sample in ran.trial.samples}


def test_a_client_finds_its_server_ready_and_the_server_is_accounted_for(stage: Stage) -> None:
    for _ in range(2):
        trial = stage.run(python(FETCH), Server(HTTP)).trial
        assert (trial.failure, trial.exit) == (None, 0)
        values = {sample.metric: sample.value for sample in trial.samples}
        assert values["server_max_rss_bytes"] > 1_000_000
        assert values["server_minor_faults"] > 0
        assert stage.nothing_is_left()


def test_a_server_on_a_socket_in_its_folder_answers_and_stops(stage: Stage) -> None:
    server = Server(
        python(ON_A_SOCKET),
        prepare=python("open('prepared', 'w')"),
        ready=python(TALK, "{folder}", "ping"),
        stop=python(TALK, "{folder}", "stop"),
    )
    client = python("import os, sys; os.stat(sys.argv[1] + '/prepared')", "{folder}")
    assert stage.run(client, server).trial.failure is None


WORKS = """
import socket, sys
line = socket.socket(socket.AF_UNIX)
line.bind("socket")
line.listen()
while True:
    other, _ = line.accept()
    if other.recv(4) == b"ping":
        block = bytearray(32 << 20)
        other.sendall(b"pong")
"""


def test_a_trial_has_the_consumption_of_a_server_only_while_its_client_ran(stage: Stage) -> None:
    ready = python("import os, sys; sys.exit(not os.path.exists(sys.argv[1] + '/socket'))", FOLDER)
    pinging, idle = python(TALK, FOLDER, "ping"), (TRUE,)
    faults = {
        client: metrics(stage.run(client, Server(python(WORKS), ready=ready)))[
            "server_minor_faults"
        ]
        for client in (pinging, idle)
    }
    assert faults[pinging] > 1000 > faults[idle]


def test_an_interval_belongs_to_a_server_that_continues_to_run(stage: Stage) -> None:
    server = Server(
        python(ON_A_SOCKET),
        ready=python(TALK, FOLDER, "ping"),
        stop=python(TALK, FOLDER, "stop"),
        trial="interval",
    )
    count = "import sys; open(sys.argv[1] + '/clients', 'a').write('x')"
    with stage.servers:
        for _ in range(3):
            values = metrics(stage.run(python(count, FOLDER), server))
            assert "server_voluntary_switches" not in values
            assert values["server_max_rss_bytes"] > 1_000_000
        (folder,) = stage.scratch.glob("server-*/home")
        assert (folder / "clients").read_text() == "xxx"
    assert stage.nothing_is_left()


def test_data_are_made_once_and_each_life_has_a_copy(stage: Stage) -> None:
    record = str(stage.scratch / "made")
    write = "import sys; open(sys.argv[1], 'a').write('x'); open('data', 'a').write('x')"
    # The second one runs while the server does, and sends it a request.
    fill = python(f"{write}; {FETCH}", record)
    server = Server(HTTP, install=python(write, record), fill=fill)
    spoil = "name = '{folder}/data'; assert open(name).read() == 'xx'; open(name, 'w').close()"
    with stage.servers:
        for _ in range(2):
            assert stage.run(python(spoil), server).trial.failure is None
    assert Path(record).read_text() == "xx"
    assert stage.nothing_is_left()


def test_a_full_disk_is_reported_before_the_copy(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = SimpleNamespace(free=1_000_000)
    monkeypatch.setattr("shutil.disk_usage", lambda _: full)
    install = python("open('data', 'wb').write(b'x' * 5_000_000)")
    with pytest.raises(ConditionFailed, match=r"served take 5 MB, but only 1 MB are free in /"):
        stage.run(python("0"), Server(HTTP, install=install))
    assert stage.nothing_is_left()


@pytest.mark.parametrize("key", ["start", "install"])
def test_a_disk_that_fills_up_is_reported_among_much_else(stage: Stage, key: str) -> None:
    log = "InnoDB: preallocating 16777216 bytes failed with error 28\\n[ERROR] Aborting\\n"
    fails = python(f"import sys; sys.stderr.write('{log}' + 'x\\n' * 9); sys.exit(1)")
    server = Server(fails, ready=(FALSE,)) if key == "start" else Server(HTTP, install=fails)
    with pytest.raises(ConditionFailed, match="the disk of .* is full: InnoDB: prealloc") as error:
        stage.run(python("0"), server)
    assert error.value.hint is not None
    assert "TMPDIR" in error.value.hint
    assert stage.nothing_is_left()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as somebody else")
def test_a_server_that_refuses_root_runs_as_another_user(stage: Stage) -> None:
    server = Server(
        ("/bin/sh", "-c", "umask 077; id -u >who; exec sleep 60"),
        ready=("/usr/bin/test", "-s", "{folder}/who"),
        unprivileged=True,
    )
    is_not_root = 'test "$(cat "$0/who")" -gt 0 && test "$(stat -c %u "$0/who")" -gt 0'
    with tempfile.TemporaryDirectory(dir="/tmp") as entered:
        stage.servers = Servers(lambda: Launcher(stage.program), Path(entered))
        with stage.servers:
            trial = stage.run(("/bin/sh", "-c", is_not_root, FOLDER), server).trial
    assert trial.failure is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as somebody else")
def test_a_folder_that_another_user_cannot_reach_is_reported(stage: Stage) -> None:
    locked = stage.scratch / "locked"
    locked.mkdir(mode=0o700)
    stage.scratch.chmod(0o700)
    stage.servers = Servers(lambda: Launcher(stage.program), locked)
    with (
        stage.servers,
        pytest.raises(ConditionFailed, match="refuses to run as root, and user .* cannot write"),
    ):
        stage.run(python("0"), Server(HTTP, unprivileged=True))
    assert stage.nothing_is_left()


def test_a_port_in_use_is_reported_with_a_hint(stage: Stage) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = str(taken.getsockname()[1])
        server = Server((*HTTP[:3], port, *HTTP[4:]), ready=(FALSE,))
        with pytest.raises(
            ConditionFailed, match="ended before it was ready.*already in use"
        ) as error:
            stage.run(python("0"), server)
    assert error.value.hint is not None
    assert "write {port}" in error.value.hint


def test_another_port_is_used_if_a_program_takes_the_first_one(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        ports = [taken.getsockname()[1], free_port()]
        monkeypatch.setattr("equipoise.measure.servers.servers.free_port", lambda: ports.pop(0))
        assert stage.run(python(FETCH), Server(HTTP)).trial.failure is None
    assert ports == []


def test_requests_to_a_server_start_only_when_its_process_exists(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent: list[tuple[int, ...]] = [(), ()]
    pids = servers.Life.pids

    def found(life: servers.Life) -> tuple[int, ...]:
        return absent.pop() if absent else pids(life)

    def accept_if_started(address: str | tuple[str, int]) -> bool:
        assert absent == [], "nobody but another program can answer yet"
        return accepts(address)

    monkeypatch.setattr(servers.Life, "pids", found)
    monkeypatch.setattr(servers, "accepts", accept_if_started)
    assert stage.run(python(FETCH), Server(HTTP)).trial.failure is None


def test_another_program_on_the_port_is_not_measured(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = python("import time; time.sleep(60)", "{port}", str(stage.scratch))
    with socket.create_server((LOOPBACK, 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setattr("equipoise.measure.servers.servers.free_port", lambda: port)
        with pytest.raises(
            ConditionFailed, match="a program other than the server .* answers on port"
        ):
            stage.run(python("0"), Server(silent))
    assert stage.nothing_is_left()


def test_a_preload_that_the_server_itself_does_not_map_is_reported(
    stage: Stage, native_folder: Path
) -> None:
    library = str(native_folder / "libequipoise_file_order.so")
    environment = {"LD_PRELOAD": library}
    assert stage.run(python(FETCH), Server(HTTP, environment=environment)).trial.failure is None
    wrapped = Server(("/usr/bin/env", "-u", "LD_PRELOAD", *HTTP), environment=environment)
    with pytest.raises(ConditionFailed, match=f"did not take effect: .* does not map {library}"):
        stage.run(python(FETCH), wrapped)


def test_a_server_that_is_never_ready_is_given_up(stage: Stage) -> None:
    sleeps = python("import time; time.sleep(60)", str(stage.scratch))
    with pytest.raises(ConditionFailed, match="was not ready after 0.3 s"):
        stage.run(python("0"), Server(sleeps, ready=(FALSE,), ready_s=0.3))
    assert stage.nothing_is_left()


def test_a_server_that_dies_under_its_client_fails_the_trial(stage: Stage) -> None:
    crash = "import os, sys; os.kill(int(open(sys.argv[1] + '/pid').read()), 9)"
    own = "import os, sys, time; print('ready for connections', file=sys.stderr); "
    own += "open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    trial = stage.run(python(crash, FOLDER), Server(python(own), ready=HAS_PID)).trial
    assert trial.failure == "its server ended: signal 9 (SIGKILL)"
    assert trial.error_tail == "ready for connections\n"


def test_if_client_and_server_fail_the_failure_is_that_of_the_server(stage: Stage) -> None:
    client = python("import os; os.kill(int(open('{folder}/pid').read()), 9); os._exit(5)")
    own = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    trial = stage.run(client, Server(python(own), ready=HAS_PID)).trial
    assert trial.failure == "its server ended: signal 9 (SIGKILL), and its client: exit status 5"


def test_a_client_that_fails_is_reported_by_itself(stage: Stage) -> None:
    trial = stage.run(python("raise SystemExit('refused')"), Server(HTTP)).trial
    assert (trial.failure, trial.error_tail) == ("exit status 1", "refused\n")


def test_an_interruption_ends_the_server(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(request: Request, on_wait: object = None) -> Report:
        raise KeyboardInterrupt

    monkeypatch.setattr(stage.client, "run", interrupted)
    sleeps = python("import time; time.sleep(60)", str(stage.scratch))
    with pytest.raises(KeyboardInterrupt):
        stage.run(python("0"), Server(sleeps, ready=(TRUE,)))
    assert stage.nothing_is_left()


def test_every_life_has_its_own_password_that_only_its_users_can_read(stage: Stage) -> None:
    own = ("/bin/sh", "-c", 'cp "$0" copied; exec sleep 60', "{password_file}")
    server = Server(own, ready=("/usr/bin/cmp", "{password_file}", "{folder}/copied"))
    script = 'stat -c "%a %U" "$0" >>"$1"; cat "$0" >>"$1"'
    error = str(stage.scratch / "told")
    for _ in range(2):
        client = ("/bin/sh", "-c", script, "{password_file}", error)
        assert stage.run(client, server).trial.failure is None
    lines = Path(error).read_text().splitlines()
    first, second = lines[1::2]
    assert lines[::2] == [f"600 {pwd.getpwuid(os.geteuid()).pw_name}"] * 2
    assert len(first) == len(second) == 48
    assert first != second


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as somebody else")
def test_a_server_of_another_user_cannot_make_root_write_elsewhere(stage: Stage) -> None:
    victim = stage.scratch / "victim"
    victim.write_text("untouched")
    links = 'for name in .standard-output log data; do ln -s "$0" "$1/$name"; done'
    server = Server(
        ("/bin/sh", "-c", "echo overwritten; exec sleep 60"),
        install=("/bin/sh", "-c", "echo overwritten >data"),
        prepare=("/bin/sh", "-c", f"rm data; {links}", str(victim), "{folder}"),
        ready=("/usr/bin/test", "-L", "{folder}/log"),
        unprivileged=True,
    )
    with tempfile.TemporaryDirectory(dir="/tmp") as entered:
        stage.servers = Servers(lambda: Launcher(stage.program), Path(entered))
        with stage.servers:
            assert stage.run(("/bin/true",), server).trial.failure is None
    assert victim.read_text() == "untouched"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as somebody else")
def test_another_process_of_the_servers_user_reaches_neither_its_folder_nor_its_memory(
    stage: Stage,
) -> None:
    server = Server(
        ("/bin/sh", "-c", "umask 077; echo $$ >number; exec sleep 60"),
        ready=("/usr/bin/test", "-s", "{folder}/number"),
        unprivileged=True,
    )
    # The client takes the user of the server, with the usual group of that user.
    attack = """
import os, pwd, sys
folder = sys.argv[1]
number, owner = open(folder + "/number").read().strip(), os.stat(folder).st_uid
os.setgroups([]); os.setgid(pwd.getpwuid(owner).pw_gid); os.setuid(owner)
for path in (folder, folder + "/number", f"/proc/{number}/environ", f"/proc/{number}/mem"):
    try:
        os.close(os.open(path, os.O_RDONLY))
    except PermissionError:
        continue
    sys.exit("got into " + path)
"""
    with tempfile.TemporaryDirectory(dir="/tmp") as entered:
        stage.servers = Servers(lambda: Launcher(stage.program), Path(entered))
        with stage.servers:
            trial = stage.run(python(attack, "{folder}"), server).trial
    assert (trial.failure, trial.error_tail) == (None, "")


UNIX_SERVER = """
import socket, sys
line = socket.socket(socket.AF_UNIX)
line.bind(sys.argv[1])
line.listen()
while True:
    line.accept()
"""


def test_without_a_command_a_server_is_ready_when_its_socket_accepts(stage: Stage) -> None:
    server = Server(python(f"import time; time.sleep(0.2){UNIX_SERVER}", "{folder}/socket"))
    connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    client = python(connect, "{folder}/socket")
    assert stage.run(client, server).trial.failure is None


NO_ROOM = python("import sys; print('no room', file=sys.stderr); sys.exit(1)")
NO_CONFIGURATION = python("import sys; print('no cfg', file=sys.stderr); sys.exit(3)")
QUIET_ABOUT_IT = python("print('no cfg'); raise SystemExit(3)")
POSTGRES = ("postgres", "-D", "{folder}/data", "-c", "listen_addresses=127.0.0.1")
MARIADB = ("mariadbd", "--datadir={folder}/data", "--bind-address=127.0.0.1")
FOR_ALL = "--auth-root-authentication-method=normal"


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (Server(HTTP, install=NO_ROOM), "the install command .* exit status 1.*no room"),
        (Server(HTTP, fill=NO_ROOM), "the fill command .* exit status 1.*no room"),
        (Server(HTTP, prepare=(FALSE,)), "the prepare command of the server of served failed"),
        (Server(NO_CONFIGURATION, ready=(FALSE,)), "before it was ready: exit status 3.*no cfg"),
        (Server(QUIET_ABOUT_IT, ready=(FALSE,)), "exit status 3; its log: no cfg"),
        (
            Server(POSTGRES, install=("initdb", "--pgdata={folder}/data", "--auth=trust")),
            "admit every user of this host by TCP: --auth=trust",
        ),
        (
            Server(MARIADB, install=("mariadb-install-db", FOR_ALL)),
            f"admit every user of this host by TCP: {FOR_ALL}",
        ),
    ],
    ids=[
        *("install", "fill", "prepare", "last words", "words on standard output"),
        *("an older plan of PostgreSQL", "an older plan of MariaDB"),
    ],
)
def test_a_server_that_cannot_be_used_is_reported(
    stage: Stage, server: Server, message: str
) -> None:
    with pytest.raises(ConditionFailed, match=message):
        stage.run(python("0"), server)
    assert stage.nothing_is_left()
