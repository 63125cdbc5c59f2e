"""Renderer that writes documents as one self-contained HTML page.

The page loads nothing from the network, so it can be sent and kept.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from equipoise.figures.gallery import Figure
from equipoise.figures.save import content_policy, script_json, vega_library
from equipoise.report.document import Document, Figures, FlameGraph, Part, Section, parts_in
from equipoise.shared.numbers import unbroken
from equipoise.shared.pictures import MAX_VECTOR_ROWS, require_figures
from equipoise.shared.safe_text import visible_lines
from equipoise.shared.theme import configuration

if TYPE_CHECKING:
    import jinja2

MAX_FLAME_GRAPH_BYTES = 750_000
"""Maximum size of a flame graph in a page; a page must be small enough to send."""
_MAX_REMEMBERED_TEXTS = 4096
"""Number of texts whose visible form is kept, because the pages of a site share most texts."""
_TEMPLATES_FOLDER = Path(__file__).parent.parent / "templates"
_SCRIPTS = ("tables.js", "page.js", "download.js")
"""Files of the page's script, in the order in which they run."""


def page(documents: Sequence[Document]) -> str:
    """Return documents as one HTML page; the same documents give the same bytes.

    Raise `UnusableInput` if altair or vl-convert is not installed.
    """
    from markupsafe import Markup

    require_figures()
    library = vega_library()
    script = page_script()
    return render_page(
        "page.html.jinja",
        documents,
        # These are our files; Jinja escapes all other values.
        style=Markup(template_text("page.css")),
        library=Markup(library),
        script=Markup(script),
        policy=content_policy(library, script),
    )


def render_page(template: str, documents: Sequence[Document], **context: Any) -> str:
    """Return documents as one HTML page; ``context`` has the other values of the template."""
    from markupsafe import Markup

    charts: list[Chart] = []
    documents_with_anchors = [
        (
            f"run-{number}",
            document,
            tuple(_with_views(parts_in(document.parts, "page"), f"run-{number}", charts)),
        )
        for number, document in enumerate(documents, start=1)
    ]
    text = (
        page_environment(has_several=len(documents) > 1)
        .get_template(template)
        .render(
            documents=documents_with_anchors,
            has_charts=bool(charts),
            figures=Markup(script_json(_with_visible_texts(_figures_data(charts)))),
            **context,
        )
    )
    # A command line may contain bytes that are not Unicode text.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _figures_data(charts: Sequence[Chart]) -> dict[str, Any]:
    """Return the data of all charts, and their themes; without charts there are no themes."""
    row_count = sum(chart.row_count for chart in charts)
    return {
        "renderer": "svg" if row_count <= MAX_VECTOR_ROWS else "canvas",
        "themes": {theme: configuration(theme) for theme in ("light", "dark")} if charts else {},
        "charts": [
            {"anchor": chart.anchor, "specification": chart.specification} for chart in charts
        ],
        "tables": {name: table for chart in charts for name, table in chart.tables.items()},
    }


@functools.cache
def page_environment(*, has_several: bool) -> jinja2.Environment:
    """Return the environment of the templates; it escapes every text.

    If a page ``has_several`` campaigns, the names for screen readers have their numbers.
    """
    import jinja2
    from markupsafe import Markup, escape

    def with_visible_characters(value: object) -> object:
        """Make control characters visible; some of them reverse the text around them."""
        is_text = isinstance(value, str) and not isinstance(value, Markup)
        return readable_text(str(value)) if is_text else value

    def typed(command: str) -> Markup:
        """Return a command with its own spaces, so that a reader can copy it."""
        return escape(visible_lines(command))

    def label(name: str, anchor: str) -> str:
        """Return a name for screen readers that is unique on a page with several campaigns."""
        return f"{name}, campaign {anchor.removeprefix('run-')}" if has_several else name

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES_FOLDER),
        autoescape=True,
        finalize=with_visible_characters,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {"typed": typed, "label": label}
    return environment


@functools.lru_cache(maxsize=_MAX_REMEMBERED_TEXTS)
def readable_text(text: str) -> str:
    """Return a text with visible control characters, and with numbers next to their units."""
    return unbroken(visible_lines(text)).encode("utf-8", "backslashreplace").decode("utf-8")


def _with_visible_texts(value: Any) -> Any:
    if isinstance(value, str):
        return visible_lines(value)
    if isinstance(value, dict):
        return {key: _with_visible_texts(inner_value) for key, inner_value in value.items()}
    if isinstance(value, list | tuple):
        return [_with_visible_texts(inner_value) for inner_value in value]
    return value


