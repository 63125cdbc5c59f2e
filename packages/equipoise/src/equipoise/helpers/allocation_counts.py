"""Reads the allocations that the preloaded recorder counts, of any process or of this one.

The recorder (``crates/interpose/recorder``) maps one file into each process, so the counts survive
a crash. ``crates/interpose/recorder/src/file.rs`` defines the file's layout.
"""

from __future__ import annotations

import gc
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

RECORDER = "libequipoise_recorder.so"
FOLDER_VARIABLE = "EQUIPOISE_ALLOCATIONS"
"""Variable that names the folder for the recorder's files."""
FILE_PATTERN = "*.allocations"
FILE_MARK = int.from_bytes(b"EQALLOC1", "little")
HEADER_FIELDS = (
    "magic table_offset table_bytes max_tables tables_used classes lifetimes row_words maps_offset "
    "maps_bytes samples_offset sample_bytes max_samples samples_taken process_id parent_id "
    "first_ticks first_ns second_ticks second_ns steady_clock ended children_without_file "
    "calls_without_table births_without_memory machine tables_without_space samples_without_space "
    "maps_without_space"
).split()
"""Numbers at the beginning of the file, in their order."""
TABLE_WORDS_BEFORE_ROWS = 8
_WORD_BYTES = 8
_UNCOUNTED = ("children_without_file", "calls_without_table")
"""Fields of the header with the number of processes and of calls that are not counted."""
_CALLS = 10
"""Number of counted calls of a function."""
_MAX_NEW_TABLES = 32
"""Maximum number of threads that the calls may start at a time."""


class Counts(NamedTuple):
    """Allocations, and their bytes."""

    allocations: float
    allocated_bytes: float


class CountsMissing(Exception):
    """Reason why allocations are not known."""


def counts_in(file: Path) -> Counts:
    """Return the counts of a process; raise `CountsMissing` if some are not in its file."""
    with file.open("rb") as stream:
        header = _header(stream.read(_WORD_BYTES * len(HEADER_FIELDS)))
        if any(header[name] for name in _UNCOUNTED):
            raise CountsMissing("of a process or a thread no allocation was counted")
        stream.seek(header["table_offset"])
        tables = stream.read(_tables_used(header) * header["table_bytes"])
    return _sums(header, memoryview(tables))


def _header(content: bytes) -> dict[str, int]:
    numbers = memoryview(content[: len(content) // _WORD_BYTES * _WORD_BYTES]).cast("Q").tolist()
    header = dict(zip(HEADER_FIELDS, numbers, strict=False))
    if len(header) < len(HEADER_FIELDS) or header["magic"] != FILE_MARK:
        raise CountsMissing("the disk of the temporary folder is full")
    return header


def _tables_used(header: dict[str, int]) -> int:
    return min(header["tables_used"], header["max_tables"])


def _sums(header: dict[str, int], content: memoryview) -> Counts:
    """Return the sums over the rows of all tables, which have one row for each size class."""
    words = content.cast("Q")
    table_words, row_words = header["table_bytes"] // _WORD_BYTES, header["row_words"]
    rows = [
        table + TABLE_WORDS_BEFORE_ROWS + row * row_words
        for table in range(0, len(words), table_words)
        for row in range(header["classes"])
    ]
    # The first two numbers of a row.
    return Counts(sum(words[row] for row in rows), sum(words[row + 1] for row in rows))


def counts_of_a_call(call: Callable[[], object]) -> Counts:
    """Return the counts of one call of a function in this process, the mean of several calls.

    The allocations of the counting itself are subtracted. Raise `CountsMissing` if the recorder is
    not in this process.
    """
    folder = Path(os.environ[FOLDER_VARIABLE])
    # A process that executes several programs in turn has a file for each.
    files = list(folder.glob(f"{os.getpid()}-{FILE_PATTERN}"))
    if not files:
        raise CountsMissing("the recorder is not in this process: it drops LD_PRELOAD")
    latest_file = max(files, key=lambda file: int(file.name.partition("-")[2].partition(".")[0]))
    with latest_file.open("rb") as stream:
        content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        gc.collect()
        gc.disable()
        # The first calls fill caches.
        _difference(content, call)
        work, nothing = _difference(content, call), _difference(content, _do_nothing)
    finally:
        gc.enable()
        content.close()
    return Counts(*((total - own) / _CALLS for total, own in zip(work, nothing, strict=True)))


def _do_nothing() -> None:
    pass


def _difference(content: mmap.mmap, call: Callable[[], object]) -> Counts:
    """Return the counts of several calls and of the copies around them."""
    header = _header(content[: _WORD_BYTES * len(HEADER_FIELDS)])
    start = header["table_offset"]
    size = (_tables_used(header) + _MAX_NEW_TABLES) * header["table_bytes"]
    before, after = bytearray(size), bytearray(size)
    # Copying allocates the same few objects each time.
    with memoryview(content) as view, view[start : start + size] as tables:
        before[:] = tables
        for _ in range(_CALLS):
            call()
        after[:] = tables
    first, last = _sums(header, memoryview(before)), _sums(header, memoryview(after))
    return Counts(*(later - earlier for earlier, later in zip(first, last, strict=True)))
