"""Series of other tools: a value for each commit, not measured side by side, and suspicions."""

from __future__ import annotations

import re

from msgspec import Struct

from equipoise.model.revisions import short_name

SERIES_SCHEMA = "equipoise.series/1"
_HASH = re.compile("[0-9a-f]{12,}")


class SeriesPoint(Struct, frozen=True):
    """The value of one commit, measured by another tool on some day."""

    commit: str
    """Commit in the file: a hash, whole or not, a tag or a version."""
    date: str | None
    """Time of the commit or of its report, in ISO 8601; null if the file has none."""
    value: float


class Suspicion(Struct, frozen=True):
    """A place where a series may have changed its level, because of the program or the machine."""

    after: str
    """Last commit that is probably on the old level."""
    until: str
    """First commit that is probably on the new level."""
    first: int
    """Place in the series of ``after``, counted from 0."""
    place: int
    """Place of the first value on the new level, by the best fit."""
    last: int
    """Place of ``until``."""
    before: float
    """Level before the change, in the unit of the series."""
    ratio: float
    """Level after the change over the level before."""
    confirm: str | None
    """Shell line that measures both commits side by side; null if no search is installed."""
    summary: str


class ImportedSeries(Struct, frozen=True):
    """The values of one benchmark over commits, and where its level may have changed."""

    source: str
    """File or folder, as the user typed it."""
    tool: str
    """Tool that wrote the file, with its version if the file has it."""
    benchmark: str
    metric: str
    unit: str | None
    """Unit of the values; null if the file has none."""
    setting: str
    """Other facts that distinguish series of one benchmark: machine, environment, branch; may be
    empty."""
    points: tuple[SeriesPoint, ...]
    """Points in the order of the commits, as far as the file has it, the oldest first."""
    suspicions: tuple[Suspicion, ...] = ()
    """Suspicions in the order of the points."""
    notes: tuple[str, ...] = ()
    """Sentences on omitted values."""
    summary: str = ""


class SeriesResult(Struct, frozen=True, kw_only=True):
    """Imported series with their suspicions: the public format ``equipoise.series/1``."""

    schema: str = SERIES_SCHEMA
    series: tuple[ImportedSeries, ...]
    """Series, those with suspicions first."""
    min_effect: float
    """Minimum percentage by which two levels differ at a suspicion."""
    summary: str
    again: str
    """Shell line that imports them again."""


def shown_commit(name: str) -> str:
    """Return a commit's name for readers: the first letters of a hash, a whole tag."""
    return short_name(name) if _HASH.fullmatch(name) else name
