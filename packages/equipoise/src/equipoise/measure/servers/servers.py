"""Servers for trials: one life for each trial, or one that runs for all trials of a condition.

A life of a server lasts from its start to its end. Commands around it run through a launcher.
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
    Place,
    accepts,
    any_listens,
    check_effect,
    consumption,
    free_port,
    new_place,
    private_group,
    samples_of,
    unprivileged_user,
)
from equipoise.measure.untimed import describe_signal, stderr_suffix, tail
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import SOCKET, Output, Process, Server
from equipoise.model.record import Sample

FIRST_PAUSE_S = 0.002
MAX_PAUSE_S = 0.1
"""Maximum pause between two checks whether a server is ready; the pause doubles each time."""
FULL_DISK_HINT = "make room there, or set TMPDIR to a folder of a larger disk"
_FULL_DISK = re.compile(
    r"no space left|disk (is )?full|could not (write|extend).*space|\berr(or|no)[:=]? 28\b",
    re.IGNORECASE,
)
_PORT_IN_USE = re.compile(r"address (is )?already in use|port .{0,40}in use", re.IGNORECASE)
_TRUSTS_EVERYBODY = re.compile(r"--auth(-host)?=trust\b|--auth-root-authentication-method=normal\b")
_LISTENS_ON_TCP = re.compile(r"listen_addresses=\S|--bind-address\b")
STARTS = 3
"""Maximum number of starts of a server whose port is taken by another program."""
_COPY = ("cp", "-a", "--reflink=auto")
_COPYING_S = 600.0
_TEST = "/usr/bin/test"
_WHOLE_SEGMENT_S = 1e8

Wrap = Callable[[Request], Request]
"""Function that adds an observer to the start of a server."""


class ServerCommand(Struct, frozen=True):
    """One command around a server."""

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
        """Subject of messages about the command."""
        return f"the {self.key} command of the server of {self.condition}"

    def error(self, problem: str) -> ConditionFailed:
        """Return the error for a problem with the command."""
        return ConditionFailed(
            f"{self.subject} {problem}", hint=f"see {self.key} in the table of the server"
        )


class Commands:
    """Runner of commands, one after the other, through a launcher created when it is needed."""

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
        return self._report(command).exit == 0

    def run(self, command: ServerCommand) -> None:
        """Run a command to its end.

        Raise `ConditionFailed` if it cannot be run, fails or takes too long.
        """
        report = self._report(command)
        if report.timed_out:
            raise command.error(f"failed: timed out after {command.timeout_s:g} s")
        if report.exit != 0:
            raise full_disk(
                f"{command.subject} failed", report.error_tail, command.folder
            ) or command.error(f"failed: {describe_end(report)}{stderr_suffix(report.error_tail)}")

    def _report(self, command: ServerCommand) -> Report:
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


def full_disk(failure: str, output: str, folder: str) -> ConditionFailed | None:
    """Return the error for a full disk, if the output of a failure in a folder shows one."""
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

    name: str
    """Name of the condition."""
    server: Server
    place: Place
    base: Mapping[str, str]
    """Environment to which the server's own is added."""
    commands: Commands
    launcher: Launcher
    """Launcher that runs only the server."""
    user: User | None = None
    """User of the server; by default our own."""
    wrap: Wrap | None = None

    def command(
        self, key: str, argv: tuple[str, ...], environment: Mapping[str, str]
    ) -> ServerCommand:
        """Return a command around the server."""
        return ServerCommand(
            key,
            self.name,
            self.place.fill_all(argv),
            self._with_own_folder(environment),
            self._folder(),
            self.server.ready_s,
            self.user,
        )

    def start(self, timeout_s: float) -> None:
        """Prepare and start the server; return when it is ready and its settings are checked.

        Its client may take ``timeout_s`` seconds. Raise `PortTaken` if another program has its
        port, `ConditionFailed` if it cannot be prepared, ended, was not ready in time, or a setting
        did not take effect.
        """
        if self.server.prepare is not None:
            self.commands.run(self.command("prepare", self.server.prepare, self._environment()))
        request = Request(
            argv=self.place.fill_all(self.server.start),
            environment=self._environment(),
            working_folder=self._folder(),
            # The client has its own limit; this limit is for a server that is never stopped.
            timeout_s=timeout_s + 3 * self.server.ready_s,
            output=Output("file", self.place.log),
            process=self.server.process,
            user=self.user,
        )
        self.launcher.begin(request if self.wrap is None else self.wrap(request))
        self._wait_until_ready()
        processes = self.processes()
        self._check_port(processes)
        check_effect(self.name, self.server, self.user, processes)

    def processes(self) -> tuple[int, ...]:
        """Return the processes of the server; the first was started first."""
        return tuple(child.pid for child in self._children(recursive=True))

    def has_ended(self) -> bool:
        """Return whether the server has ended, even if its launcher has not reported that yet."""
        return self.launcher.has_ended() or not self._lives()

    def was_killed(self, report: Report) -> bool:
        """Return whether a SIGKILL that Equipoise did not send ended the server.

        A killed process lives for another moment: it may die only while it is being stopped.
        """
        return report.signal == signal.SIGKILL and not (
            report.timed_out or self.server.stop_signal.endswith("KILL")
        )

    def stop(self) -> Report:
        """Stop the server, unless it has ended; return the report of its life.

        Raise `ConditionFailed` if it does not stop.
        """
        if not self.has_ended():
            if self.server.stop is not None:
                self.commands.run(self.command("stop", self.server.stop, self.base))
            else:
                self._send_signal(self.server.stop_signal)
        deadline = time.monotonic() + self.server.ready_s
        while not self.launcher.has_ended():
            if time.monotonic() > deadline:
                raise ConditionFailed(
                    f"the server of {self.name} did not stop within {self.server.ready_s:g} s",
                    hint="give its table a stop command, another signal or a longer ready_s",
                )
            time.sleep(FIRST_PAUSE_S)
        return self.launcher.finish()

    def log_tail(self, report: Report) -> str:
        """Return the end of standard error or, if that is empty, of standard output."""
        if report.error_tail.strip():
            return report.error_tail
        with contextlib.suppress(FileNotFoundError), open(self.place.log, "rb") as output:
            return tail(output.fileno())
        return ""

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + self.server.ready_s
        pause = FIRST_PAUSE_S
        # Until its process exists, another program may answer, and no signal reaches the server.
        while not (self.processes() and self._is_ready(deadline)):
            if self.launcher.has_ended():
                raise self._early_end(self.launcher.finish())
            if time.monotonic() > deadline:
                raise ConditionFailed(
                    f"the server of {self.name} was not ready after {self.server.ready_s:g} s"
                    + self._log_suffix(self._kill()),
                    hint="give its table a longer ready_s, or see its ready command",
                )
            time.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_S)

    def _early_end(self, report: Report) -> ConditionFailed:
        log = self.log_tail(report)
        ended = f"the server of {self.name} ended before it was ready"
        no_room = full_disk(ended, log, self.place.folder)
        if no_room is not None:
            return no_room
        what = f"{ended}: {describe_end(report)}{self._log_suffix(report)}"
        if _PORT_IN_USE.search(log) is None:
            return ConditionFailed(
                what, hint="it must stay in the foreground; see start in its table"
            )
        if self._has_own_port():
            return PortTaken(what, hint="try again: another program has just taken the port")
        return ConditionFailed(
            what, hint="write {port} for a free port, {folder}/socket for a socket"
        )

    def _log_suffix(self, report: Report) -> str:
        return stderr_suffix(self.log_tail(report), "its log: ")

    def _is_ready(self, deadline: float) -> bool:
        if self.server.ready is None:
            address = (LOOPBACK, self.place.port)
            return accepts(address if self._has_own_port() else self.place.fill(SOCKET))
        remaining_s = max(deadline - time.monotonic(), FIRST_PAUSE_S)
        command = self.command("ready", self.server.ready, self.base)
        return self.commands.succeeds(replace(command, timeout_s=remaining_s))

    def _check_port(self, processes: tuple[int, ...]) -> None:
        """Refuse another program that answers on the server's port."""
        port = self.place.port
        if not self._has_own_port() or any_listens(processes, port):
            return
        if accepts((LOOPBACK, port)):
            self._kill()
            raise PortTaken(
                f"a program other than the server of {self.name} answers on port {port}",
                hint="try again: that program has just taken the port",
            )

    def _lives(self) -> bool:
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
        own = self.place.fill_values(self.server.environment)
        return {**self._with_own_folder(self.base), **own}

    def _with_own_folder(self, environment: Mapping[str, str]) -> dict[str, str]:
        # Temporary files belong in this folder: the server's user may write there, and it is
        # removed.
        return {**environment, "TMPDIR": self.place.folder}

    def _folder(self) -> str:
        return self.server.process.working_folder or self.place.folder

    def _kill(self) -> Report:
        """End the server, and return the report with its output."""
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

    place: Place
    failure: str | None = None
    """Reason why the server ended before it was stopped."""
    log_tail: str = ""
    """End of the log of a server that ended early."""
    samples: tuple[Sample, ...] = ()
    """Consumption of the server while its client ran, with the prefix ``server_``."""


