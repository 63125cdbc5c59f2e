"""Clearing away what killed campaigns left, if their launchers were killed as well.

The folder of a user has a lock file for each campaign (`equipoise.measure.scratch`). Nobody else
can write there, so a lock file that is not locked proves that its campaign was killed. Anything
doubtful is left and reported.
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
    LOCK_SUFFIX,
    PREFIX,
    LockContent,
    UserFolderUnusable,
    from_text,
    is_identity,
    open_user_folder,
    remove_campaign_folder,
    user_folder_path,
)

_REMOVE = "remove it yourself if nothing in it is yours"
_MAX_BYTES = 1 << 16
_NAME_OF_PROBE = re.compile(r"equipoise-probe-[A-Za-z0-9]{6}")
"""Name of a probe's folder, which its cleaner removes (scratch.rs in the crate of the probes)."""


class Cleared(Struct, frozen=True):
    """Scratch folder of a killed campaign that was removed."""

    folder: str
    processes: int
    """Number of its processes that were still running and were killed."""

    def describe(self) -> str:
        """Return a sentence for the user."""
        ended = ""
        if self.processes:
            count = "one" if self.processes == 1 else self.processes
            ended = f" and ended {count} of its processes"
        return f"removed the folder of a killed campaign: {self.folder}{ended}"


class Leftover(Struct, frozen=True):
    """Folder or file that may be a leftover and was left alone."""

    path: str
    reason: str
    hint: str

    def describe(self) -> str:
        """Return a sentence for the user, without its hint."""
        return f"left alone: {self.path}: {self.reason}"


class Clearance(Struct, frozen=True):
    """Outcome of clearing away leftovers."""

    cleared: tuple[Cleared, ...] = ()
    leftovers: tuple[Leftover, ...] = ()


class _Doubt(Exception):
    """A file may not be from Equipoise, or a folder is still in use."""

    def __init__(self, path: Path, reason: str, hint: str = _REMOVE) -> None:
        super().__init__(reason)
        self.leftover = Leftover(str(path), reason, hint)


def clear_leftovers() -> Clearance:
    """End and remove what killed campaigns of this user left, if that is proven."""
    cleared: list[Cleared] = []
    leftovers: list[Leftover] = []
    usual = user_folder_path()
    for path in (usual, *sorted(usual.parent.glob(f"{usual.name}-*"))):
        try:
            with open_user_folder(path) as user_folder:
                for name in sorted(os.listdir(user_folder)):
                    try:
                        cleared += _clear(user_folder, path, name)
                    except _Doubt as doubt:
                        leftovers.append(doubt.leftover)
        except UserFolderUnusable as error:
            if path == usual and os.path.lexists(path):
                leftovers.append(Leftover(error.path, error.reason, error.hint or ""))
    return Clearance(tuple(cleared), tuple(leftovers))


def abandoned_probes(around: Path | None = None) -> tuple[Leftover, ...]:
    """Return the folders of probes of this user whose cleaner was killed.

    They are in ``around``, by default the folder for temporary files. No lock file proves that a
    folder with such a name belongs to Equipoise.
    """
    around = around or Path(tempfile.gettempdir())
    return tuple(
        Leftover(str(folder), "it looks like the folder of a probe, but nothing proves it", _REMOVE)
        for folder in sorted(around.glob(f"{PREFIX}probe-*"))
        if _NAME_OF_PROBE.fullmatch(folder.name) and _is_abandoned(folder)
    )


def _clear(user_folder: int, path: Path, name: str) -> list[Cleared]:
    identity = name.removesuffix(LOCK_SUFFIX)
    if not is_identity(identity):
        return []
    folder = path / identity
    if identity == name:
        # Its lock file is created before the folder and removed after it.
        if not os.path.lexists(path / (name + LOCK_SUFFIX)) and os.path.lexists(folder):
            raise _Doubt(folder, "it has no lock file")
        return []
    with _free_lock(user_folder, path / name) as content:
        if content is None:
            return []
        leaves = leaves_of(identity, from_text(content.cgroup)) if content.cgroup else []
        ended = sum(map(end_leaf, leaves)) + end_processes_of(folder)
        existed = os.path.lexists(folder)
        if working := processes_working_in(folder):
            names = ", ".join(map(str, working[:3]))
            raise _Doubt(
                folder,
                f"process {names} works in it and was not started by a campaign",
                "leave the folder there, or end the process; then run `equipoise doctor` again",
            )
        if not remove_campaign_folder(user_folder, identity):
            raise _Doubt(folder, "not all of it can be removed", "remove it yourself")
        if any(leaf.exists() for leaf in leaves):
            raise _Doubt(folder, f"a process in {leaves[0]} does not die", "restart the host")
        os.unlink(name, dir_fd=user_folder)
        return [Cleared(str(folder), ended)] if existed or ended else []


@contextmanager
def _free_lock(user_folder: int, path: Path) -> Iterator[LockContent | None]:
    """Yield the content of a lock file, locked; ``None`` if a campaign uses it or it is gone."""
    try:
        descriptor = os.open(path.name, OPEN_UNTRUSTED, dir_fd=user_folder)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise _Doubt(path, f"it cannot be a lock file: {error.strerror}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise _Doubt(path, "it is not a lock file of Equipoise")
        if not _locks(descriptor) or not os.fstat(descriptor).st_nlink:
            yield None
        elif text := os.pread(descriptor, _MAX_BYTES, 0):
            content = _decode(text, path)
            # Hosts may share a folder; each clears away its own leftovers.
            yield content if content.host == os.uname().nodename else None
        else:
            # Its campaign was killed before it wrote a byte, and had created nothing else.
            os.unlink(path.name, dir_fd=user_folder)
            yield None
    finally:
        os.close(descriptor)


def _decode(text: bytes, path: Path) -> LockContent:
    try:
        return msgspec.json.decode(text, type=LockContent)
    except (ValueError, msgspec.MsgspecError):
        raise _Doubt(path, "it is not a lock file of Equipoise") from None


def _is_abandoned(folder: Path) -> bool:
    """Return whether a folder belongs to this user and is not locked."""
    try:
        with opened(folder, OPEN_FOLDER) as descriptor:
            return os.fstat(descriptor).st_uid == os.geteuid() and _locks(descriptor)
    except OSError:
        # It has just been removed, or is a link.
        return False


def _locks(descriptor: int) -> bool:
    """Lock an open file; return whether nobody else has it locked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
