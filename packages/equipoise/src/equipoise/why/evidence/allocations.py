"""The source ``allocations``: allocations by size class and lifetime, with sampled stacks.

The preloaded recorder (``crates/interpose/recorder``) maps one file into each process, so the
counts survive a crash. ``crates/interpose/recorder/src/file.rs`` defines the file's layout.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from equipoise.counting.allocations import recording_variables
from equipoise.helpers.allocation_counts import (
    FILE_MARK,
    FILE_PATTERN,
    HEADER_FIELDS,
    TABLE_WORDS_BEFORE_ROWS,
)
from equipoise.why.evidence.observer import (
    EVIDENCE_PROGRAM,
    Process,
    Stacks,
    StacksDocument,
    decode_document,
    native_file,
)

_FULL_DISK_FILE_BYTES = 1
"""Length of the file of a process that could not be recorded because the disk was full."""

_DISK_IS_FULL = "the disk of the temporary folder is full; set TMPDIR to a folder on another disk"

_COUNTERS = ("inherited_frees", "unknown_frees", "resized", "zeroed", "aligned")
"""Numbers of a thread's table after the thread's id, in their order."""
_ALLOCATIONS, _BYTES, _MAJORITY_SIZE, _MAJORITY_COUNT = 0, 1, 2, 4
"""Positions of numbers in a row; a row has the counts of one size class and one thread."""
_ROW_WORDS_BEFORE_LIFETIMES = 6


class SizeClass(Struct, frozen=True):
    """The blocks whose size is in one range; four ranges span a doubling of the size."""

    min_bytes: int
    max_bytes: int
    allocations: int
    bytes: int
    typical_bytes: int
    """Size of most blocks, if most blocks have the same size."""
    min_typical_blocks: int
    """Minimum number of blocks with the typical size."""
    lifetimes: tuple[int, ...]
    """Number of freed blocks up to each bound of ``lifetime_bounds_s``, above the bound before."""


class Allocations(Struct, frozen=True):
    """Allocations of one run and its descendants."""

    processes: int
    allocations: int
    bytes: int
    frees: int
    resized: int
    """Number of calls of realloc that allocated a block and freed another block."""
    zeroed: int
    aligned: int
    classes: tuple[SizeClass, ...]
    """Size classes with a block, the smallest first."""
    lifetime_bounds_s: tuple[float, ...]
    """Upper bounds on lifetimes; each bound is twice the bound before."""
    stacks: Stacks
    """Sampled stacks; weights are estimated bytes. The innermost frame is the size of the block."""
    unseen: tuple[str, ...]


class _Recording(Struct, frozen=True):
    """Content of one process's file: a header, and a table of counts for each thread."""

    header: dict[str, int]
    counts: dict[str, int]
    """Sums of `_COUNTERS` over all threads."""
    rows: Any
    """int64, shape (tables, classes, row_words)."""


def wrap(process: Process, folder: Path) -> Process:
    """Return the process with the preloaded recorder; raise `UnusableInput` if it is missing."""
    return Process(process.command, recording_variables(process.environment, folder))


def read(folder: Path) -> Allocations:
    """Read the recorder's files in a folder; raise `UnusableInput` if stacks cannot be named."""
    recording_by_file = {file: _read_file(file) for file in sorted(folder.glob(FILE_PATTERN))}
    recordings = [recording for recording in recording_by_file.values() if recording is not None]
    bad_files = [file for file, recording in recording_by_file.items() if recording is None]
    unrecorded_count = sum(file.stat().st_size == _FULL_DISK_FILE_BYTES for file in bad_files)
    unseen = [
        f"the allocations in {file.name} are missing: the file is incomplete or has another version"
        for file in bad_files
        if file.stat().st_size != _FULL_DISK_FILE_BYTES
    ]
    stacks = _read_stacks(folder)
    if unrecorded_count:
        unseen.append(f"all allocations of {unrecorded_count} processes are lost: {_DISK_IS_FULL}")
    unseen += (*_missed_allocations(recordings), *stacks.unseen)
    if not recordings and not unrecorded_count:
        unseen.append(
            "all allocations are missing: the program is linked statically, has its own allocator, "
            "drops its environment, or cannot create a file in the folder for evidence"
        )
    bounds_s, classes = _size_classes(recordings)
    counts = {name: sum(recording.counts[name] for recording in recordings) for name in _COUNTERS}
    return Allocations(
        processes=len({recording.header["process_id"] for recording in recordings}),
        allocations=sum(size.allocations for size in classes),
        bytes=sum(size.bytes for size in classes),
        frees=sum(sum(size.lifetimes) for size in classes) + counts["unknown_frees"],
        resized=counts["resized"],
        zeroed=counts["zeroed"],
        aligned=counts["aligned"],
        classes=classes,
        lifetime_bounds_s=bounds_s,
        stacks=Stacks(stacks.frames, stacks.stacks),
        unseen=tuple(unseen),
    )