class Servers(AbstractContextManager["Servers"]):
    """Starter and stopper of servers; a context manager.

    Each server has a launcher, created by ``launcher``, and its own folder in ``scratch``. ``wrap``
    adds an observer to the start of each server.
    """

    def __init__(
        self, launcher: Callable[[], Launcher], scratch: Path, *, wrap: Wrap | None = None
    ) -> None:
        self._make_launcher = launcher
        self._scratch = scratch
        self._wrap = wrap
        self._launchers: list[Launcher] = []
        self._shared_launcher: Launcher | None = None
        """Launcher of all lives of one trial."""
        self._running: list[Life] = []
        """Lives that continue between trials, each with its own launcher."""
        self._data: dict[tuple[object, ...], tuple[str, int]] = {}
        """Folders with initial data and the bytes of a copy, by the commands that create the
        data."""
        self._folders: list[str] = []
        self._commands = Commands(launcher)
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
        self, name: str, server: Server, environment: Mapping[str, str], timeout_s: float
    ) -> Iterator[Service]:
        """Provide a ready server while the block runs, and account for it.

        The life of the server ends with the block, or with the segment if a trial is an interval.
        The server's own environment is added to ``environment``; its client may take ``timeout_s``
        seconds.

        Raise `ConditionFailed` if its data could not be created, it was not ready in time, a
        setting did not take effect, or it did not stop.
        """
        continues = server.trial == "interval"
        try:
            life = next((life for life in self._running if life.server == server), None)
            if life is None:
                base = _with_search_path(environment, server.search_path)
                life = self._begin(name, server, base, timeout_s)
            service = Service(life.place)
            before = consumption(life.processes())
            yield service
            # Read before the server stops: the cost of stopping does not belong to the client.
            after = consumption(life.processes())
            ended_early = life.has_ended()
            report = life.stop() if ended_early or not continues else None
            service.samples = samples_of(before, after, None if continues else report)
            if report is not None:
                if ended_early or life.was_killed(report):
                    service.failure, service.log_tail = describe_end(report), life.log_tail(report)
                self._remove(life.place)
                if continues:
                    self._running.remove(life)
                    life.launcher.close()
        except BaseException:
            # Whatever happened, servers end with their launchers.
            self._close()
            raise

    def _begin(self, name: str, server: Server, base: Mapping[str, str], timeout_s: float) -> Life:
        _refuse_open_server(name, server)
        user = unprivileged_user(name, self._group) if server.unprivileged else None
        if server.trial == "interval":
            launcher, timeout_s = self._new_launcher(), _WHOLE_SEGMENT_S
        else:
            launcher = self._shared_launcher = self._shared_launcher or self._new_launcher()
        for start in range(1, STARTS + 1):
            place = self._new_place(name, user)
            life = Life(name, server, place, base, self._commands, launcher, user, self._wrap)
            try:
                self._copy_data(life)
                life.start(timeout_s)
            except PortTaken:
                if start == STARTS:
                    raise
                self._remove(place)
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
        """Fill the folder of a new life with its initial data.

        The data are created once in a segment, for all conditions with the same initial data.
        """
        server, folder = life.server, life.place.folder
        if server.install is None and server.fill is None:
            return
        key = (server.install, server.fill, server.start, server.search_path)
        if key not in self._data:
            self._data[key] = self._make_data(life)
        data_folder, size_bytes = self._data[key]
        room_bytes = shutil.disk_usage(folder).free
        if room_bytes < size_bytes:
            raise ConditionFailed(
                f"the data of the server of {life.name} take {_megabytes(size_bytes)}, and "
                f"only {_megabytes(room_bytes)} are free in {life.place.outer}",
                hint=FULL_DISK_HINT,
            )
        program = shutil.which(_COPY[0]) or _COPY[0]
        argv = (program, *_COPY[1:], os.path.join(data_folder, "."), folder)
        # Copied as the server's own user: root would write through a link in that user's folder.
        self._commands.run(
            ServerCommand("copy", life.name, argv, life.base, "/", _COPYING_S, life.user)
        )

    def _make_data(self, life: Life) -> tuple[str, int]:
        place = self._new_place(life.name, life.user)
        # The levels of a study change the measured server, not its data.
        server = replace(life.server, environment={}, process=Process(), prepare=None)
        with self._make_launcher() as launcher:
            filling = replace(life, server=server, place=place, launcher=launcher, wrap=None)
            if server.install is not None:
                self._commands.run(filling.command("install", server.install, life.base))
            if server.fill is not None:
                filling.start(_COPYING_S)
                self._commands.run(filling.command("fill", server.fill, life.base))
                filling.stop()
        return place.folder, _disk_bytes(place.folder)

    def _new_place(self, name: str, user: User | None) -> Place:
        place = new_place(self._scratch, user, free_port())
        self._folders.append(place.outer)
        if user is not None:
            let_others_enter(self._scratch)
            argv = (shutil.which("test") or _TEST, "-w", place.folder)
            if not self._commands.succeeds(ServerCommand("test", name, argv, {}, "/", 10.0, user)):
                raise ConditionFailed(
                    f"the server of {name} refuses to run as root, and user {user.uid} cannot "
                    f"write in {place.folder}",
                    hint="set TMPDIR to a folder that everybody may enter, such as /tmp",
                )
        return place

    def _remove(self, place: Place) -> None:
        shutil.rmtree(place.outer, ignore_errors=True)
        self._folders.remove(place.outer)

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


