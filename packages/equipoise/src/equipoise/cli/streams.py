"""The standard streams of the command line: messages, and streams that are closed or full.

`prepare_standard_streams` replaces them once, at the start of the process. From then on a result
that cannot be written raises `OutputFailed`, and a message that cannot be written is lost without
harm: the exit status still tells what happened.
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
_STRICT = ("strict", "surrogateescape")
"""Error handlers that fail on a character which the encoding lacks."""


class OutputFailed(Exception):
    """Standard output takes no more: it is full, closed, or its reader has gone.

    It is not an ``OSError``: libraries would take one for an error of their own files.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error

    @property
    def reader_has_gone(self) -> bool:
        """Whether whoever read a pipe closed it, as ``head`` does."""
        return self.error.errno == errno.EPIPE


class _Output(io.FileIO):
    """Standard output; after its first failure it swallows the rest of the buffers."""

    failure: OSError | None = None

    def write(self, data: Buffer, /) -> int:
        if self.failure is None:
            try:
                return _written(self, data)
            except OSError as error:
                self.failure = error
                raise OutputFailed(error) from error
        return memoryview(data).nbytes


class _Messages(io.FileIO):
    """Standard error; what it cannot take is lost, for there is no other place to say so."""

    def write(self, data: Buffer, /) -> int:
        try:
            return _written(self, data)
        except OSError:
            return memoryview(data).nbytes


def _written(stream: io.FileIO, data: Buffer) -> int:
    """Write once; wait where the other end of a pipe was set not to block."""
    while True:
        count = io.FileIO.write(stream, data)
        # typeshed does not know the None of a descriptor that would block.
        if count is not None:
            return count
        writable = select.poll()
        writable.register(stream.fileno(), select.POLLOUT)
        writable.poll()


def prepare_standard_streams() -> None:
    """Make the standard streams usable whatever this process was started with."""
    if sys.stdin is None:
        _fill(_STDIN, os.O_RDONLY)
        sys.stdin = open(_STDIN, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        # Not writable, as a closed descriptor is; but no other file can take its number.
        _fill(_STDOUT, os.O_RDONLY)
    if sys.stderr is None:
        _fill(_STDERR, os.O_WRONLY)
    sys.stdout = _text_stream(_Output(_STDOUT, "w", closefd=False), sys.stdout)
    sys.stderr = _text_stream(_Messages(_STDERR, "w", closefd=False), sys.stderr)


def say(message: str, hint: str | None = None) -> None:
    """Print a message on stderr, with what the user can do about it."""
    suffix = f"\n  hint: {visible(hint)}" if hint else ""
    print(f"equipoise: {visible(message)}{suffix}", file=sys.stderr, flush=True)


def is_watched() -> bool:
    """Return whether messages go to a terminal, where somebody waits."""
    return sys.stderr.isatty()


def output_failure() -> OutputFailed | None:
    """Return why standard output failed, also where a library has swallowed the error."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    failure = raw.failure if isinstance(raw, _Output) else None
    return None if failure is None else OutputFailed(failure)


def _fill(number: int, flags: int) -> None:
    """Open /dev/null as a standard descriptor that is closed."""
    descriptor = os.open(os.devnull, flags)
    if descriptor != number:
        os.dup2(descriptor, number)
        os.close(descriptor)
    else:
        os.set_inheritable(number, True)


def _text_stream(raw: io.FileIO, former: TextIO | None) -> TextIO:
    errors = "strict" if former is None else str(former.errors)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8" if former is None else former.encoding,
        errors="backslashreplace" if errors in _STRICT else errors,
        line_buffering=raw.isatty() or raw.fileno() == _STDERR,
        write_through=bool(getattr(former, "write_through", False)),
    )
