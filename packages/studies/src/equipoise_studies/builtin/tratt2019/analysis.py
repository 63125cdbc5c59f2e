"""How many performance points the two programs have, and what the minimum says of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from equipoise.model.result import Comparison, Findings, FindingTable
from equipoise.stats.arrays import FloatArray, shared_ranks
from equipoise_studies.study_data import UNKNOWN, StudyData, findings_of, quantity, short

TIME, STEPS, WALL = "search_s", "steps", "wall_s"
MIN_RUNS = 10
TENTHS = 10
WALK = {"program": "hashwalk", "algorithm": "linear"}
LINEAR = {"program": "wordsearch", "algorithm": "linear"}
BINARY = {"program": "wordsearch", "algorithm": "binary"}
PROGRAMS = (("hashwalk", WALK), ("wordsearch, linear", LINEAR), ("wordsearch, binary", BINARY))

Rows = Iterator[tuple[str, ...]]


def findings(measured: StudyData) -> Findings:
    """Return the range, the flatness and the steps of each program; minimum beside distribution."""
    tables = (
        FindingTable(
            "Performance points",
            ("program", "runs", "shortest", "median", "longest", "times", "numbers of steps"),
            tuple(_ranges(measured)),
            (
                f"{TIME}: the time of the searches, as the program reports it; times: the longest "
                "over the shortest; the last column counts distinct numbers of steps.",
            ),
        ),
        FindingTable(
            "Histogram: the share of the runs in each tenth of the range",
            ("program", *(f"{place}." for place in range(1, TENTHS + 1))),
            tuple(_tenths(measured)),
            (
                "The range is that between the 1st and the 99th percentile; "
                "10 % everywhere is flat.",
            ),
        ),
        FindingTable(
            "Steps and time go together",
            ("program", f"steps and {TIME}", "of their ranks", f"steps and {WALL}"),
            tuple(_correlations(measured)),
            ("Correlation (Pearson) over the runs; among ranks one disturbed run counts little.",),
        ),
        FindingTable(
            "What each number says of linear against binary search",
            ("number", "linear", "binary", "names as faster"),
            tuple(_statistics(*(measured.values(TIME, **one) for one in (LINEAR, BINARY)))),
        ),
    )
    return findings_of(tables, _paragraphs(measured), _answer(measured))


def correlation(steps: FloatArray, seconds: FloatArray) -> float | None:
    """Return Pearson's correlation of two columns of shape (n,); ``None`` if it has none."""
    if len(steps) != len(seconds) or len(steps) < MIN_RUNS:
        return None
    if np.ptp(steps) == 0 or np.ptp(seconds) == 0:
        return None
    return float(np.corrcoef(steps, seconds)[0, 1])


def rank_correlation(steps: FloatArray, seconds: FloatArray) -> float | None:
    """Return the correlation of the ranks of two columns of shape (n,)."""
    return correlation(shared_ranks(steps), shared_ranks(seconds))


def shares_of_tenths(values: FloatArray) -> FloatArray:
    """Return the share of the values in each tenth of their range, cut at the outer percents.

    Shape (10,); a flat distribution has a tenth in each. The outer percents are left out so that
    one disturbed run does not stretch the range.
    """
    low, high = np.quantile(values, [0.01, 0.99])
    inside = values[(values >= low) & (values <= high)]
    counts, _ = np.histogram(inside, bins=TENTHS, range=(float(low), float(high)))
    return np.asarray(counts / max(1, len(inside)), dtype=np.float64)


def _ranges(measured: StudyData) -> Rows:
    for name, levels in PROGRAMS:
        values, steps = measured.values(TIME, **levels), measured.values(STEPS, **levels)
        if len(values) >= MIN_RUNS:
            yield (
                name,
                f"{len(values):,}",
                *_times((values.min(), np.median(values), values.max())),
                short(float(values.max() / values.min())),
                f"{len(np.unique(steps)):,}",
            )


def _tenths(measured: StudyData) -> Rows:
    for name, levels in PROGRAMS:
        values = measured.values(TIME, **levels)
        if len(values) >= MIN_RUNS * TENTHS and np.ptp(values) > 0:
            yield (name, *(f"{100 * share:.0f} %" for share in shares_of_tenths(values)))


