"""The state folder: data that Equipoise keeps for a user between commands.

The folder is ``$XDG_STATE_HOME/equipoise``, else ``~/.local/state/equipoise`` (XDG Base Directory
Specification 0.8). Only the user can write to it, and only the user can read the folders in it.

The folder has a random identity of this host. Several machines may share a home folder, so each
machine has its own file for its identity. The name of this file is a digest of ``/etc/machine-id``,
because the id itself must stay secret (machine-id(5)). Without an id, it is a digest of the
machine's name.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from equipoise.files.writing import OPEN_UNTRUSTED, opened
from equipoise.model.errors import UnusableInput
from equipoise.model.host import HostReference
from equipoise.shared.safe_text import MAX_NAME_LETTERS, as_unicode

STATE_NAME = "equipoise"
"""Name of the state folder."""
_DEFAULT_STATE_HOME = ".local/state"
"""Folder below the user's home, used without ``XDG_STATE_HOME``."""
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
"""Mode bits with which other users may write."""
OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""Mode bits with which other users may read, write or enter."""
HOST_VARIABLE = "EQUIPOISE_HOST"
"""Environment variable with the name of this host, which ``--host`` overrides."""
DEFAULT_LEDGER = Path(".equipoise/ledger.db")
LEDGER_VARIABLE = "EQUIPOISE_LEDGER"
"""Environment variable with the path of the ledger."""
HOSTS_FOLDER = "hosts"
"""Folder in the state folder, with the identities of hosts."""
_MACHINE_ID = Path("/etc/machine-id")
_IDENTITY_BYTES = 16
_IDENTITY_PATTERN = re.compile(f"[0-9a-f]{{{2 * _IDENTITY_BYTES}}}")


def default_ledger() -> Path:
    """Return the path in ``EQUIPOISE_LEDGER``, else the ledger's path in the current folder."""
    return Path(os.environ.get(LEDGER_VARIABLE) or DEFAULT_LEDGER)


class StateFolderUnusable(Exception):
    """Error: the state folder cannot be created or trusted."""

    def __init__(self, path: str | Path, reason: str | None) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = str(path), str(reason)


@contextmanager
def open_state(name: str) -> Iterator[int]:
    """Open a folder in the state folder, created if missing; yield its descriptor.

    The mode of the folder is 0700. Neither this folder nor the state folder may be a symbolic link.
    Raise `StateFolderUnusable` if the folder cannot be created, or if others could change or read
    its content.
    """
    path = _state_home()
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        # The state home itself may be a link.
        folder = os.open(path, _FOLDER_FLAGS)
        for subfolder, forbidden_mode in ((STATE_NAME, WRITABLE_BY_OTHERS), (name, OPEN_TO_OTHERS)):
            path = path / subfolder
            folder = _open_subfolder(folder, subfolder)
            status = os.fstat(folder)
            if status.st_uid != os.geteuid() or status.st_mode & forbidden_mode:
                os.close(folder)
                raise StateFolderUnusable(path, "other users could change or read it")
    except OSError as error:
        raise StateFolderUnusable(path, error.strerror) from None
    try:
        yield folder
    finally:
        os.close(folder)


def private_folder(name: str) -> Path:
    """Return the path of a folder in the state folder, created if missing.

    The folder belongs to this user, so no other user can add, read or replace files there. Raise
    `UnusableInput` if the folder cannot be created or trusted.
    """
    try:
        with open_state(name) as folder:
            return Path(os.readlink(f"/proc/self/fd/{folder}"))
    except StateFolderUnusable as error:
        raise UnusableInput(
            f"the private folder {error.path} cannot be used: {error.reason}",
            hint="set XDG_STATE_HOME to a folder of your own that others cannot write",
        ) from error


def _state_home() -> Path:
    """Return the folder in which programs of this user keep their state.

    With ``sudo``, ``HOME`` may be another user's folder. Then the account's home folder is used.
    """
    state_home = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(state_home) and not _belongs_to_another_user(state_home):
        return Path(state_home)
    home = os.environ.get("HOME", "")
    if os.path.isabs(home) and os.path.isdir(home) and not _belongs_to_another_user(home):
        return Path(home, _DEFAULT_STATE_HOME)
    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir, _DEFAULT_STATE_HOME)
    except KeyError:
        reason = f"user {os.geteuid()} has no home folder"
        raise StateFolderUnusable("the state folder", reason) from None


def _belongs_to_another_user(folder: str) -> bool:
    try:
        return os.stat(folder).st_uid != os.geteuid()
    except OSError:
        # A missing folder belongs to nobody; creating it may fail later.
        return False


def _open_subfolder(parent: int, name: str) -> int:
    """Open a folder in the open folder ``parent``, created if missing; close ``parent``."""
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent)
        return os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=parent)
    finally:
        os.close(parent)


def this_host(name: str | None = None) -> HostReference | None:
    """Return this host; ``None`` if the state folder cannot keep its identity.

    ``name`` is the user's name for the host; by default the value of ``EQUIPOISE_HOST``, else the
    machine's name.
    """
    try:
        identity = _read_or_create_identity()
    except (OSError, StateFolderUnusable):
        return None
    return HostReference(identity, as_unicode(name or host_name())[:MAX_NAME_LETTERS])


def host_name() -> str:
    """Return the name of this host: the value of ``EQUIPOISE_HOST``, else the machine's name."""
    return os.environ.get(HOST_VARIABLE) or os.uname().nodename


def _read_or_create_identity() -> str:
    """Return the stored identity of this host; create and store it if it is missing.

    Raise `OSError` or `StateFolderUnusable` if it cannot be stored, or the stored text is invalid.
    """
    name = _identity_file_name()
    with open_state(HOSTS_FOLDER) as folder:
        with contextlib.suppress(FileNotFoundError):
            return _read_identity(folder, name)
        temporary_name = f".{secrets.token_hex(8)}"
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        with opened(temporary_name, flags, folder) as file:
            os.write(file, new_identity().encode("ascii"))
            os.fsync(file)
        try:
            # A link appears with its complete content, and never replaces another file.
            with contextlib.suppress(FileExistsError):
                os.link(temporary_name, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.unlink(temporary_name, dir_fd=folder)
        return _read_identity(folder, name)


def _identity_file_name() -> str:
    try:
        machine_id = _MACHINE_ID.read_bytes().strip()
    except OSError:
        machine_id = b""
    machine = machine_id or os.fsencode(os.uname().nodename)
    return hashlib.blake2b(machine, digest_size=8, key=b"equipoise host").hexdigest()


def _read_identity(folder: int, name: str) -> str:
    with opened(name, OPEN_UNTRUSTED, folder) as file:
        status = os.fstat(file)
        identity = stored_identity(file)
    is_private = stat.S_ISREG(status.st_mode) and not status.st_mode & OPEN_TO_OTHERS
    if identity is None or not is_private:
        raise StateFolderUnusable(name, "it does not contain an identity of this host")
    return identity


def new_identity() -> str:
    """Return a random identity: 32 hexadecimal digits."""
    return secrets.token_hex(_IDENTITY_BYTES)


def is_identity(text: str) -> bool:
    """Return whether a text may be an identity: 32 hexadecimal digits."""
    return _IDENTITY_PATTERN.fullmatch(text) is not None


def stored_identity(file: int) -> str | None:
    """Return the identity in an open file; ``None`` if it contains anything else."""
    text = os.pread(file, 2 * _IDENTITY_BYTES + 1, 0).decode("ascii", "replace")
    return text if is_identity(text) else None
