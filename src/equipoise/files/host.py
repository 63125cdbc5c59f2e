"""The host that runs this: an identity that it drew by chance once, and its name.

The identity lies in the state folder, in a file for each machine: a home folder that several
machines share holds one for each. Machines are told apart by a digest of ``/etc/machine-id``
(machine-id(5) asks that the id itself is kept), and by their name where they have no such file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from pathlib import Path

from equipoise.files.reading import OPEN_UNTRUSTED, opened
from equipoise.files.state import OPEN_TO_OTHERS, StateFolderUnusable, open_state
from equipoise.model.fleet import HostReference
from equipoise.model.safe_text import as_unicode

HOST_VARIABLE = "EQUIPOISE_HOST"
"""Names this host, where ``--host`` does not."""
HOSTS = "hosts"
"""Folder of the identities, in the state folder."""
_IDENTITY_BYTES = 16
_DIGITS = frozenset("0123456789abcdef")
_MACHINE_ID = Path("/etc/machine-id")
_MOST_LETTERS = 200


def this_host(name: str | None = None) -> HostReference | None:
    """Return this host; ``None`` where the state folder cannot keep its identity.

    Parameters
    ----------
    name
        What its user calls it; by default what ``EQUIPOISE_HOST`` says, else the machine's name.
    """
    try:
        identity = _identity()
    except (OSError, StateFolderUnusable):
        return None
    return HostReference(identity, as_unicode(name or host_name())[:_MOST_LETTERS])


def host_name() -> str:
    """Return the name of this host: what ``EQUIPOISE_HOST`` says, else the machine's name."""
    return os.environ.get(HOST_VARIABLE) or os.uname().nodename


def _identity() -> str:
    """Return the stored identity; the first of several processes that ask stores it.

    Raises
    ------
    OSError, StateFolderUnusable
        It cannot be stored, or what is stored is none.
    """
    own = _file_of_this_machine()
    with open_state(HOSTS) as folder:
        with contextlib.suppress(FileNotFoundError):
            return _read(folder, own)
        new = f".{secrets.token_hex(8)}"
        with opened(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, folder) as file:
            os.write(file, secrets.token_hex(_IDENTITY_BYTES).encode("ascii"))
            os.fsync(file)
        try:
            # The name appears with the whole content, and never in the place of another one.
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
        text = os.pread(file, 2 * _IDENTITY_BYTES + 1, 0).decode("ascii", "replace")
    private = stat.S_ISREG(status.st_mode) and not status.st_mode & OPEN_TO_OTHERS
    if not private or len(text) != 2 * _IDENTITY_BYTES or not set(text) <= _DIGITS:
        raise StateFolderUnusable(name, "it holds no identity of this host")
    return text
