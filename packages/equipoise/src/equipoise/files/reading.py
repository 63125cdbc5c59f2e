"""Reading a file that a user names, without waiting for ever.

A regular file is read whole. A pipe is read to its end: one without a name, such as the shell's
``<(command)``, for as long as its writer takes; a FIFO has to be written to within some seconds.
Anything else (a folder, a device, a socket) is refused.
"""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from equipoise.model.errors import UnusableInput

WRITER_PATIENCE_S = 10.0
"""Seconds that a FIFO may have nothing to read."""
_CHUNK_BYTES = 1 << 20
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags to open a folder, but no link to one."""
OPEN_UNTRUSTED = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags to open what somebody else may have put there: no link is followed, no FIFO waited for."""


def read_whole(path: Path, *, hint: str, most_bytes: int | None = None) -> bytes:
    """Return the content of a file or a pipe.

    Reading stops behind ``most_bytes``, so a longer result means that the file is too large for the
    caller. Raise `UnusableInput` with ``hint`` if the file cannot be read, is neither a file nor a
    pipe, or is a FIFO that nobody writes to.
    """

    def refusal(reason: str) -> UnusableInput:
        return UnusableInput(f"cannot read {path}: {reason}", hint=hint)

    content = bytearray()
    try:
        with opened(path, _FLAGS) as descriptor:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode):
                raise refusal("it is a folder")
            if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
                raise refusal("it is neither a file nor a pipe")
            while most_bytes is None or len(content) <= most_bytes:
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
    """Wait until something can be read, or the other end is closed; return whether it is so.

    A descriptor of a process (pidfd) becomes readable when the process ends. ``None`` waits for
    ever.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if timeout_s is None else 1000 * timeout_s))


@contextmanager
def opened(
    path: str | Path, flags: int, around: int | None = None, mode: int = 0o600
) -> Iterator[int]:
    """Open a file or folder, below the open folder ``around`` if one is given."""
    descriptor = os.open(path, flags, mode, dir_fd=around)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _wait_for_writer(path: Path, descriptor: int) -> None:
    has_name = not os.path.realpath(path).startswith("/proc/")
    if not becomes_readable(descriptor, WRITER_PATIENCE_S if has_name else None):
        raise UnusableInput(
            f"cannot read {path}: it is a FIFO to which nobody has written for "
            f"{WRITER_PATIENCE_S:g} s",
            hint="start what writes to it first, or name a file",
        )
