"""Functions that read a complete file, and that replace a file completely or not at all.

To replace a file, the new content is written to a new file in the same folder. The new file is
flushed to the disk, and then gets the name of the old file. Devices and FIFOs are written in place.

Regular files and pipes can be read, but not folders, devices and sockets. A FIFO is a pipe with a
name; reading a FIFO waits at most some seconds for a writer. Reading a pipe without a name, such as
the shell's ``<(command)``, waits without a limit.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import select
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from equipoise.model.errors import UnusableInput

WRITER_TIMEOUT_S = 10.0
"""Maximum seconds to wait until a FIFO has data."""
_CHUNK_BYTES = 1 << 20
_READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags to open a folder, but no link to a folder."""
OPEN_UNTRUSTED = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags to open a path of another user: no link is followed, and the call does not wait."""


def read_whole(path: Path, *, hint: str, max_bytes: int | None = None) -> bytes:
    """Return the content of a file or a pipe.

    Reading stops after more than ``max_bytes`` bytes, so a result that is longer than ``max_bytes``
    means a file that is too large. Raise `UnusableInput` with ``hint`` if the file cannot be read,
    is neither a regular file nor a pipe, or is a FIFO without a writer.
    """

    def refusal(reason: str) -> UnusableInput:
        return UnusableInput(f"cannot read {path}: {reason}", hint=hint)

    content = bytearray()
    try:
        with opened(path, _READ_FLAGS) as descriptor:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode):
                raise refusal("it is a folder")
            if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
                raise refusal("it is neither a file nor a pipe")
            while max_bytes is None or len(content) <= max_bytes:
                if stat.S_ISFIFO(mode):
                    _wait_for_writer(path, descriptor)
                chunk = os.read(descriptor, _CHUNK_BYTES)
                if not chunk:
                    break
                content += chunk
    except OSError as error:
        raise refusal((error.strerror or str(error)).lower()) from error
    return bytes(content)


def becomes_readable(descriptor: int, timeout_s: float | None) -> bool:
    """Wait until a descriptor has data or its writer has ended; return False on a timeout.

    ``timeout_s`` is in seconds; ``None`` waits without a limit. A pidfd (a descriptor of a process)
    becomes readable when the process ends.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if timeout_s is None else 1000 * timeout_s))


@contextmanager
def opened(
    path: str | Path, flags: int, parent: int | None = None, mode: int = 0o600
) -> Iterator[int]:
    """Open a file or folder; yield its descriptor.

    The path may be relative to the open folder with the descriptor ``parent``.
    """
    descriptor = os.open(path, flags, mode, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _wait_for_writer(path: Path, descriptor: int) -> None:
    has_name = not os.path.realpath(path).startswith("/proc/")
    if not becomes_readable(descriptor, WRITER_TIMEOUT_S if has_name else None):
        raise UnusableInput(
            f"cannot read {path}: it is a FIFO, and nothing was written to it for "
            f"{WRITER_TIMEOUT_S:g} s",
            hint="start the program that writes to the FIFO first, or name a file",
        )


READER_TIMEOUT_S = 10.0
"""Maximum seconds to wait until a FIFO has a reader, and until the reader reads something."""
UNFINISHED_PREFIX = ".equipoise-unfinished-"
"""Prefix of the name of an incomplete file."""

_POLL_INTERVAL_S = 0.02
_MAX_LINKS = 40
"""Maximum number of symbolic links to follow, as in Linux."""
_REPLACEMENT_ERRORS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY})
"""Errors if a folder does not accept a new file, or if the file is a mount point."""


def write_whole(path: Path, content: bytes) -> None:
    """Replace the content of a file; if that fails, the old file is kept.

    The file keeps its mode and, if the system permits it, its owner. If ``path`` is a symbolic
    link, the target is replaced. If the folder does not accept a new file, the file is written in
    place. Raise `OSError` if the file cannot be written, or a FIFO has no reader for
    `READER_TIMEOUT_S` seconds.
    """
    target = _follow_links(path)
    descriptor = _own_descriptor(target)
    if descriptor is not None:
        _write_all(descriptor, content)
        return
    try:
        old_status = os.stat(target)
    except FileNotFoundError:
        old_status = None
    if old_status is None or stat.S_ISREG(old_status.st_mode):
        _replace(target, content, old_status)
    elif stat.S_ISFIFO(old_status.st_mode):
        _write_to_fifo(target, content)
    else:
        _write_in_place(target, content)


