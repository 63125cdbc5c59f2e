"""Imported series: what another tool measured of each commit, and suspicions to confirm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from equipoise.model.history import ImportedSeries, SeriesResult, shown_commit
from equipoise.report.document import (
    PAGE,
    WRITTEN,
    Answer,
    Bullets,
    Command,
    Document,
    Figures,
    NumberRow,
    Origin,
    Paragraph,
    Part,
    Section,
    Table,
    fields_of,
    headed,
)
from equipoise.report.units import byte_count, duration, percent_change, significant

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure

CAVEAT = (
    "These values were not measured side by side: a suspicion may be a change of the machine, of "
    "its load or of the compiler. Its line measures both commits in random order."
)
_MOST_ROWS = 20
"""Number of rows that a terminal shows."""
_MOST_LINES = 5
"""Number of suspicions whose lines a terminal shows; every other form has all."""
_MOST_FIGURES = 12
"""Number of series that are drawn: those with suspicions first."""
_SECONDS = {
    **dict.fromkeys(("s", "seconds"), 1.0),
    **dict.fromkeys(("ns", "nanoseconds", "nanoseconds (ns)"), 1e-9),
}
_BYTES = frozenset({"B", "bytes"})


def series_document(result: SeriesResult) -> Document:
    """Build the document of imported series alone."""
    sources = ", ".join(dict.fromkeys(f"{one.tool}: {one.source}" for one in result.series))
    return Document(
        name="series",
        title="Imported series",
        parts=(
            Answer(result.summary, lines=(CAVEAT,)),
            *series_parts(result.series),
            Section("Do it again", (Command(result.again, "Again:"),), forms=WRITTEN),
        ),
        numbers=tuple(series_numbers(result.series)),
        origin=Origin(f"Where may the level have changed? From {sources}", result.again),
    )


def series_parts(series: Sequence[ImportedSeries]) -> Iterator[Part]:
    """Build the suspicions with their lines, the figures, and a table; nothing without series."""
    if not series:
        return
    suspected = [one for one in series if one.suspicions]
    if suspected:
        rows = (
            {
                "benchmark:name": one.benchmark,
                "change:number": percent_change(suspicion.ratio),
                "level before:number": _with_unit(suspicion.before, one.unit),
                "about at": shown_commit(one.points[suspicion.place].commit),
                "after": shown_commit(suspicion.after),
                "until": shown_commit(suspicion.until),
            }
            for one in suspected
            for suspicion in one.suspicions
        )
        table = Table(*headed(rows), label="Suspicions", most_rows=_MOST_ROWS)
        yield Section("Suspicions, not measured side by side", (table, *_lines(suspected)))
    yield Figures(lambda: _figures(series[:_MOST_FIGURES]), title="Imported series")
    every = (
        {
            "benchmark:name": one.benchmark,
            "metric": f"{one.metric} ({one.unit})" if one.unit else one.metric,
            "measured where:words": one.setting,
            "commits:number": str(len(one.points)),
            "from": shown_commit(one.points[0].commit),
            "to": shown_commit(one.points[-1].commit),
            "suspicions:number": str(len(one.suspicions)),
        }
        for one in series
    )
    yield Table(*headed(every), title="Imported series", most_rows=_MOST_ROWS)
    notes = tuple(dict.fromkeys(note for one in series for note in one.notes))
    if notes:
        yield Bullets(notes)


def series_numbers(series: Iterable[ImportedSeries]) -> Iterator[NumberRow]:
    """Yield a row for each value of each series; ``suspicion`` is the ratio at its place."""
    for one in series:
        ratios = {suspicion.place: suspicion.ratio for suspicion in one.suspicions}
        for place, at in enumerate(one.points):
            yield {
                **fields_of(one, "benchmark", "setting", "metric", "unit"),
                **fields_of(at, "commit", "date", "value"),
                "suspicion": ratios.get(place),
            }


def _lines(suspected: Sequence[ImportedSeries]) -> Iterator[Part]:
    """Build the line of each suspicion; a terminal shows the first ones."""
    lines = [
        Command(suspicion.confirm, f"To confirm {suspicion.summary.removesuffix('.')}:")
        for one in suspected
        for suspicion in one.suspicions
    ]
    yield from lines[:_MOST_LINES]
    rest = lines[_MOST_LINES:]
    if rest:
        yield Paragraph(f"{len(rest)} more lines are in --json and --report.", "dim")
        yield Section("More lines", tuple(rest), folded=True, forms=PAGE)


def _figures(series: Sequence[ImportedSeries]) -> Iterator[Figure]:
    from equipoise.figures import series as chart
    from equipoise.figures.gallery import Figure

    for one in series:
        yield Figure("series", chart.HOW_TO_READ, chart.series(one))


def _with_unit(value: float, unit: str | None) -> str:
    """Return a level with its unit: times and bytes in one that fits."""
    if unit in _SECONDS:
        return duration(value * _SECONDS[unit])
    if unit in _BYTES:
        return byte_count(value)
    return significant(value) if unit is None else f"{significant(value)} {unit}"
