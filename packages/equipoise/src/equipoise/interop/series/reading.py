"""Reads values of many commits from files of other tools, and joins the values to series.

A series has a value of one metric of one benchmark for each commit.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from equipoise.interop.reading import Format, SourceFile, quote, read_by_format
from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import counted
from equipoise.model.series import ImportedSeries, SeriesPoint
from equipoise.shared.safe_text import as_unicode

Target = TypeVar("Target")
"""Type to which decoded JSON is converted."""
MAX_SERIES = 5000
"""Maximum number of series in the files."""
MAX_COMMITS = 10_000
"""Maximum number n of commits in a series; the time to find changes grows with n²."""
_MAX_NAME_LENGTH = 500
"""Maximum length of a name; longer names are cut."""
_REVISION = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_./+@^~-]{0,199}")
"""Name of a commit that does not look like an option of git, and needs no quotes."""


class SeriesValue(Struct, frozen=True):
    """A value of a metric in a commit."""

    benchmark: str
    metric: str
    unit: str | None
    setting: str
    """Other properties of the series, such as the host; may be empty."""
    commit: str
    date: str | None
    """Time in the form of `utc_time`; ``None`` if unknown."""
    value: float
    """Value; infinite or NaN if the benchmark failed."""


class SeriesReading(Struct, frozen=True):
    """The values in a file or folder."""

    tool: str
    """Name of the tool, with its version if the file has it."""
    values: tuple[SeriesValue, ...]
    """Values in the order of the commits, if the file has an order."""
    notes: tuple[str, ...] = ()
    """Sentences on values that were left out."""


def read_series(
    files: Sequence[SourceFile],
    format_name: str | None,
    formats: Mapping[str, Format[SeriesReading]],
) -> tuple[ImportedSeries, ...]:
    """Read files of one tool, and join their values by benchmark, metric and setting.

    A commit with several values gets the median. If all commits have a date, the dates give the
    order, else the files. A benchmark that always failed is left out. If ``format_name`` is
    ``None``, the format is recognised.

    Raise `UnusableInput` if the format of a file is unknown, if no value is finite and above 0, or
    if there are too many series or commits.
    """
    readings = [_read_file(file, format_name, formats) for file in files]
    source = _describe_files(files)
    by_series: dict[tuple[str, str, str | None, str], list[SeriesValue]] = {}
    for value in (value for reading in readings for value in reading.values):
        key = (value.benchmark, value.metric, value.unit, value.setting)
        by_series.setdefault(key, []).append(value)
    if len(by_series) > MAX_SERIES:
        raise UnusableInput(
            f"{source}: {len(by_series)} series are more than the maximum of {MAX_SERIES}",
            hint="give files with fewer benchmarks",
        )
    notes = tuple(dict.fromkeys(note for reading in readings for note in reading.notes))
    tool = readings[-1].tool
    all_series = (_joined_series(source, tool, notes, values) for values in by_series.values())
    series_with_points = tuple(series for series in all_series if series.points)
    if not series_with_points:
        raise UnusableInput(
            f"{source}: no value is finite and greater than 0",
            hint="give files with benchmarks that did not fail",
        )
    return series_with_points


def utc_time(text: object) -> str | None:
    """Return a time as UTC in ISO 8601; ``None`` if the text is not a time in ISO 8601."""
    try:
        time = datetime.fromisoformat(str(text))
        zoned_time = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return zoned_time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return None


def utc_time_of_seconds(seconds: float) -> str | None:
    """Return seconds since 1970 in ISO 8601; ``None`` if they are outside the calendar."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return None


def revision_of_file(path: Path) -> str:
    """Return the revision in the name of a file: v1.2 for ``v1.2.json``."""
    return path.name.removesuffix(path.suffix)


def convert(file: SourceFile, value: object, target: type[Target], tool: str) -> Target:
    """Convert a value of decoded JSON to the type ``target``.

    Raise `UnusableInput`, which names the wrong key, if the value has another type.
    """
    try:
        return msgspec.convert(value, target)
    except (msgspec.ValidationError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise file.error(f"this is not a result of {tool}: {reason}") from error


def _read_file(
    file: SourceFile, format_name: str | None, formats: Mapping[str, Format[SeriesReading]]
) -> SeriesReading:
    message = "the file has no values of commits in a known format"
    file_format, reading = read_by_format(file, format_name, formats, message, "give {}")
    if not reading.values:
        problem = f"this {file_format.name} file has no value of a commit"
        raise file.error(problem, f"give {file_format.written_by}")
    for value in reading.values:
        if _REVISION.fullmatch(value.commit) is None:
            raise file.error(
                f"{quote(value.commit)} does not name a commit",
                "name commits by their hash or their tag",
            )
    return reading


def _describe_files(files: Sequence[SourceFile]) -> str:
    others = f" and {counted(len(files) - 1, 'more file')}" if len(files) > 1 else ""
    return f"{files[0].name}{others}"


def _joined_series(
    source: str, tool: str, notes: tuple[str, ...], values: Sequence[SeriesValue]
) -> ImportedSeries:
    first_value = values[0]
    usable_values = [value for value in values if 0.0 < value.value < math.inf]
    points = list(_points_by_commit(usable_values))
    if len(points) > MAX_COMMITS:
        raise UnusableInput(
            f"{source}: {quote(first_value.benchmark)} has {len(points)} commits, more than "
            f"the maximum of {MAX_COMMITS}",
            hint="give files with fewer commits",
        )
    if all(point.date is not None for point in points):
        points.sort(key=lambda point: point.date or "")
    return ImportedSeries(
        source=source,
        tool=_short_text(tool),
        benchmark=_short_text(first_value.benchmark),
        metric=_short_text(first_value.metric),
        unit=None if first_value.unit is None else _short_text(first_value.unit),
        setting=_short_text(first_value.setting),
        points=tuple(points),
        notes=(*notes, *_left_out_notes(values, points)),
    )


def _points_by_commit(values: Iterable[SeriesValue]) -> Iterator[SeriesPoint]:
    values_by_commit: dict[str, list[SeriesValue]] = {}
    for value in values:
        values_by_commit.setdefault(value.commit, []).append(value)
    for commit, commit_values in values_by_commit.items():
        date = next((value.date for value in commit_values if value.date is not None), None)
        yield SeriesPoint(commit, date, statistics.median(value.value for value in commit_values))


def _left_out_notes(values: Sequence[SeriesValue], points: Sequence[SeriesPoint]) -> Iterator[str]:
    failed_count = sum(not math.isfinite(value.value) for value in values)
    if failed_count:
        yield f"Left out: {counted(failed_count, 'value')} of failed benchmarks."
    nonpositive_count = sum(math.isfinite(value.value) and value.value <= 0.0 for value in values)
    if nonpositive_count:
        yield f"Left out: {counted(nonpositive_count, 'value')} of 0 or less, which have no ratio."
    undated_count = sum(point.date is None for point in points)
    if 0 < undated_count < len(points):
        undated_phrase = f"{counted(undated_count, 'commit')} without a date"
        yield f"{undated_phrase}: commits are in the order of the file."


def _short_text(text: str) -> str:
    return as_unicode(text)[:_MAX_NAME_LENGTH]
