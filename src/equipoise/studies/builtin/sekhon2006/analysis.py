"""The article's table and Figure 1, with its own figures beside ours."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.model.findings import Findings, FindingTable
from equipoise.model.result import ResultDocument
from equipoise.stats.arrays import FloatArray
from equipoise.studies.builtin.sekhon2006.claims import answer, claims
from equipoise.studies.builtin.sekhon2006.published import P_VALUES, RATIOS, SECONDS, STANDS_FOR
from equipoise.studies.measured import UNKNOWN, Measured, quantity, short, times

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure

SEARCH = "search_s"
BEST = "best_search_s"
BASELINE = "glibc"
CONDITION = ("algorithm", "rows", "allocator")
SEARCHES = (*CONDITION, "median", "5 to 95 %", "mean of the best", "published")
RATIO = (*CONDITION, "over glibc", "interval", "published", "p", "published", "e-value")
SEARCH_NOTES = (
    "median: of all searches of all trials. mean of the best: the best of a trial's "
    "three searches (--quick: of one), the mean over trials, as the article gave it.",
    "published: of 2006, on the machines of then; "
    + "; ".join(f"{ours} stands for {theirs}" for ours, theirs in STANDS_FOR.items())
    + ".",
)
RATIO_NOTES = (
    "over glibc: the mean of a trial's searches, typical ratio within blocks, with the confidence "
    "sequence at 95 % of this pair; where there is none yet, the range over blocks.",
    "p: the share of all pairs of trials, one of each condition, in which the one with the larger "
    "mean was not the slower one. It counts trials, knows no blocks and no looking; the e-value "
    "does, and 20 is about what p = 0.05 is.",
)


def findings(document: ResultDocument) -> Findings:
    """The table, and which of the article's claims hold here."""
    measured = Measured(document)
    tables = (
        FindingTable(
            "Sekhon (2006), Table 1: time of a search",
            SEARCHES,
            tuple(_search_rows(measured)),
            SEARCH_NOTES,
        ),
        FindingTable(
            "Each allocator over the default", RATIO, tuple(_ratio_rows(measured)), RATIO_NOTES
        ),
    )
    return Findings(
        tuple(table for table in tables if table.rows), tuple(claims(measured)), answer(measured)
    )


def figures(document: ResultDocument) -> Iterator[Figure]:
    """Figure 1, and the ratios to the default, published and ours."""
    from equipoise.figures.gallery import Figure
    from equipoise.studies.builtin.sekhon2006 import charts

    measured = Measured(document)
    lines = tuple(figure_1_rows(measured))
    if lines:
        yield Figure("figure_1", charts.HOW_TO_READ_SECONDS, charts.seconds_chart(lines))
    ratios = tuple(ratio_rows(measured))
    if ratios:
        yield Figure("ratios", charts.HOW_TO_READ_RATIOS, charts.ratios_chart(ratios))


def empirical_p(baseline: FloatArray, candidate: FloatArray) -> float | None:
    """The share of pairs in which the condition with the larger mean is not the slower one.

    Parameters
    ----------
    baseline, candidate
        Shape (n,) and (m,): one value for each trial. Equal values count half.
    """
    if len(baseline) == 0 or len(candidate) == 0:
        return None
    larger, smaller = candidate, baseline
    if np.mean(baseline) > np.mean(candidate):
        larger, smaller = baseline, candidate
    differences = larger[:, None] - smaller[None, :]
    return float((differences < 0).mean() + 0.5 * (differences == 0).mean())


def normalised(seconds: float, rows: int) -> float:
    """Seconds over N² log N, as in Figure 1: N quicksorts of N."""
    return seconds / (rows**2 * math.log(rows))


def figure_1_rows(measured: Measured) -> Iterator[dict[str, Any]]:
    """The mean of the best search over N² log N, for each condition."""
    for algorithm, rows, allocator in _conditions(measured):
        best = measured.values(BEST, algorithm=algorithm, rows=rows, allocator=allocator)
        if len(best):
            yield {
                "algorithm": algorithm,
                "condition": allocator,
                "rows": int(rows),
                "value": normalised(float(best.mean()), int(rows)) * 1e9,
                "source": "here",
            }
    for (algorithm, rows, allocator), seconds in SECONDS.items():
        if algorithm in measured.levels("algorithm"):
            yield {
                "algorithm": algorithm,
                "condition": allocator,
                "rows": int(rows),
                "value": normalised(seconds, int(rows)) * 1e9,
                "source": "published in 2006",
            }


def ratio_rows(measured: Measured) -> Iterator[dict[str, Any]]:
    """Each allocator over the default: ours, and what was published."""
    for algorithm, rows, allocator in _conditions(measured):
        levels = {"algorithm": algorithm, "rows": rows}
        ratio = measured.ratio(
            SEARCH, {**levels, "allocator": allocator}, {**levels, "allocator": BASELINE}
        )
        if ratio is not None:
            low, high = ratio.ratio_ci
            yield {
                "algorithm": algorithm,
                "condition": allocator,
                "rows": int(rows),
                "value": ratio.ratio,
                "low": ratio.least if low is None else low,
                "high": ratio.most if high is None else high,
                "source": "here",
            }
    for (algorithm, rows, allocator), published in RATIOS.items():
        if algorithm in measured.levels("algorithm"):
            yield {
                "algorithm": algorithm,
                "condition": allocator,
                "rows": int(rows),
                "value": published,
                "low": published,
                "high": published,
                "source": "published in 2006",
            }


def _conditions(measured: Measured) -> Iterator[tuple[str, str, str]]:
    for algorithm in measured.levels("algorithm"):
        for rows in measured.levels("rows"):
            for allocator in measured.levels("allocator"):
                found = measured.condition(algorithm=algorithm, rows=rows, allocator=allocator)
                if found is not None:
                    yield algorithm, rows, allocator


def _search_rows(measured: Measured) -> Iterator[tuple[str, ...]]:
    for key in _conditions(measured):
        algorithm, rows, allocator = key
        levels = {"algorithm": algorithm, "rows": rows, "allocator": allocator}
        searches = measured.iterations(SEARCH, **levels)
        best = measured.values(BEST, **levels)
        if len(searches) and len(best):
            low, middle, high = (float(one) for one in np.quantile(searches, [0.05, 0.5, 0.95]))
            yield (
                *key,
                quantity(SEARCH, middle),
                f"{quantity(SEARCH, low)} to {quantity(SEARCH, high)}",
                quantity(SEARCH, float(best.mean())),
                quantity(SEARCH, SECONDS[key]) if key in SECONDS else "",
            )


def _ratio_rows(measured: Measured) -> Iterator[tuple[str, ...]]:
    for key in _conditions(measured):
        algorithm, rows, allocator = key
        above = {"algorithm": algorithm, "rows": rows, "allocator": allocator}
        below = {**above, "allocator": BASELINE}
        ratio = measured.ratio(SEARCH, above, below)
        if ratio is not None:
            p_value = empirical_p(measured.values(BEST, **below), measured.values(BEST, **above))
            yield (
                *key,
                times(ratio.ratio),
                ratio.interval_words(),
                times(RATIOS[key]) if key in RATIOS else "",
                UNKNOWN if p_value is None else f"{p_value:.2f}",
                P_VALUES.get(key, ""),
                short(ratio.e_value),
            )
