"""Compare thresholds of an allocator by time and memory.

From its threshold on, an allocator takes each block from the kernel and gives it back when it is
freed. One threshold beats another if it is at least as good in time and in memory, and better in
one of them. The thresholds that no other threshold beats are the front.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from equipoise.model.quantities import joined
from equipoise.model.result import Findings, FindingTable
from equipoise_studies.study_data import (
    StudyData,
    findings_of,
    quantity_text,
    ratio_text,
    size_text,
)

TIME, PEAK, RETAINED = "work_s", "peak_bytes", "retained_bytes"
"""Metrics: seconds of the work, largest memory, memory after everything was freed."""
DEFAULT = "default"
"""Level of the factor ``threshold`` without a setting."""


class Point(Struct, frozen=True):
    """Medians of a threshold on a workload."""

    threshold: str
    time_s: float
    peak_bytes: float
    retained_bytes: float | None
    on_front: bool = False
    """Whether no other threshold beats this one."""


PointsByWorkload = Mapping[str, tuple[Point, ...]]
"""The points of each workload, at least one."""


def findings(data: StudyData) -> Findings:
    """Return a table for each workload, and the thresholds on the front of all workloads."""
    points_by_workload = {work: points_of(data, work) for work in data.levels("work")}
    points_by_workload = {work: points for work, points in points_by_workload.items() if points}
    note = "On the front: no other threshold has both a smaller median time and a smaller peak."
    tables = (
        FindingTable(
            f"{work}: time against memory by threshold",
            ("threshold", "time", "over the default", "peak", "retained", ""),
            tuple(_row(data, work, point) for point in points),
            (note,),
        )
        for work, points in points_by_workload.items()
    )
    fronts = [
        {point.threshold for point in points if point.on_front}
        for points in points_by_workload.values()
    ]
    common = sorted(set.intersection(*fronts)) if fronts else []
    return findings_of(
        tables, _paragraphs(points_by_workload, common), _answer(points_by_workload, common)
    )


def points_of(data: StudyData, work: str) -> tuple[Point, ...]:
    """Return a point for each threshold that ran on a workload, and mark the front."""
    all_points: list[Point] = []
    for threshold in data.levels("threshold"):
        levels = {"threshold": threshold, "work": work}
        time_s, peak = data.median(TIME, **levels), data.median(PEAK, **levels)
        if time_s is not None and peak is not None:
            all_points.append(Point(threshold, time_s, peak, data.median(RETAINED, **levels)))
    return tuple(
        replace(point, on_front=not any(_beats(other, point) for other in all_points))
        for point in all_points
    )


def threshold_text(threshold: str) -> str:
    """Return the threshold as text, such as ``16 KB``; the default by its name."""
    return size_text(float(threshold)) if threshold.isdigit() else threshold


def _beats(first: Point, second: Point) -> bool:
    is_as_good = first.time_s <= second.time_s and first.peak_bytes <= second.peak_bytes
    return is_as_good and (first.time_s, first.peak_bytes) != (second.time_s, second.peak_bytes)


def _row(data: StudyData, work: str, point: Point) -> tuple[str, ...]:
    return (
        threshold_text(point.threshold),
        quantity_text(TIME, point.time_s),
        ratio_text(data.ratio(TIME, "threshold", point.threshold, DEFAULT, work=work)),
        quantity_text(PEAK, point.peak_bytes),
        quantity_text(RETAINED, point.retained_bytes),
        "on the front" if point.on_front else "",
    )


def _answer(points_by_workload: PointsByWorkload, common: list[str]) -> str:
    if not points_by_workload:
        return ""
    workloads = "every workload" if len(points_by_workload) > 1 else "the one workload"
    if not common:
        return (
            "No threshold is the best everywhere: none is on the front of time and memory of "
            f"{workloads}."
        )
    return (
        f"On the front of time and memory of {workloads}: {joined(map(threshold_text, common))}, "
        f"of {max(map(len, points_by_workload.values()))} thresholds."
    )


def _paragraphs(points_by_workload: PointsByWorkload, common: list[str]) -> Iterator[str]:
    for work, points in points_by_workload.items():
        fastest = min(points, key=lambda point: point.time_s)
        leanest = min(points, key=lambda point: point.peak_bytes)
        front = joined(threshold_text(point.threshold) for point in points if point.on_front)
        yield (
            f"{work}: fastest at {_summary(fastest)}, least memory at {_summary(leanest)}; on the "
            f"front: {front}."
        )
    if len(points_by_workload) > 1:
        everywhere = (
            f"{joined(map(threshold_text, common))} {'is' if len(common) == 1 else 'are'} on the "
            "front of every workload here."
            if common
            else "None is on the front of every workload here: it depends on the program."
        )
        yield (
            f"Is there an optimal threshold? {everywhere} The fronts compare medians; the verdicts "
            "above show which differences are certain."
        )


def _summary(point: Point) -> str:
    time, peak = quantity_text(TIME, point.time_s), quantity_text(PEAK, point.peak_bytes)
    return f"{threshold_text(point.threshold)} ({time}, peak {peak})"
