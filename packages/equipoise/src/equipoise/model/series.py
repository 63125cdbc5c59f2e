"""Series of other tools: one value for each commit, and suspicions that the values changed."""

from __future__ import annotations

import re

from msgspec import Struct

from equipoise.model.revisions import short_name

SERIES_SCHEMA = "equipoise.series/1"
_HASH = re.compile("[0-9a-f]{12,}")


class SeriesPoint(Struct, frozen=True):
    """The value of one commit, measured by another tool, not side by side with other commits."""

    commit: str
    """Name of the commit in the file: a full or short hash, a tag or a version."""
    date: str | None
    """Time of the commit or of its report, in ISO 8601; null if unknown."""
    value: float


class Suspicion(Struct, frozen=True):
    """A possible change of level between two commits, because of the program or the machine."""

    last_old_commit: str
    """Last commit that is probably on the old level."""
    first_new_commit: str
    """First commit that is probably on the new level."""
    last_old_index: int
    """Index of ``last_old_commit`` in the series, from 0."""
    change_index: int
    """Index in the series of the first value on the new level, by the best fit."""
    first_new_index: int
    """Index of ``first_new_commit`` in the series."""
    old_level: float
    """Level before the change, in the unit of the series."""
    ratio: float
    """Level after the change over the level before."""
    confirm_command: str | None
    """Command line that compares both commits side by side; null if `bisect` is not installed."""
    summary: str


class ImportedSeries(Struct, frozen=True):
    """The values of one benchmark over commits, and their suspicions."""

    source: str
    """File or folder, as the user typed it."""
    tool: str
    """Tool that wrote the file, with its version if known."""
    benchmark: str
    metric: str
    unit: str | None
    """Unit of the values; null if unknown."""
    setting: str
    """Facts that distinguish several series of one benchmark, such as machine or branch."""
    points: tuple[SeriesPoint, ...]
    """Points in the order of the commits, if the file has that order, the oldest first."""
    suspicions: tuple[Suspicion, ...] = ()
    """Suspicions in the order of the points."""
    notes: tuple[str, ...] = ()
    """Sentences about omitted values."""
    summary: str = ""


class SeriesResult(Struct, frozen=True, kw_only=True):
    """Imported series with their suspicions: the public format ``equipoise.series/1``."""

    schema: str = SERIES_SCHEMA
    series: tuple[ImportedSeries, ...]
    """All series; first the series with suspicions."""
    min_effect: float
    """Minimum change of the level at a suspicion, in percent."""
    summary: str
    command_line: str
    """Command line that imports the series again."""


def shown_commit(name: str) -> str:
    """Return a commit's name for readers: a short hash, or an unchanged tag."""
    return short_name(name) if _HASH.fullmatch(name) else name
