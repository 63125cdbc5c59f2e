"""One self-contained page that can be sent: the answer first, then the figures, no request."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from equipoise.figures.gallery import Figure
from equipoise.figures.save import content_policy, script_json, vega_library
from equipoise.report.document import Document, Figures, FlameGraph, Part, Section, parts_in
from equipoise.shared.numbers import unbroken
from equipoise.shared.pictures import MAX_VECTOR_ROWS, require_figures
from equipoise.shared.safe_text import visible_lines
from equipoise.shared.theme import configuration

MAX_FLAME_GRAPH_BYTES = 750_000
"""Bytes; a larger flame graph is left to a file of its own: a page should be small enough to
send."""
_TEMPLATES = Path(__file__).parent.parent / "templates"
_SCRIPTS = ("tables.js", "page.js", "download.js")


def page(documents: Sequence[Document]) -> str:
    """Write documents as one HTML page; the same documents give the same bytes.

    Raise `UnusableInput` if altair or vl-convert is not installed.
    """
    import jinja2
    from markupsafe import Markup, escape

    require_figures()
    charts: list[Chart] = []
    anchored = [
        (
            f"run-{number}",
            document,
            tuple(_with_charts(parts_in(document.parts, "page"), f"run-{number}", charts)),
        )
        for number, document in enumerate(documents, start=1)
    ]
    library = vega_library()
    script = _script()
    figures = {
        "renderer": "svg" if sum(chart.rows for chart in charts) <= MAX_VECTOR_ROWS else "canvas",
        "themes": {theme: configuration(theme) for theme in ("light", "dark")},
        "charts": [
            {"anchor": chart.anchor, "specification": chart.specification} for chart in charts
        ],
        "tables": {name: table for chart in charts for name, table in chart.tables.items()},
    }

    def without_steering(value: object) -> object:
        """Return the text of the page for a value: a name must not turn the text around it."""
        is_text = isinstance(value, str) and not isinstance(value, Markup)
        return unbroken(visible_lines(str(value))) if is_text else value

    def typed(command: str) -> Markup:
        """Return a command: whoever copies it gets the spaces that were typed."""
        return escape(visible_lines(command))

    def label(name: str, anchor: str) -> str:
        """Return the name of a part for a screen reader: no two campaigns of a page share one."""
        several = len(documents) > 1
        return f"{name}, campaign {anchor.removeprefix('run-')}" if several else name

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        finalize=without_steering,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"typed": typed, "label": label}
    text = environment.get_template("page.html.jinja").render(
        documents=anchored,
        # Ours or escaped by script_json; everything else goes through autoescape.
        style=Markup((_TEMPLATES / "page.css").read_text(encoding="utf-8")),
        library=Markup(library),
        script=Markup(script),
        figures=Markup(script_json(_visible_within(figures))),
        policy=content_policy(library, script),
    )
    # A command line may hold bytes that are not text.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _visible_within(value: Any) -> Any:
    """Return nested lists and tables with each text as the page shows it."""
    if isinstance(value, str):
        return visible_lines(value)
    if isinstance(value, dict):
        return {key: _visible_within(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_visible_within(each) for each in value]
    return value


class Chart(Struct, frozen=True):
    """One chart whose tables are separate; ``tables.js`` puts them together again."""

    anchor: str
    specification: dict[str, Any]
    """Names its tables but does not hold them."""
    tables: dict[str, dict[str, Any]]
    """Tables by name; a name is a hash of the content, so equal tables of two charts are one."""
    rows: int


class FigureView(Struct, frozen=True):
    """Place of a figure on the page, and its text."""

    anchor: str
    title: str
    notes: tuple[str, ...]
    how_to_read: str
    description: str
    height: int
    on_paper: bool
    """Whether the figure is printed."""


class DrawnFigures(Struct, frozen=True):
    """Figures of one part with their anchors."""

    kind: ClassVar[str] = "figures"
    title: str
    figures: tuple[FigureView, ...]


class FlameGraphView(Struct, frozen=True):
    """Flame graph as an address that holds it; ``None`` if it is too large for a page."""

    kind: ClassVar[str] = "flame_graph"
    anchor: str
    address: str | None


def packed(anchor: str, specification: dict[str, Any]) -> Chart:
    """Take the tables out of a Vega-Lite specification, and let its width follow the page."""
    tables = specification.get("datasets", {})
    rest = {key: value for key, value in specification.items() if key != "datasets"}
    return Chart(
        anchor=anchor,
        specification={**rest, "width": "container", "datasets": list(tables)},
        tables={name: by_columns(rows) for name, rows in tables.items()},
        rows=sum(len(rows) for rows in tables.values()),
    )


def by_columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Turn rows into columns, which take a third of the bytes.

    A column is a list of values, or of texts ``{"levels": […], "codes": […]}``: the different
    texts and an index for each row. A key that a row lacks reads as null.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return {
        "rows": len(rows),
        "columns": {name: _column([row.get(name) for row in rows]) for name in names},
    }


def _column(values: list[Any]) -> Any:
    if not any(isinstance(value, str | bool) for value in values):
        return values
    levels: dict[Any, int] = {}
    codes = [levels.setdefault(value, len(levels)) for value in values]
    return {"levels": list(levels), "codes": codes}


def _with_charts(
    parts: Iterable[Part], anchor: str, charts: list[Chart]
) -> Iterator[Part | DrawnFigures | FlameGraphView]:
    """Draw the figures among the parts; their charts are added to ``charts``."""
    for part in parts:
        match part:
            case Section():
                within: Any = tuple(_with_charts(part.parts, anchor, charts))
                yield replace(part, parts=within)
            case Figures():
                views = tuple(
                    _placed(
                        figure, anchor, charts, on_paper=figure.name not in part.unprinted_names
                    )
                    for figure in part.figures()
                )
                if views:
                    yield DrawnFigures(part.title, views)
            case FlameGraph():
                small = len(part.svg) <= MAX_FLAME_GRAPH_BYTES
                address = f"data:image/svg+xml;base64,{base64.b64encode(part.svg).decode()}"
                yield FlameGraphView(f"{anchor}-flames", address if small else None)
            case _:
                yield part


def _placed(figure: Figure, anchor: str, charts: list[Chart], *, on_paper: bool) -> FigureView:
    specification: dict[str, Any] = figure.chart.to_dict(validate=False)
    title = specification.pop("title")
    specification.pop("config")
    own = f"{anchor}-{figure.name}-{len(charts) + 1}"
    charts.append(packed(own, specification))
    return FigureView(
        anchor=own,
        title=title["text"],
        notes=tuple(title.get("subtitle", ())),
        how_to_read=figure.how_to_read,
        description=specification["description"],
        height=int(specification["height"]),
        on_paper=on_paper,
    )


def _script() -> str:
    """Return the page's own script: its files share one scope, unseen from outside."""
    parts = [(_TEMPLATES / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    return "\n".join(['(() => {\n"use strict";', *parts, "})();"])
