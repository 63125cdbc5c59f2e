"""Suspicions of imported series, each with the line that confirms it side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from equipoise.design.command_line import shell_line
from equipoise.model.history import ImportedSeries, SeriesResult, Suspicion, shown_commit
from equipoise.model.quantities import MOST_NAMES, counted, listed, significant
from equipoise.stats.changes import LEAST_VALUES, LevelChange, level_changes

COMMAND = "COMMAND"
"""Stands for the command in a line, where nobody named it."""
_BIG_FACTOR = 2.0
"""From here on a ratio reads better as "times" than as a percentage."""
_METRICS = {"peakmemory": "max_rss_bytes"}
"""Metrics of other tools under the name that `bisect --metrics` knows."""


def series_result(
    series: Iterable[ImportedSeries],
    *,
    min_effect: float,
    again: str,
    command: Sequence[str] = (),
    build: str | None = None,
) -> SeriesResult:
    """Return series with their suspicions, those that have any first.

    Two levels differ by ``min_effect`` percent at least. ``again`` is the shell line that imports
    the series again; the command and the build line are those of the lines that confirm.
    """
    suspected = [_with_suspicions(one, min_effect, command, build) for one in series]
    suspected.sort(key=lambda one: not one.suspicions)
    return SeriesResult(
        series=tuple(suspected),
        min_effect=min_effect,
        summary=_summary(suspected),
        again=again,
    )


def _with_suspicions(
    series: ImportedSeries, min_effect: float, command: Sequence[str], build: str | None
) -> ImportedSeries:
    changes = level_changes(np.array([point.value for point in series.points]), min_effect)
    suspicions = tuple(_suspicion(series, change, command, build) for change in changes)
    return replace(series, suspicions=suspicions, summary=_summary_of(series, suspicions))


def _suspicion(
    series: ImportedSeries, change: LevelChange, command: Sequence[str], build: str | None
) -> Suspicion:
    after, until = series.points[change.first].commit, series.points[change.last].commit
    at = shown_commit(series.points[change.place].commit)
    ratio = change.ratio
    size = f"×{significant(ratio)}" if ratio >= _BIG_FACTOR else f"{100.0 * (ratio - 1.0):+.1f} %"
    where = f"between {shown_commit(after)} and {shown_commit(until)}"
    return Suspicion(
        after=after,
        until=until,
        first=change.first,
        place=change.place,
        last=change.last,
        before=change.before,
        ratio=change.ratio,
        confirm=shell_line(_confirming(series.metric, after, until, command, build)),
        summary=f"{series.benchmark}: {size} at about {at}, {where}.",
    )


def _confirming(
    metric: str, after: str, until: str, command: Sequence[str], build: str | None
) -> Iterator[str]:
    yield from ("equipoise", "bisect", "--good", after, "--bad", until)
    if build is not None:
        yield from ("--build", build)
    if metric in _METRICS:
        yield from ("--metrics", _METRICS[metric])
    yield from ("--", *(command or (COMMAND,)))


def _summary_of(series: ImportedSeries, suspicions: Sequence[Suspicion]) -> str:
    count = len(series.points)
    if count < LEAST_VALUES:
        return (
            f"{series.benchmark}: {counted(count, 'commit')}, fewer than the {LEAST_VALUES} that a "
            "change of level needs."
        )
    found = counted(len(suspicions), "suspicion") if suspicions else "no suspicion"
    return f"{series.benchmark}: {found} over {count} commits."


def _summary(series: Sequence[ImportedSeries]) -> str:
    """Return in one sentence where the level of a series may have changed."""
    suspected = [one.benchmark for one in series if one.suspicions]
    of_all = counted(len(series), "imported benchmark")
    if not suspected:
        return f"No suspicion in {of_all}: no level changed clearly."
    count = sum(len(one.suspicions) for one in series)
    names = list(dict.fromkeys(suspected))
    named = listed(names, MOST_NAMES)
    return (
        f"{counted(count, 'suspicion')} in {of_all} ({named}): the program or the machine changed."
    )
