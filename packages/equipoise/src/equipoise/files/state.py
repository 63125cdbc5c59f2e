"""The state folder: data that Equipoise keeps for a user between commands.

It is ``$XDG_STATE_HOME/equipoise``, else ``~/.local/state/equipoise`` (XDG Base Directory
Specification 0.8). Only the user can write to it, and only the user can read the folders in it.

It has a random identity of this host, in a file for each machine, because several machines may
share a home folder. Machines are distinguished by a digest of ``/etc/machine-id`` (machine-id(5)
asks to keep the id itself secret), or by their name without such a file.

The ledger is elsewhere: by default under the current folder.
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
_STATE_OF_HOME = ".local/state"
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO
HOST_VARIABLE = "EQUIPOISE_HOST"
"""Variable with the name of this host, if ``--host`` is not given."""
DEFAULT_LEDGER = Path(".equipoise/ledger.db")
LEDGER_VARIABLE = "EQUIPOISE_LEDGER"
HOSTS = "hosts"
"""Folder of the identities of hosts, in the state folder."""
_MACHINE_ID = Path("/etc/machine-id")
_IDENTITY_BYTES = 16
_IDENTITY = re.compile(f"[0-9a-f]{{{2 * _IDENTITY_BYTES}}}")


def default_ledger() -> Path:
    """Return the ledger in ``EQUIPOISE_LEDGER``, or the ledger in the current folder."""
    return Path(os.environ.get(LEDGER_VARIABLE) or DEFAULT_LEDGER)


class StateFolderUnusable(Exception):
    """The state folder cannot be created or trusted."""

    def __init__(self, path: str | Path, reason: str | None) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = str(path), str(reason)


@contextmanager
def open_state(name: str) -> Iterator[int]:
    """Open a folder in the state folder, created if missing; yield its descriptor.

    Neither it nor the state folder is opened through a symbolic link. Its mode is 0700. Raise
    `StateFolderUnusable` if it cannot be created, or others could change or read its content.
    """
    path = _state_home()
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        # The state home itself may be a link.
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


def private_folder(name: str) -> Path:
    """Return the path of a folder in the state folder, created if missing.

    No other user can add or read files there, or replace the folder: its owner is this user, its
    mode 0700, and neither it nor the state folder is a symbolic link.

    Raise `UnusableInput` if the folder cannot be created or trusted.
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

    Instead of a folder of another user, which ``sudo`` may leave in ``HOME``, the home of the
    account is used.
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
        # A missing folder belongs to nobody; creating it may fail later.
        return False


def _below(around: int, part: str) -> int:
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, 0o700, dir_fd=around)
        return os.open(part, _OPEN | os.O_NOFOLLOW, dir_fd=around)
    finally:
        os.close(around)


def this_host(name: str | None = None) -> HostReference | None:
    """Return this host; ``None`` if the state folder cannot keep its identity.

    ``name`` is the user's name for it; by default the value of ``EQUIPOISE_HOST``, else the
    machine's name.
    """
    try:
        identity = _identity()
    except (OSError, StateFolderUnusable):
        return None
    return HostReference(identity, as_unicode(name or host_name())[:MAX_NAME_LETTERS])


def host_name() -> str:
    """Return the name of this host: the value of ``EQUIPOISE_HOST``, else the machine's name."""
    return os.environ.get(HOST_VARIABLE) or os.uname().nodename


def _identity() -> str:
    """Return the stored identity; the first process that calls this stores it.

    Raise `OSError` or `StateFolderUnusable` if it cannot be stored, or the stored text is invalid.
    """
    own = _file_of_this_machine()
    with open_state(HOSTS) as folder:
        with contextlib.suppress(FileNotFoundError):
            return _read(folder, own)
        new = f".{secrets.token_hex(8)}"
        with opened(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, folder) as file:
            os.write(file, new_identity().encode("ascii"))
            os.fsync(file)
        try:
            # The name appears with the whole content, and never replaces another file.
            with contextlib.suppress(FileExistsError):
                os.link(new, own, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.unlink(new, dir_fd=folder)
        return _read(folder, own)


def _file_of_this_machine() -> str:
    try:
        machine = _MACHINE_ID.read_bytes().strip()
    except OSError:
        machine = b""
    known = machine or os.fsencode(os.uname().nodename)
    return hashlib.blake2b(known, digest_size=8, key=b"equipoise host").hexdigest()


def _read(folder: int, name: str) -> str:
    with opened(name, OPEN_UNTRUSTED, folder) as file:
        status = os.fstat(file)
        identity = stored_identity(file)
    private = stat.S_ISREG(status.st_mode) and not status.st_mode & OPEN_TO_OTHERS
    if identity is None or not private:
        raise StateFolderUnusable(name, "it does not contain an identity of this host")
    return identity


def new_identity() -> str:
    """Draw a unique identity: 32 hexadecimal digits."""
    return secrets.token_hex(_IDENTITY_BYTES)


def is_identity(text: str) -> bool:
    """Return whether a text has the form of an identity."""
    return _IDENTITY.fullmatch(text) is not None


def stored_identity(file: int) -> str | None:
    """Return the identity in an open file; ``None`` if it contains anything else."""
    text = os.pread(file, 2 * _IDENTITY_BYTES + 1, 0).decode("ascii", "replace")
    return text if is_identity(text) else None
