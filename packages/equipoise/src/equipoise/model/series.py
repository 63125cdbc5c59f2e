"""Series of other tools: a value for each commit, not measured side by side, and suspicions."""

from __future__ import annotations

import re

from msgspec import Struct

from equipoise.model.revisions import short_name

SERIES_SCHEMA = "equipoise.series/1"
_HASH = re.compile("[0-9a-f]{12,}")


class SeriesPoint(Struct, frozen=True):
    """The value of one commit, as another tool measured it on some day."""

    commit: str
    """Commit as the file names it: a hash, whole or not, a tag or a version."""
    date: str | None
    """Time of the commit or of its report, ISO 8601; null where the file has none."""
    value: float


class Suspicion(Struct, frozen=True):
    """A place where a series may have changed its level: the program or the machine did it."""

    after: str
    """Last commit that is probably on the old level."""
    until: str
    """First commit that is probably on the new level."""
    first: int
    """Place in the series of ``after``, counted from 0."""
    place: int
    """Place of the first value on the new level, where the series fits best."""
    last: int
    """Place of ``until``."""
    before: float
    """The level until then, in the unit of the series."""
    ratio: float
    """The level from then on, over the one before."""
    confirm: str | None
    """Shell line that measures both commits side by side; null where no search is installed."""
    summary: str


class ImportedSeries(Struct, frozen=True):
    """The values of one benchmark over commits, and where its level may have changed."""

    source: str
    """File or folder, as the user typed it."""
    tool: str
    """Tool that wrote the file, with its version where the file has it."""
    benchmark: str
    metric: str
    unit: str | None
    """Unit of the values; null where the file has none."""
    setting: str
    """What else tells series of one benchmark apart: machine, environment, branch; may be empty."""
    points: tuple[SeriesPoint, ...]
    """In the order of the commits as far as the file tells, the oldest first."""
    suspicions: tuple[Suspicion, ...] = ()
    """In the order of the points."""
    notes: tuple[str, ...] = ()
    """Sentences on what was left out."""
    summary: str = ""


class SeriesResult(Struct, frozen=True, kw_only=True):
    """Imported series with their suspicions: the outward form ``equipoise.series/1``."""

    schema: str = SERIES_SCHEMA
    series: tuple[ImportedSeries, ...]
    """Those with suspicions first."""
    min_effect: float
    """Percent by which two levels differ at least, for a suspicion."""
    summary: str
    again: str
    """The shell line that imports them again."""


def shown_commit(name: str) -> str:
    """Return a commit's name as people read it: a hash by its first letters, a tag whole."""
    return short_name(name) if _HASH.fullmatch(name) else name
