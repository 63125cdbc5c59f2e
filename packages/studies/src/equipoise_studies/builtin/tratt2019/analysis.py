"""Describe the times of two programs, and show how the minimum can mislead a comparison.

``hashwalk`` walks a hash map until it finds a word. A random seed decides the number of steps.
``wordsearch`` searches a random word in a list, by linear or by binary search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from equipoise.model.result import Comparison, Findings, FindingTable
from equipoise.stats.arrays import FloatArray, shared_ranks
from equipoise_studies.study_data import UNKNOWN, StudyData, findings_of, number_text, quantity_text

TIME, STEPS, WALL = "search_s", "steps", "wall_s"
"""Metrics: seconds of the searches, visited entries or words, seconds of the whole process."""
MIN_RUNS = 10
"""Minimum number of runs of a program for a row or a chart."""
TENTHS = 10
"""Number of equal parts of a range of times, and of the quantiles."""
WALK = {"program": "hashwalk", "algorithm": "linear"}
LINEAR = {"program": "wordsearch", "algorithm": "linear"}
BINARY = {"program": "wordsearch", "algorithm": "binary"}
"""Levels of the three conditions."""
PROGRAMS = (("hashwalk", WALK), ("wordsearch, linear", LINEAR), ("wordsearch, binary", BINARY))
"""Name of each program, with the levels of its condition."""

Rows = Iterator[tuple[str, ...]]
"""Rows of a table, as texts."""


def findings(data: StudyData) -> Findings:
    """Return ranges, histograms and steps of the programs, and statistics of the word searches."""
    tables = (
        FindingTable(
            "Performance points",
            ("program", "runs", "shortest", "median", "longest", "times", "numbers of steps"),
            tuple(_ranges(data)),
            (
                f"{TIME}: the time of the searches, which the program reports; times: the longest "
                "over the shortest; the last column counts different numbers of steps.",
            ),
        ),
        FindingTable(
            "Histogram: the share of the runs in each tenth of the range",
            ("program", *(f"{tenth}." for tenth in range(1, TENTHS + 1))),
            tuple(_tenths(data)),
            (
                "The range is from the 1st to the 99th percentile; a flat histogram has 10 % "
                "everywhere.",
            ),
        ),
        FindingTable(
            "Correlation of steps and time",
            ("program", f"steps and {TIME}", "of their ranks", f"steps and {WALL}"),
            tuple(_correlations(data)),
            ("Pearson's correlation over the runs; one disturbed run hardly affects ranks.",),
        ),
        FindingTable(
            "Linear and binary search by each statistic",
            ("statistic", "linear", "binary", "faster"),
            tuple(_statistic_rows(*(data.values(TIME, **levels) for levels in (LINEAR, BINARY)))),
        ),
    )
    return findings_of(tables, _paragraphs(data), _answer(data))


def correlation(steps: FloatArray, seconds: FloatArray) -> float | None:
    """Return Pearson's correlation of two arrays; ``None`` for few or constant values."""
    if len(steps) != len(seconds) or len(steps) < MIN_RUNS:
        return None
    if np.ptp(steps) == 0 or np.ptp(seconds) == 0:
        return None
    return float(np.corrcoef(steps, seconds)[0, 1])


def rank_correlation(steps: FloatArray, seconds: FloatArray) -> float | None:
    """Return the correlation of the ranks of two arrays of shape (n,)."""
    return correlation(shared_ranks(steps), shared_ranks(seconds))


def shares_of_tenths(values: FloatArray) -> FloatArray:
    """Return the share of the values in each tenth of their range, shape (10,).

    The range is from the 1st to the 99th percentile, so that a disturbed run cannot stretch it.
    """
    low, high = np.quantile(values, [0.01, 0.99])
    inside = values[(values >= low) & (values <= high)]
    counts, _ = np.histogram(inside, bins=TENTHS, range=(float(low), float(high)))
    return np.asarray(counts / max(1, len(inside)), dtype=np.float64)


def _ranges(data: StudyData) -> Rows:
    for name, levels in PROGRAMS:
        values, steps = data.values(TIME, **levels), data.values(STEPS, **levels)
        if len(values) >= MIN_RUNS:
            yield (
                name,
                f"{len(values):,}",
                *_times((values.min(), np.median(values), values.max())),
                number_text(float(values.max() / values.min())),
                f"{len(np.unique(steps)):,}",
            )


