"""The private folder of a campaign, and its record in the user's state folder.

Each scratch folder has a random identity of 128 bits. A marker inside the folder holds it, and a
record in the user's state folder (`equipoise.files.state`), together with the folder's path, device
and inode. A folder is removed for another campaign only if all of these agree
(`equipoise.measure.leftovers`). The record and the marker are locked (flock(2)) while the campaign
runs. The record is written before the folder is made and removed after it: a campaign that is
killed at any moment leaves no folder without a record.

Only the user can read or write the records, so that one proves that Equipoise wrote it for this
user.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import stat
import string
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from equipoise.files.reading import OPEN_FOLDER, OPEN_UNTRUSTED, opened
from equipoise.files.state import (
    OPEN_TO_OTHERS,
    StateFolderUnusable,
    is_identity,
    new_identity,
    open_state,
    stored_identity,
)
from equipoise.files.writing import remove_below
from equipoise.measure.abandoned import leaves_of, own_cgroup

PREFIX = "equipoise-"
MARKER = ".equipoise-scratch"
"""File in a scratch folder that holds its identity (also crates/launcher/src/main.rs)."""
RECORDS = "scratch"
"""Folder of the records, in the state folder."""
_MOST_BYTES = 1 << 16
_LETTERS = string.ascii_lowercase + string.digits
_NAME_LETTERS = 10
_NAME = re.compile(f"{PREFIX}[{_LETTERS}]{{{_NAME_LETTERS}}}")
_NEW_FILE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class Record(Struct, frozen=True):
    """Record of one campaign's scratch folder, as the state folder keeps it."""

    identity: str
    path: str
    host: str
    cgroup: str | None
    """Folder of the cgroup in which the campaign's launchers make theirs."""
    created: float
    """Seconds since the epoch."""
    device: int | None = None
    """Device of the folder; ``None`` if the campaign was killed before the folder was made."""
    inode: int | None = None


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a new folder for the time of the block, and remove it at the end.

    Where the state folder cannot be used, the folder has no record: nothing removes it if this
    process and its launchers are killed.
    """
    identity = new_identity()
    name = "".join(secrets.choice(_LETTERS) for _ in range(_NAME_LETTERS))
    path = Path(os.path.abspath(tempfile.gettempdir()), PREFIX + name)
    with _recorded(identity, path) as record:
        os.mkdir(path, 0o700)
        with opened(path, OPEN_FOLDER) as folder, contextlib.ExitStack() as stack:
            stack.callback(remove_folder, folder, path)
            marker = stack.enter_context(opened(MARKER, _NEW_FILE, folder))
            fcntl.flock(marker, fcntl.LOCK_EX)
            os.write(marker, identity.encode("ascii"))
            status = os.fstat(folder)
            _append(record, {"device": status.st_dev, "inode": status.st_ino})
            yield path


def identity_in(folder: Path) -> str | None:
    """Return the identity in the marker of a scratch folder; ``None`` if there is none."""
    try:
        with opened(folder / MARKER, OPEN_UNTRUSTED) as marker:
            return read_identity(marker)
    except OSError:
        return None


def read_identity(marker: int) -> str | None:
    """Return what an open marker holds; ``None`` if it is no marker of this user."""
    status = os.fstat(marker)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        return None
    return stored_identity(marker)


def _record_name(identity: str) -> str:
    return f"{identity}.json"


def read_record(descriptor: int, name: str) -> Record | None:
    """Read an open record file of this name; ``None`` if it is no record.

    Its first line is written before the folder is made, its second when the folder is there.
    """
    status = os.fstat(descriptor)
    private = not status.st_mode & OPEN_TO_OTHERS
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or not private:
        return None
    try:
        content: dict[str, object] = {}
        for line in os.pread(descriptor, _MOST_BYTES, 0).splitlines():
            content.update(msgspec.json.decode(line, type=dict[str, object]))
        record = msgspec.convert(content, Record)
        own_path = os.path.isabs(record.path) and _NAME.fullmatch(os.path.basename(record.path))
        if own_path and is_identity(record.identity) and name == _record_name(record.identity):
            cgroup = None if record.cgroup is None else _from_bytes(record.cgroup)
            return replace(record, path=_from_bytes(record.path), cgroup=cgroup)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        # Equipoise never writes such a record.
        return None
    return None


def remove_folder(folder: int, path: Path) -> bool:
    """Remove an open scratch folder with all that is in it; return whether it is gone.

    No symbolic link is followed. The marker goes last: if this process is killed half way, the rest
    still is known to be Equipoise's own.
    """
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if name != MARKER:
                with contextlib.suppress(OSError):
                    remove_below(folder, name)
        if not set(os.listdir(folder)) - {MARKER}:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(MARKER, dir_fd=folder)
            os.rmdir(path)
    return not os.path.lexists(path)


@contextmanager
def _recorded(identity: str, path: Path) -> Iterator[int | None]:
    """Write a record that is locked while the block runs and goes with the folder."""
    cgroup = own_cgroup()
    with contextlib.ExitStack() as stack:
        record: int | None = None
        # Every campaign calls `clear_leftovers` first, which reports why a record is impossible.
        with contextlib.suppress(OSError, StateFolderUnusable):
            records = stack.enter_context(open_state(RECORDS))
            record = _new_record(records, _record_name(identity))
        if record is None:
            yield None
            return
        stack.callback(os.close, record)
        intention = {
            "identity": identity,
            "path": as_text(path),
            "host": os.uname().nodename,
            "cgroup": None if cgroup is None else as_text(cgroup),
            "created": time.time(),
        }
        _append(record, intention)
        try:
            yield record
        finally:
            leaves = cgroup is not None and leaves_of(identity, cgroup)
            if not leaves and not os.path.lexists(path):
                with contextlib.suppress(OSError):
                    os.unlink(_record_name(identity), dir_fd=records)


def _new_record(records: int, name: str) -> int:
    """Make and lock the file of a record; another campaign may remove it before it is locked."""
    while True:
        record = os.open(name, _NEW_FILE, 0o600, dir_fd=records)
        try:
            fcntl.flock(record, fcntl.LOCK_EX)
        except OSError:
            os.unlink(name, dir_fd=records)
            os.close(record)
            raise
        if os.fstat(record).st_nlink:
            return record
        os.close(record)


def _append(record: int | None, content: Mapping[str, object]) -> None:
    if record is not None:
        # A record that a full disk cuts short is no record: the folder is then left and named.
        with contextlib.suppress(OSError):
            os.write(record, json.dumps(content).encode("ascii") + b"\n")


def as_text(path: str | Path) -> str:
    """Return any bytes as text: each character, U+0000 to U+00FF, stands for one."""
    return os.fsencode(path).decode("latin-1")


def _from_bytes(text: str) -> str:
    return os.fsdecode(text.encode("latin-1"))
