"""Run servers for trials: start them with their initial data, wait until they are ready, stop them.

A life of a server lasts from its start to its end. If `Server.trial` is ``life``, each trial has a
separate life of the server. With ``interval``, a life continues for the next trials of the
condition. The commands around a server, such as ``fill`` and ``ready``, run through a launcher.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psutil
from msgspec import Struct
from msgspec.structs import replace

from equipoise.measure.launcher import Launcher, Report, Request, User
from equipoise.measure.scratch import let_others_enter
from equipoise.measure.servers.processes import (
    LOOPBACK,
    ServerHome,
    accepts,
    any_listens,
    check_effect,
    consumption,
    free_port,
    new_home,
    private_group,
    samples_of,
    unprivileged_user,
)
from equipoise.measure.untimed import describe_signal, stderr_suffix, tail
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import SOCKET, Output, Process, Server
from equipoise.model.record import Sample

FIRST_PAUSE_S = 0.002
"""Seconds between the first two checks whether a server is ready."""
MAX_PAUSE_S = 0.1
"""Maximum seconds between two checks whether a server is ready; the pause doubles each time."""
FULL_DISK_HINT = "make room there, or set TMPDIR to a folder on a larger disk"
_FULL_DISK = re.compile(
    r"no space left|disk (is )?full|could not (write|extend).*space|\berr(or|no)[:=]? 28\b",
    re.IGNORECASE,
)
_PORT_IN_USE = re.compile(r"address (is )?already in use|port .{0,40}in use", re.IGNORECASE)
_TRUST_OPTION = re.compile(r"--auth(-host)?=trust\b|--auth-root-authentication-method=normal\b")
"""Options with which PostgreSQL or MariaDB admit users without a password."""
_TCP_OPTION = re.compile(r"listen_addresses=\S|--bind-address\b")
"""Options with which PostgreSQL or MariaDB listen on TCP."""
MAX_STARTS = 3
"""Maximum number of starts of a server if other programs take its port."""
_COPY_COMMAND = ("cp", "-a", "--reflink=auto")
_DATA_TIMEOUT_S = 600.0
"""Time limit for creating or copying the initial data of a server."""
_TEST_PROGRAM = "/usr/bin/test"
_NO_TIMEOUT_S = 1e8
"""Time limit of a server that runs for many trials; no campaign is so long."""
RequestWrapper = Callable[[Request], Request]
"""Function that returns the request of a server with an observer, such as a profiler."""


class ServerCommand(Struct, frozen=True):
    """A command that creates a server's data, checks whether the server is ready, or stops it."""

    key: str
    """Key of the command in a study."""
    condition: str
    """Name of the condition."""
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str
    timeout_s: float
    user: User | None = None

    @property
    def subject(self) -> str:
        """Subject of error messages about the command."""
        return f"the {self.key} command of the server of {self.condition}"

    def error(self, problem: str) -> ConditionFailed:
        """Return the error for a problem with the command."""
        hint = f"correct the key {self.key} of the server in the study"
        return ConditionFailed(f"{self.subject} {problem}", hint=hint)


class CommandRunner:
    """Runner of commands, one after another. The first command creates the launcher."""

    def __init__(self, launcher: Callable[[], Launcher]) -> None:
        self._make_launcher = launcher
        self._launcher: Launcher | None = None

    def close(self) -> None:
        """End the launcher and its command; a second call does nothing."""
        if self._launcher is not None:
            self._launcher.close()
            self._launcher = None

    def succeeds(self, command: ServerCommand) -> bool:
        """Return whether a command succeeds; raise `ConditionFailed` if it cannot be run."""
        return self._run(command).exit == 0

    def run(self, command: ServerCommand) -> None:
        """Run a command; raise `ConditionFailed` if it cannot be run, fails or takes too long."""
        report = self._run(command)
        if report.timed_out:
            raise command.error(f"failed: timed out after {command.timeout_s:g} s")
        if report.exit != 0:
            raise full_disk_error(
                f"{command.subject} failed", report.error_tail, command.folder
            ) or command.error(f"failed: {describe_end(report)}{stderr_suffix(report.error_tail)}")

    def _run(self, command: ServerCommand) -> Report:
        self._launcher = self._launcher or self._make_launcher()
        request = Request(
            command.argv,
            command.environment,
            command.folder,
            timeout_s=command.timeout_s,
            user=command.user,
        )
        report = self._launcher.run(request)
        if report.could_not_start is not None:
            raise command.error(f"cannot be run: {report.could_not_start}")
        return report


