"""Where a server lives is closed to everybody but the server's user and us."""

from __future__ import annotations

import os
import pwd
import tempfile
from pathlib import Path

import pytest

from equipoise.measure.launcher import Launcher
from equipoise.measure.servers import Servers
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Server
from tests.measure.serving import Stage, python


def test_every_life_has_a_password_of_its_own_that_only_its_users_can_read(stage: Stage) -> None:
    own = ("/bin/sh", "-c", 'cp "$0" copied; exec sleep 60', "{password_file}")
    server = Server(own, ready=("/usr/bin/cmp", "{password_file}", "{folder}/copied"))
    script = 'stat -c "%a %U" "$0" >>"$1"; cat "$0" >>"$1"'
    told = str(stage.scratch / "told")
    for _ in range(2):
        client = ("/bin/sh", "-c", script, "{password_file}", told)
        assert stage.run(client, server).trial.failure is None
    lines = Path(told).read_text().splitlines()
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
    # The client becomes the server's user with that user's usual group.
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


ON_A_SOCKET = """
import socket, sys
line = socket.socket(socket.AF_UNIX)
line.bind(sys.argv[1])
line.listen()
while True:
    line.accept()
"""


def test_without_a_command_a_server_is_ready_when_its_socket_accepts(stage: Stage) -> None:
    server = Server(python(f"import time; time.sleep(0.2){ON_A_SOCKET}", "{folder}/socket"))
    connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    client = python(connect, "{folder}/socket")
    assert stage.run(client, server).trial.failure is None


@pytest.mark.parametrize(
    ("install", "start", "option"),
    [
        (
            ("initdb", "--pgdata={folder}/data", "--auth=trust"),
            ("postgres", "-D", "{folder}/data", "-c", "listen_addresses=127.0.0.1"),
            "--auth=trust",
        ),
        (
            ("mariadb-install-db", "--auth-root-authentication-method=normal"),
            ("mariadbd", "--datadir={folder}/data", "--bind-address=127.0.0.1"),
            "--auth-root-authentication-method=normal",
        ),
    ],
    ids=["PostgreSQL", "MariaDB"],
)
def test_a_server_of_an_older_plan_that_trusts_every_local_user_is_not_started(
    stage: Stage, install: tuple[str, ...], start: tuple[str, ...], option: str
) -> None:
    with pytest.raises(ConditionFailed, match=f"let every user of this host in by TCP: {option}"):
        stage.run(python("0"), Server(start, install=install))
    assert stage.nothing_is_left()
