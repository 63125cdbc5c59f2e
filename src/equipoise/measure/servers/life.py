"""One life of a server: from its start, through its being ready, to its end."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Mapping

import psutil
from msgspec import Struct
from msgspec.structs import replace

from equipoise.measure.launcher import Launcher, Report, Request, User
from equipoise.measure.servers.commands import Commands, ServerCommand, describe_end, full_disk
from equipoise.measure.servers.place import LOOPBACK, Place, accepts
from equipoise.measure.servers.processes import any_listens, check_effect
from equipoise.measure.untimed import stderr_suffix, tail
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


class PortTaken(ConditionFailed):
    """Another program has the port that was free a moment ago."""


class Life(Struct, frozen=True):
    """One life of a server, from its preparation to its end."""

    name: str
    """Name of the condition."""
    server: Server
    place: Place
    base: Mapping[str, str]
    """Environment that the server's own is added to."""
    commands: Commands
    launcher: Launcher
    """Launcher that runs the server and nothing beside it."""
    user: User | None = None
    """User that the server runs as; by default our own."""
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

    def prepare(self) -> None:
        """Run the ``prepare`` command of the server; raise `ConditionFailed` if it fails."""
        if self.server.prepare is not None:
            self.commands.run(self.command("prepare", self.server.prepare, self._environment()))

    def start(self, timeout_s: float) -> None:
        """Start the server; return when it is ready and its settings are in force.

        Its client may take ``timeout_s`` seconds. Raise `PortTaken` if another program has its
        port, `ConditionFailed` if it ended, was not ready in time, or a setting did not take
        effect.
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
        self.launcher.begin(request if self.wrap is None else self.wrap(request))
        self._wait_until_ready()
        processes = self.processes()
        self._check_port(processes)
        check_effect(self.name, self.server, self.user, processes)

    def processes(self) -> tuple[int, ...]:
        """Return the processes of the server, the first one started first."""
        try:
            children = psutil.Process(self.launcher.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return ()
        return tuple(child.pid for child in children)

    def has_ended(self) -> bool:
        """Return whether the server has ended, also where its launcher has not reported that."""
        return self.launcher.has_ended() or not self._lives()

    def was_killed(self, report: Report) -> bool:
        """Return whether the server died of a SIGKILL that Equipoise did not send.

        A killed process lives on for a moment: it may die only while it is being stopped.
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
        """Return the end of standard error, or of standard output if standard error is empty."""
        if report.error_tail.strip():
            return report.error_tail
        with contextlib.suppress(FileNotFoundError), open(self.place.log, "rb") as output:
            return tail(output.fileno())
        return ""

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + self.server.ready_s
        pause = FIRST_PAUSE_S
        # Before its process exists, whoever answers is another program, and no signal reaches it.
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
            pause = min(2 * pause, LONGEST_PAUSE_S)

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
            what, hint="write {port} for a port that is free, {folder}/socket for a socket"
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
        """Refuse another program that answers on the port in place of the server."""
        port = self.place.port
        if not self._has_own_port() or any_listens(processes, port):
            return
        if accepts((LOOPBACK, port)):
            self._kill()
            raise PortTaken(
                f"another program than the server of {self.name} answers on port {port}",
                hint="try again: that program has just taken the port",
            )

    def _lives(self) -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.launcher.pid).children():
                with contextlib.suppress(psutil.NoSuchProcess):
                    if child.status() != psutil.STATUS_ZOMBIE:
                        return True
        return False

    def _has_own_port(self) -> bool:
        return any("{port}" in argument for argument in self.server.start)

    def _environment(self) -> dict[str, str]:
        own = self.place.fill_values(self.server.environment)
        return {**self._with_own_folder(self.base), **own}

    def _with_own_folder(self, environment: Mapping[str, str]) -> dict[str, str]:
        # Temporary files go where they are removed with the server, and its user may write.
        return {**environment, "TMPDIR": self.place.folder}

    def _folder(self) -> str:
        return self.server.process.working_folder or self.place.folder

    def _kill(self) -> Report:
        """End the server; only then its output is known."""
        self._send_signal("KILL")
        return self.launcher.finish()

    def _send_signal(self, signal_name: str) -> None:
        number = signal.Signals[f"SIG{signal_name.removeprefix('SIG')}"]
        # What has ended meanwhile needs no signal.
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.launcher.pid).children():
                child.send_signal(number)


def refuse_open_server(name: str, server: Server) -> None:
    """Refuse PostgreSQL and MariaDB where they listen on TCP and demand no password.

    A plan in a ledger keeps its commands: the studies `database` and `predicts` of the first
    release trusted every local user over TCP, and `equipoise resume` would start such a server.
    Raise `ConditionFailed`, which names the condition and the option.
    """
    listens = any(map(_LISTENS_ON_TCP.search, server.start))
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
    return {
        **environment,
        "PATH": os.pathsep.join((environment.get("PATH", os.defpath), *folders)),
    }