def describe_end(report: Report) -> str:
    """Describe how a server or a command ended."""
    if report.could_not_start is not None:
        return f"could not be started: {report.could_not_start}"
    if report.signal is not None:
        return describe_signal(report.signal)
    return f"exit status {report.exit}"


def full_disk_error(failure: str, output: str, folder: str) -> ConditionFailed | None:
    """Return the error for a full disk if the output of a failed program mentions a full disk."""
    line = next((line.strip() for line in output.splitlines() if _FULL_DISK.search(line)), None)
    if line is None:
        return None
    return ConditionFailed(
        f"{failure}: the disk of {Path(folder).parent} is full: {line}", hint=FULL_DISK_HINT
    )


class PortTaken(ConditionFailed):
    """Another program has the port that was free a moment ago."""


class Life(Struct, frozen=True):
    """One life of a server, from its preparation to its end."""

    condition: str
    """Name of the condition."""
    server: Server
    home: ServerHome
    base_environment: Mapping[str, str]
    """Environment to which the server's own variables are added."""
    commands: CommandRunner
    launcher: Launcher
    """Launcher that runs only the server."""
    user: User | None = None
    """User of the server; by default our own."""
    wrap: RequestWrapper | None = None
    """Function that adds an observer to the start of the server."""

    def command(
        self, key: str, argv: tuple[str, ...], environment: Mapping[str, str]
    ) -> ServerCommand:
        """Return a command around the server, such as ``ready``, with its placeholders replaced."""
        return ServerCommand(
            key,
            self.condition,
            self.home.fill_all(argv),
            self._with_temporary_folder(environment),
            self._working_folder(),
            self.server.ready_s,
            self.user,
        )

    def start(self, timeout_s: float) -> None:
        """Prepare and start the server; return when it is ready and its settings are checked.

        The client may take ``timeout_s`` seconds. Raise `PortTaken` if another program has the
        port. Raise `ConditionFailed` if the server cannot be prepared, ended early, or was not
        ready in time. Raise it also if a setting did not take effect.
        """
        if self.server.prepare is not None:
            self.commands.run(self.command("prepare", self.server.prepare, self._environment()))
        request = Request(
            argv=self.home.fill_all(self.server.start),
            environment=self._environment(),
            working_folder=self._working_folder(),
            # This limit ends only a server that is never stopped; the client has its own limit.
            timeout_s=timeout_s + 3 * self.server.ready_s,
            output=Output("file", self.home.log),
            process=self.server.process,
            user=self.user,
        )
        self.launcher.begin(request if self.wrap is None else self.wrap(request))
        self._wait_until_ready()
        pids = self.pids()
        self._check_port(pids)
        check_effect(self.condition, self.server, self.user, pids)

    def pids(self) -> tuple[int, ...]:
        """Return the numbers of the server's processes; the first was started first."""
        return tuple(child.pid for child in self._children(recursive=True))

    def has_ended(self) -> bool:
        """Return whether the server has ended, even if its launcher has not reported it yet."""
        return self.launcher.has_ended() or not self._is_alive()

    def was_killed(self, report: Report) -> bool:
        """Return whether a SIGKILL that Equipoise did not send ended the server.

        A killed process may still exist for a moment, and end while Equipoise stops it.
        """
        return report.signal == signal.SIGKILL and not (
            report.timed_out or self.server.stop_signal.endswith("KILL")
        )

    def stop(self) -> Report:
        """Stop the server; return its report. Raise `ConditionFailed` if it does not end."""
        if not self.has_ended():
            if self.server.stop is not None:
                self.commands.run(self.command("stop", self.server.stop, self.base_environment))
            else:
                self._send_signal(self.server.stop_signal)
        deadline = time.monotonic() + self.server.ready_s
        while not self.launcher.has_ended():
            if time.monotonic() > deadline:
                raise ConditionFailed(
                    f"the server of {self.condition} did not stop within {self.server.ready_s:g} s",
                    hint="set a longer ready_s in the study, or correct the server's stop command",
                )
            time.sleep(FIRST_PAUSE_S)
        return self.launcher.finish()

    def log_tail(self, report: Report) -> str:
        """Return the end of standard error; if standard error is empty, of standard output."""
        if report.error_tail.strip():
            return report.error_tail
        with contextlib.suppress(FileNotFoundError), open(self.home.log, "rb") as output:
            return tail(output.fileno())
        return ""

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + self.server.ready_s
        pause = FIRST_PAUSE_S
        # Before the server's process exists, another program may answer on the port.
        while not (self.pids() and self._is_ready(deadline)):
            if self.launcher.has_ended():
                raise self._early_end_error(self.launcher.finish())
            if time.monotonic() > deadline:
                raise ConditionFailed(
                    f"the server of {self.condition} was not ready after {self.server.ready_s:g} s"
                    + self._log_suffix(self._kill()),
                    hint="set a longer ready_s in the study, or correct the server's ready command",
                )
            time.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_S)

    def _early_end_error(self, report: Report) -> ConditionFailed:
        log = self.log_tail(report)
        failure = f"the server of {self.condition} ended before it was ready"
        disk_error = full_disk_error(failure, log, self.home.folder)
        if disk_error is not None:
            return disk_error
        failure += f": {describe_end(report)}{self._log_suffix(report)}"
        if _PORT_IN_USE.search(log) is None:
            hint = "correct the server's start command: the server must stay in the foreground"
            return ConditionFailed(failure, hint=hint)
        if self._has_own_port():
            return PortTaken(failure, hint="try again: another program has just taken the port")
        hint = "write {port} in the server's start command, which stands for a free port"
        return ConditionFailed(failure, hint=hint)

    def _log_suffix(self, report: Report) -> str:
        return stderr_suffix(self.log_tail(report), "its log: ")

    def _is_ready(self, deadline: float) -> bool:
        if self.server.ready is None:
            address = (LOOPBACK, self.home.port)
            return accepts(address if self._has_own_port() else self.home.fill(SOCKET))
        remaining_s = max(deadline - time.monotonic(), FIRST_PAUSE_S)
        command = self.command("ready", self.server.ready, self.base_environment)
        return self.commands.succeeds(replace(command, timeout_s=remaining_s))

    def _check_port(self, pids: tuple[int, ...]) -> None:
        port = self.home.port
        if not self._has_own_port() or any_listens(pids, port):
            return
        if accepts((LOOPBACK, port)):
            self._kill()
            raise PortTaken(
                f"a program other than the server of {self.condition} answers on port {port}",
                hint="try again: that program has just taken the port",
            )

    def _is_alive(self) -> bool:
        for child in self._children():
            with contextlib.suppress(psutil.NoSuchProcess):
                if child.status() != psutil.STATUS_ZOMBIE:
                    return True
        return False

    def _children(self, *, recursive: bool = False) -> list[psutil.Process]:
        try:
            return list(psutil.Process(self.launcher.pid).children(recursive))
        except psutil.NoSuchProcess:
            return []

    def _has_own_port(self) -> bool:
        return any("{port}" in argument for argument in self.server.start)

    def _environment(self) -> dict[str, str]:
        own_variables = self.home.fill_values(self.server.environment)
        return {**self._with_temporary_folder(self.base_environment), **own_variables}

    def _with_temporary_folder(self, environment: Mapping[str, str]) -> dict[str, str]:
        # The server's user can write to this folder, which is removed at the end.
        return {**environment, "TMPDIR": self.home.folder}

    def _working_folder(self) -> str:
        return self.server.process.working_folder or self.home.folder

    def _kill(self) -> Report:
        self._send_signal("KILL")
        return self.launcher.finish()

    def _send_signal(self, signal_name: str) -> None:
        number = signal.Signals[f"SIG{signal_name.removeprefix('SIG')}"]
        for child in self._children():
            # A child that has ended meanwhile needs no signal.
            with contextlib.suppress(psutil.NoSuchProcess):
                child.send_signal(number)


