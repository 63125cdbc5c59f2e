"""Time against memory for each threshold, and which of them nothing beats in both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from equipoise.model.findings import Findings, FindingTable
from equipoise.model.result import ResultDocument
from equipoise.studies.study_data import StudyData, findings_of, joined, quantity, size_text

TIME, PEAK, RETAINED = "work_s", "peak_bytes", "retained_bytes"
DEFAULT = "default"


class Point(Struct, frozen=True):
    """One threshold on one workload: medians."""

    threshold: str
    time_s: float
    peak_bytes: float
    retained_bytes: float | None
    on_front: bool = False


def findings(document: ResultDocument) -> Findings:
    """Return a table for each workload, and whether one threshold is the best everywhere."""
    measured = StudyData(document)
    works = {work: points(measured, work) for work in measured.levels("work")}
    works = {work: found for work, found in works.items() if found}
    tables = (_table(measured, work, found) for work, found in works.items())
    return findings_of(tables, _paragraphs(works), _answer(list(works.values())))


def points(measured: StudyData, work: str) -> tuple[Point, ...]:
    """Return every threshold that ran on a workload, those on the front marked."""
    found: list[Point] = []
    for threshold in measured.levels("threshold"):
        levels = {"threshold": threshold, "work": work}
        time_s, peak = measured.median(TIME, **levels), measured.median(PEAK, **levels)
        if time_s is not None and peak is not None:
            found.append(Point(threshold, time_s, peak, measured.median(RETAINED, **levels)))
    return tuple(
        replace(one, on_front=not any(_beats(other, one) for other in found)) for one in found
    )


def threshold_text(threshold: str) -> str:
    """Return the threshold as text, such as ``16 KB``; the default by its name."""
    return size_text(float(threshold)) if threshold.isdigit() else threshold


def _beats(one: Point, other: Point) -> bool:
    """Return whether one is at least as good in both and better in one."""
    pairs = (one.time_s, one.peak_bytes), (other.time_s, other.peak_bytes)
    return pairs[0] != pairs[1] and all(a <= b for a, b in zip(*pairs, strict=True))


def _table(measured: StudyData, work: str, found: Sequence[Point]) -> FindingTable:
    rows: list[tuple[str, ...]] = []
    for one in found:
        ratio = measured.ratio(
            TIME,
            {"threshold": one.threshold, "work": work},
            {"threshold": DEFAULT, "work": work},
        )
        rows.append(
            (
                threshold_text(one.threshold),
                quantity(TIME, one.time_s),
                "" if ratio is None else ratio.text(),
                quantity(PEAK, one.peak_bytes),
                quantity(RETAINED, one.retained_bytes),
                "on the front" if one.on_front else "",
            )
        )
    return FindingTable(
        f"{work}: time against memory by threshold",
        ("threshold", "time", "over the default", "peak", "retained", ""),
        tuple(rows),
        ("On the front: no other threshold has both a smaller median time and a smaller peak.",),
    )


def _common_front(works: Iterable[Sequence[Point]]) -> list[str]:
    """Return the thresholds that are on the front of every workload."""
    fronts = [{one.threshold for one in found if one.on_front} for found in works]
    return sorted(set.intersection(*fronts)) if fronts else []


def _answer(works: Sequence[Sequence[Point]]) -> str:
    if not works:
        return ""
    common = _common_front(works)
    which = "every workload" if len(works) > 1 else "the one workload"
    if not common:
        return (
            "No threshold is the best everywhere: none is on the front of time and memory of "
            f"{which}."
        )
    listed = joined(map(threshold_text, common))
    return (
        f"On the front of time and memory of {which}: {listed}, of "
        f"{max(len(found) for found in works)} thresholds."
    )


def _paragraphs(works: dict[str, tuple[Point, ...]]) -> Iterator[str]:
    for work, found in works.items():
        fastest = min(found, key=lambda one: one.time_s)
        leanest = min(found, key=lambda one: one.peak_bytes)
        front = joined(threshold_text(one.threshold) for one in found if one.on_front)
        yield (
            f"{work}: fastest at {threshold_text(fastest.threshold)} "
            f"({quantity(TIME, fastest.time_s)}, peak {quantity(PEAK, fastest.peak_bytes)}), "
            f"leanest at {threshold_text(leanest.threshold)} "
            f"({quantity(TIME, leanest.time_s)}, peak {quantity(PEAK, leanest.peak_bytes)}); "
            f"on the front: {front}."
        )
    common = _common_front(works.values())
    if len(works) > 1:
        yield (
            "Is there an optimal threshold? "
            + (
                f"{joined(map(threshold_text, common))} "
                f"{'is' if len(common) == 1 else 'are'} on the front of every workload here."
                if common
                else "None is on the front of every workload here: it depends on the program."
            )
            + " The fronts are those of medians; the verdicts above say which differences are "
            "certain."
        )
