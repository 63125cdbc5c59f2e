"""The private folder of a campaign, and the lock that shows whether the campaign still runs.

Each user has one folder ``equipoise-UID`` in the folder for temporary files. Nobody else can write
to the user's folder. For each campaign, the user's folder has a scratch folder ``IDENTITY`` and a
lock file ``IDENTITY.lock``. The identity is 64 random bits. A campaign creates the lock file first
and removes it last. The lock file is locked (flock(2)) while the campaign runs. If the lock file is
not locked, the campaign was killed, and its folder is a leftover (`equipoise.measure.leftovers`).

If another user has taken the name ``equipoise-UID``, a campaign creates its own folder
``equipoise-UID-XXXXXXXX`` instead.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from equipoise.files.state import WRITABLE_BY_OTHERS
from equipoise.files.writing import OPEN_FOLDER, remove_below
from equipoise.measure.abandoned import leaves_of, own_cgroup
from equipoise.model.errors import UnusableInput

FOLDER_PREFIX = "equipoise-"
LOCK_SUFFIX = ".lock"
_ENTER_ONLY_MODE = 0o711
"""Mode of a folder that others may enter but not list."""
_IDENTITY_BYTES = 8
_IDENTITY_PATTERN = re.compile(f"[0-9a-f]{{{2 * _IDENTITY_BYTES}}}")
_NEW_FILE_FLAGS = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class LockContent(Struct, frozen=True):
    """Content of a lock file: where the processes of the campaign are."""

    host: str
    """Name of the host: several hosts may share the folder for temporary files."""
    cgroup: str | None
    """Folder of the cgroup in which the campaign's launchers create their cgroups."""


class UserFolderUnusable(UnusableInput):
    """The user's folder for campaigns cannot be created or trusted."""

    def __init__(self, path: Path, reason: str | None) -> None:
        super().__init__(
            f"the private folder {path} cannot be used: {reason}",
            hint="set TMPDIR to a folder that only you can write to",
        )
        self.path, self.reason = str(path), str(reason)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Create the scratch folder of a campaign, and remove it at the end of the block."""
    identity = secrets.token_hex(_IDENTITY_BYTES)
    cgroup = own_cgroup()
    with contextlib.ExitStack() as stack:
        user_folder, path = _new_lock(identity, cgroup, stack)
        try:
            os.mkdir(identity, 0o700, dir_fd=user_folder)
            yield path / identity
        finally:
            is_removed = remove_campaign_folder(user_folder, identity)
            if is_removed and not (cgroup is not None and leaves_of(identity, cgroup)):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(identity + LOCK_SUFFIX, dir_fd=user_folder)


def let_others_enter(scratch: Path) -> None:
    """Let other users who know the name of a scratch folder enter the folder."""
    os.chmod(scratch, _ENTER_ONLY_MODE)
    if is_identity(scratch.name):
        os.chmod(scratch.parent, _ENTER_ONLY_MODE)


def identity_of(folder: Path | None) -> str:
    """Return the identity of the campaign with this scratch folder, or a new identity.

    An identity has 16 hexadecimal digits. It is a part of the names of the campaign's cgroups.
    """
    if folder is not None and is_identity(folder.name):
        return folder.name
    return secrets.token_hex(_IDENTITY_BYTES)


def is_identity(text: str) -> bool:
    """Return whether a text can be the identity of a campaign."""
    return _IDENTITY_PATTERN.fullmatch(text) is not None


def user_folder_path() -> Path:
    """Return the path of this user's folder for campaigns, which may be missing."""
    return Path(os.path.abspath(tempfile.gettempdir()), f"{FOLDER_PREFIX}{os.geteuid()}")


@contextmanager
def open_user_folder(path: Path) -> Iterator[int]:
    """Open this user's folder for campaigns, and yield its descriptor; remove an empty folder.

    Raise `UserFolderUnusable` if the folder is missing or a link, or other users could change it.
    """
    try:
        descriptor = os.open(path, OPEN_FOLDER)
    except OSError as error:
        raise UserFolderUnusable(path, error.strerror) from None
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & WRITABLE_BY_OTHERS:
            raise UserFolderUnusable(path, "other users own it or can write to it")
        try:
            yield descriptor
        finally:
            with contextlib.suppress(OSError):
                os.rmdir(path)
    finally:
        os.close(descriptor)


def remove_campaign_folder(user_folder: int, identity: str) -> bool:
    """Remove a campaign's folder, without following links; return whether the folder is gone."""
    with contextlib.suppress(OSError):
        remove_below(user_folder, identity)
    try:
        os.lstat(identity, dir_fd=user_folder)
    except FileNotFoundError:
        return True
    return False


def _new_lock(identity: str, cgroup: Path | None, stack: contextlib.ExitStack) -> tuple[int, Path]:
    """Create and lock the lock file of a campaign; return the open user folder and its path.

    ``stack`` closes the lock file and the user folder. If another campaign meanwhile removes the
    empty user folder or the unlocked file, the function tries again.
    """
    content = LockContent(
        host=os.uname().nodename, cgroup=None if cgroup is None else as_latin1(cgroup)
    )
    while True:
        with contextlib.ExitStack() as opened_files:
            path = user_folder_path()
            try:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(path, 0o700)
                user_folder = opened_files.enter_context(open_user_folder(path))
            except UserFolderUnusable:
                path = Path(tempfile.mkdtemp(prefix=f"{path.name}-", dir=path.parent))
                user_folder = opened_files.enter_context(open_user_folder(path))
            try:
                lock = os.open(identity + LOCK_SUFFIX, _NEW_FILE_FLAGS, 0o600, dir_fd=user_folder)
            except FileNotFoundError:
                continue
            opened_files.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.fstat(lock).st_nlink:
                continue
            try:
                os.write(lock, msgspec.json.encode(content))
            except OSError:
                os.unlink(identity + LOCK_SUFFIX, dir_fd=user_folder)
                raise
            stack.enter_context(opened_files.pop_all())
            return user_folder, path


def as_latin1(path: str | Path) -> str:
    """Return the bytes of a path as text: each byte is one character, U+0000 to U+00FF."""
    return os.fsencode(path).decode("latin-1")


def path_from_latin1(text: str) -> Path:
    """Return the path whose bytes `as_latin1` returned as text."""
    return Path(os.fsdecode(text.encode("latin-1")))
