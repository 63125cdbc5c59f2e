"""What each library makes of a processor, by size, and what huge pages change."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from equipoise.model.findings import Findings, FindingTable
from equipoise.model.result import ResultDocument
from equipoise.studies.measured import Measured, Ratio, joined, short
from equipoise.studies.rank_words import reversal_paragraph

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure

TIME = "work_s"
OTHERS = ("huge_pages", "threads")
OPERATIONS = {"dgemm": 2.0, "invert": 2.0}
"""Floating point operations over N³: a product; a factorisation (2/3) and the inverse (4/3)."""


def findings(document: ResultDocument) -> Findings:
    """Gflop/s by size, the effect of huge pages, and where the order of the libraries reverses."""
    measured = Measured(document)
    tables = [_speeds(measured, task) for task in measured.levels("task")]
    paragraphs = [_huge_pages(measured)]
    sizes = measured.levels("size")
    libraries = measured.levels("library")
    if len(measured.levels("task")) > 1 and sizes:
        largest = max(sizes, key=float)
        here = Measured(_at_size(document, largest))
        order = reversal_paragraph(here, TIME, "task", "library", libraries, "libraries")
        paragraphs.append(f"At {largest} rows, without huge pages, on one thread: {order}")
    return Findings(
        tuple(table for table in tables if table.rows),
        tuple(paragraph for paragraph in paragraphs if paragraph),
    )


def figures(document: ResultDocument) -> Iterator[Figure]:
    """Time by size for each library is the usual figure of a size; none beside it."""
    return iter(())


def _at_size(document: ResultDocument, size: str) -> ResultDocument:
    from dataclasses import replace

    kept = tuple(
        one
        for one in document.conditions
        if one.levels.get("size") == size and one.levels.get("huge_pages") in (None, "off")
    )
    return replace(document, conditions=kept)


def _speeds(measured: Measured, task: str) -> FindingTable:
    libraries = measured.levels("library")
    varied = [one for one in OTHERS if measured.levels(one)]
    rows: list[tuple[str, ...]] = []
    for size in measured.levels("size"):
        operations = OPERATIONS.get(task, 0.0) * float(size) ** 3
        for chosen in itertools.product(*(measured.levels(one) for one in varied)):
            levels = {"task": task, "size": size, **dict(zip(varied, chosen, strict=True))}
            medians = [measured.median(TIME, **levels, library=one) for one in libraries]
            cells = [
                "" if median is None else short(operations / median / 1e9) for median in medians
            ]
            if any(cells):
                rows.append((size, *chosen, *cells))
    return FindingTable(
        f"{task}: Gflop/s, of the median",
        ("size", *(one.replace("_", " ") for one in varied), *libraries),
        tuple(rows),
    )


def _huge_pages(measured: Measured) -> str:
    certain: list[str] = []
    compared = 0
    for task in measured.levels("task"):
        for size in measured.levels("size"):
            for library in measured.levels("library"):
                levels = {"task": task, "size": size, "library": library}
                ratio = measured.ratio(
                    TIME, {**levels, "huge_pages": "on"}, {**levels, "huge_pages": "off"}
                )
                if ratio is None:
                    continue
                compared += 1
                if _is_certain(ratio):
                    certain.append(f"{ratio.words()} for {task} of {size} rows with {library}")
    if not compared:
        return ""
    if not certain:
        return (
            f"Huge pages change nothing for certain in {compared} pairs: on this host, for these "
            "sizes and blocks."
        )
    return (
        f"Huge pages change the time for certain in {len(certain)} of {compared} pairs, each by "
        f"itself: {joined(certain)}."
    )


def _is_certain(ratio: Ratio) -> bool:
    return ratio.surely_above or ratio.surely_below
