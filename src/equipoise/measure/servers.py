"""Servers as workloads: each lives for one trial, in a folder of its own.

A server is started by a launcher of its own, so that it is accounted for like a trial, and so
that it ends with all of its descendants when Equipoise does, however that happens. Only its
client is timed.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from equipoise.measure.hooks import last_words, signal_words
from equipoise.measure.launcher import Launcher, Report, Request
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Server
from equipoise.model.trial import Sample

LOOPBACK = "127.0.0.1"
FIRST_LOOK_S = 0.002
LONGEST_LOOK_S = 0.1
"""A server is looked at again after twice the time, up to this."""
ACCOUNTED = ("user_s", "sys_s", "max_rss_bytes", "minor_faults", "major_faults")
PREFIX = "server_"


@dataclass(frozen=True, slots=True)
class Place:
    """Where one server lives."""

    folder: str
    port: int

    def fill(self, text: str) -> str:
        """Put the folder and the port where their names stand."""
        return text.replace("{folder}", self.folder).replace("{port}", str(self.port))

    def words(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """The same for each word."""
        return tuple(self.fill(word) for word in words)

    def variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The same for each value."""
        return {name: self.fill(value) for name, value in environment.items()}


@dataclass(slots=True)
class Service:
    """A server that is ready, and afterwards what became of it."""

    place: Place
    failure: str | None = None
    """Why it ended before it was told to."""
    samples: tuple[Sample, ...] = field(default=())
    """What it consumed, under ``server_`` and the name of the metric."""


class Servers:
    """Starts one server after the other; a context manager.

    Parameters
    ----------
    launcher
        Makes the launcher of servers, when the first one is needed.
    scratch
        Where each has its folder.
    """

    def __init__(self, launcher: Callable[[], Launcher], scratch: Path) -> None:
        self._make = launcher
        self._scratch = scratch
        self._launcher: Launcher | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    @contextmanager
    def serving(
        self, name: str, server: Server, environment: Mapping[str, str], timeout_s: float
    ) -> Iterator[Service]:
        """A server that is ready while the block runs; it is stopped, and accounted for, then.

        Parameters
        ----------
        name
            Of its condition, for errors.
        environment
            What its own environment is added to.
        timeout_s
            How long its client may take.

        Raises
        ------
        ConditionFailed
            It could not be prepared, or was not ready in time.
        """
        folder = tempfile.mkdtemp(prefix="server-", dir=self._scratch)
        life = _Life(name, server, Place(folder, free_port()), environment)
        try:
            life.prepare()
            launcher = self._launcher = self._launcher or self._make()
            launcher.begin(life.request(timeout_s))
            life.wait_until_ready(launcher)
            service = Service(life.place)
            yield service
            ended_early = launcher.has_ended()
            report = life.stop(launcher)
            service.failure = how_it_ended(report) if ended_early else None
            service.samples = samples_of(report)
        except BaseException:
            # Whatever happened, the server ends with its launcher.
            self._close()
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _close(self) -> None:
        if self._launcher is not None:
            self._launcher.close()
            self._launcher = None


