"""Another user of this host attacks servers of studies while they run, and gets nowhere."""

from __future__ import annotations

import os
import pwd
import re
import shlex
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec.structs
import psutil
import pytest

from equipoise.design.grid import grid_of
from equipoise.measure.installation import host_site, native_programs
from equipoise.measure.launcher import Launcher, Request
from equipoise.measure.servers import Servers
from equipoise.measure.servers.processes import LOOPBACK, ServerHome
from equipoise.measure.trials import own_environment
from equipoise.model.plan import Condition, Server
from equipoise.model.study import Study
from equipoise.studies.catalogue import find_study
from equipoise.studies.preparation import chosen_levels, quick_form, with_levels
from equipoise.studies.reader.study import read_study

ROOT = Path(__file__).resolve().parents[4]
DOCUMENTED = ROOT / "docs" / "how-to" / "measure-a-server.md"
REDIS = ROOT / "docs" / "examples" / "redis" / "study.toml"
STRANGER = 54321
"""Number of a user that has no account and no rights."""
NAMES = ("root", "postgres", "pgbench", "sysbench", "nobody")
"""Names under which an attacker tries to log in."""
PATIENCE_S = 300
MARIADB = pytest.mark.live("mariadbd", package="mariadb-server-core mariadb-client-core")
SYSBENCH = pytest.mark.live("sysbench")
POSTGRESQL = pytest.mark.live("pg_lsclusters", package="postgresql")
REDIS_SERVER = pytest.mark.live("redis-server")
REDIS_CLIENT = pytest.mark.live("redis-cli", package="redis-tools")

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can act as another user of this host"
)


