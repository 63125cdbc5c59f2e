"""The three-way table of the reply, and what malloc and free cost by the size of the block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from equipoise.model.quantities import joined
from equipoise.model.result import Findings, FindingTable
from equipoise_studies.study_data import (
    Ratio,
    StudyData,
    findings_of,
    quantity,
    ratio_text,
    short,
    size_text,
)

PROGRAM = "genmatch2006"
TIME = "work_s"
BASELINE = "glibc"
THREE = (
    ("glibc_15k", "OS X, its own malloc", "24 s"),
    ("dlmalloc", "OS X with Doug Lea's malloc", "10 s"),
    ("glibc", "Windows XP", "10 s"),
)
"""Allocators with the system of the reply that each stands for, and its published time."""
BUFFER = "35840"
"""Size of the article's buffers, 445 × 10 doubles in whole pages."""


class Cost(Struct, frozen=True):
    """One cost of a malloc and free."""

    metric: str
    name: str
    scale: Literal["log", "linear", "symlog"]
    """Scale of its axis; ``symlog`` is a logarithm that holds zero."""


BY_BLOCK = (
    Cost(TIME, "time", "log"),
    Cost("faults_per_pair", "faults", "symlog"),
    Cost("calls_per_pair", "system calls", "linear"),
    Cost("peak_bytes", "peak memory", "log"),
)
PEAK_NOTE = (
    "The kernel's high-water mark lags behind by some pages for each processor: a few hundred kB "
    "are within its error, 0 included."
)


def findings(measured: StudyData) -> Findings:
    """Return the three-way table, the costs by block size and the steps."""
    tables = [_three_way(measured), *_by_block(measured), _steps(measured)]
    return findings_of(tables, _paragraphs(measured), _answer(measured))


def sizes(measured: StudyData) -> list[int]:
    """Return the sizes of blocks that were run, in bytes, ascending."""
    return sorted(int(level) for level in measured.levels("block") if level.isdigit())


def steps(measured: StudyData) -> dict[str, float | None]:
    """Return the size from which each allocator gives a block back at once; ``None`` if never."""
    by_allocator: dict[str, float | None] = {}
    for allocator in measured.levels("allocator"):
        searches, thresholds = (
            [
                value
                for size in sizes(measured)
                for value in measured.values(metric, allocator=allocator, block=str(size))
            ]
            for metric in ("searched_to_bytes", "kernel_from_bytes")
        )
        if searches:
            is_typical = 2 * len(thresholds) > len(searches)
            by_allocator[allocator] = float(np.median(thresholds)) if is_typical else None
    return by_allocator


def block_rows(measured: StudyData, metric: str) -> Iterator[dict[str, Any]]:
    """Yield the median of a metric for each allocator and size."""
    for allocator in measured.levels("allocator"):
        for size in sizes(measured):
            median = measured.median(metric, allocator=allocator, block=str(size))
            if median is not None:
                yield {"condition": allocator, "size": size, "value": median}


def _over(measured: StudyData, baseline: str, block: str) -> Ratio | None:
    """Return the 15 KB policy over another allocator."""
    return measured.ratio(TIME, "allocator", "glibc_15k", baseline, block=block)


def _three_way(measured: StudyData) -> FindingTable:
    medians = measured.medians(TIME, "allocator", block=PROGRAM)
    return FindingTable(
        "The reply's three ways: the article's program, old algorithm, 445 rows",
        ("allocator", "one search", "over Doug Lea's", "stands for", "published"),
        tuple(
            (
                allocator,
                quantity(TIME, medians[allocator]),
                ratio_text(measured.ratio(TIME, "allocator", allocator, "dlmalloc", block=PROGRAM)),
                stands_for,
                published,
            )
            for allocator, stands_for, published in THREE
            if allocator in medians
        ),
    )


def _by_block(measured: StudyData) -> Iterator[FindingTable]:
    allocators = measured.levels("allocator")
    for cost in BY_BLOCK:
        rows: list[tuple[str, ...]] = []
        for size in sizes(measured):
            medians = measured.medians(cost.metric, "allocator", block=str(size))
            cells = (quantity(cost.metric, medians.get(allocator)) for allocator in allocators)
            if medians:
                rows.append((size_text(size), *cells))
        is_memory = cost.metric == "peak_bytes"
        yield FindingTable(
            f"Blocks of one size: {cost.name}" + ("" if is_memory else " for a malloc and free"),
            ("block", *allocators),
            tuple(rows),
            (PEAK_NOTE,) if is_memory else (),
        )


def _steps(measured: StudyData) -> FindingTable:
    rows = [
        (
            allocator,
            "from no size up to 64 MB" if size is None else f"{size:,.0f} bytes",
            "" if size is None else size_text(size),
        )
        for allocator, size in steps(measured).items()
    ]
    return FindingTable(
        "From which size on a block goes back to the kernel when it is freed",
        ("allocator", "found", ""),
        tuple(rows),
        (
            "Found by bisection to the byte; each size in a fresh process, as its first large "
            "block. glibc's own default then rises with what was freed; the others stay.",
        ),
    )


def _answer(measured: StudyData) -> str:
    """Return the reply's claim about the article's program, or about its blocks."""
    for block, what in ((PROGRAM, "The article's program"), (BUFFER, "A block of 35 KB")):
        for below, whose in (("dlmalloc", "Doug Lea's malloc"), (BASELINE, "the default")):
            ratio = _over(measured, below, block)
            if ratio is not None:
                return f"{what} takes {ratio.text()} with the 15 KB policy over {whose}" + (
                    " (the reply: ×2.4)." if block == PROGRAM else "."
                )
    return ""


def _paragraphs(measured: StudyData) -> Iterator[str]:
    ratio = _over(measured, BASELINE, BUFFER)
    if ratio is not None:
        levels = {"allocator": "glibc_15k", "block": BUFFER}
        faults = measured.median("faults_per_pair", **levels)
        calls = measured.median("calls_per_pair", **levels)
        pages = math.ceil(int(BUFFER) / 4096)
        calls_text = "unknown (tracing is forbidden here)" if calls is None else short(calls)
        yield (
            f"At 35 KB glibc from 15 KB on takes {ratio.text()} of the default, with "
            f"{'unknown' if faults is None else short(faults)} faults ({pages} pages) and "
            f"{calls_text} system calls for each malloc and free."
        )
    slow = _over(measured, "dlmalloc", PROGRAM)
    if slow is not None:
        yield (
            "The reply's finding: the benchmark is “essentially a microbenchmark of malloc() and "
            f"free() for 35 KB blocks”. The program itself takes {slow.text()} with the 15 KB "
            "policy over Doug Lea's malloc (published: 24 s and 10 s, ×2.4); what of that are the "
            "blocks, `equipoise why` tests."
        )
    returned = {name: size for name, size in steps(measured).items() if size is not None}
    if returned:
        yield (
            "A step each: "
            + joined(f"{name} at {size_text(size)}" for name, size in returned.items())
            + ". What a step costs in time it saves in memory that is kept: see "
            "`equipoise run threshold`."
        )
