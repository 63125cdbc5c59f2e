"""Compare the speeds of BLAS libraries by size, core type and huge pages."""

from __future__ import annotations

import itertools

from msgspec.structs import replace

from equipoise.model.quantities import joined
from equipoise.model.result import Findings, FindingTable
from equipoise_studies.ranking import Ranking
from equipoise_studies.study_data import StudyData, factor_text, findings_of, number_text

TIME = "work_s"
"""Seconds of one product or inverse."""
OTHER_FACTORS = ("huge_pages", "threads")
"""Factors besides the library, the task and the size."""
BASE_LEVELS = {"threads": "one", "huge_pages": "off"}
"""Levels of `OTHER_FACTORS` in the comparison of core types."""
CORE_TYPE_SEPARATOR = "_"
"""Separator of a library's name and its core type, in a level such as ``blis_zen``."""
OPERATIONS = {"dgemm": 2.0, "invert": 2.0}
"""Floating point operations, divided by N³; ``invert`` factorises (2/3) and inverts (4/3)."""


def findings(data: StudyData) -> Findings:
    """Return speeds by size, core types, huge pages, and reversals in the order of libraries."""
    tasks, sizes = data.levels("task"), data.levels("size")
    tables = [*(_speeds(data, task) for task in tasks), _core_types(data)]
    paragraphs = [_huge_pages(data)]
    if len(tasks) > 1 and sizes:
        largest = max(sizes, key=float)
        at_largest, libraries = _at_size_without_huge_pages(data, largest), _default_libraries(data)
        ranking = Ranking(
            at_largest, TIME, "task", factor="library", levels=libraries, noun="libraries"
        )
        _, order_paragraph = ranking.sentences()
        paragraphs.append(
            f"At {largest} rows, without huge pages, on one thread: {order_paragraph}"
        )
    return findings_of(tables, paragraphs, _answer(data))


def _answer(data: StudyData) -> str:
    sizes = data.levels("size")
    if not sizes:
        return ""
    task, size = data.levels("task")[0], max(sizes, key=float)
    measured = data.medians(TIME, "library", task=task, size=size)
    defaults = _default_libraries(data)
    medians = {library: measured[library] for library in defaults if library in measured}
    if not medians:
        return ""
    best, slowest = min(medians, key=medians.__getitem__), max(medians, key=medians.__getitem__)
    return (
        f"{task} of {size} rows: {best} is the fastest by the median with "
        f"{_speed(task, size, medians[best])} Gflop/s; the slowest is {slowest} with "
        f"{factor_text(medians[slowest] / medians[best])} in time."
    )


def _at_size_without_huge_pages(data: StudyData, size: str) -> StudyData:
    conditions = tuple(
        condition
        for condition in data.document.conditions
        if condition.levels.get("size") == size
        and condition.levels.get("huge_pages") in (None, "off")
    )
    return StudyData(replace(data.document, conditions=conditions))


def _default_libraries(data: StudyData) -> list[str]:
    """Return the levels without a core type: these libraries choose the core type themselves."""
    libraries = data.levels("library")
    return [library for library in libraries if CORE_TYPE_SEPARATOR not in library]


def _speed(task: str, size: str, median: float | None) -> str:
    """Return the speed in Gflop/s as text; empty without a median time."""
    operations = OPERATIONS.get(task, 0.0) * float(size) ** 3
    return "" if median is None else number_text(operations / median / 1e9)


def _core_types(data: StudyData) -> FindingTable:
    """Return a table of the changes in time if the core type of a library is set by hand."""
    rows: list[tuple[str, ...]] = []
    base_levels = {name: level for name, level in BASE_LEVELS.items() if data.levels(name)}
    for library_level in data.levels("library"):
        library, _, core_type = library_level.partition(CORE_TYPE_SEPARATOR)
        for task, size in itertools.product(data.levels("task"), data.levels("size")):
            levels = {"task": task, "size": size, **base_levels}
            ratio = data.ratio(TIME, "library", library_level, library, **levels)
            if core_type and ratio is not None:
                speed = _speed(task, size, data.median(TIME, **levels, library=library_level))
                change = (factor_text(ratio.ratio), ratio.interval_text())
                rows.append((library, core_type, task, size, speed, *change))
    return FindingTable(
        "core type set by hand, over the library's own choice",
        ("library", "core type", "task", "size", "Gflop/s", "time", "interval"),
        tuple(rows),
        ("Each interval is for a single pair, without a correction for their number.",),
    )


def _speeds(data: StudyData, task: str) -> FindingTable:
    libraries = _default_libraries(data)
    varied = [factor for factor in OTHER_FACTORS if data.levels(factor)]
    rows: list[tuple[str, ...]] = []
    for size, *others in itertools.product(*map(data.levels, ("size", *varied))):
        levels = {"task": task, "size": size, **dict(zip(varied, others, strict=True))}
        medians = data.medians(TIME, "library", **levels)
        cells = [_speed(task, size, medians.get(library)) for library in libraries]
        if any(cells):
            rows.append((size, *others, *cells))
    return FindingTable(
        f"{task}: Gflop/s of the median",
        ("size", *(factor.replace("_", " ") for factor in varied), *libraries),
        tuple(rows),
    )


def _huge_pages(data: StudyData) -> str:
    changes = {
        tuple(levels.values()): ratio
        for levels in data.combinations("task", "size", "library")
        if (ratio := data.ratio(TIME, "huge_pages", "on", "off", **levels)) is not None
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
            f"Huge pages make no certain difference in any of {len(changes)} pairs, on this host, "
            "for these sizes and blocks."
        )
    return (
        f"Huge pages certainly change the time in {len(certain)} of {len(changes)} pairs, without "
        f"a correction for their number: {joined(certain)}."
    )
