"""Servers for trials: one life for each trial, or one that runs for all trials of a condition."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from msgspec import Struct

from equipoise.measure.launcher import Launcher, Report, User
from equipoise.measure.servers.commands import (
    Commands,
    check_writable,
    describe_end,
    private_group,
    unprivileged_user,
)
from equipoise.measure.servers.initial_data import InitialData
from equipoise.measure.servers.life import (
    Life,
    PortTaken,
    Wrap,
    refuse_open_server,
    unchanged,
    with_search_path,
)
from equipoise.measure.servers.place import Place, free_port, new_place
from equipoise.measure.servers.processes import Consumption, consumption, processes_of, samples_of
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Server
from equipoise.model.record import Sample

STARTS = 3
"""Number of starts of a server whose port another program has taken."""
_ENTER_ONLY = 0o711
_WHOLE_SEGMENT_S = 1e8


class Service(Struct):
    """A server that is ready, and afterwards what became of it."""

    place: Place
    failure: str | None = None
    """Why the server ended before it was stopped."""
    log_tail: str = ""
    """End of the log of a server that ended early."""
    samples: tuple[Sample, ...] = ()
    """What the server consumed while its client ran, under ``server_`` and the metric's name."""

    def note_early_end(self, life: Life, report: Report) -> None:
        """Note that the server ended before it was stopped."""
        self.failure, self.log_tail = describe_end(report), life.log_tail(report)


class _Running(Struct, frozen=True):
    """A server that goes on running between trials."""

    server: Server
    life: Life
    launcher: Launcher


class Servers:
    """Starter and stopper of servers; a context manager.

    Parameters
    ----------
    launcher
        Function that makes the launcher of a server.
    scratch
        Folder in which each server has its own.
    wrap
        Function that puts an observer before the start of each server.
    """

    def __init__(
        self, launcher: Callable[[], Launcher], scratch: Path, *, wrap: Wrap = unchanged
    ) -> None:
        self._make_launcher = launcher
        self._scratch = scratch
        self._wrap = wrap
        self._launcher: Launcher | None = None
        self._running: list[_Running] = []
        self._folders: list[str] = []
        self._commands = Commands(launcher)
        self._initial_data = InitialData(launcher, self._commands, self._lasting_place)
        self._group = private_group() if os.geteuid() == 0 else None

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close it at the end of the block."""
        try:
            if error is None:
                for running in self._running:
                    running.life.stop(running.launcher)
        finally:
            self._close()

    @contextmanager
    def serving(
        self, name: str, server: Server, environment: Mapping[str, str], timeout_s: float
    ) -> Iterator[Service]:
        """Provide a server that is ready while the block runs, and account for it.

        The life of the server ends with the block, or with the segment if a trial is an interval.

        Parameters
        ----------
        name
            Name of its condition.
        server
            Server to start.
        environment
            Environment that the server's own is added to.
        timeout_s
            Seconds that its client may take.

        Raises
        ------
        ConditionFailed
            Its data could not be made, it was not ready in time, a setting did not take effect,
            or it did not stop.
        """
        base = with_search_path(environment, server.search_path)
        try:
            if server.trial == "interval":
                with self._interval(name, server, base) as service:
                    yield service
            else:
                with self._whole_life(name, server, base, timeout_s) as service:
                    yield service
        except BaseException:
            # Whatever happened, servers end with their launchers.
            self._close()
            raise

    @contextmanager
    def _whole_life(
        self, name: str, server: Server, base: Mapping[str, str], timeout_s: float
    ) -> Iterator[Service]:
        launcher = self._launcher = self._launcher or self._make_launcher()
        life = self._begin(name, server, base, launcher, timeout_s)
        try:
            service = Service(life.place)
            before = _consumption_so_far(launcher)
            yield service
            # Read before the server stops: what stopping costs belongs to no client.
            after = _consumption_so_far(launcher)
            ended_early = launcher.has_ended()
            report = life.stop(launcher)
            if ended_early:
                service.note_early_end(life, report)
            service.samples = samples_of(before, after, report)
        finally:
            shutil.rmtree(life.place.outer, ignore_errors=True)

    @contextmanager
    def _interval(self, name: str, server: Server, base: Mapping[str, str]) -> Iterator[Service]:
        running = next((one for one in self._running if one.server == server), None)
        if running is None:
            launcher = self._make_launcher()
            try:
                life = self._begin(name, server, base, launcher, _WHOLE_SEGMENT_S)
            except BaseException:
                launcher.close()
                raise
            self._folders.append(life.place.outer)
            running = _Running(server, life, launcher)
            self._running.append(running)
        service = Service(running.life.place)
        before = _consumption_so_far(running.launcher)
        yield service
        after = _consumption_so_far(running.launcher)
        service.samples = samples_of(before, after, None)
        if running.launcher.has_ended():
            service.note_early_end(running.life, running.launcher.finish())
            self._running.remove(running)
            running.launcher.close()

    def _begin(
        self,
        name: str,
        server: Server,
        base: Mapping[str, str],
        launcher: Launcher,
        timeout_s: float,
    ) -> Life:
        refuse_open_server(name, server)
        user = unprivileged_user(name, self._group) if server.unprivileged else None
        for start in range(1, STARTS + 1):
            place = self._new_place(name, user)
            life = Life(name, server, place, base, self._commands, user, self._wrap)
            try:
                self._initial_data.copy_into(place.folder, name, server, base, user)
                life.prepare()
                life.start(launcher, timeout_s)
            except PortTaken:
                shutil.rmtree(place.outer, ignore_errors=True)
                if start == STARTS:
                    raise
            except BaseException:
                launcher.close()
                shutil.rmtree(place.outer, ignore_errors=True)
                raise
            else:
                return life
        raise AssertionError("the last start is returned or raised")

    def _new_place(self, name: str, user: User | None) -> Place:
        place = new_place(self._scratch, user, free_port())
        if user is not None:
            os.chmod(self._scratch, _ENTER_ONLY)
            try:
                check_writable(place.folder, user, self._commands, name)
            except ConditionFailed:
                shutil.rmtree(place.outer, ignore_errors=True)
                raise
        return place

    def _lasting_place(self, name: str, user: User | None) -> Place:
        place = self._new_place(name, user)
        self._folders.append(place.outer)
        return place

    def _close(self) -> None:
        for running in self._running:
            running.launcher.close()
        self._running.clear()
        if self._launcher is not None:
            self._launcher.close()
            self._launcher = None
        self._commands.close()
        self._initial_data.forget()
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)
        self._folders.clear()


def _consumption_so_far(launcher: Launcher) -> Consumption:
    return consumption(processes_of(launcher.pid))
