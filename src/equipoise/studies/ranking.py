"""Conditions ranked by their comparisons, and the ranking as tables and sentences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from equipoise.model.findings import FindingTable
from equipoise.studies.study_data import Ratio, StudyData, quantity, times

if TYPE_CHECKING:
    import altair as alt


class RankedLevel(Struct, frozen=True):
    """One level on one task."""

    task: str
    level: str
    median: float
    rank: int
    """1 for the fastest; of medians, so without an error of its own."""
    over_best: float


class Reversal(Struct, frozen=True):
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
    measured: StudyData, metric: str, tasks: str, factor: str, levels: Sequence[str]
) -> Iterator[RankedLevel]:
    """Yield the levels that ran on each task, fastest first.

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
            yield RankedLevel(task, level, median, rank, median / best)


def reversals(
    measured: StudyData, metric: str, tasks: str, factor: str, levels: Sequence[str]
) -> list[Reversal]:
    """Return every pair of levels whose typical ratio lies on other sides of 1 on two tasks.

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


MOST_REVERSALS = 6

HOW_TO_READ = (
    "One line for each choice, from task to task: where two lines cross, the order of the two "
    "reverses. The best on each task stands at 1."
)

HEIGHT = 340


def rank_table(
    measured: StudyData, metric: str, tasks: str, factor: str, levels: Sequence[str], title: str
) -> FindingTable:
    """Return a row for each level, a column for each task: rank, median and ratio to the best."""
    ranked = {(one.task, one.level): one for one in ranks(measured, metric, tasks, factor, levels)}
    shown = [
        task for task in measured.levels(tasks) if any((task, one) in ranked for one in levels)
    ]
    rows: list[tuple[str, ...]] = []
    for level in levels:
        if not any((task, level) in ranked for task in shown):
            continue
        cells: list[str] = []
        for task in shown:
            one = ranked.get((task, level))
            cells.append(
                ""
                if one is None
                else f"{one.rank}. {quantity(metric, one.median)} ({times(one.over_best)})"
            )
        rows.append((level, *cells))
    return FindingTable(
        title,
        (factor, *shown),
        tuple(rows),
        ("the rank and the ratio to the best are those of the medians",),
    )


def reversal_paragraph(
    measured: StudyData, metric: str, tasks: str, factor: str, levels: Sequence[str], what: str
) -> str:
    """Return where the order of two levels reverses, the certain ones first."""
    found = reversals(measured, metric, tasks, factor, levels)
    certain = [one for one in found if one.is_certain]
    if not found:
        return f"The order of the {what} is the same on every task."
    if not certain:
        return (
            f"The order of the {what} reverses nowhere for certain; pairs whose medians stand in "
            f"another order on another task: {len(found)}, most of all {_reversal_text(found[0])}."
        )
    listed = "; ".join(_reversal_text(one) for one in certain[:MOST_REVERSALS])
    more = len(certain) - MOST_REVERSALS
    return (
        f"The order of the {what} reverses for certain in {_pairs(len(certain))}: {listed}"
        + (f"; and {more} more" if more > 0 else "")
        + ". Benchmark the code that is actually going to be used."
    )


def order_answer(
    measured: StudyData, metric: str, tasks: str, factor: str, levels: Sequence[str], what: str
) -> str:
    """Return whether one order holds on every task, in one sentence."""
    found = reversals(measured, metric, tasks, factor, levels)
    certain = [one for one in found if one.is_certain]
    if certain:
        return (
            f"The order of the {what} depends on the task: {_pairs(len(certain))} "
            f"{'reverses' if len(certain) == 1 else 'reverse'} for certain."
        )
    if found:
        return f"The order of the {what} reverses nowhere for certain from task to task."
    return f"The order of the {what} is the same on every task."


def _pairs(count: int) -> str:
    return "one pair" if count == 1 else f"{count} pairs"


def rank_chart(
    measured: StudyData, metric: str, tasks: str, factor: str, levels: Sequence[str], title: str
) -> alt.LayerChart:
    """Return the ratio to the best on each task, a line for each level."""
    import altair as alt

    from equipoise.figures.building import chart_of, condition_color, condition_shape, frame
    from equipoise.figures.quantity import log_ticks

    rows = [
        {"task": one.task, "condition": one.level, "value": one.over_best}
        for one in ranks(measured, metric, tasks, factor, levels)
    ]
    names = list(dict.fromkeys(str(row["condition"]) for row in rows))
    order = list(dict.fromkeys(str(row["task"]) for row in rows))
    data = chart_of(rows)
    x = alt.X("task:N", title=tasks, sort=order, axis=alt.Axis(labelAngle=0))
    largest = max(float(one.over_best) for one in ranks(measured, metric, tasks, factor, levels))
    y = alt.Y(
        "value:Q",
        title="times the best (logarithmic scale)",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(values=log_ticks(1.0, 2.0 * largest), format="~r"),
    )
    color, shape = condition_color(names), condition_shape(names)
    return frame(
        [
            data.mark_line(strokeWidth=1.5).encode(x=x, y=y, color=color),
            data.mark_point(filled=True, size=60, opacity=1).encode(
                x=x, y=y, color=color, shape=shape, tooltip=["task:N", "condition:N", "value:Q"]
            ),
        ],
        title=title,
        notes=[],
        description=f"{title}: ratio of medians to the best on each task.",
        height=HEIGHT,
    )


def of_each(names: Sequence[str], among: Sequence[str]) -> Iterator[str]:
    """Return those of the names that are among the others, in their order."""
    return (name for name in names if name in among)


def _reversal_text(one: Reversal) -> str:
    return (
        f"{one.first} over {one.second} is {one.there.text()} on {one.faster_on} and "
        f"{one.here.text()} on {one.slower_on}"
    )