def _read_file(file: Path) -> _Recording | None:
    with file.open("rb") as stream:
        header_bytes = stream.read(8 * len(HEADER_FIELDS))
        numbers = np.frombuffer(header_bytes, np.uint64, len(header_bytes) // 8).tolist()
        header = dict(zip(HEADER_FIELDS, numbers, strict=False))
        if len(header) < len(HEADER_FIELDS) or header["magic"] != FILE_MARK:
            return None
        stream.seek(header["table_offset"])
        table_count = min(header["tables_used"], header["max_tables"])
        words = np.frombuffer(stream.read(table_count * header["table_bytes"]), dtype=np.int64)
    tables = words.reshape(table_count, header["table_bytes"] // 8)
    rows = tables[:, TABLE_WORDS_BEFORE_ROWS:][:, : header["classes"] * header["row_words"]]
    sums = tables[:, :TABLE_WORDS_BEFORE_ROWS].sum(axis=0)
    return _Recording(
        header=header,
        counts=dict(zip(_COUNTERS, sums[1:].tolist(), strict=False)),
        rows=rows.reshape(table_count, header["classes"], header["row_words"]),
    )


def _size_classes(recordings: list[_Recording]) -> tuple[tuple[float, ...], tuple[SizeClass, ...]]:
    """Return the bounds on lifetimes in seconds, and the size classes that have a block."""
    if not recordings:
        return (), ()
    # All processes share one clock, so the first recording gives the length of a tick for all.
    header = recordings[0].header
    ticks = header["second_ticks"] - header["first_ticks"]
    tick_s = 1e-9 * (header["second_ns"] - header["first_ns"]) / max(ticks, 1)
    bucket_count = header["lifetimes"]
    bounds_s = tuple(tick_s * 2.0**bits for bits in range(bucket_count))
    tables = np.concatenate([recording.rows for recording in recordings])
    classes = []
    for class_index in range(tables.shape[1]):
        rows = tables[:, class_index, :]
        if not rows[:, _ALLOCATIONS].any() and not rows[:, _ROW_WORDS_BEFORE_LIFETIMES:].any():
            continue
        # Each row has the most frequent size of one thread. If sizes tie, the smallest wins.
        sizes, size_indices = np.unique(rows[:, _MAJORITY_SIZE], return_inverse=True)
        counts = np.bincount(size_indices, weights=rows[:, _MAJORITY_COUNT])
        lifetimes = rows[:, _ROW_WORDS_BEFORE_LIFETIMES:][:, :bucket_count].sum(axis=0)
        # Four classes span a doubling: class 4p + q begins at (4 + q) / 4 times 2 to the power p.
        power, quarter = divmod(class_index, 4)
        min_bytes = (4 + quarter) << power >> 2
        next_bytes = (5 + quarter) << power >> 2
        classes.append(
            SizeClass(
                min_bytes=min_bytes,
                max_bytes=max(min_bytes, next_bytes - 1),
                allocations=int(rows[:, _ALLOCATIONS].sum()),
                bytes=int(rows[:, _BYTES].sum()),
                typical_bytes=int(sizes[counts.argmax()]),
                min_typical_blocks=int(counts.max()),
                lifetimes=tuple(lifetimes.tolist()),
            )
        )
    return bounds_s, tuple(classes)


def _missed_allocations(recordings: list[_Recording]) -> list[str]:
    totals: Counter[str] = Counter()
    for recording in recordings:
        totals.update(recording.header)
        totals.update(recording.counts)
    children, calls = totals["children_without_file"], totals["calls_without_table"]
    tables, samples = totals["tables_without_space"], totals["samples_without_space"]
    births, inherited = totals["births_without_memory"], totals["inherited_frees"]
    maps = totals["maps_without_space"]
    has_unsteady_clock = any(not recording.header["steady_clock"] for recording in recordings)
    remarks: tuple[tuple[int, str], ...] = (
        (children, f"{children} forked processes could not make a recording of their own"),
        (tables, f"{calls} calls of {tables} threads are not counted: {_DISK_IS_FULL}"),
        (0 if tables else calls, f"{calls} calls of threads beyond 1024 at a time are not counted"),
        (samples, f"{samples} sampled stacks are missing: {_DISK_IS_FULL}"),
        (maps, f"names of functions in some libraries are missing: {_DISK_IS_FULL}"),
        (births, f"the lifetimes of {births} blocks are unknown: address space ran out"),
        (has_unsteady_clock, "lifetimes are inexact: the processor's clock changes its speed"),
        (inherited, f"the lifetimes of {inherited} blocks are unknown: a forked child freed them"),
    )
    return [remark for count, remark in remarks if count]


def _read_stacks(folder: Path) -> StacksDocument:
    # The output goes through a pipe, because the folder's disk may be full.
    options = ("allocations", "--output", "/proc/self/fd/1", "--", str(folder))
    command = [str(native_file(EVIDENCE_PROGRAM)), *options]
    result = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return decode_document(result.stdout, "the output of equipoise-evidence", StacksDocument)