def _correlations(measured: StudyData) -> Rows:
    for name, levels in PROGRAMS:
        steps, times, walls = (measured.values(one, **levels) for one in (STEPS, TIME, WALL))
        correlations = (
            correlation(steps, times),
            rank_correlation(steps, times),
            correlation(steps, walls),
        )
        if any(one is not None for one in correlations):
            yield (name, *(UNKNOWN if one is None else f"{one:.3f}" for one in correlations))


def _statistics(linear: FloatArray, binary: FloatArray) -> Rows:
    if min(len(linear), len(binary)) < MIN_RUNS:
        return
    tenths = {
        "median" if tenth == TENTHS // 2 else f"{10 * tenth} %": tenth / TENTHS
        for tenth in range(1, TENTHS)
    }
    statistics = (
        ("minimum", linear.min(), binary.min()),
        *((name, np.quantile(linear, at), np.quantile(binary, at)) for name, at in tenths.items()),
        ("mean", linear.mean(), binary.mean()),
    )
    for name, of_linear, of_binary in statistics:
        winner = "linear" if of_linear < of_binary else "binary"
        yield (name, *_times((of_linear, of_binary)), winner)


def _times(seconds: Iterable[np.floating | float]) -> Iterator[str]:
    return (quantity(TIME, float(second)) for second in seconds)


def _range(values: FloatArray) -> str:
    return " to ".join(_times((values.min(), values.max())))


def _paragraphs(measured: StudyData) -> Iterator[str]:
    walk, steps = measured.values(TIME, **WALK), measured.values(STEPS, **WALK)
    together = correlation(steps, walk)
    if together is not None:
        yield (
            f"hashwalk: {len(walk):,} runs took {_range(walk)} with {len(np.unique(steps)):,} "
            f"different numbers of steps; steps and time go together (correlation {together:.3f}, "
            f"of ranks {rank_correlation(steps, walk) or 0.0:.3f}). Each process draws the seed of "
            "its map, and with it its time: no single number, least of all the minimum, is the "
            "time of this program."
        )
    comparison = measured.comparison(TIME, **BINARY)
    linear, binary = measured.values(TIME, **LINEAR), measured.values(TIME, **BINARY)
    if comparison is not None and min(len(linear), len(binary)) >= MIN_RUNS:
        yield f"{_verdict(comparison)} {_minimum(comparison, linear, binary)}"


def _answer(measured: StudyData) -> str:
    comparison = measured.comparison(TIME, **BINARY)
    fewest = min(len(measured.values(TIME, **one)) for one in (LINEAR, BINARY))
    if comparison is not None and comparison.ratio is not None and fewest >= MIN_RUNS:
        misleads = "would have misled" if comparison.minimum_misleads else "does not mislead"
        return f"{_verdict(comparison)} The minimum {misleads}."
    walk = measured.values(TIME, **WALK)
    if len(walk) < MIN_RUNS:
        return ""
    return f"{len(walk):,} runs of one program took {_range(walk)}: no single number is its time."


def _verdict(comparison: Comparison) -> str:
    if comparison.ratio is None or comparison.verdict == "undecided":
        return "Linear against binary search is undecided so far."
    winners = {"faster": "The verdict is for binary search", "slower": "The verdict is for linear"}
    start = winners.get(comparison.verdict, f"The verdict is {comparison.verdict!r}")
    return (
        f"{start}: binary over linear is {short(comparison.ratio)} in the typical block, over "
        f"{comparison.blocks:,} blocks."
    )


def _minimum(comparison: Comparison, linear: FloatArray, binary: FloatArray) -> str:
    minima = "{} for linear and {} for binary search".format(*_times((linear.min(), binary.min())))
    lucky = int(np.sum(linear < np.median(binary)))
    runs = (
        f"{lucky:,} of {len(linear):,} linear runs had a word so near to the front that they beat "
        "the median binary search"
    )
    if comparison.minimum_misleads:
        return f"The minimum would have misled: it is {minima}. {runs}, and one is enough."
    return f"The minimum does not mislead this time: it is {minima}. {runs}."
