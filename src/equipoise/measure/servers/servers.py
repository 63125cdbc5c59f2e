"""Servers for trials: one life for each trial, or one that runs for all trials of a condition."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from equipoise.measure.launcher import Launcher, User
from equipoise.measure.servers.commands import (
    FULL_DISK_HINT,
    Commands,
    ServerCommand,
    check_writable,
    describe_end,
    private_group,
    unprivileged_user,
)
from equipoise.measure.servers.life import (
    Life,
    PortTaken,
    Wrap,
    refuse_open_server,
    with_search_path,
)
from equipoise.measure.servers.place import Place, free_port, new_place
from equipoise.measure.servers.processes import consumption, samples_of
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Process, Server
from equipoise.model.record import Sample

STARTS = 3
"""Number of starts of a server whose port another program has taken."""
_COPY = ("cp", "-a", "--reflink=auto")
_COPYING_S = 600.0
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


class Servers(AbstractContextManager["Servers"]):
    """Starter and stopper of servers; a context manager.

    Each server has a launcher that ``launcher`` makes, and a folder of its own in ``scratch``.
    ``wrap`` puts an observer before the start of each server.
    """

    def __init__(
        self, launcher: Callable[[], Launcher], scratch: Path, *, wrap: Wrap | None = None
    ) -> None:
        self._make_launcher = launcher
        self._scratch = scratch
        self._wrap = wrap
        self._launchers: list[Launcher] = []
        self._shared_launcher: Launcher | None = None
        """Launcher of all lives that last one trial."""
        self._running: list[Life] = []
        """Lives that go on between trials, each with a launcher of its own."""
        self._data: dict[tuple[object, ...], tuple[str, int]] = {}
        """Folder with initial data and bytes that a copy needs, by what makes the data."""
        self._folders: list[str] = []
        self._commands = Commands(launcher)
        self._group = private_group() if os.geteuid() == 0 else None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close it at the end of the block."""
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
        """Provide a server that is ready while the block runs, and account for it.

        The life of the server ends with the block, or with the segment if a trial is an interval.
        The server's own environment is added to ``environment``; its client may take ``timeout_s``
        seconds.

        Raise `ConditionFailed` if its data could not be made, it was not ready in time, a setting
        did not take effect, or it did not stop.
        """
        goes_on = server.trial == "interval"
        try:
            life = next((life for life in self._running if life.server == server), None)
            if life is None:
                base = with_search_path(environment, server.search_path)
                life = self._begin(name, server, base, timeout_s)
            service = Service(life.place)
            before = consumption(life.processes())
            yield service
            # Read before the server stops: what stopping costs belongs to no client.
            after = consumption(life.processes())
            ended_early = life.has_ended()
            report = life.stop() if ended_early or not goes_on else None
            service.samples = samples_of(before, after, None if goes_on else report)
            if report is not None:
                if ended_early or life.was_killed(report):
                    service.failure, service.log_tail = describe_end(report), life.log_tail(report)
                self._remove(life.place)
                if goes_on:
                    self._running.remove(life)
                    life.launcher.close()
        except BaseException:
            # Whatever happened, servers end with their launchers.
            self._close()
            raise

    def _begin(self, name: str, server: Server, base: Mapping[str, str], timeout_s: float) -> Life:
        refuse_open_server(name, server)
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
                life.prepare()
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
        """Fill the folder of a new life with what it begins with.

        The data are made once in a segment, for all conditions that begin with the same.
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
        # As the server's own user: root would write through a link in that user's folder.
        self._commands.run(
            ServerCommand("copy", life.name, argv, life.base, "/", _COPYING_S, life.user)
        )

    def _make_data(self, life: Life) -> tuple[str, int]:
        place = self._new_place(life.name, life.user)
        # The levels of a study change the server that is measured, not its data.
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
            os.chmod(self._scratch, _ENTER_ONLY)
            check_writable(place.folder, user, self._commands, name)
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


def _disk_bytes(folder: str) -> int:
    """Return what the files of a folder take on the disk."""
    return 512 * sum(
        os.lstat(os.path.join(place, file)).st_blocks
        for place, _, files in os.walk(folder)
        for file in files
    )


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.0f} MB"
