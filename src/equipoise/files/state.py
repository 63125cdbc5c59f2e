"""The state folder: what Equipoise keeps for a user from one command to the next.

It is ``$XDG_STATE_HOME/equipoise``, else ``~/.local/state/equipoise`` (XDG Base Directory
Specification 0.8). Only the user can write it, and only the user can read the folders in it.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STATE_NAME = "equipoise"
_STATE_OF_HOME = ".local/state"
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class StateFolderUnusable(Exception):
    """The state folder cannot be made or trusted."""

    def __init__(self, path: str | Path, reason: str | None) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = str(path), str(reason)


@contextmanager
def open_state(name: str) -> Iterator[int]:
    """Open a folder in the state folder and make it if it is missing; yield its descriptor.

    Neither it nor the state folder is opened through a symbolic link. Its mode is 0700. Raise
    `StateFolderUnusable` if it cannot be made, or others could change or read what is in it.
    """
    path = _state_home()
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        # The state home itself may well be a link.
        folder = os.open(path, _OPEN)
        for part, forbidden in ((STATE_NAME, WRITABLE_BY_OTHERS), (name, OPEN_TO_OTHERS)):
            path = path / part
            folder = _below(folder, part)
            status = os.fstat(folder)
            if status.st_uid != os.geteuid() or status.st_mode & forbidden:
                os.close(folder)
                raise StateFolderUnusable(path, "other users could change or read it")
    except OSError as error:
        raise StateFolderUnusable(path, error.strerror) from None
    try:
        yield folder
    finally:
        os.close(folder)


def _state_home() -> Path:
    """Return the folder in which programs of this user keep their state.

    A folder of another user, as ``sudo`` may leave in ``HOME``, is passed over for the home that
    the account names.
    """
    named = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(named) and not _belongs_to_another(named):
        return Path(named)
    home = os.environ.get("HOME", "")
    if os.path.isabs(home) and os.path.isdir(home) and not _belongs_to_another(home):
        return Path(home, _STATE_OF_HOME)
    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir, _STATE_OF_HOME)
    except KeyError:
        reason = f"user {os.geteuid()} has no home folder"
        raise StateFolderUnusable("the state folder", reason) from None


def _belongs_to_another(folder: str) -> bool:
    try:
        return os.stat(folder).st_uid != os.geteuid()
    except OSError:
        # A missing folder belongs to nobody; making it may fail later.
        return False


def _below(around: int, part: str) -> int:
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, 0o700, dir_fd=around)
        return os.open(part, _OPEN | os.O_NOFOLLOW, dir_fd=around)
    finally:
        os.close(around)
