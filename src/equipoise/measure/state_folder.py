"""The user's state folder: what Equipoise must still know after a campaign was killed.

It is ``$XDG_STATE_HOME/equipoise``, else ``~/.local/state/equipoise`` (XDG Base Directory
Specification 0.8). Nobody but the user can read or write what is in it, so what is written there is
proof that Equipoise wrote it for this user.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "equipoise"
_STATE_OF_HOME = ".local/state"
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class StateFolderUnusable(Exception):
    """The state folder cannot be made or trusted; the text names it and says why."""


@contextmanager
def open_state_folder(name: str) -> Iterator[int]:
    """Open a folder of the state folder, and make it if it is missing; gives its descriptor.

    Neither folder is opened through a symbolic link. The folder has mode 0700.

    Raises
    ------
    StateFolderUnusable
        It cannot be made, or others could change or read what is in it.
    """
    descriptor = _opened(state_home(), name)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def state_home() -> Path:
    """Return the folder in which programs of this user keep their state.

    A folder of another user, as ``sudo`` may leave in ``HOME``, is passed over for the home that
    the account names.

    Raises
    ------
    StateFolderUnusable
        There is no such folder.
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
        raise StateFolderUnusable(f"user {os.geteuid()} has no home folder") from None


def _belongs_to_another(folder: str) -> bool:
    try:
        return os.stat(folder).st_uid != os.geteuid()
    except OSError:
        # Whether it can be made shows when it is made.
        return False


def _opened(home: Path, name: str) -> int:
    path = home
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)
        # Up to here a user may well have put a link.
        descriptor = os.open(home, _OPEN)
        for part, forbidden in ((NAME, _WRITABLE_BY_OTHERS), (name, _OPEN_TO_OTHERS)):
            path = path / part
            descriptor = _below(descriptor, part)
            status = os.fstat(descriptor)
            if status.st_uid != os.geteuid() or status.st_mode & forbidden:
                os.close(descriptor)
                raise StateFolderUnusable(f"{path}: other users could change or read it")
    except OSError as error:
        raise StateFolderUnusable(f"{path}: {error.strerror}") from None
    return descriptor


def _below(around: int, part: str) -> int:
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, 0o700, dir_fd=around)
        return os.open(part, _OPEN | os.O_NOFOLLOW, dir_fd=around)
    finally:
        os.close(around)