class Chart(Struct, frozen=True):
    """Chart and its data tables, which are separate; ``tables.js`` joins them on the page."""

    anchor: str
    """Id of the chart's element on the page."""
    specification: dict[str, Any]
    """Vega-Lite specification with names of tables, but without rows."""
    tables: dict[str, dict[str, Any]]
    """Tables by name. The name is a hash of the content, so charts can share a table."""
    row_count: int
    """Number of rows of all tables."""


class FigureView(Struct, frozen=True):
    """Anchor and texts of a figure on the page."""

    anchor: str
    title: str
    notes: tuple[str, ...]
    how_to_read: str
    """Explanation below the figure."""
    description: str
    height: int
    on_paper: bool


class FiguresView(Struct, frozen=True):
    """The figures of one `Figures` part on the page."""

    kind: ClassVar[str] = "figures"
    title: str
    figures: tuple[FigureView, ...]


class FlameGraphView(Struct, frozen=True):
    """Flame graph on the page."""

    kind: ClassVar[str] = "flame_graph"
    anchor: str
    data_url: str | None
    """Data URL with the picture; ``None`` if the picture is too large for a page."""


def separated_chart(anchor: str, specification: dict[str, Any]) -> Chart:
    """Separate a Vega-Lite specification from its tables; the chart gets the page's width."""
    tables = specification.get("datasets", {})
    other_fields = {key: value for key, value in specification.items() if key != "datasets"}
    return Chart(
        anchor=anchor,
        specification={**other_fields, "width": "container", "datasets": list(tables)},
        tables={name: columns_of_rows(rows) for name, rows in tables.items()},
        row_count=sum(len(rows) for rows in tables.values()),
    )


def columns_of_rows(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Turn rows into columns, which need a third of the bytes.

    A column of numbers is a list. A column of texts is ``{"levels": […], "codes": […]}``: the
    distinct texts, and the index of the text in each row. A missing value becomes null.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return {
        "rows": len(rows),
        "columns": {name: _packed_column([row.get(name) for row in rows]) for name in names},
    }


def _packed_column(values: list[Any]) -> Any:
    if not any(isinstance(value, str | bool) for value in values):
        return values
    levels: dict[Any, int] = {}
    codes = [levels.setdefault(value, len(levels)) for value in values]
    return {"levels": list(levels), "codes": codes}


def _with_views(
    parts: Iterable[Part], anchor: str, charts: list[Chart]
) -> Iterator[Part | FiguresView | FlameGraphView]:
    """Yield the parts, with views in place of figures; add the charts to ``charts``."""
    for part in parts:
        match part:
            case Section():
                inner_parts: Any = tuple(_with_views(part.parts, anchor, charts))
                yield replace(part, parts=inner_parts)
            case Figures():
                views = tuple(
                    _figure_view(
                        figure, anchor, charts, on_paper=figure.name not in part.unprinted_names
                    )
                    for figure in part.figures()
                )
                if views:
                    yield FiguresView(part.title, views)
            case FlameGraph():
                is_small = len(part.svg) <= MAX_FLAME_GRAPH_BYTES
                data_url = f"data:image/svg+xml;base64,{base64.b64encode(part.svg).decode()}"
                yield FlameGraphView(f"{anchor}-flames", data_url if is_small else None)
            case _:
                yield part


def _figure_view(figure: Figure, anchor: str, charts: list[Chart], *, on_paper: bool) -> FigureView:
    """Return the view of a figure on the page; add its chart to ``charts``."""
    specification: dict[str, Any] = figure.chart.to_dict(validate=False)
    title = specification.pop("title")
    specification.pop("config")
    figure_anchor = f"{anchor}-{figure.name}-{len(charts) + 1}"
    charts.append(separated_chart(figure_anchor, specification))
    return FigureView(
        anchor=figure_anchor,
        title=title["text"],
        notes=tuple(title.get("subtitle", ())),
        how_to_read=figure.how_to_read,
        description=specification["description"],
        height=int(specification["height"]),
        on_paper=on_paper,
    )


def template_text(name: str) -> str:
    """Return the text of a file next to the templates."""
    return (_TEMPLATES_FOLDER / name).read_text(encoding="utf-8")


def page_script() -> str:
    """Return the script of a page, which draws its charts and sets its theme."""
    scripts = map(template_text, _SCRIPTS)
    return "\n".join(['(() => {\n"use strict";', *scripts, "})();"])
