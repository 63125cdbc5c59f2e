"""The order of a factor's levels on each task, and the pairs whose order reverses between tasks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from equipoise.studies.measured import Measured, Ratio


@dataclass(frozen=True, slots=True)
class Ranked:
    """One level on one task."""

    task: str
    level: str
    median: float
    rank: int
    """1 for the fastest; of medians, so without an error of its own."""
    over_best: float


@dataclass(frozen=True, slots=True)
class Reversal:
    """Two levels, the first of which is the faster one on one task and the slower on another."""

    first: str
    second: str
    faster_on: str
    there: Ratio
    """The first over the second where it is faster."""
    slower_on: str
    here: Ratio
    """The first over the second where it is slower."""

    @property
    def is_certain(self) -> bool:
        """Whether both intervals exclude "no difference", each pair of intervals by itself."""
        return self.there.surely_below and self.here.surely_above

    @property
    def size(self) -> float:
        """The smaller of the two effects, in log units."""
        return min(-math.log(self.there.ratio), math.log(self.here.ratio))


def ranks(
    measured: Measured, metric: str, tasks: str, factor: str, levels: Sequence[str]
) -> Iterator[Ranked]:
    """The levels that ran on each task, fastest first.

    Parameters
    ----------
    tasks, factor
        The names of two factors: where the order may differ, and of what.
    levels
        Those that are ranked among each other.
    """
    for task in measured.levels(tasks):
        medians = {
            level: median
            for level in levels
            if (median := measured.median(metric, **{tasks: task, factor: level})) is not None
        }
        best = min(medians.values(), default=math.nan)
        for rank, (level, median) in enumerate(sorted(medians.items(), key=lambda one: one[1]), 1):
            yield Ranked(task, level, median, rank, median / best)


def reversals(
    measured: Measured, metric: str, tasks: str, factor: str, levels: Sequence[str]
) -> list[Reversal]:
    """Every pair of levels whose typical ratio lies on other sides of 1 on two tasks.

    Of each pair the two tasks with the strongest effects; certain ones first, then by size.
    """
    found: list[Reversal] = []
    for first, second in itertools.combinations(levels, 2):
        ratios = {
            task: ratio
            for task in measured.levels(tasks)
            if (
                ratio := measured.ratio(
                    metric, {tasks: task, factor: first}, {tasks: task, factor: second}
                )
            )
            is not None
        }
        if not ratios:
            continue
        fast = min(ratios, key=lambda task: ratios[task].ratio)
        slow = max(ratios, key=lambda task: ratios[task].ratio)
        if ratios[fast].ratio < 1.0 < ratios[slow].ratio:
            found.append(Reversal(first, second, fast, ratios[fast], slow, ratios[slow]))
    return sorted(found, key=lambda one: (not one.is_certain, -one.size))
