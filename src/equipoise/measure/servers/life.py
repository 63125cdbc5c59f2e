"""One life of a server: from its start, through its being ready, to its end."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import psutil

from equipoise.measure.hooks import TAIL_BYTES, last_words
from equipoise.measure.launcher import Launcher, Report, Request, User
from equipoise.measure.servers.commands import Commands, Errand
from equipoise.measure.servers.effect import check_effect
from equipoise.measure.servers.full_disk import full_disk
from equipoise.measure.servers.place import Place, port_accepts, socket_accepts
from equipoise.measure.servers.processes import any_listens, processes_of
from equipoise.measure.servers.service import how_it_ended
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import SOCKET, Output, Server

FIRST_LOOK_S = 0.002
LONGEST_LOOK_S = 0.1
"""A server is looked at again after twice the time, up to this."""
_TAKEN = re.compile(r"address (is )?already in use|port .{0,40}in use", re.IGNORECASE)


Before = Callable[[Request], Request]


def unchanged(request: Request) -> Request:
    """The same: a server is started as it is."""
    return request


class PortTaken(ConditionFailed):
    """Somebody else has the port that was free a moment ago."""


@dataclass(frozen=True, slots=True)
class Life:
    """From the preparation of one server to its end.

    Parameters
    ----------
    base
        What its own environment is added to.
    user
        Whom it runs as, if not as we do.
    before
        What is put before its start: an observer.
    """

    name: str
    server: Server
    place: Place
    base: Mapping[str, str]
    commands: Commands
    user: User | None = None
    before: Before = unchanged

    def errand(self, what: str, words: tuple[str, ...], environment: Mapping[str, str]) -> Errand:
        """A command around it."""
        return Errand(
            what,
            self.name,
            self.place.words(words),
            self._with_own_folder(environment),
            self._folder(),
            self.server.ready_s,
            self.user,
        )

    def prepare(self) -> None:
        """Run what is run before it starts.

        Raises
        ------
        ConditionFailed
            It failed.
        """
        if self.server.prepare is not None:
            self.commands.run(self.errand("prepare", self.server.prepare, self._environment()))

    def start(self, launcher: Launcher, timeout_s: float) -> None:
        """Start it, and come back when it is ready and is what its condition says.

        Raises
        ------
        PortTaken
            Somebody else has its port.
        ConditionFailed
            It ended, was not ready in time, or something did not take effect.
        """
        request = Request(
            argv=self.place.words(self.server.start),
            environment=self._environment(),
            working_folder=self._folder(),
            # The client has its own limit; this one is for a server that is never stopped.
            timeout_s=timeout_s + 3 * self.server.ready_s,
            output=Output("file", self.place.log),
            process=self.server.process,
            user=self.user,
        )
        launcher.begin(self.before(request))
        self._wait_until_ready(launcher)
        processes = processes_of(launcher.pid)
        self._check_port(launcher, processes)
        user = None if self.user is None else self.user.uid
        check_effect(self.name, self.server.environment, self.server.process, user, processes)

    def stop(self, launcher: Launcher) -> Report:
        """Tell it to stop, unless it has ended, and account for its life.

        Raises
        ------
        ConditionFailed
            It does not stop.
        """
        if not launcher.has_ended():
            if self.server.stop is not None:
                self.commands.run(self.errand("stop", self.server.stop, self.base))
            else:
                _tell(launcher, self.server.stop_signal)
        deadline = time.monotonic() + self.server.ready_s
        while not launcher.has_ended():
            if time.monotonic() > deadline:
                raise ConditionFailed(
                    f"the server of {self.name} did not stop within {self.server.ready_s:g} s",
                    hint="give its table a stop command, another signal or a longer ready_s",
                )
            time.sleep(FIRST_LOOK_S)
        return launcher.finish()

    def said(self, report: Report) -> str:
        """The end of its log: of standard error, or of standard output where that is silent."""
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
        pause = FIRST_LOOK_S
        while not self._is_ready(deadline):
            if launcher.has_ended():
                self._raise_early_end(launcher.finish())
            if time.monotonic() > deadline:
                # What it said is known only when it has ended.
                _tell(launcher, "KILL")
                raise ConditionFailed(
                    f"the server of {self.name} was not ready after {self.server.ready_s:g} s"
                    + self._last_words(launcher.finish()),
                    hint="give its table a longer ready_s, or see its ready command",
                )
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_LOOK_S)

    def _raise_early_end(self, report: Report) -> None:
        taken = _TAKEN.search(self.said(report)) is not None
        how = f"{how_it_ended(report)}{self._last_words(report)}"
        ended = f"the server of {self.name} ended before it was ready"
        no_room = full_disk(ended, self.said(report), self.place.folder)
        if no_room is not None:
            raise no_room
        what = f"{ended}: {how}"
        if taken and self._has_a_port_of_ours():
            raise PortTaken(what, hint="try again: another program has just taken the port")
        if taken:
            raise ConditionFailed(
                what, hint="write {port} for a port that is free, {folder}/socket for a socket"
            )
        raise ConditionFailed(what, hint="it must stay in the foreground; see start in its table")

    def _last_words(self, report: Report) -> str:
        return last_words(self.said(report)).replace("stderr: ", "its log: ")

    def _is_ready(self, deadline: float) -> bool:
        if self.server.ready is None:
            if self._has_a_port_of_ours():
                return port_accepts(self.place.port)
            return socket_accepts(self.place.fill(SOCKET))
        left_s = max(deadline - time.monotonic(), FIRST_LOOK_S)
        errand = self.errand("ready", self.server.ready, self.base)
        return self.commands.ask(dataclasses.replace(errand, timeout_s=left_s))

    def _check_port(self, launcher: Launcher, processes: tuple[int, ...]) -> None:
        """Whoever else answers on the port, it must not be measured instead of the server."""
        if not self._has_a_port_of_ours() or any_listens(processes, self.place.port):
            return
        if not port_accepts(self.place.port):
            return
        _tell(launcher, "KILL")
        launcher.finish()
        raise PortTaken(
            f"the server of {self.name} is not the one that answers on port {self.place.port}",
            hint="try again: another program has just taken the port",
        )

    def _has_a_port_of_ours(self) -> bool:
        return any("{port}" in word for word in self.server.start)

    def _environment(self) -> dict[str, str]:
        own = self.place.variables(self.server.environment)
        return {**self._with_own_folder(self.base), **own}

    def _with_own_folder(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Its temporary files go where they are removed with it, and where its user may write."""
        return {**environment, "TMPDIR": self.place.folder}

    def _folder(self) -> str:
        return self.server.process.working_folder or self.place.folder


def with_search_path(environment: Mapping[str, str], folders: tuple[str, ...]) -> dict[str, str]:
    """The environment with further folders behind those of ``PATH``."""
    if not folders:
        return dict(environment)
    usual = environment.get("PATH", os.defpath)
    return {**environment, "PATH": os.pathsep.join((usual, *folders))}


def _tell(launcher: Launcher, signal_name: str) -> None:
    """Send a signal to what the launcher runs."""
    number = signal.Signals[f"SIG{signal_name.removeprefix('SIG')}"]
    # What has ended meanwhile needs no signal.
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(launcher.pid).children():
            child.send_signal(number)
