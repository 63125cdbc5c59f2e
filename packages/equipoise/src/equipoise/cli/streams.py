"""Standard streams that handle a closed pipe and a full disk, and `say`, which prints messages.

`prepare_standard_streams` replaces the streams once, at the start of the process. From then on
`OutputFailed` is raised if a result cannot be written. A message that cannot be written is dropped
without an error, because the exit status still reports the problem.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import TYPE_CHECKING, TextIO

from equipoise.shared.safe_text import visible

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_STRICT_HANDLERS = ("strict", "surrogateescape")
"""Error handlers that fail on a character that the encoding lacks."""


class OutputFailed(Exception):
    """Standard output cannot be written: its disk is full, it is closed, or its reader has gone.

    It is not an ``OSError``, because libraries would take it for an error of their own files.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error

    @property
    def reader_has_gone(self) -> bool:
        """Whether the reader of a pipe closed it, as ``head`` does."""
        return self.error.errno == errno.EPIPE


class _StandardOutput(io.FileIO):
    """Standard output; after its first failure it discards everything silently."""

    failure: OSError | None = None

    def write(self, data: Buffer, /) -> int:
        if self.failure is None:
            try:
                return _write_once(self, data)
            except OSError as error:
                self.failure = error
                raise OutputFailed(error) from error
        return memoryview(data).nbytes


class _StandardError(io.FileIO):
    """Standard error; a message that cannot be written is discarded silently."""

    def write(self, data: Buffer, /) -> int:
        try:
            return _write_once(self, data)
        except OSError:
            return memoryview(data).nbytes


def _write_once(stream: io.FileIO, data: Buffer) -> int:
    """Write as many bytes as the stream accepts; wait if it is non-blocking and accepts none."""
    while True:
        count = io.FileIO.write(stream, data)
        # `write` returns None if it would block; the types of typeshed leave this out.
        if count is not None:
            return count
        writable = select.poll()
        writable.register(stream.fileno(), select.POLLOUT)
        writable.poll()


def prepare_standard_streams() -> None:
    """Make the standard streams usable, even if this process was started with closed ones."""
    if sys.stdin is None:
        _open_null_device(_STDIN, os.O_RDONLY)
        sys.stdin = open(_STDIN, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        # Writing still fails, but no other file can get this descriptor.
        _open_null_device(_STDOUT, os.O_RDONLY)
    if sys.stderr is None:
        _open_null_device(_STDERR, os.O_WRONLY)
    sys.stdout = _text_stream(_StandardOutput(_STDOUT, "w", closefd=False), sys.stdout)
    sys.stderr = _text_stream(_StandardError(_STDERR, "w", closefd=False), sys.stderr)


def say(message: str, hint: str | None = None) -> None:
    """Print a message on stderr, with a hint what the user can do."""
    suffix = f"\n  hint: {visible(hint)}" if hint else ""
    print(f"equipoise: {visible(message)}{suffix}", file=sys.stderr, flush=True)


def is_watched() -> bool:
    """Return whether messages go to a terminal."""
    return sys.stderr.isatty()


def output_failure() -> OutputFailed | None:
    """Return the failure of standard output, even if a library has caught its exception."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    failure = raw.failure if isinstance(raw, _StandardOutput) else None
    return None if failure is None else OutputFailed(failure)


def _open_null_device(descriptor: int, flags: int) -> None:
    """Open /dev/null as a standard descriptor that is closed."""
    new_descriptor = os.open(os.devnull, flags)
    if new_descriptor != descriptor:
        os.dup2(new_descriptor, descriptor)
        os.close(new_descriptor)
    else:
        os.set_inheritable(descriptor, True)


def _text_stream(raw: io.FileIO, replaced_stream: TextIO | None) -> TextIO:
    """Return a text stream with the encoding and the buffering of the stream that it replaces."""
    error_handler = "strict" if replaced_stream is None else str(replaced_stream.errors)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8" if replaced_stream is None else replaced_stream.encoding,
        errors="backslashreplace" if error_handler in _STRICT_HANDLERS else error_handler,
        line_buffering=raw.isatty() or raw.fileno() == _STDERR,
        write_through=bool(getattr(replaced_stream, "write_through", False)),
    )
