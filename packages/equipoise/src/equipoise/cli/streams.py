"""Standard streams that handle a closed pipe and a full disk, and `say`, which prints messages.

`prepare_standard_streams` replaces the streams at the start of the process. The new standard output
raises `OutputFailed` if a result cannot be written. The new standard error drops a message that
cannot be written, because the exit status still reports the problem.
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
"""Error handlers that raise an error for a character outside of the encoding."""


class OutputFailed(Exception):
    """Error: standard output cannot be written (full disk, closed stream, closed pipe).

    This is not an ``OSError``, because libraries would mistake it for an error of their files.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error

    @property
    def reader_has_gone(self) -> bool:
        """Whether the reader has closed the pipe, as ``head`` does."""
        return self.error.errno == errno.EPIPE


class _StandardOutput(io.FileIO):
    """Standard output; after the first failure, it discards everything."""

    failure: OSError | None = None
    """First error of a write; ``None`` if every write succeeded."""

    def write(self, data: Buffer, /) -> int:
        if self.failure is None:
            try:
                return _write_once(self, data)
            except OSError as error:
                self.failure = error
                raise OutputFailed(error) from error
        return memoryview(data).nbytes


class _StandardError(io.FileIO):
    """Standard error; it discards a message that cannot be written."""

    def write(self, data: Buffer, /) -> int:
        try:
            return _write_once(self, data)
        except OSError:
            return memoryview(data).nbytes


def _write_once(stream: io.FileIO, data: Buffer) -> int:
    """Write as many bytes as the stream accepts, but at least one; wait if necessary."""
    while True:
        count = io.FileIO.write(stream, data)
        # `write` returns None if it would block. The type annotation of `write` omits this.
        if count is not None:
            return count
        writable = select.poll()
        writable.register(stream.fileno(), select.POLLOUT)
        writable.poll()


def prepare_standard_streams() -> None:
    """Make the standard streams usable, even if they were closed before this process."""
    if sys.stdin is None:
        _open_null_device(_STDIN, os.O_RDONLY)
        sys.stdin = open(_STDIN, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        # Open for reading, so that writing fails. Another file can no longer get this descriptor.
        _open_null_device(_STDOUT, os.O_RDONLY)
    if sys.stderr is None:
        _open_null_device(_STDERR, os.O_WRONLY)
    sys.stdout = _text_stream(_StandardOutput(_STDOUT, "w", closefd=False), sys.stdout)
    sys.stderr = _text_stream(_StandardError(_STDERR, "w", closefd=False), sys.stderr)


def say(message: str, hint: str | None = None) -> None:
    """Print a message and a hint on stderr."""
    suffix = f"\n  hint: {visible(hint)}" if hint else ""
    print(f"equipoise: {visible(message)}{suffix}", file=sys.stderr, flush=True)


def is_watched() -> bool:
    """Return whether messages go to a terminal."""
    return sys.stderr.isatty()


def output_failure() -> OutputFailed | None:
    """Return the failure of standard output, even if a library has caught the exception."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    failure = raw.failure if isinstance(raw, _StandardOutput) else None
    return None if failure is None else OutputFailed(failure)


def _open_null_device(descriptor: int, flags: int) -> None:
    """Open /dev/null with the number of a closed standard descriptor."""
    new_descriptor = os.open(os.devnull, flags)
    if new_descriptor != descriptor:
        os.dup2(new_descriptor, descriptor)
        os.close(new_descriptor)
    else:
        os.set_inheritable(descriptor, True)


def _text_stream(raw: io.FileIO, replaced_stream: TextIO | None) -> TextIO:
    error_handler = "strict" if replaced_stream is None else str(replaced_stream.errors)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8" if replaced_stream is None else replaced_stream.encoding,
        errors="backslashreplace" if error_handler in _STRICT_HANDLERS else error_handler,
        line_buffering=raw.isatty() or raw.fileno() == _STDERR,
        write_through=bool(getattr(replaced_stream, "write_through", False)),
    )