def _refuse_open_server(name: str, server: Server) -> None:
    """Refuse PostgreSQL and MariaDB if they listen on TCP without a password.

    A plan in a ledger keeps its commands: the studies `database` and `predicts` of the first
    release trusted every local user over TCP, and `equipoise resume` would start such a server.
    Raise `ConditionFailed`, which names the condition and the option.
    """
    listens = any(map(_LISTENS_ON_TCP.search, server.start))
    options = map(_TRUSTS_EVERYBODY.search, (*(server.install or ()), *server.start))
    option = next(filter(None, options), None)
    if listens and option is not None:
        raise ConditionFailed(
            f"the server of {name} would admit every user of this host by TCP: {option[0]}",
            hint="start a new campaign; in your own study, let it listen on {folder}/socket "
            "(docs/how-to/measure-a-server.md)",
        )


def _with_search_path(environment: Mapping[str, str], folders: tuple[str, ...]) -> dict[str, str]:
    """Return the environment with further folders after those of ``PATH``."""
    if not folders:
        return dict(environment)
    return {
        **environment,
        "PATH": os.pathsep.join((environment.get("PATH", os.defpath), *folders)),
    }


def _disk_bytes(folder: str) -> int:
    """Return the bytes that the files of a folder occupy on the disk."""
    return 512 * sum(
        os.lstat(os.path.join(place, file)).st_blocks
        for place, _, files in os.walk(folder)
        for file in files
    )


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.0f} MB"
