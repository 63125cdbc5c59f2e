"""Remove the files of killed campaigns whose launchers were killed, too.

The folder of a user has a lock file for each campaign (`equipoise.measure.scratch`). Nobody else
can write to this folder. So if a lock file is not locked, its campaign was killed. A file or folder
that may belong to others is left and reported.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from equipoise.files.writing import OPEN_FOLDER, OPEN_UNTRUSTED, opened
from equipoise.measure.abandoned import end_leaf, end_processes_of, leaves_of, processes_working_in
from equipoise.measure.scratch import (
    FOLDER_PREFIX,
    LOCK_SUFFIX,
    LockContent,
    UserFolderUnusable,
    is_identity,
    open_user_folder,
    path_from_latin1,
    remove_campaign_folder,
    user_folder_path,
)

_REMOVE_HINT = "remove it yourself if nothing in it is yours"
_MAX_LOCK_BYTES = 1 << 16
_MAX_NAMED_PROCESSES = 3
_PROBE_FOLDER = re.compile(r"equipoise-probe-[A-Za-z0-9]{6}")
"""Name of a folder of a probe (scratch.rs of the probes); the probe's cleaner removes it."""


class RemovedFolder(Struct, frozen=True):
    """A removed folder: the scratch folder of a killed campaign."""

    folder: str
    killed_processes: int
    """Number of the campaign's processes that were still running and were killed."""

    def describe(self) -> str:
        """Return a sentence for the user."""
        suffix = ""
        if self.killed_processes:
            process_count = "one" if self.killed_processes == 1 else self.killed_processes
            suffix = f"; ended {process_count} of its processes"
        return f"removed the folder of a killed campaign: {self.folder}{suffix}"


class Leftover(Struct, frozen=True):
    """Folder or file that may be a leftover and was not removed."""

    path: str
    reason: str
    hint: str

    def describe(self) -> str:
        """Return a sentence for the user, without its hint."""
        return f"left alone: {self.path}: {self.reason}"


class Clearance(Struct, frozen=True):
    """Outcome of the removal of leftovers."""

    removed_folders: tuple[RemovedFolder, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    """Folders and files that were not removed."""


class _Obstacle(Exception):
    """Reason why a path is not removed: it may belong to others, or removing it fails."""

    def __init__(self, path: Path, reason: str, hint: str = _REMOVE_HINT) -> None:
        super().__init__(reason)
        self.leftover = Leftover(str(path), reason, hint)


def clear_leftovers() -> Clearance:
    """End the processes and remove the folders of this user's campaigns that were killed."""
    removed_folders: list[RemovedFolder] = []
    leftovers: list[Leftover] = []
    default_path = user_folder_path()
    for path in (default_path, *sorted(default_path.parent.glob(f"{default_path.name}-*"))):
        try:
            with open_user_folder(path) as user_folder:
                for name in sorted(os.listdir(user_folder)):
                    try:
                        removed_folders += _remove_leftover(user_folder, path, name)
                    except _Obstacle as obstacle:
                        leftovers.append(obstacle.leftover)
        except UserFolderUnusable as error:
            if path == default_path and os.path.lexists(path):
                leftovers.append(Leftover(error.path, error.reason, error.hint or ""))
    return Clearance(tuple(removed_folders), tuple(leftovers))


def abandoned_probes(parent: Path | None = None) -> tuple[Leftover, ...]:
    """Return the folders of this user's probes (`equipoise os`) whose cleaner was killed.

    ``parent`` is the folder to search; by default the folder for temporary files. Nothing proves
    that a folder with such a name belongs to Equipoise.
    """
    parent = parent or Path(tempfile.gettempdir())
    reason = "it looks like the folder of a probe, but nothing proves it"
    return tuple(
        Leftover(str(folder), reason, _REMOVE_HINT)
        for folder in sorted(parent.glob(f"{FOLDER_PREFIX}probe-*"))
        if _PROBE_FOLDER.fullmatch(folder.name) and _is_abandoned(folder)
    )


def _remove_leftover(user_folder: int, path: Path, name: str) -> list[RemovedFolder]:
    """Remove the folder of a killed campaign; return it in a list, empty if there was nothing.

    ``name`` is the lock file of the campaign, in the folder ``path``. ``user_folder`` is the
    descriptor of this folder. Raise `_Obstacle` if the campaign's folder or the lock file must
    stay.
    """
    identity = name.removesuffix(LOCK_SUFFIX)
    if not is_identity(identity):
        return []
    folder = path / identity
    if identity == name:
        # The lock file is created before the folder of the campaign, and removed after it.
        if not os.path.lexists(path / (name + LOCK_SUFFIX)) and os.path.lexists(folder):
            raise _Obstacle(folder, "it has no lock file")
        return []
    with _free_lock(user_folder, path / name) as content:
        if content is None:
            return []
        leaves = leaves_of(identity, path_from_latin1(content.cgroup)) if content.cgroup else []
        ended_count = sum(map(end_leaf, leaves)) + end_processes_of(folder)
        folder_existed = os.path.lexists(folder)
        if processes := processes_working_in(folder):
            numbers = ", ".join(map(str, processes[:_MAX_NAMED_PROCESSES]))
            raise _Obstacle(
                folder,
                f"process {numbers} works in the folder and was not started by a campaign",
                "end the process, or change its working folder; then run `equipoise doctor` again",
            )
        if not remove_campaign_folder(user_folder, identity):
            raise _Obstacle(folder, "a part of it cannot be removed", "remove the folder yourself")
        if any(leaf.exists() for leaf in leaves):
            reason = f"a process in the cgroup {leaves[0]} does not end"
            raise _Obstacle(folder, reason, "restart the host")
        os.unlink(name, dir_fd=user_folder)
        return [RemovedFolder(str(folder), ended_count)] if folder_existed or ended_count else []


@contextmanager
def _free_lock(user_folder: int, path: Path) -> Iterator[LockContent | None]:
    """Lock a lock file and yield its content; yield ``None`` if the file is locked or removed."""
    try:
        descriptor = os.open(path.name, OPEN_UNTRUSTED, dir_fd=user_folder)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise _Obstacle(path, f"it cannot be a lock file: {error.strerror}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise _Obstacle(path, "it is not a lock file of Equipoise")
        if not _try_lock(descriptor) or not os.fstat(descriptor).st_nlink:
            yield None
        elif encoded := os.pread(descriptor, _MAX_LOCK_BYTES, 0):
            content = _decode_lock(encoded, path)
            # Hosts may share a folder. Each host removes only its own leftovers.
            yield content if content.host == os.uname().nodename else None
        else:
            # The campaign was killed before it wrote to its lock file, and created nothing else.
            os.unlink(path.name, dir_fd=user_folder)
            yield None
    finally:
        os.close(descriptor)


def _decode_lock(encoded: bytes, path: Path) -> LockContent:
    try:
        return msgspec.json.decode(encoded, type=LockContent)
    except (ValueError, msgspec.MsgspecError):
        raise _Obstacle(path, "it is not a lock file of Equipoise") from None


def _is_abandoned(folder: Path) -> bool:
    try:
        with opened(folder, OPEN_FOLDER) as descriptor:
            return os.fstat(descriptor).st_uid == os.geteuid() and _try_lock(descriptor)
    except OSError:
        # The folder has just been removed, or is a link.
        return False


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
