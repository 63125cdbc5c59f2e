"""Compare the reply's three systems, and the costs of malloc and free by the size of the block.

The reply is a blog's answer to the article (page.md). The *15 KB policy* of Mac OS X returns freed
blocks of 15 KB or more to the kernel. So the costs have a step at that size.
"""

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
    number_text,
    quantity_text,
    ratio_text,
    size_text,
)

PROGRAM = "genmatch2006"
"""Level of the factor ``block`` for the article's program; all other levels are sizes."""
TIME = "work_s"
"""Seconds of one search, or of one malloc and free."""
BASELINE = "glibc"
SYSTEMS = (
    ("glibc_15k", "OS X, its own malloc", "24 s"),
    ("dlmalloc", "OS X with Doug Lea's malloc", "10 s"),
    ("glibc", "Windows XP", "10 s"),
)
"""Allocators; each represents a system of the reply, with the published time."""
BUFFER = "35840"
"""Size of the article's buffers: 445 × 10 doubles, rounded up to pages."""


class Cost(Struct, frozen=True):
    """A cost of a malloc and its free."""

    metric: str
    name: str
    scale: Literal["log", "linear", "symlog"]
    """Scale of the chart's axis; ``symlog`` is a logarithmic scale with zero."""


COSTS = (
    Cost(TIME, "time", "log"),
    Cost("faults_per_pair", "faults", "symlog"),
    Cost("calls_per_pair", "system calls", "linear"),
    Cost("peak_bytes", "peak memory", "log"),
)
PEAK_NOTE = (
    "The kernel's high-water mark lags by some pages for each processor: its error is a few "
    "hundred kB, so a small value may be 0."
)


def findings(data: StudyData) -> Findings:
    """Return the three-way table, the costs by block size, and the sizes of the steps."""
    tables = [_three_way(data), *_by_block(data), _kernel_size_table(data)]
    return findings_of(tables, _paragraphs(data), _answer(data))


def sizes(data: StudyData) -> list[int]:
    """Return the measured sizes of blocks, in bytes, ascending."""
    return sorted(int(level) for level in data.levels("block") if level.isdigit())


def kernel_sizes(data: StudyData) -> dict[str, float | None]:
    """Return the size from which each allocator returns freed blocks; ``None`` if never."""
    by_allocator: dict[str, float | None] = {}
    for allocator in data.levels("allocator"):
        searched_sizes, found_sizes = (
            [
                value
                for size in sizes(data)
                for value in data.values(metric, allocator=allocator, block=str(size))
            ]
            for metric in ("searched_to_bytes", "kernel_from_bytes")
        )
        if searched_sizes:
            most_trials_found_it = 2 * len(found_sizes) > len(searched_sizes)
            median = float(np.median(found_sizes)) if most_trials_found_it else None
            by_allocator[allocator] = median
    return by_allocator


def block_rows(data: StudyData, metric: str) -> Iterator[dict[str, Any]]:
    """Yield the median of a metric for each allocator and size."""
    for allocator in data.levels("allocator"):
        for size in sizes(data):
            median = data.median(metric, allocator=allocator, block=str(size))
            if median is not None:
                yield {"condition": allocator, "size": size, "value": median}


def _policy_ratio(data: StudyData, baseline: str, block: str) -> Ratio | None:
    return data.ratio(TIME, "allocator", "glibc_15k", baseline, block=block)


def _three_way(data: StudyData) -> FindingTable:
    medians = data.medians(TIME, "allocator", block=PROGRAM)
    return FindingTable(
        "The reply's three ways: the article's program, old algorithm, 445 rows",
        ("allocator", "one search", "over Doug Lea's", "represents", "published"),
        tuple(
            (
                allocator,
                quantity_text(TIME, medians[allocator]),
                ratio_text(data.ratio(TIME, "allocator", allocator, "dlmalloc", block=PROGRAM)),
                system,
                published,
            )
            for allocator, system, published in SYSTEMS
            if allocator in medians
        ),
    )


def _by_block(data: StudyData) -> Iterator[FindingTable]:
    allocators = data.levels("allocator")
    for cost in COSTS:
        rows: list[tuple[str, ...]] = []
        for size in sizes(data):
            medians = data.medians(cost.metric, "allocator", block=str(size))
            cells = (quantity_text(cost.metric, medians.get(allocator)) for allocator in allocators)
            if medians:
                rows.append((size_text(size), *cells))
        is_memory = cost.metric == "peak_bytes"
        yield FindingTable(
            f"Blocks of one size: {cost.name}" + ("" if is_memory else " for a malloc and free"),
            ("block", *allocators),
            tuple(rows),
            (PEAK_NOTE,) if is_memory else (),
        )


def _kernel_size_table(data: StudyData) -> FindingTable:
    rows = [
        (
            allocator,
            "none up to 64 MB" if size is None else f"{size:,.0f} bytes",
            "" if size is None else size_text(size),
        )
        for allocator, size in kernel_sizes(data).items()
    ]
    return FindingTable(
        "Smallest size of a block that goes back to the kernel when it is freed",
        ("allocator", "size", ""),
        tuple(rows),
        (
            "Found by bisection, to the byte; each size is the first large block of a fresh "
            "process. glibc's default size then rises with the blocks that are freed; the others "
            "are fixed.",
        ),
    )


def _answer(data: StudyData) -> str:
    """Return the cost of the 15 KB policy for the article's program, else for its blocks."""
    for block, subject in ((PROGRAM, "The article's program"), (BUFFER, "A block of 35 KB")):
        for baseline, name in (("dlmalloc", "Doug Lea's malloc"), (BASELINE, "the default")):
            ratio = _policy_ratio(data, baseline, block)
            if ratio is not None:
                return f"{subject} takes {ratio.text()} with the 15 KB policy over {name}" + (
                    " (the reply: ×2.4)." if block == PROGRAM else "."
                )
    return ""


def _paragraphs(data: StudyData) -> Iterator[str]:
    ratio = _policy_ratio(data, BASELINE, BUFFER)
    if ratio is not None:
        levels = {"allocator": "glibc_15k", "block": BUFFER}
        faults = data.median("faults_per_pair", **levels)
        calls = data.median("calls_per_pair", **levels)
        pages = math.ceil(int(BUFFER) / 4096)
        calls_text = "unknown (tracing is forbidden here)" if calls is None else number_text(calls)
        yield (
            f"At 35 KB, glibc with the 15 KB policy takes {ratio.text()} over the default, with "
            f"{'unknown' if faults is None else number_text(faults)} faults ({pages} pages) and "
            f"{calls_text} system calls for each malloc and free."
        )
    program_ratio = _policy_ratio(data, "dlmalloc", PROGRAM)
    if program_ratio is not None:
        yield (
            "The reply's finding: the benchmark is “essentially a microbenchmark of malloc() and "
            f"free() for 35 KB blocks”. The program itself takes {program_ratio.text()} with the "
            "15 KB policy over Doug Lea's malloc (published: 24 s and 10 s, ×2.4). `equipoise why` "
            "tests how much of that comes from the blocks."
        )
    returned_sizes = {name: size for name, size in kernel_sizes(data).items() if size is not None}
    if returned_sizes:
        yield (
            "Freed blocks go back to the kernel from this size on: "
            + joined(f"{size_text(size)} with {name}" for name, size in returned_sizes.items())
            + ". This costs time and saves memory: see `equipoise run threshold`."
        )
