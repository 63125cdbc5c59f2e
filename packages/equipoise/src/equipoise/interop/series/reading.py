"""What other tools' files say of many commits: the values, and the series that they make."""

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

from equipoise.interop.reading import Format, SourceFile, quoted, read_by_format
from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import counted
from equipoise.model.series import ImportedSeries, SeriesPoint
from equipoise.shared.safe_text import as_unicode

Converted = TypeVar("Converted")
MAX_SERIES = 5000
MAX_COMMITS = 10_000
"""Number of commits in one series: change-points take the square of it."""
_MAX_NAME_LETTERS = 500
"""Letters of a name of a file that are kept."""
_REVISION = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_./+@^~-]{0,199}")
"""What may name a commit: no option of git, and nothing that a shell reads."""


class SeriesValue(Struct, frozen=True):
    """One value of one commit."""

    benchmark: str
    metric: str
    unit: str | None
    setting: str
    """What else tells series of one benchmark apart; may be empty."""
    commit: str
    date: str | None
    """As `moment` returns it."""
    value: float
    """Infinite or not a number where the benchmark failed."""


class SeriesReading(Struct, frozen=True):
    """The content of one file or folder."""

    tool: str
    """Tool with its version, as far as the file tells."""
    values: tuple[SeriesValue, ...]
    """In the order of the commits, as far as the file has one."""
    notes: tuple[str, ...] = ()
    """Sentences on what was left out."""


def read_series(
    files: Sequence[SourceFile], chosen: str | None, formats: Mapping[str, Format[SeriesReading]]
) -> tuple[ImportedSeries, ...]:
    """Read files of one tool, and join their values by benchmark, metric and setting.

    A commit with several values has their median. Commits stand in the order of their dates where
    all have one, else in that of the files. A benchmark that always failed is left out.

    Raise `UnusableInput` if a file is of no known format, holds no value that has a ratio, or is
    too large.

    Parameters
    ----------
    chosen
        Name of the format; the content of each file tells if ``None``.
    """
    readings = [_read(file, chosen, formats) for file in files]
    source = _source(files)
    groups: dict[tuple[str, str, str | None, str], list[SeriesValue]] = {}
    for value in (one for reading in readings for one in reading.values):
        key = (value.benchmark, value.metric, value.unit, value.setting)
        groups.setdefault(key, []).append(value)
    if len(groups) > MAX_SERIES:
        raise UnusableInput(
            f"{source}: it holds {len(groups)} series, more than {MAX_SERIES}",
            hint="import fewer benchmarks at a time",
        )
    notes = tuple(dict.fromkeys(note for reading in readings for note in reading.notes))
    every = (_series(source, readings[-1].tool, notes, group) for group in groups.values())
    series = tuple(one for one in every if one.points)
    if not series:
        raise UnusableInput(
            f"{source}: no value in it is finite and greater than 0",
            hint="import benchmarks that did not fail; a change of level is a ratio",
        )
    return series


def moment(text: object) -> str | None:
    """Return a time in ISO 8601, in UTC; ``None`` for what is none. Without a zone it is UTC."""
    try:
        read = datetime.fromisoformat(str(text))
        zoned = read if read.tzinfo is not None else read.replace(tzinfo=UTC)
        return zoned.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return None


def moment_of_seconds(seconds: float) -> str | None:
    """Return seconds since 1970 in ISO 8601; ``None`` where no calendar has them."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return None


def revision_of_file(path: Path) -> str:
    """Return the revision that a file without one inside is named after: ``v1.2.json`` is v1.2."""
    return path.name.removesuffix(path.suffix)


def converted(file: SourceFile, part: object, kind: type[Converted], tool: str) -> Converted:
    """Return a part of decoded JSON as a struct of this kind.

    Raise `UnusableInput` if it is of another kind; the message says where.
    """
    try:
        return msgspec.convert(part, kind)
    except (msgspec.ValidationError, OverflowError) as error:
        raise file.unusable(f"no result of {tool}: {str(error).partition(chr(10))[0]}") from error


def _read(
    file: SourceFile, chosen: str | None, formats: Mapping[str, Format[SeriesReading]]
) -> SeriesReading:
    unknown = "it holds no values over commits in a format that is known here"
    form, reading = read_by_format(file, chosen, formats, unknown, "give {}")
    if not reading.values:
        what = f"no value of a commit is in it ({form.name})"
        raise file.unusable(what, f"give {form.written_by}")
    for value in reading.values:
        if _REVISION.fullmatch(value.commit) is None:
            raise file.unusable(
                f"{quoted(value.commit)} does not name a commit",
                "name commits by their hash or their tag",
            )
    return reading


def _source(files: Sequence[SourceFile]) -> str:
    """Return the names of files in a few words: ``v1.json and 7 more files``."""
    rest = len(files) - 1
    return files[0].name if rest == 0 else f"{files[0].name} and {counted(rest, 'more file')}"


def _series(
    source: str, tool: str, notes: tuple[str, ...], values: Sequence[SeriesValue]
) -> ImportedSeries:
    first = values[0]
    usable = [one for one in values if 0.0 < one.value < math.inf]
    points = list(_points(usable))
    if len(points) > MAX_COMMITS:
        raise UnusableInput(
            f"{source}: {quoted(first.benchmark)} has {len(points)} commits, more than "
            f"{MAX_COMMITS}",
            hint="import fewer commits at a time",
        )
    if all(point.date is not None for point in points):
        points.sort(key=lambda point: point.date or "")
    return ImportedSeries(
        source=source,
        tool=_text(tool),
        benchmark=_text(first.benchmark),
        metric=_text(first.metric),
        unit=None if first.unit is None else _text(first.unit),
        setting=_text(first.setting),
        points=tuple(points),
        notes=(*notes, *_left_out(values, points)),
    )


def _points(values: Iterable[SeriesValue]) -> Iterator[SeriesPoint]:
    """Yield a point for each commit, in the order in which they come."""
    by_commit: dict[str, list[SeriesValue]] = {}
    for one in values:
        by_commit.setdefault(one.commit, []).append(one)
    for commit, several in by_commit.items():
        date = next((one.date for one in several if one.date is not None), None)
        yield SeriesPoint(commit, date, statistics.median(one.value for one in several))


def _left_out(values: Sequence[SeriesValue], points: Sequence[SeriesPoint]) -> Iterator[str]:
    """Yield a sentence on each kind of value without a ratio, and on commits without a date."""
    failed = sum(not math.isfinite(one.value) for one in values)
    if failed:
        yield f"{counted(failed, 'value')} of failed benchmarks left out."
    low = sum(math.isfinite(one.value) and one.value <= 0.0 for one in values)
    if low:
        yield f"{counted(low, 'value')} of 0 or less left out: they have no ratio."
    undated = sum(point.date is None for point in points)
    if 0 < undated < len(points):
        without = f"{counted(undated, 'commit')} without a date"
        yield f"{without}: commits stand in the order of the file."


def _text(text: str) -> str:
    return as_unicode(text)[:_MAX_NAME_LETTERS]