class Service(Struct):
    """A ready server and, after the trial, its outcome."""

    home: ServerHome
    failure: str | None = None
    """Reason why the server ended before it was stopped."""
    log_tail: str = ""
    """End of the log of a server that ended early."""
    samples: tuple[Sample, ...] = ()
    """Consumption of the server while its client ran, with the prefix ``server_``."""


class Servers(AbstractContextManager["Servers"]):
    """All servers of a segment of a campaign; a context manager that stops them at the end.

    ``launcher`` creates the launcher of each server, and ``scratch`` has the folder of each server.
    ``wrap`` adds an observer to the start of each server.
    """

    def __init__(
        self, launcher: Callable[[], Launcher], scratch: Path, *, wrap: RequestWrapper | None = None
    ) -> None:
        self._make_launcher = launcher
        self._scratch = scratch
        self._wrap = wrap
        self._launchers: list[Launcher] = []
        self._shared_launcher: Launcher | None = None
        """Launcher of every server whose life is one trial."""
        self._running: list[Life] = []
        """Lives that continue between trials, each with its own launcher."""
        self._data: dict[tuple[object, ...], tuple[str, int]] = {}
        """Folders with initial data and their sizes in bytes, by the commands that create them."""
        self._folders: list[str] = []
        self._commands = CommandRunner(launcher)
        self._group = private_group() if os.geteuid() == 0 else None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Stop every server at the end of the block."""
        try:
            if error is None:
                for life in self._running:
                    life.stop()
        finally:
            self._close()

    @contextmanager
    def serving(
        self, condition: str, server: Server, environment: Mapping[str, str], timeout_s: float
    ) -> Iterator[Service]:
        """Provide a ready server while the block runs, and account for it.

        The server ends with the block or, if its life continues between trials, with the segment.
        The server's own variables are added to ``environment``. The client may take ``timeout_s``
        seconds. Raise `ConditionFailed` if the initial data could not be created, or a setting did
        not take effect. Raise it also if the server was not ready in time or did not stop.
        """
        outlives_trial = server.trial == "interval"
        try:
            life = next((life for life in self._running if life.server == server), None)
            if life is None:
                base_environment = _with_search_path(environment, server.search_path)
                life = self._start_life(condition, server, base_environment, timeout_s)
            service = Service(life.home)
            before = consumption(life.pids())
            yield service
            # The server still runs here, because a stop is not the client's work.
            after = consumption(life.pids())
            ended_early = life.has_ended()
            report = life.stop() if ended_early or not outlives_trial else None
            service.samples = samples_of(before, after, None if outlives_trial else report)
            if report is not None:
                if ended_early or life.was_killed(report):
                    service.failure, service.log_tail = describe_end(report), life.log_tail(report)
                self._remove(life.home)
                if outlives_trial:
                    self._running.remove(life)
                    life.launcher.close()
        except BaseException:
            # After any error, the launchers end the servers.
            self._close()
            raise

    def _start_life(
        self, condition: str, server: Server, base_environment: Mapping[str, str], timeout_s: float
    ) -> Life:
        """Prepare and start a life; start again if another program takes the port first."""
        _refuse_open_server(condition, server)
        user = unprivileged_user(condition, self._group) if server.unprivileged else None
        if server.trial == "interval":
            launcher, timeout_s = self._new_launcher(), _NO_TIMEOUT_S
        else:
            launcher = self._shared_launcher = self._shared_launcher or self._new_launcher()
        commands = self._commands
        for attempt in range(1, MAX_STARTS + 1):
            home = self._new_home(condition, user)
            life = Life(
                condition, server, home, base_environment, commands, launcher, user, self._wrap
            )
            try:
                self._copy_data(life)
                life.start(timeout_s)
            except PortTaken:
                if attempt == MAX_STARTS:
                    raise
                self._remove(home)
            else:
                if server.trial == "interval":
                    self._running.append(life)
                return life
        raise AssertionError("the last start is returned or raised")

    def _new_launcher(self) -> Launcher:
        launcher = self._make_launcher()
        self._launchers.append(launcher)
        return launcher

    def _copy_data(self, life: Life) -> None:
        """Copy the initial data into the folder of a new life.

        A segment creates the data once, for all conditions with the same initial data.
        """
        server, folder = life.server, life.home.folder
        if server.install is None and server.fill is None:
            return
        data_key = (server.install, server.fill, server.start, server.search_path)
        if data_key not in self._data:
            self._data[data_key] = self._make_data(life)
        data_folder, size_bytes = self._data[data_key]
        free_bytes = shutil.disk_usage(folder).free
        if free_bytes < size_bytes:
            raise ConditionFailed(
                f"the initial data of the server of {life.condition} take {_megabytes(size_bytes)},"
                f" but only {_megabytes(free_bytes)} are free in {life.home.outer_folder}",
                hint=FULL_DISK_HINT,
            )
        program = shutil.which(_COPY_COMMAND[0]) or _COPY_COMMAND[0]
        argv = (program, *_COPY_COMMAND[1:], os.path.join(data_folder, "."), folder)
        # The server's own user copies: root would follow links in that user's folder.
        environment, timeout_s = life.base_environment, _DATA_TIMEOUT_S
        self._commands.run(
            ServerCommand("copy", life.condition, argv, environment, "/", timeout_s, life.user)
        )

    def _make_data(self, life: Life) -> tuple[str, int]:
        """Create the initial data in a separate life; return their folder and size in bytes."""
        home = self._new_home(life.condition, life.user)
        # The levels of a study change the measured server, but not its initial data.
        server = replace(life.server, environment={}, process=Process(), prepare=None)
        environment = life.base_environment
        with self._make_launcher() as launcher:
            data_life = replace(life, server=server, home=home, launcher=launcher, wrap=None)
            if server.install is not None:
                self._commands.run(data_life.command("install", server.install, environment))
            if server.fill is not None:
                data_life.start(_DATA_TIMEOUT_S)
                self._commands.run(data_life.command("fill", server.fill, environment))
                data_life.stop()
        return home.folder, _disk_bytes(home.folder)

    def _new_home(self, condition: str, user: User | None) -> ServerHome:
        home = new_home(self._scratch, user, free_port())
        self._folders.append(home.outer_folder)
        if user is not None:
            let_others_enter(self._scratch)
            argv = (shutil.which("test") or _TEST_PROGRAM, "-w", home.folder)
            command = ServerCommand("test", condition, argv, {}, "/", timeout_s=10.0, user=user)
            if not self._commands.succeeds(command):
                raise ConditionFailed(
                    f"the server of {condition} refuses to run as root, and user {user.uid} cannot "
                    f"write to {home.folder}",
                    hint="set TMPDIR to a folder that everybody may enter, such as /tmp",
                )
        return home

    def _remove(self, home: ServerHome) -> None:
        shutil.rmtree(home.outer_folder, ignore_errors=True)
        self._folders.remove(home.outer_folder)

    def _close(self) -> None:
        for launcher in self._launchers:
            launcher.close()
        self._shared_launcher = None
        self._commands.close()
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)
        self._launchers.clear()
        self._running.clear()
        self._data.clear()
        self._folders.clear()


def _refuse_open_server(condition: str, server: Server) -> None:
    """Raise `ConditionFailed` for PostgreSQL and MariaDB without a password on TCP.

    While such a server runs, every user of this host can read and change its data.
    """
    listens_on_tcp = any(map(_TCP_OPTION.search, server.start))
    matches = map(_TRUST_OPTION.search, (*(server.install or ()), *server.start))
    trust_option = next(filter(None, matches), None)
    if listens_on_tcp and trust_option is not None:
        raise ConditionFailed(
            f"the server of {condition} would admit every user of this host by TCP: "
            f"{trust_option[0]}",
            hint="start a new campaign; in your own study, let the server listen on "
            "{folder}/socket (docs/how-to/measure-a-server.md)",
        )


def _with_search_path(environment: Mapping[str, str], folders: tuple[str, ...]) -> dict[str, str]:
    if not folders:
        return dict(environment)
    return {
        **environment,
        "PATH": os.pathsep.join((environment.get("PATH", os.defpath), *folders)),
    }


def _disk_bytes(folder: str) -> int:
    return 512 * sum(
        os.lstat(os.path.join(parent, file)).st_blocks
        for parent, _, files in os.walk(folder)
        for file in files
    )


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.0f} MB"
