"""Reading a file that a user names, without waiting for ever.

A regular file is read whole. A pipe is read to its end: one without a name, such as the shell's
``<(command)``, for as long as its writer takes; a FIFO has to be written to within some seconds.
Anything else (a folder, a device, a socket) is refused.
"""

from __future__ import annotations

import os
import select
import stat
from pathlib import Path

from equipoise.model.errors import UnusableInput

WRITER_PATIENCE_S = 10.0
"""Seconds that a FIFO may have nothing to read."""
_CHUNK_BYTES = 1 << 20


def read_whole(path: Path, *, hint: str, most_bytes: int | None = None) -> bytes:
    """Return the content of a file or a pipe.

    Parameters
    ----------
    hint
        Hint of the error for a file that cannot be read.
    most_bytes
        Largest size that the caller accepts. Reading stops behind it, so a longer result means that
        the file is too large.

    Raises
    ------
    UnusableInput
        The file cannot be read, is neither a file nor a pipe, or is a FIFO that nobody writes to.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode):
                raise UnusableInput(f"cannot read {path}: it is a folder", hint=hint)
            if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
                raise UnusableInput(
                    f"cannot read {path}: it is neither a file nor a pipe", hint=hint
                )
            content = bytearray()
            while most_bytes is None or len(content) <= most_bytes:
                if stat.S_ISFIFO(mode):
                    _wait_for_writer(path, descriptor)
                chunk = os.read(descriptor, _CHUNK_BYTES)
                if not chunk:
                    break
                content += chunk
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UnusableInput(
            f"cannot read {path}: {(error.strerror or str(error)).lower()}", hint=hint
        ) from error
    return bytes(content)


def _wait_for_writer(path: Path, descriptor: int) -> None:
    has_name = not os.path.realpath(path).startswith("/proc/")
    readable = select.poll()
    readable.register(descriptor, select.POLLIN)
    if not readable.poll(WRITER_PATIENCE_S * 1000 if has_name else None):
        raise UnusableInput(
            f"cannot read {path}: it is a FIFO to which nobody has written for "
            f"{WRITER_PATIENCE_S:g} s",
            hint="start what writes to it first, or name a file",
        )
