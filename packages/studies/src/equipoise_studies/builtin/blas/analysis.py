"""What each library makes of a processor, by size; what core types and huge pages change."""

from __future__ import annotations

import itertools

from msgspec.structs import replace

from equipoise.model.quantities import joined
from equipoise.model.result import Findings, FindingTable
from equipoise_studies.ranking import Ranking
from equipoise_studies.study_data import StudyData, findings_of, short, times

TIME = "work_s"
OTHERS = ("huge_pages", "threads")
ALONE = {"threads": "one", "huge_pages": "off"}
"""Levels of the other factors at which core types are compared."""
CORE_TYPE = "_"
"""Sign between the name of a library and the core type that it is set to."""
OPERATIONS = {"dgemm": 2.0, "invert": 2.0}
"""Floating point operations over N³: a product; a factorisation (2/3) and the inverse (4/3)."""


def findings(measured: StudyData) -> Findings:
    """Return speeds by size, core types, huge pages, and where the order of libraries reverses."""
    tasks, sizes = measured.levels("task"), measured.levels("size")
    tables = [*(_speeds(measured, task) for task in tasks), _core_types(measured)]
    paragraphs = [_huge_pages(measured)]
    if len(tasks) > 1 and sizes:
        largest = max(sizes, key=float)
        at_largest, libraries = _at_size(measured, largest), _untuned(measured)
        ranking = Ranking(at_largest, TIME, "task", "library", libraries, "libraries")
        _, order = ranking.sentences()
        paragraphs.append(f"At {largest} rows, without huge pages, on one thread: {order}")
    return findings_of(tables, paragraphs, _answer(measured))


def _answer(measured: StudyData) -> str:
    """Return the fastest library at the largest size of the first task, and its lead."""
    sizes = measured.levels("size")
    if not sizes:
        return ""
    task, size = measured.levels("task")[0], max(sizes, key=float)
    known = measured.medians(TIME, "library", task=task, size=size)
    medians = {library: known[library] for library in _untuned(measured) if library in known}
    if not medians:
        return ""
    best, slowest = min(medians, key=medians.__getitem__), max(medians, key=medians.__getitem__)
    return (
        f"{task} of {size} rows: {best} is the fastest by the median with "
        f"{_speed(task, size, medians[best])} Gflop/s, {slowest} takes "
        f"{times(medians[slowest] / medians[best])} over it."
    )


def _at_size(measured: StudyData, size: str) -> StudyData:
    conditions = tuple(
        condition
        for condition in measured.document.conditions
        if condition.levels.get("size") == size
        and condition.levels.get("huge_pages") in (None, "off")
    )
    return StudyData(replace(measured.document, conditions=conditions))


def _untuned(measured: StudyData) -> list[str]:
    """Return the libraries that find out their core type by themselves."""
    return [library for library in measured.levels("library") if CORE_TYPE not in library]


def _speed(task: str, size: str, median: float | None) -> str:
    operations = OPERATIONS.get(task, 0.0) * float(size) ** 3
    return "" if median is None else short(operations / median / 1e9)


def _core_types(measured: StudyData) -> FindingTable:
    """Return how much a library's time changes when its core type is set."""
    rows: list[tuple[str, ...]] = []
    others = {name: level for name, level in ALONE.items() if measured.levels(name)}
    for tuned in measured.levels("library"):
        library, _, core = tuned.partition(CORE_TYPE)
        for task, size in itertools.product(measured.levels("task"), measured.levels("size")):
            levels = {"task": task, "size": size, **others}
            ratio = measured.ratio(TIME, "library", tuned, library, **levels)
            if core and ratio is not None:
                speed = _speed(task, size, measured.median(TIME, **levels, library=tuned))
                change = (times(ratio.ratio), ratio.interval_text())
                rows.append((library, core, task, size, speed, *change))
    return FindingTable(
        "told of a core type, over what it finds out by itself",
        ("library", "core type", "task", "size", "Gflop/s", "time", "interval"),
        tuple(rows),
        ("Each pair by itself: nothing is corrected for their number.",),
    )


def _speeds(measured: StudyData, task: str) -> FindingTable:
    libraries = _untuned(measured)
    varied = [factor for factor in OTHERS if measured.levels(factor)]
    rows: list[tuple[str, ...]] = []
    for size, *others in itertools.product(*map(measured.levels, ("size", *varied))):
        levels = {"task": task, "size": size, **dict(zip(varied, others, strict=True))}
        medians = measured.medians(TIME, "library", **levels)
        cells = [_speed(task, size, medians.get(library)) for library in libraries]
        if any(cells):
            rows.append((size, *others, *cells))
    return FindingTable(
        f"{task}: Gflop/s, of the median",
        ("size", *(factor.replace("_", " ") for factor in varied), *libraries),
        tuple(rows),
    )


def _huge_pages(measured: StudyData) -> str:
    changes = {
        tuple(levels.values()): ratio
        for levels in measured.combinations("task", "size", "library")
        if (ratio := measured.ratio(TIME, "huge_pages", "on", "off", **levels)) is not None
    }
    certain = [
        f"{ratio.text()} for {task} of {size} rows with {library}"
        for (task, size, library), ratio in changes.items()
        if ratio.is_certain
    ]
    if not changes:
        return ""
    if not certain:
        return (
            f"Huge pages change nothing for certain in {len(changes)} pairs: on this host, for "
            "these sizes and blocks."
        )
    return (
        f"Huge pages change the time for certain in {len(certain)} of {len(changes)} pairs, each "
        f"by itself: {joined(certain)}."
    )
