"""Data that every life of a server begins with: made once in a segment, then copied."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec.structs import replace

from equipoise.measure.launcher import Launcher, User
from equipoise.measure.servers.commands import FULL_DISK_HINT, Commands, ServerCommand
from equipoise.measure.servers.life import Life
from equipoise.measure.servers.place import Place
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Process, Server

COPY = ("cp", "-a", "--reflink=auto")
_COPYING_S = 600.0


class InitialData:
    """Data of servers, made once for all conditions that begin with the same.

    Parameters
    ----------
    launcher
        Function that makes the launcher of a server that is filled.
    commands
        Runner of commands.
    new_place
        Function that makes an empty place for the server of a condition and its user.
    """

    def __init__(
        self,
        launcher: Callable[[], Launcher],
        commands: Commands,
        new_place: Callable[[str, User | None], Place],
    ) -> None:
        self._make_launcher = launcher
        self._commands = commands
        self._new_place = new_place
        self._made: dict[tuple[object, ...], tuple[str, int]] = {}
        """Folder with the data and bytes that a copy needs, by what makes the data."""

    def forget(self) -> None:
        """Make all data anew when they are needed again, because their folders are gone."""
        self._made.clear()

    def copy_into(
        self, folder: str, name: str, server: Server, base: Mapping[str, str], user: User | None
    ) -> None:
        """Fill a new folder with what the server's life begins with.

        Raises
        ------
        ConditionFailed
            The data could not be made, or there is no room for a copy.
        """
        if server.install is None and server.fill is None:
            return
        key = (server.install, server.fill, server.start, server.search_path)
        if key not in self._made:
            self._made[key] = self._make(name, server, base, user)
        data_folder, size_bytes = self._made[key]
        room_bytes = shutil.disk_usage(folder).free
        if room_bytes < size_bytes:
            raise ConditionFailed(
                f"the data of the server of {name} take {_megabytes(size_bytes)}, and "
                f"only {_megabytes(room_bytes)} are free in {Path(folder).parent}",
                hint=FULL_DISK_HINT,
            )
        source = os.path.join(data_folder, ".")
        words = (shutil.which(COPY[0]) or COPY[0], *COPY[1:], source, folder)
        # As the server's own user: root would write through a link in that user's folder.
        self._commands.run(ServerCommand("copy", name, words, dict(base), "/", _COPYING_S, user))

    def _make(
        self, name: str, server: Server, base: Mapping[str, str], user: User | None
    ) -> tuple[str, int]:
        place = self._new_place(name, user)
        # The levels of a study change the server that is measured, not its data.
        plain = replace(server, environment={}, process=Process(), prepare=None)
        life = Life(name, plain, place, base, self._commands, user)
        if server.install is not None:
            self._commands.run(life.command("install", server.install, base))
        if server.fill is not None:
            with self._make_launcher() as launcher:
                life.start(launcher, _COPYING_S)
                self._commands.run(life.command("fill", server.fill, base))
                life.stop(launcher)
        return place.folder, _disk_bytes(place.folder)


def _disk_bytes(folder: str) -> int:
    """Return what the files of a folder take on the disk."""
    return 512 * sum(
        os.lstat(os.path.join(place, file)).st_blocks
        for place, _, files in os.walk(folder)
        for file in files
    )


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.0f} MB"
