"""Rank the levels of a factor on each task, as tables, sentences and charts.

A reversal is a pair of levels. The first level is faster on one task, and the second on another.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from equipoise.model.result import Findings, FindingTable
from equipoise_studies.study_data import Ratio, StudyData, factor_text, findings_of, quantity_text

if TYPE_CHECKING:
    import altair as alt

    from equipoise.figures.gallery import Figure

MAX_REVERSALS = 6
"""Maximum number of reversals that a sentence names."""
HOW_TO_READ = (
    "One line for each choice, from task to task: where two lines cross, the order of the two "
    "reverses. The best on each task is at 1."
)


class RankedLevel(Struct, frozen=True):
    """A level on a task, with its rank among all levels."""

    task: str
    level: str
    median: float
    rank: int
    """Rank by medians, 1 for the fastest; it has no interval."""
    over_best: float
    """Median, divided by the best median on the task."""


class Reversal(Struct, frozen=True):
    """Two levels whose order on one task is reversed on another task."""

    first: str
    second: str
    faster_on: str
    """Task on which the first level is faster."""
    faster: Ratio
    """Ratio of the first to the second level on ``faster_on``, below 1."""
    slower_on: str
    slower: Ratio

    @property
    def is_certain(self) -> bool:
        """Whether both intervals exclude 1. There is no correction for the number of pairs."""
        return self.faster.is_certainly_below and self.slower.is_certainly_above

    @property
    def size(self) -> float:
        """Logarithm of the smaller of the two ratios, each taken as a slowdown."""
        return min(-math.log(self.faster.ratio), math.log(self.slower.ratio))

    def text(self) -> str:
        """Return both ratios with their tasks."""
        return (
            f"{self.first} over {self.second} is {self.faster.text()} on {self.faster_on} and "
            f"{self.slower.text()} on {self.slower_on}"
        )


class Ranking(Struct, frozen=True):
    """A ranking of levels of a factor on each task, by the medians of a metric."""

    data: StudyData
    metric: str
    """Metric whose medians are ranked, such as ``work_s``."""
    task_factor: str
    """Name of the factor whose levels are the tasks."""
    factor: str
    """Factor whose levels are ranked."""
    levels: Sequence[str]
    noun: str
    """Plural noun for the levels, such as ``allocators``."""

    def ranks(self) -> Iterator[RankedLevel]:
        """Yield the levels that ran on each task, fastest first."""
        for task in self.data.levels(self.task_factor):
            medians = self.data.medians(self.metric, self.factor, **{self.task_factor: task})
            fastest_first = sorted(
                (level for level in self.levels if level in medians), key=medians.__getitem__
            )
            for rank, level in enumerate(fastest_first, 1):
                over_best = medians[level] / medians[fastest_first[0]]
                yield RankedLevel(task, level, medians[level], rank, over_best)

    def reversals(self) -> list[Reversal]:
        """Return the pairs of levels whose order reverses between two tasks.

        The typical ratio decides the order of a pair on a task. A reversal names the tasks with the
        smallest and the largest ratio. Certain reversals come first, then larger reversals.
        """
        reversals: list[Reversal] = []
        for first, second in itertools.combinations(self.levels, 2):
            ratios = self.data.ratios(self.metric, self.factor, first, second, by=self.task_factor)
            if not ratios:
                continue
            faster_on = min(ratios, key=lambda task: ratios[task].ratio)
            slower_on = max(ratios, key=lambda task: ratios[task].ratio)
            faster, slower = ratios[faster_on], ratios[slower_on]
            if faster.ratio < 1.0 < slower.ratio:
                reversals.append(Reversal(first, second, faster_on, faster, slower_on, slower))
        return sorted(reversals, key=lambda reversal: (not reversal.is_certain, -reversal.size))

    def table(self) -> FindingTable:
        """Return a table with a row for each level and a column for each task."""
        cells = {
            (ranked.task, ranked.level): f"{ranked.rank}. "
            f"{quantity_text(self.metric, ranked.median)} ({factor_text(ranked.over_best)})"
            for ranked in self.ranks()
        }
        tasks = tuple(dict.fromkeys(task for task, _ in cells))
        ranked_levels = {level for _, level in cells}
        return FindingTable(
            f"Rank of the {self.noun}",
            (self.factor, *tasks),
            tuple(
                (level, *(cells.get((task, level), "") for task in tasks))
                for level in self.levels
                if level in ranked_levels
            ),
            ("the rank and the ratio to the best are of the medians",),
        )

    def sentences(self) -> tuple[str, str]:
        """Return a sentence and a paragraph about the reversals."""
        reversals = self.reversals()
        certain = [reversal for reversal in reversals if reversal.is_certain]
        if not reversals:
            same = f"The order of the {self.noun} is the same on every task."
            return same, same
        if not certain:
            uncertain = f"No pair of {self.noun} certainly reverses its order"
            return f"{uncertain} from task to task.", (
                f"{uncertain}. The medians of {len(reversals)} pairs reverse, most of all "
                f"{reversals[0].text()}."
            )
        pairs, verb = (
            ("one pair", "reverses") if len(certain) == 1 else (f"{len(certain)} pairs", "reverse")
        )
        texts = [reversal.text() for reversal in certain[:MAX_REVERSALS]]
        if len(certain) > MAX_REVERSALS:
            texts.append(f"and {len(certain) - MAX_REVERSALS} more")
        return (
            f"The order of the {self.noun} depends on the task: {pairs} certainly {verb}.",
            f"The order of the {self.noun} certainly reverses in {pairs}: {'; '.join(texts)}. "
            "Benchmark the code that you are going to use.",
        )


def ranking_findings(rankings: Sequence[Ranking]) -> Findings:
    """Return the tables of ranks, and sentences about the reversals."""
    tables = [
        (ranking.table(), *ranking.sentences()) for ranking in rankings if ranking.table().rows
    ]
    return findings_of(
        (table for table, _, _ in tables),
        (paragraph for _, _, paragraph in tables),
        " ".join(answer for _, answer, _ in tables),
    )


def ranking_figures(rankings: Sequence[Ranking]) -> Iterator[Figure]:
    """Yield a chart for each ranking."""
    from equipoise.figures.gallery import Figure

    for ranking in rankings:
        if ranks := list(ranking.ranks()):
            chart = _chart(ranking, ranks)
            yield Figure(ranking.noun.replace(" ", "_"), HOW_TO_READ, chart)


def _chart(ranking: Ranking, ranks: Sequence[RankedLevel]) -> alt.LayerChart:
    import altair as alt

    from equipoise.figures.building import lines_and_points, log_y_axis
    from equipoise.shared.chart_parts import frame

    rows = [{"task": rank.task, "condition": rank.level, "value": rank.over_best} for rank in ranks]
    largest = max(rank.over_best for rank in ranks)
    tasks = list(dict.fromkeys(rank.task for rank in ranks))
    title = f"{ranking.noun[:1].upper()}{ranking.noun[1:]} by task"
    return frame(
        lines_and_points(
            rows,
            alt.X("task:N", title=ranking.task_factor, sort=tasks, axis=alt.Axis(labelAngle=0)),
            log_y_axis("times the best (logarithmic scale)", 1.0, 2.0 * largest),
            list(dict.fromkeys(rank.level for rank in ranks)),
            tooltip=["task:N", "condition:N", "value:Q"],
            point_size=60,
        ),
        title=title,
        description=f"{title}: ratio of medians to the best on each task.",
        height=340,
    )