@dataclass(frozen=True, slots=True)
class _Life:
    """From the preparation of one server to its end."""

    name: str
    server: Server
    place: Place
    base: Mapping[str, str]

    def environment(self) -> dict[str, str]:
        return {**self.base, **self.place.variables(self.server.environment)}

    def folder(self) -> str:
        return self.server.process.working_folder or self.place.folder

    def request(self, timeout_s: float) -> Request:
        return Request(
            argv=self.place.words(self.server.start),
            environment=self.environment(),
            working_folder=self.folder(),
            # The client has its own limit; this one is for a server that is never stopped.
            timeout_s=timeout_s + 3 * self.server.ready_s,
            process=self.server.process,
        )

    def prepare(self) -> None:
        if self.server.prepare is not None:
            self._command("prepare", self.server.prepare, self.environment())

    def wait_until_ready(self, launcher: Launcher) -> None:
        deadline = time.monotonic() + self.server.ready_s
        pause = FIRST_LOOK_S
        while not self._is_ready(deadline):
            if launcher.has_ended():
                report = launcher.finish()
                raise ConditionFailed(
                    f"the server of {self.name} ended before it was ready: "
                    f"{how_it_ended(report)}{last_words(report.error_tail)}",
                    mend="it must stay in the foreground; see [workload.server] start",
                )
            if time.monotonic() > deadline:
                raise ConditionFailed(
                    f"the server of {self.name} was not ready after {self.server.ready_s:g} s",
                    mend="give [workload.server] a longer ready_s, or see its ready command",
                )
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_LOOK_S)

    def stop(self, launcher: Launcher) -> Report:
        if not launcher.has_ended():
            if self.server.stop is not None:
                self._command("stop", self.server.stop, dict(self.base))
            else:
                _tell(launcher, self.server.stop_signal)
        deadline = time.monotonic() + self.server.ready_s
        while not launcher.has_ended():
            if time.monotonic() > deadline:
                raise ConditionFailed(
                    f"the server of {self.name} did not stop within {self.server.ready_s:g} s",
                    mend="give [workload.server] a stop command, a stop_signal or a longer ready_s",
                )
            time.sleep(FIRST_LOOK_S)
        return launcher.finish()

    def _is_ready(self, deadline: float) -> bool:
        if self.server.ready is None:
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as line:
                return line.connect_ex((LOOPBACK, self.place.port)) == 0
        left_s = max(deadline - time.monotonic(), FIRST_LOOK_S)
        try:
            asked = subprocess.run(
                self.place.words(self.server.ready),
                env=dict(self.base),
                cwd=self.folder(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=left_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        except OSError as error:
            raise self._not_run("ready", error) from None
        return asked.returncode == 0

    def _command(self, what: str, words: tuple[str, ...], environment: dict[str, str]) -> None:
        try:
            done = subprocess.run(
                self.place.words(words),
                env=environment,
                cwd=self.folder(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=self.server.ready_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            failure = f"timed out after {self.server.ready_s:g} s"
        except OSError as error:
            raise self._not_run(what, error) from None
        else:
            if done.returncode == 0:
                return
            said = last_words(done.stderr.decode("utf-8", "replace"))
            failure = f"exit status {done.returncode}{said}"
        raise ConditionFailed(
            f"the {what} command of the server of {self.name} failed: {failure}",
            mend=f"see [workload.server] {what}",
        )

    def _not_run(self, what: str, error: OSError) -> ConditionFailed:
        return ConditionFailed(
            f"the {what} command of the server of {self.name} cannot be run: {error}",
            mend=f"see [workload.server] {what}",
        )


def free_port() -> int:
    """A port of the loopback interface that nobody listens on now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as line:
        line.bind((LOOPBACK, 0))
        port: int = line.getsockname()[1]
        return port


def how_it_ended(report: Report) -> str:
    """In words."""
    if report.could_not_start is not None:
        return f"could not be started: {report.could_not_start}"
    if report.signal is not None:
        return signal_words(report.signal)
    return f"exit status {report.exit}"


def samples_of(report: Report) -> tuple[Sample, ...]:
    """What a server consumed in its whole life."""
    values = ((name, getattr(report, name)) for name in ACCOUNTED)
    return tuple(Sample(PREFIX + name, float(value)) for name, value in values if value is not None)


def _tell(launcher: Launcher, signal_name: str) -> None:
    """Send a signal to what the launcher runs."""
    number = signal.Signals[f"SIG{signal_name.removeprefix('SIG')}"]
    try:
        for child in psutil.Process(launcher.pid).children():
            child.send_signal(number)
    except psutil.NoSuchProcess:
        # It has ended meanwhile, which is what was wanted.
        return
