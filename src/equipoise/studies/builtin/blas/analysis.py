"""What each library makes of a processor, by size; what core types and huge pages change."""

from __future__ import annotations

import itertools

from msgspec.structs import replace

from equipoise.model.findings import Findings, FindingTable
from equipoise.model.result import ResultDocument
from equipoise.studies.ranking import Ranking
from equipoise.studies.study_data import StudyData, findings_of, joined, short, times

TIME = "work_s"
OTHERS = ("huge_pages", "threads")
ALONE = {"threads": "one", "huge_pages": "off"}
"""Levels of the other factors at which core types are compared."""
TOLD = "_"
"""Sign between the name of a library and the core type that it was told of."""
OPERATIONS = {"dgemm": 2.0, "invert": 2.0}
"""Floating point operations over N³: a product; a factorisation (2/3) and the inverse (4/3)."""


def findings(document: ResultDocument) -> Findings:
    """Return speeds by size, core types, huge pages, and where the order of libraries reverses."""
    measured = StudyData(document)
    tables = [_speeds(measured, task) for task in measured.levels("task")]
    tables.append(_core_types(measured))
    paragraphs = [_huge_pages(measured)]
    sizes = measured.levels("size")
    libraries = _by_themselves(measured)
    if len(measured.levels("task")) > 1 and sizes:
        largest = max(sizes, key=float)
        here = StudyData(_at_size(document, largest))
        order = Ranking(here, TIME, "task", "library", libraries, "libraries").paragraph()
        paragraphs.append(f"At {largest} rows, without huge pages, on one thread: {order}")
    return findings_of(tables, paragraphs, _answer(measured))


def _answer(measured: StudyData) -> str:
    """Return the fastest library at the largest size of the first task, and its lead."""
    sizes = measured.levels("size")
    if not sizes:
        return ""
    task, size = measured.levels("task")[0], max(sizes, key=float)
    medians = {
        library: median
        for library in _by_themselves(measured)
        if (median := measured.median(TIME, task=task, size=size, library=library)) is not None
    }
    if not medians:
        return ""
    best, slowest = min(medians, key=medians.__getitem__), max(medians, key=medians.__getitem__)
    return (
        f"{task} of {size} rows: {best} is the fastest by the median with "
        f"{_speed(task, size, medians[best])} Gflop/s, {slowest} takes "
        f"{times(medians[slowest] / medians[best])} over it."
    )


def _at_size(document: ResultDocument, size: str) -> ResultDocument:
    kept = tuple(
        one
        for one in document.conditions
        if one.levels.get("size") == size and one.levels.get("huge_pages") in (None, "off")
    )
    return replace(document, conditions=kept)


def _by_themselves(measured: StudyData) -> list[str]:
    """Return the libraries that were told of no core type."""
    return [one for one in measured.levels("library") if TOLD not in one]


def _speed(task: str, size: str, median: float | None) -> str:
    operations = OPERATIONS.get(task, 0.0) * float(size) ** 3
    return "" if median is None else short(operations / median / 1e9)


def _core_types(measured: StudyData) -> FindingTable:
    """Return how much a library's time changes when it is told its core type."""
    rows: list[tuple[str, ...]] = []
    for told in (one for one in measured.levels("library") if TOLD in one):
        library, _, core = told.partition(TOLD)
        for task, size in itertools.product(measured.levels("task"), measured.levels("size")):
            here = {"task": task, "size": size, **ALONE}
            levels = {name: level for name, level in here.items() if measured.levels(name)}
            ratio = measured.ratio(
                TIME, {**levels, "library": told}, {**levels, "library": library}
            )
            if ratio is not None:
                speed = _speed(task, size, measured.median(TIME, **levels, library=told))
                change = (times(ratio.ratio), ratio.interval_text())
                rows.append((library, core, task, size, speed, *change))
    return FindingTable(
        "told of a core type, over what it finds out by itself",
        ("library", "core type", "task", "size", "Gflop/s", "time", "interval"),
        tuple(rows),
        ("Each pair by itself: nothing is corrected for their number.",) if rows else (),
    )


def _speeds(measured: StudyData, task: str) -> FindingTable:
    libraries = _by_themselves(measured)
    varied = [one for one in OTHERS if measured.levels(one)]
    rows: list[tuple[str, ...]] = []
    for size in measured.levels("size"):
        for chosen in itertools.product(*(measured.levels(one) for one in varied)):
            levels = {"task": task, "size": size, **dict(zip(varied, chosen, strict=True))}
            cells = [
                _speed(task, size, measured.median(TIME, **levels, library=one))
                for one in libraries
            ]
            if any(cells):
                rows.append((size, *chosen, *cells))
    return FindingTable(
        f"{task}: Gflop/s, of the median",
        ("size", *(one.replace("_", " ") for one in varied), *libraries),
        tuple(rows),
    )


def _huge_pages(measured: StudyData) -> str:
    certain: list[str] = []
    compared = 0
    for levels in measured.combinations("task", "size", "library"):
        task, size, library = levels.values()
        ratio = measured.ratio(
            TIME, {**levels, "huge_pages": "on"}, {**levels, "huge_pages": "off"}
        )
        if ratio is not None:
            compared += 1
            if ratio.is_certain:
                certain.append(f"{ratio.text()} for {task} of {size} rows with {library}")
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