def write_or_refuse(path: Path, content: bytes, hint: str) -> None:
    """Replace the content of a file; raise `UnusableInput` with ``hint`` if this fails."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise UnusableInput(f"cannot write {path}: {error.strerror}", hint=hint) from error


def write_unflushed(path: Path, content: bytes, hint: str) -> None:
    """Replace a file by a new file, which reaches the disk later; raise as `write_or_refuse`.

    A flush takes longer than a small file. So a caller with many files flushes them together, with
    `os.sync`, before it relies on them.
    """
    new_path = path.with_name(UNFINISHED_PREFIX + secrets.token_hex(8))
    try:
        with open(new_path, "xb") as file:
            file.write(content)
        os.rename(new_path, path)
    except OSError as error:
        new_path.unlink(missing_ok=True)
        raise UnusableInput(f"cannot write {path}: {error.strerror}", hint=hint) from error
    except BaseException:
        new_path.unlink(missing_ok=True)
        raise


def _follow_links(path: Path) -> str:
    """Return the target of links; links in /proc are kept, because they may not contain a path."""
    target = os.path.abspath(path)
    for _ in range(_MAX_LINKS):
        folder, name = os.path.split(target)
        target = os.path.join(os.path.realpath(folder), name)
        if target.startswith("/proc/") or not os.path.islink(target):
            return target
        target = os.path.join(os.path.dirname(target), os.readlink(target))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _own_descriptor(path: str) -> int | None:
    """Return the descriptor of this process that a path names, such as /dev/fd/3; else ``None``."""
    folder, name = os.path.split(path)
    is_own = folder in (f"/proc/{os.getpid()}/fd", f"/proc/{os.getpid()}/task/{os.getpid()}/fd")
    return int(name) if is_own and name.isdecimal() else None


def _replace(target: str, content: bytes, old_status: os.stat_result | None) -> None:
    """Replace a file by a new file; write in place if the folder does not accept a new file."""
    if old_status is not None and not os.access(target, os.W_OK):
        # A rename would replace a write-protected file.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), target)
    new_path = os.path.join(os.path.dirname(target), UNFINISHED_PREFIX + secrets.token_hex(8))
    try:
        _write_new_file(new_path, content, old_status)
        os.rename(new_path, target)
    except OSError as error:
        Path(new_path).unlink(missing_ok=True)
        if old_status is None or error.errno not in _REPLACEMENT_ERRORS:
            raise
        _write_in_place(target, content)
    except BaseException:
        Path(new_path).unlink(missing_ok=True)
        raise


def _write_new_file(new_path: str, content: bytes, old_status: os.stat_result | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with opened(new_path, flags, mode=0o666) as descriptor:
        if old_status is not None:
            owner = (old_status.st_uid, old_status.st_gid)
            if (os.geteuid(), os.getegid()) != owner:
                # Only root may change the owner; without this change, this user owns the new file.
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, *owner)
            os.fchmod(descriptor, stat.S_IMODE(old_status.st_mode))
        _write_all(descriptor, content)
        os.fsync(descriptor)


def _write_in_place(target: str, content: bytes) -> None:
    with opened(target, os.O_WRONLY | os.O_TRUNC | os.O_NOCTTY | os.O_CLOEXEC) as descriptor:
        _write_all(descriptor, content)


def _write_to_fifo(target: str, content: bytes) -> None:
    descriptor = _open_fifo(target)
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLOUT)
        unwritten = memoryview(content)
        while unwritten:
            if not poller.poll(READER_TIMEOUT_S * 1000):
                raise TimeoutError(errno.ETIMEDOUT, "the reader of the FIFO reads nothing", target)
            with contextlib.suppress(BlockingIOError):
                unwritten = unwritten[os.write(descriptor, unwritten) :]
    finally:
        os.close(descriptor)


def _open_fifo(target: str) -> int:
    deadline = time.monotonic() + READER_TIMEOUT_S
    while True:
        try:
            return os.open(target, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        if time.monotonic() > deadline:
            raise OSError(errno.ENXIO, "it is a FIFO that nobody reads", target)
        time.sleep(_POLL_INTERVAL_S)


def _write_all(descriptor: int, content: bytes) -> None:
    unwritten = memoryview(content)
    while unwritten:
        unwritten = unwritten[os.write(descriptor, unwritten) :]


def remove_below(folder: int, name: str) -> None:
    """Remove a file or folder in an open folder; no symbolic link is followed."""
    if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
        shutil.rmtree(name, ignore_errors=True, dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)
