"""Conditions ranked by their comparisons, and the ranking as tables, sentences and charts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from equipoise.model.findings import Findings, FindingTable
from equipoise.studies.study_data import Ratio, StudyData, findings_of, quantity, times

if TYPE_CHECKING:
    import altair as alt

    from equipoise.figures.gallery import Figure

MOST_REVERSALS = 6
HOW_TO_READ = (
    "One line for each choice, from task to task: where two lines cross, the order of the two "
    "reverses. The best on each task stands at 1."
)
HEIGHT = 340


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

    def text(self) -> str:
        """Return both ratios with their tasks."""
        return (
            f"{self.first} over {self.second} is {self.there.text()} on {self.faster_on} and "
            f"{self.here.text()} on {self.slower_on}"
        )


class Ranking(Struct, frozen=True):
    """Levels of a factor that are ranked among each other on each task."""

    measured: StudyData
    metric: str
    tasks: str
    """Factor over whose levels the order may differ."""
    factor: str
    levels: Sequence[str]
    what: str
    """Name of the levels in sentences, such as ``allocators``."""

    def ranks(self) -> Iterator[RankedLevel]:
        """Yield the levels that ran on each task, fastest first."""
        for task in self.measured.levels(self.tasks):
            medians = {
                level: median
                for level in self.levels
                if (median := self.measured.median(self.metric, **self._at(task, level)))
                is not None
            }
            best = min(medians.values(), default=math.nan)
            ordered = sorted(medians.items(), key=lambda one: one[1])
            for rank, (level, median) in enumerate(ordered, 1):
                yield RankedLevel(task, level, median, rank, median / best)

    def reversals(self) -> list[Reversal]:
        """Return every pair of levels whose typical ratio lies on other sides of 1 on two tasks.

        Of each pair the two tasks with the strongest effects; certain ones first, then by size.
        """
        found: list[Reversal] = []
        for first, second in itertools.combinations(self.levels, 2):
            ratios = {
                task: ratio
                for task in self.measured.levels(self.tasks)
                if (
                    ratio := self.measured.ratio(
                        self.metric, self._at(task, first), self._at(task, second)
                    )
                )
            }
            if not ratios:
                continue
            fast = min(ratios, key=lambda task: ratios[task].ratio)
            slow = max(ratios, key=lambda task: ratios[task].ratio)
            if ratios[fast].ratio < 1.0 < ratios[slow].ratio:
                found.append(Reversal(first, second, fast, ratios[fast], slow, ratios[slow]))
        return sorted(found, key=lambda one: (not one.is_certain, -one.size))

    def table(self) -> FindingTable:
        """Return a row for each level, a column for each task: rank, median, ratio to the best."""
        cells = {
            (one.task, one.level): f"{one.rank}. {quantity(self.metric, one.median)} "
            f"({times(one.over_best)})"
            for one in self.ranks()
        }
        tasks = tuple(dict.fromkeys(task for task, _ in cells))
        ranked = {level for _, level in cells}
        return FindingTable(
            f"Rank of the {self.what}",
            (self.factor, *tasks),
            tuple(
                (level, *(cells.get((task, level), "") for task in tasks))
                for level in self.levels
                if level in ranked
            ),
            ("the rank and the ratio to the best are those of the medians",),
        )

    def paragraph(self) -> str:
        """Return where the order of two levels reverses, the certain ones first."""
        found = self.reversals()
        certain = [one for one in found if one.is_certain]
        if not found:
            return f"The order of the {self.what} is the same on every task."
        if not certain:
            return (
                f"The order of the {self.what} reverses nowhere for certain; pairs whose medians "
                f"stand in another order on another task: {len(found)}, most of all "
                f"{found[0].text()}."
            )
        listed = "; ".join(one.text() for one in certain[:MOST_REVERSALS])
        more = len(certain) - MOST_REVERSALS
        return (
            f"The order of the {self.what} reverses for certain in {_pairs(len(certain))}: {listed}"
            + (f"; and {more} more" if more > 0 else "")
            + ". Benchmark the code that is actually going to be used."
        )

    def answer(self) -> str:
        """Return whether one order holds on every task, in one sentence."""
        found = self.reversals()
        certain = sum(one.is_certain for one in found)
        if certain:
            return (
                f"The order of the {self.what} depends on the task: {_pairs(certain)} "
                f"{'reverses' if certain == 1 else 'reverse'} for certain."
            )
        if found:
            return f"The order of the {self.what} reverses nowhere for certain from task to task."
        return f"The order of the {self.what} is the same on every task."

    def _at(self, task: str, level: str) -> dict[str, str]:
        return {self.tasks: task, self.factor: level}


def ranking_findings(rankings: Sequence[Ranking]) -> Findings:
    """Return the tables of ranks, and where the orders reverse."""
    shown = [one for one in rankings if one.table().rows]
    return findings_of(
        (one.table() for one in shown),
        (one.paragraph() for one in shown),
        " ".join(one.answer() for one in shown),
    )


def ranking_figures(rankings: Sequence[Ranking]) -> Iterator[Figure]:
    """Yield a chart for each ranking."""
    from equipoise.figures.gallery import Figure

    for one in rankings:
        if one.table().rows:
            yield Figure(one.what.replace(" ", "_"), HOW_TO_READ, _chart(one))


def _chart(ranking: Ranking) -> alt.LayerChart:
    """Draw the ratio to the best on each task, a line for each level."""
    import altair as alt

    from equipoise.figures.building import chart_of, condition_color, condition_shape, frame
    from equipoise.figures.quantity import log_ticks

    ranks = list(ranking.ranks())
    names = list(dict.fromkeys(one.level for one in ranks))
    order = list(dict.fromkeys(one.task for one in ranks))
    data = chart_of(
        [{"task": one.task, "condition": one.level, "value": one.over_best} for one in ranks]
    )
    largest = max(one.over_best for one in ranks)
    x = alt.X("task:N", title=ranking.tasks, sort=order, axis=alt.Axis(labelAngle=0))
    y = alt.Y(
        "value:Q",
        title="times the best (logarithmic scale)",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(values=log_ticks(1.0, 2.0 * largest), format="~r"),
    )
    color, shape = condition_color(names), condition_shape(names)
    title = f"{ranking.what[:1].upper()}{ranking.what[1:]} by task"
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


def _pairs(count: int) -> str:
    return "one pair" if count == 1 else f"{count} pairs"
