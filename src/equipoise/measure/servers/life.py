"""One life of a server: from its start, through its being ready, to its end."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from typing import NoReturn

import psutil
from msgspec import Struct
from msgspec.structs import replace

from equipoise.measure.launcher import Launcher, Report, Request, User
from equipoise.measure.servers.commands import Commands, ServerCommand, describe_end, full_disk
from equipoise.measure.servers.place import Place, port_accepts, socket_accepts
from equipoise.measure.servers.processes import any_listens, check_effect, processes_of
from equipoise.measure.untimed import TAIL_BYTES, stderr_suffix
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import SOCKET, Output, Server

FIRST_PAUSE_S = 0.002
LONGEST_PAUSE_S = 0.1
"""The pause between two questions whether a server is ready doubles up to this."""
_PORT_IN_USE = re.compile(r"address (is )?already in use|port .{0,40}in use", re.IGNORECASE)
_TRUSTS_EVERYBODY = re.compile(r"--auth(-host)?=trust\b|--auth-root-authentication-method=normal\b")
_LISTENS_ON_TCP = re.compile(r"listen_addresses=\S|--bind-address\b")

Wrap = Callable[[Request], Request]
"""Function that puts an observer before the start of a server."""


def unchanged(request: Request) -> Request:
    """Return the request itself: a server is started as it is."""
    return request


class PortTaken(ConditionFailed):
    """Another program has the port that was free a moment ago."""


class Life(Struct, frozen=True):
    """One life of a server, from its preparation to its end.

    Parameters
    ----------
    name
        Name of the condition.
    base
        Environment that the server's own is added to.
    user
        User that the server runs as; by default our own.
    wrap
        Function that puts an observer before its start.
    """

    name: str
    server: Server
    place: Place
    base: Mapping[str, str]
    commands: Commands
    user: User | None = None
    wrap: Wrap = unchanged

    def command(
        self, key: str, words: tuple[str, ...], environment: Mapping[str, str]
    ) -> ServerCommand:
        """Return a command around the server."""
        return ServerCommand(
            key,
            self.name,
            self.place.fill_all(words),
            self._with_own_folder(environment),
            self._folder(),
            self.server.ready_s,
            self.user,
        )

    def prepare(self) -> None:
        """Run the ``prepare`` command of the server.

        Raises
        ------
        ConditionFailed
            The command failed.
        """
        if self.server.prepare is not None:
            self.commands.run(self.command("prepare", self.server.prepare, self._environment()))

    def start(self, launcher: Launcher, timeout_s: float) -> None:
        """Start the server; return when it is ready and its settings are in force.

        Raises
        ------
        PortTaken
            Another program has its port.
        ConditionFailed
            It ended, was not ready in time, or a setting did not take effect.
        """
        request = Request(
            argv=self.place.fill_all(self.server.start),
            environment=self._environment(),
            working_folder=self._folder(),
            # The client has its own limit; this one is for a server that is never stopped.
            timeout_s=timeout_s + 3 * self.server.ready_s,
            output=Output("file", self.place.log),
            process=self.server.process,
            user=self.user,
        )
        launcher.begin(self.wrap(request))
        self._wait_until_ready(launcher)
        processes = processes_of(launcher.pid)
        self._check_port(launcher, processes)
        user = None if self.user is None else self.user.uid
        check_effect(self.name, self.server.environment, self.server.process, user, processes)

    def stop(self, launcher: Launcher) -> Report:
        """Stop the server, unless it has ended; return the report of its life.

        Raises
        ------
        ConditionFailed
            The server does not stop.
        """
        if not launcher.has_ended():
            if self.server.stop is not None:
                self.commands.run(self.command("stop", self.server.stop, self.base))
            else:
                _send_signal(launcher, self.server.stop_signal)
        deadline = time.monotonic() + self.server.ready_s
        while not launcher.has_ended():
            if time.monotonic() > deadline:
                raise ConditionFailed(
                    f"the server of {self.name} did not stop within {self.server.ready_s:g} s",
                    hint="give its table a stop command, another signal or a longer ready_s",
                )
            time.sleep(FIRST_PAUSE_S)
        return launcher.finish()

    def log_tail(self, report: Report) -> str:
        """Return the end of standard error, or of standard output if standard error is empty."""
        if report.error_tail.strip():
            return report.error_tail
        try:
            with open(self.place.log, "rb") as output:
                size = output.seek(0, os.SEEK_END)
                output.seek(max(0, size - TAIL_BYTES))
                return output.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def _wait_until_ready(self, launcher: Launcher) -> None:
        deadline = time.monotonic() + self.server.ready_s
        pause = FIRST_PAUSE_S
        while not self._is_ready(deadline):
            if launcher.has_ended():
                self._raise_early_end(launcher.finish())
            if time.monotonic() > deadline:
                # Its output is known only when it has ended.
                _send_signal(launcher, "KILL")
                raise ConditionFailed(
                    f"the server of {self.name} was not ready after {self.server.ready_s:g} s"
                    + self._log_suffix(launcher.finish()),
                    hint="give its table a longer ready_s, or see its ready command",
                )
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)

    def _raise_early_end(self, report: Report) -> NoReturn:
        log = self.log_tail(report)
        ended = f"the server of {self.name} ended before it was ready"
        no_room = full_disk(ended, log, self.place.folder)
        if no_room is not None:
            raise no_room
        what = f"{ended}: {describe_end(report)}{self._log_suffix(report)}"
        taken = _PORT_IN_USE.search(log) is not None
        if taken and self._has_own_port():
            raise PortTaken(what, hint="try again: another program has just taken the port")
        if taken:
            raise ConditionFailed(
                what, hint="write {port} for a port that is free, {folder}/socket for a socket"
            )
        raise ConditionFailed(what, hint="it must stay in the foreground; see start in its table")

    def _log_suffix(self, report: Report) -> str:
        return stderr_suffix(self.log_tail(report)).replace("stderr: ", "its log: ")

    def _is_ready(self, deadline: float) -> bool:
        if self.server.ready is None:
            if self._has_own_port():
                return port_accepts(self.place.port)
            return socket_accepts(self.place.fill(SOCKET))
        left_s = max(deadline - time.monotonic(), FIRST_PAUSE_S)
        command = self.command("ready", self.server.ready, self.base)
        return self.commands.succeeds(replace(command, timeout_s=left_s))

    def _check_port(self, launcher: Launcher, processes: tuple[int, ...]) -> None:
        """Refuse another program that answers on the port in place of the server."""
        if not self._has_own_port() or any_listens(processes, self.place.port):
            return
        if not port_accepts(self.place.port):
            return
        _send_signal(launcher, "KILL")
        launcher.finish()
        raise PortTaken(
            f"another program than the server of {self.name} answers on port {self.place.port}",
            hint="try again: that program has just taken the port",
        )

    def _has_own_port(self) -> bool:
        return any("{port}" in word for word in self.server.start)

    def _environment(self) -> dict[str, str]:
        own = self.place.fill_values(self.server.environment)
        return {**self._with_own_folder(self.base), **own}

    def _with_own_folder(self, environment: Mapping[str, str]) -> dict[str, str]:
        # Temporary files go where they are removed with the server, and its user may write.
        return {**environment, "TMPDIR": self.place.folder}

    def _folder(self) -> str:
        return self.server.process.working_folder or self.place.folder


def refuse_open_server(name: str, server: Server) -> None:
    """Refuse PostgreSQL and MariaDB where they listen on TCP and demand no password.

    A plan in a ledger keeps its commands: the studies `database` and `predicts` of the first
    release trusted every local user over TCP, and `equipoise resume` would start such a server.

    Parameters
    ----------
    name
        Name of the condition.
    server
        Server of the condition.

    Raises
    ------
    ConditionFailed
        The message names the option.
    """
    listens = any(_LISTENS_ON_TCP.search(word) for word in server.start)
    options = map(_TRUSTS_EVERYBODY.search, (*(server.install or ()), *server.start))
    option = next(filter(None, options), None)
    if listens and option is not None:
        raise ConditionFailed(
            f"the server of {name} would let every user of this host in by TCP: {option[0]}",
            hint="begin a new campaign; in a study of your own, let it listen on {folder}/socket "
            "(docs/studies.md)",
        )


def with_search_path(environment: Mapping[str, str], folders: tuple[str, ...]) -> dict[str, str]:
    """Return the environment with further folders behind those of ``PATH``."""
    if not folders:
        return dict(environment)
    usual = environment.get("PATH", os.defpath)
    return {**environment, "PATH": os.pathsep.join((usual, *folders))}


def _send_signal(launcher: Launcher, signal_name: str) -> None:
    """Send a signal to what the launcher runs."""
    number = signal.Signals[f"SIG{signal_name.removeprefix('SIG')}"]
    # What has ended meanwhile needs no signal.
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(launcher.pid).children():
            child.send_signal(number)
