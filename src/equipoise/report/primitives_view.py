"""Operating system primitives as the page shows them: a number of each class, then every row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from equipoise.model.primitives import CLASS
from equipoise.model.result import ConditionResult, ResultDocument
from equipoise.report.primitives import (
    UNKNOWN,
    Processes,
    is_of_primitives,
    metric_of,
    processes_of,
    why_words,
)
from equipoise.report.units import shower, spread_words

HEADINGS = ("Row", "Median", "95 % interval", "Spread", "Processes", "Why")


@dataclass(frozen=True, slots=True)
class Tile:
    """One row that stands for its class on the first screen."""

    group: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class GroupTable:
    """The rows of one class."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    """By the headings."""


@dataclass(frozen=True, slots=True)
class PrimitivesView:
    """In the place of the table of conditions."""

    tiles: tuple[Tile, ...]
    headings: tuple[str, ...]
    tables: tuple[GroupTable, ...]


def primitives_view(document: ResultDocument) -> PrimitivesView | None:
    """Every row in the order of the plan; ``None`` for what is not of primitives."""
    if not is_of_primitives(document):
        return None
    groups: dict[str, list[ConditionResult]] = {}
    for condition in document.conditions:
        group = condition.levels.get(CLASS, document.run.study).replace("_", " ")
        groups.setdefault(group, []).append(condition)
    processes = processes_of(document)
    return PrimitivesView(
        tiles=tuple(_tiles(groups)),
        headings=HEADINGS,
        tables=tuple(
            GroupTable(group, tuple(_cells(one, processes[one.name]) for one in conditions))
            for group, conditions in groups.items()
        ),
    )


def _tiles(groups: dict[str, list[ConditionResult]]) -> Iterator[Tile]:
    """The first row of each class that has a number."""
    for group, conditions in groups.items():
        for one in conditions:
            metric = metric_of(one)
            if metric in one.metrics:
                yield Tile(group, one.name, shower(metric)(one.metrics[metric].median))
                break


def _cells(condition: ConditionResult, processes: Processes) -> tuple[str, ...]:
    metric = metric_of(condition)
    why = why_words(condition, processes)
    if metric not in condition.metrics:
        return (condition.name, *(UNKNOWN,) * 4, why)
    summary, show = condition.metrics[metric], shower(metric)
    low, high = summary.median_ci
    return (
        condition.name,
        show(summary.median),
        UNKNOWN if low is None or high is None else f"{show(low)} to {show(high)}",
        spread_words(summary),
        str(processes.known),
        why,
    )
