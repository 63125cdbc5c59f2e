"""Servers for trials: one life for each, or one that goes on running for all of a condition."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from equipoise.measure.launcher import Launcher, User
from equipoise.measure.servers.commands import (
    Commands,
    check_reachable,
    private_group,
    unprivileged_user,
)
from equipoise.measure.servers.life import Before, Life, PortTaken, unchanged, with_search_path
from equipoise.measure.servers.open_servers import refuse_open_server
from equipoise.measure.servers.place import Place, free_port, new_place
from equipoise.measure.servers.prepared import Preparations
from equipoise.measure.servers.processes import Consumed, consumed, processes_of
from equipoise.measure.servers.service import Service, samples_of
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Server

STARTS = 3
"""So often a server is started anew because somebody took its port."""
_ENTER_ONLY = 0o711
_WHOLE_SITTING_S = 1e8


@dataclass(frozen=True, slots=True)
class Running:
    """A server that goes on running between trials."""

    server: Server
    life: Life
    launcher: Launcher


class Servers:
    """Starts servers and stops them; a context manager.

    Parameters
    ----------
    launcher
        Makes a launcher of a server, when one is needed.
    scratch
        Where each has its folder.
    before
        What is put before the start of each: an observer.
    """

    def __init__(
        self, launcher: Callable[[], Launcher], scratch: Path, *, before: Before = unchanged
    ) -> None:
        self._make = launcher
        self._scratch = scratch
        self._before = before
        self._launcher: Launcher | None = None
        self._running: list[Running] = []
        self._folders: list[str] = []
        self._commands = Commands(launcher)
        self._preparations = Preparations(launcher, self._commands, self._kept_place)
        self._group = private_group() if os.geteuid() == 0 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        """A server that is ready while the block runs, and is accounted for then.

        Its life ends with the block, or with the sitting if a trial is an interval.

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
            It could not be prepared, was not ready in time, did not take effect or did not stop.
        """
        base = with_search_path(environment, server.search_path)
        try:
            if server.trial == "interval":
                with self._interval(name, server, base) as service:
                    yield service
            else:
                with self._life(name, server, base, timeout_s) as service:
                    yield service
        except BaseException:
            # Whatever happened, servers end with their launchers.
            self._close()
            raise

    @contextmanager
    def _life(
        self, name: str, server: Server, base: Mapping[str, str], timeout_s: float
    ) -> Iterator[Service]:
        launcher = self._launcher = self._launcher or self._make()
        life = self._begin(name, server, base, launcher, timeout_s)
        try:
            service = Service(life.place)
            before = _look(launcher)
            yield service
            # Read before it is told to stop: what stopping costs belongs to no client.
            after = _look(launcher)
            ended_early = launcher.has_ended()
            report = life.stop(launcher)
            if ended_early:
                service.tell_how(report, life.said(report))
            service.samples = samples_of(before, after, report)
        finally:
            shutil.rmtree(life.place.outer, ignore_errors=True)

    @contextmanager
    def _interval(self, name: str, server: Server, base: Mapping[str, str]) -> Iterator[Service]:
        running = next((one for one in self._running if one.server == server), None)
        if running is None:
            launcher = self._make()
            try:
                life = self._begin(name, server, base, launcher, _WHOLE_SITTING_S)
            except BaseException:
                launcher.close()
                raise
            self._folders.append(life.place.outer)
            running = Running(server, life, launcher)
            self._running.append(running)
        service = Service(running.life.place)
        before = _look(running.launcher)
        yield service
        after = _look(running.launcher)
        service.samples = samples_of(before, after, None)
        if running.launcher.has_ended():
            report = running.launcher.finish()
            service.tell_how(report, running.life.said(report))
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
            life = Life(name, server, place, base, self._commands, user, self._before)
            try:
                self._preparations.copy_into(place.folder, name, server, base, user)
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
                check_reachable(place.folder, user, self._commands, name)
            except ConditionFailed:
                shutil.rmtree(place.outer, ignore_errors=True)
                raise
        return place

    def _kept_place(self, name: str, user: User | None) -> Place:
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
        self._preparations.forget()
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)
        self._folders.clear()


def _look(launcher: Launcher) -> Consumed:
    return consumed(processes_of(launcher.pid))