@dataclass(frozen=True)
class Attacker:
    """A user who tries what a local user can try."""

    uid: int
    gid: int

    def successes(self, tries: list[tuple[str, ...]], folders: tuple[str, ...] = ()) -> list[str]:
        """Run commands as this user, and return those that succeed.

        Parameters
        ----------
        folders
            Folders before the usual ones of ``PATH``.
        """
        path = os.pathsep.join((*folders, "/usr/bin", "/bin", "/usr/sbin"))
        for program in {words[0] for words in tries}:
            assert shutil.which(program, path=path) is not None, f"the attack needs {program}"
        # One shell for all of them: a fork of the test's own process is slow.
        lines = [shlex.join(words) for words in tries]
        script = "\n".join(f"{line} >/dev/null 2>&1 && echo {shlex.quote(line)}" for line in lines)
        done = subprocess.run(
            ("/bin/sh", "-c", f"{script}\necho finished"),
            user=self.uid,
            group=self.gid,
            extra_groups=[],
            cwd="/",
            env={"PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        *found, last = done.stdout.splitlines()
        assert last == "finished"
        return found


class RecordingLauncher(Launcher):
    """A launcher that remembers what it is asked to start."""

    requests: list[Request]

    def begin(self, request: Request) -> None:
        """Remember the request, and start it."""
        self.requests.append(request)
        super().begin(request)


@dataclass(frozen=True)
class Life:
    """A server that is ready, with all that was started around it."""

    condition: Condition
    server: Server
    home: ServerHome
    requests: list[Request]

    @property
    def folder(self) -> Path:
        return Path(self.home.folder)

    @property
    def processes(self) -> list[psutil.Process]:
        """The server's processes: those that work in its folder."""
        scratch = str(self.folder.parent)
        return [process for process in psutil.process_iter() if is_working_in(process, scratch)]

    @property
    def open_ports(self) -> set[int]:
        """TCP ports that the server listens on."""
        return {
            line.laddr.port
            for process in self.processes
            for line in process.net_connections("tcp")
            if line.status == psutil.CONN_LISTEN
        }

    @property
    def sockets(self) -> list[Path]:
        """Unix sockets in the server's folder."""
        return [path for path in self.folder.iterdir() if path.is_socket()]

    @property
    def client(self) -> list[str]:
        return list(self.home.fill_all(self.condition.command))


def is_working_in(process: psutil.Process, folder: str) -> bool:
    try:
        return str(process.cwd()).startswith(folder)
    except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
        return False


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder that is short enough for a socket, below folders that everybody may enter."""
    with tempfile.TemporaryDirectory(prefix="attacked-", dir="/tmp") as made:
        yield Path(made)


@pytest.fixture
def requests() -> list[Request]:
    return []


@pytest.fixture
def servers(scratch: Path, requests: list[Request]) -> Iterator[Servers]:
    def launcher() -> Launcher:
        made = RecordingLauncher(native_programs() / "equipoise-launcher")
        made.requests = requests
        return made

    with Servers(launcher, scratch) as found:
        yield found


def conditions_of(study: Study, *factors: str) -> tuple[Condition, ...]:
    chosen = with_levels(study, chosen_levels(study, factors))
    return grid_of(chosen, host_site(), {}).conditions


def built_in(name: str, *factors: str) -> tuple[Condition, ...]:
    path, shown = find_study(name)
    return conditions_of(quick_form(read_study(path, shown, counters=())), *factors)


def documented(number: int, folder: Path) -> Condition:
    """Make a condition of one server table that docs/how-to/measure-a-server.md shows."""
    tables = re.findall(
        r"^```toml\n(\[workload\.server\]\n.*?)^```$", read(DOCUMENTED), re.M | re.S
    )
    file = folder / "study.toml"
    head = '[study]\nname = "documented"\n'
    file.write_text(f"{head}{tables[number]}[factors.n]\nlevels = [1, 2]\n", encoding="utf-8")
    condition, _ = conditions_of(read_study(file, file.name, counters=()))
    return condition


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@contextmanager
def living(servers: Servers, requests: list[Request], condition: Condition) -> Iterator[Life]:
    server = condition.server
    assert server is not None
    requests.clear()
    with servers.serving(condition.name, server, own_environment(), 60.0) as service:
        yield Life(condition, server, service.home, requests)


def attackers_of(life: Life) -> list[Attacker]:
    """Return a stranger, and another process of the user that the server runs as."""
    owner = pwd.getpwuid(life.folder.stat().st_uid)
    return [Attacker(STRANGER, STRANGER), Attacker(owner.pw_uid, owner.pw_gid)]


def successful_attacks(life: Life, *logins: tuple[str, ...]) -> list[str]:
    """Try to get in, and return the commands that succeeded.

    Parameters
    ----------
    logins
        Commands that log in; ``NAME`` stands for the account.
    """
    server = str(life.processes[0].pid)
    tries: list[tuple[str, ...]] = [
        ("ls", life.home.folder),
        ("ls", f"/proc/{server}/cwd/"),
        ("cat", f"/proc/{server}/environ"),
        *(("cat", str(path)) for path in life.folder.iterdir() if path.is_file()),
        *(
            tuple(word.replace("NAME", name) for word in words)
            for words in logins
            for name in NAMES
        ),
    ]
    return [
        f"user {attacker.uid}: {line}"
        for attacker in attackers_of(life)
        for line in attacker.successes(tries, life.server.search_path)
    ]


def processes_with_password(password: str) -> list[str]:
    """Return the processes that have the password in their command line or environment."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), *process.environ().values()]
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue  # it has ended meanwhile
        if any(password in word for word in words):
            found.append(process.name())
    return found


def assert_the_password_stays_in_its_file(life: Life, folder: Path) -> None:
    """Run the client of a condition, and look for the password in all processes meanwhile."""
    file = Path(life.home.password_file)
    password = file.read_text().strip()
    assert len(password) >= 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [
        attacker for attacker in attackers_of(life) if attacker.successes([("cat", str(file))])
    ] == []
    metrics = folder / "metrics.jsonl"
    seen = set(processes_with_password(password))
    with subprocess.Popen(
        life.client,
        env={**own_environment(), "EQUIPOISE_METRICS": str(metrics)},
        stderr=subprocess.PIPE,
        text=True,
    ) as client:
        while client.poll() is None:
            seen.update(processes_with_password(password))
        assert client.stderr is not None
        assert client.returncode == 0, client.stderr.read()
    assert '"throughput_per_s"' in metrics.read_text()
    assert seen == set()
    for request in life.requests:
        assert password not in " ".join((*request.argv, *request.environment.values()))


def mariadb(*target: str) -> tuple[str, ...]:
    words = ("mariadb", "--no-defaults", "--user=NAME", *target)
    return (*words, "--execute=select load_file('/etc/hostname')")


def psql(host: str, port: int) -> tuple[str, ...]:
    target = (f"--host={host}", f"--port={port}", "--username=NAME")
    command = "--command=copy (select 1) to program 'true'"
    return ("psql", "--no-psqlrc", "--no-password", *target, command, "postgres")


def redis(*target: str) -> tuple[str, ...]:
    return ("redis-cli", "-e", *target, "--user", "NAME", "--pass", "guessed", "ping")


def redis_without_name(*target: str) -> tuple[str, ...]:
    return ("redis-cli", "-e", *target, "ping")


OURSELVES = Attacker(0, 0)


@MARIADB
@SYSBENCH
def test_no_other_user_gets_into_mariadb(
    servers: Servers, requests: list[Request], tmp_path: Path
) -> None:
    chosen = ("server=mariadb", "threads=1", "setting=glibc,tcp")
    by_socket, by_tcp = built_in("database", *chosen)
    with living(servers, requests, by_socket) as life:
        port, (path,) = f"--port={life.home.port}", life.sockets
        assert (
            successful_attacks(
                life, mariadb(f"--socket={path}"), mariadb(f"--host={LOOPBACK}", port)
            )
            == []
        )
        assert life.open_ports == set()
        assert OURSELVES.successes(
            [("mariadb", "--no-defaults", f"--socket={path}", "--execute=select 1")]
        )
    with living(servers, requests, by_tcp) as life:
        port, (path,) = f"--port={life.home.port}", life.sockets
        assert life.open_ports == {life.home.port}
        assert (
            successful_attacks(
                life, mariadb(f"--socket={path}"), mariadb(f"--host={LOOPBACK}", port)
            )
            == []
        )
        assert_the_password_stays_in_its_file(life, tmp_path)


@POSTGRESQL
def test_no_other_user_gets_into_postgresql(
    servers: Servers, requests: list[Request], tmp_path: Path
) -> None:
    chosen = ("server=postgresql", "threads=1", "setting=glibc,tcp")
    by_socket, by_tcp = built_in("database", *chosen)
    with living(servers, requests, by_socket) as life:
        folder, port = life.home.folder, life.home.port
        assert successful_attacks(life, psql(folder, port), psql(LOOPBACK, port)) == []
        assert life.open_ports == set()
        target = (f"--host={folder}", f"--port={port}", "--username=pgbench")
        assert OURSELVES.successes(
            [("psql", *target, "--command=table pgbench_branches", "postgres")]
        )
    with living(servers, requests, by_tcp) as life:
        folder, port = life.home.folder, life.home.port
        assert life.open_ports == {port}
        assert successful_attacks(life, psql(folder, port), psql(LOOPBACK, port)) == []
        assert_the_password_stays_in_its_file(life, tmp_path)


@MARIADB
@SYSBENCH
def test_the_study_predicts_starts_the_same_server_as_the_study_database() -> None:
    chosen = ("memory=glibc", "placement=across_cpus")
    database = built_in("database", "server=mariadb", "threads=1", "setting=glibc,tcp")
    predicts = [
        condition for condition in built_in("predicts", *chosen) if condition.server is not None
    ]
    wanted = [
        msgspec.structs.replace(condition.server, prepare=None)
        for condition in database
        if condition.server
    ]
    found = [
        msgspec.structs.replace(condition.server, prepare=None)
        for condition in predicts
        if condition.server
    ]
    assert found == wanted
    lines = [
        condition.server.prepare[2]
        for condition in (*database, *predicts)
        if condition.server and condition.server.prepare
    ]
    assert len(lines) == 4
    assert len(set(lines)) == 1


@REDIS_SERVER
@REDIS_CLIENT
def test_no_other_user_gets_into_the_documented_servers(
    servers: Servers, requests: list[Request], tmp_path: Path
) -> None:
    example, _ = conditions_of(read_study(REDIS, REDIS.name, counters=()))
    for condition in (documented(0, tmp_path), example):
        with living(servers, requests, condition) as life:
            assert life.open_ports == set()
            (path,) = life.sockets
            ways = redis("-s", str(path)), redis_without_name("-s", str(path))
            assert successful_attacks(life, *ways) == []
            assert OURSELVES.successes([("redis-cli", "-e", "-s", str(path), "ping")])
    with living(servers, requests, documented(1, tmp_path)) as life:
        port = life.home.port
        assert life.open_ports == {port}
        assert (
            successful_attacks(life, redis("-p", str(port)), redis_without_name("-p", str(port)))
            == []
        )
        password = Path(life.home.password_file).read_text().strip()
        assert processes_with_password(password) == []
        with socket.create_connection((LOOPBACK, port), timeout=PATIENCE_S) as line:
            line.sendall(f"AUTH {password}\r\n".encode())
            assert line.recv(16) == b"+OK\r\n"