def _tenths(data: StudyData) -> Rows:
    for name, levels in PROGRAMS:
        values = data.values(TIME, **levels)
        if len(values) >= MIN_RUNS * TENTHS and np.ptp(values) > 0:
            yield (name, *(f"{100 * share:.0f} %" for share in shares_of_tenths(values)))


def _correlations(data: StudyData) -> Rows:
    for name, levels in PROGRAMS:
        steps, times, walls = (data.values(metric, **levels) for metric in (STEPS, TIME, WALL))
        correlations = (
            correlation(steps, times),
            rank_correlation(steps, times),
            correlation(steps, walls),
        )
        if any(value is not None for value in correlations):
            yield (name, *(UNKNOWN if value is None else f"{value:.3f}" for value in correlations))


def _statistic_rows(linear: FloatArray, binary: FloatArray) -> Rows:
    if min(len(linear), len(binary)) < MIN_RUNS:
        return
    quantiles = {
        "median" if tenth == TENTHS // 2 else f"{10 * tenth} %": tenth / TENTHS
        for tenth in range(1, TENTHS)
    }
    statistics = (
        ("minimum", linear.min(), binary.min()),
        *((name, np.quantile(linear, q), np.quantile(binary, q)) for name, q in quantiles.items()),
        ("mean", linear.mean(), binary.mean()),
    )
    for name, linear_s, binary_s in statistics:
        winner = "linear" if linear_s < binary_s else "binary"
        yield (name, *_times((linear_s, binary_s)), winner)


def _times(seconds: Iterable[np.floating | float]) -> Iterator[str]:
    return (quantity_text(TIME, float(second)) for second in seconds)


def _range(values: FloatArray) -> str:
    return " to ".join(_times((values.min(), values.max())))


def _paragraphs(data: StudyData) -> Iterator[str]:
    walk, steps = data.values(TIME, **WALK), data.values(STEPS, **WALK)
    steps_correlation = correlation(steps, walk)
    if steps_correlation is not None:
        yield (
            f"hashwalk: {len(walk):,} runs took {_range(walk)} with {len(np.unique(steps)):,} "
            f"different numbers of steps; steps and time correlate ({steps_correlation:.3f}, ranks "
            f"{rank_correlation(steps, walk) or 0.0:.3f}). Each process draws the seed of its map, "
            "which decides its time. So no single number is the time of this program, least of all "
            "the minimum."
        )
    comparison = data.comparison(TIME, **BINARY)
    linear, binary = data.values(TIME, **LINEAR), data.values(TIME, **BINARY)
    if comparison is not None and min(len(linear), len(binary)) >= MIN_RUNS:
        yield f"{_verdict_sentence(comparison)} {_minimum_sentences(comparison, linear, binary)}"


def _answer(data: StudyData) -> str:
    comparison = data.comparison(TIME, **BINARY)
    runs = min(len(data.values(TIME, **levels)) for levels in (LINEAR, BINARY))
    if comparison is not None and comparison.ratio is not None and runs >= MIN_RUNS:
        misleads = "would have misled" if comparison.minimum_misleads else "does not mislead"
        return f"{_verdict_sentence(comparison)} The minimum {misleads}."
    walk = data.values(TIME, **WALK)
    if len(walk) < MIN_RUNS:
        return ""
    return f"{len(walk):,} runs of one program took {_range(walk)}: no single number is its time."


def _verdict_sentence(comparison: Comparison) -> str:
    if comparison.ratio is None or comparison.verdict == "undecided":
        return "No verdict yet on linear and binary search."
    winners = {"faster": "Binary search is faster", "slower": "Linear search is faster"}
    start = winners.get(comparison.verdict, f"The verdict is {comparison.verdict!r}")
    return (
        f"{start}: binary search takes {number_text(comparison.ratio)} of linear search's time in "
        f"a typical block ({comparison.blocks:,} blocks)."
    )


def _minimum_sentences(comparison: Comparison, linear: FloatArray, binary: FloatArray) -> str:
    minima = "{} for linear and {} for binary search".format(*_times((linear.min(), binary.min())))
    fast_count = int(np.sum(linear < np.median(binary)))
    runs = (
        f"{fast_count:,} of {len(linear):,} linear runs had a word so near to the front that they "
        "were faster than the median binary search"
    )
    if comparison.minimum_misleads:
        return f"The minimum would have misled: it is {minima}. {runs}, and one is enough."
    return f"The minimum does not mislead this time: it is {minima}. {runs}."
