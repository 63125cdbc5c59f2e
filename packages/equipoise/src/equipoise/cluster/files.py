"""Programs and inputs of a plan: which they are, by content, and how they come to another host.

A file is known by the BLAKE2b digest of its bytes. Files that a host lacks are shipped: the host
keeps them under their digests in ``STATE/shipped``, and a campaign that needs them gets a working
folder of its own, into which they are copied.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from equipoise.cluster.messages import File, Shipment, other_version
from equipoise.cluster.places import Places, inside
from equipoise.files.reading import OPEN_UNTRUSTED, opened
from equipoise.files.state import private_folder
from equipoise.files.writing import write_whole
from equipoise.model.errors import UnusableInput
from equipoise.shared.spelling import option

SHIPPED = "shipped"
"""Folder of shipped files, in the state folder."""
MOST_SHIPPED_BYTES = 256 * 1024 * 1024
"""Largest size of a file that is shipped."""
MOST_KEPT_BYTES = 2 * 1024**3
"""Shipped files beyond this size together make room: those that were used last stay."""
_new_digest = partial(hashlib.blake2b, digest_size=16)
_DIGEST = re.compile("[0-9a-f]{32}")


def file_here(file: File, folder: str) -> File:
    """Return a file of a working folder as this host has it; without a digest if there is none."""
    path = os.path.join(folder, Places(folder).local(file.path))
    if file.is_program and not os.path.isfile(path):
        # A program of the system may lie elsewhere here.
        path = shutil.which(os.path.basename(path)) or path
    # Missing, unreadable, or no path at all (a zero byte): the host cannot use it.
    with contextlib.suppress(OSError, ValueError):
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            return replace(file, digest=digest_of_file(path), mode=stat.S_IMODE(mode))
    return replace(file, digest=None)


def digest_of(content: bytes) -> str:
    """Return 32 hexadecimal digits that name a content."""
    return _new_digest(content).hexdigest()


def digest_of_file(path: str | Path) -> str:
    """Return 32 hexadecimal digits that name the content of a file.

    Raise `OSError` if it cannot be read.
    """
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, _new_digest).hexdigest()


def check_shipped(file: File) -> str:
    """Return the digest of a file that is shipped.

    Raise `UnusableInput` if its path leads out of the working folder, or it has no digest.
    """
    if not inside(file.path):
        raise UnusableInput(
            f"{file.path} cannot be shipped: it lies outside of the working folder",
            hint="put it into the working folder, or install the same on every host",
        )
    digest = file.digest or ""
    if not _DIGEST.fullmatch(digest):
        raise other_version(f"{file.path} cannot be shipped: {digest!r} is no digest")
    return digest


def keep(shipment: Shipment) -> str:
    """Keep a shipped file under its digest, which is returned; one that is kept already stays.

    Raise `UnusableInput` if it is too large, its content is not what its digest says, its path
    leads out of the working folder, or it cannot be written.
    """
    file, content = shipment.file, shipment.content
    digest = check_shipped(file)
    if len(content) > MOST_SHIPPED_BYTES:
        raise too_large(file.path, len(content))
    if digest_of(content) != digest:
        raise UnusableInput(
            f"{file.path} arrived with another content than was sent",
            hint="run it again: the file may have been changed while it was read",
        )
    kept = private_folder(SHIPPED) / digest
    try:
        with _alone_in(kept.parent):
            if not (kept.is_file() and digest_of_file(kept) == digest):
                _make_room(kept.parent, len(content))
                write_whole(kept, content)
            os.utime(kept)
    except OSError as error:
        raise UnusableInput(
            f"{os.uname().nodename} cannot keep {file.path}: {error.strerror or error}",
            hint=f"make room on the disk of {kept.parent} there",
        ) from error
    return digest


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Lock a folder: two files that come at once would each find the same room."""
    with opened(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _make_room(folder: Path, size: int) -> None:
    """Remove the files that were shipped longest ago, until there is room for one more."""
    entries = [(entry.lstat(), entry) for entry in folder.iterdir()]
    room = MOST_KEPT_BYTES - size - sum(status.st_size for status, _ in entries)
    for status, entry in sorted(entries, key=lambda each: each[0].st_mtime_ns):
        if room >= 0:
            return
        entry.unlink(missing_ok=True)
        room += status.st_size


def too_large(path: str, size: int) -> UnusableInput:
    """Return the error for a file that is too large to be shipped."""
    return UnusableInput(
        f"{path} is too large to be shipped: {size >> 20} MiB, at most {MOST_SHIPPED_BYTES >> 20}",
        hint="copy it to every host yourself, into the folder of its worker",
    )


def fill_working_folder(files: tuple[File, ...], folder: Path) -> None:
    """Make the working folder of a campaign out of shipped files; one that is there stays.

    Raise `UnusableInput` if a path leads out of the folder, or a file was not shipped. Raise
    `OSError` if the folder cannot be written.
    """
    kept = private_folder(SHIPPED)
    checked = [(file, kept / check_shipped(file)) for file in files]
    if folder.is_dir():
        return
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    for file, content in checked:
        target = unfinished / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy(file, content, target)
    os.rename(unfinished, folder)


def _copy(file: File, kept: Path, target: Path) -> None:
    try:
        with (
            open(kept, "rb", opener=lambda path, _: os.open(path, OPEN_UNTRUSTED)) as source,
            target.open("xb") as copy,
        ):
            shutil.copyfileobj(source, copy)
    except FileNotFoundError as error:
        raise _not_kept(file) from error
    if digest_of_file(target) != file.digest:
        raise _not_kept(file)
    target.chmod((file.mode & 0o777) | stat.S_IRUSR | stat.S_IWUSR)


def _not_kept(file: File) -> UnusableInput:
    return UnusableInput(
        f"{os.uname().nodename} does not have {file.path} any more, which was shipped to it",
        hint=f"run it again with {option('ship')}",
    )
