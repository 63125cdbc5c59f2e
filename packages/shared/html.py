"""Pieces of HTML for notebooks: text, tables and facts, and a chart below them.

The HTML has no script, no style sheet and no colours: the colours of the notebook apply.
"""

from __future__ import annotations

import base64
import html
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from .numbers import unbroken
from .pictures import MimeBundle, has_figures, notebook_pictures
from .safe_text import visible

if TYPE_CHECKING:
    import altair

_HEADING_STYLE = "border-bottom:1px solid rgba(128,128,128,.4)"


def with_picture(content: str, draw: Callable[[], altair.LayerChart | None]) -> MimeBundle:
    """Return HTML for a notebook with a chart below it, and the chart alone.

    The chart is left out if altair or vl-convert is not installed, or there is nothing to draw.
    """
    chart = draw() if has_figures() else None
    if chart is None:
        return {"text/html": content}, {}
    specification = chart.to_dict(validate=False)
    pictures, sizes = notebook_pictures(specification)
    # In a data URL, the ids and styles of a picture cannot affect the notebook.
    mime_type = next(
        mime_type for mime_type in ("image/svg+xml", "image/png") if mime_type in pictures
    )
    picture = pictures[mime_type] if mime_type == "image/png" else pictures[mime_type].encode()
    address = f"data:{mime_type};base64,{base64.b64encode(picture).decode()}"
    width = round(sizes["image/png"]["width"])
    image = (
        f'<img alt="{text(str(specification["description"]))}" src="{address}" '
        f'style="width:{width}px;max-width:100%">'
    )
    return {"text/html": f"{content}{image}", **pictures}, sizes


def text(plain_text: str) -> str:
    """Return any text as HTML, for use between tags or in an attribute."""
    return unbroken(html.escape(visible(plain_text)))


def command(line: str) -> str:
    """Return a command as HTML with all its spaces, so that a reader can copy it."""
    return html.escape(visible(line))


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with headings: names in the first column, numbers in the others."""
    head = "".join(
        f'<th scope="col" style="{_HEADING_STYLE};{_cell_style(column)}">{text(heading)}</th>'
        for column, heading in enumerate(headings)
    )
    body = "".join(f"<tr>{''.join(map(_cell, itertools.count(), cells))}</tr>" for cells in rows)
    return (
        '<div style="overflow-x:auto"><table style="border-collapse:collapse">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Return a table with a line for each name and value."""
    body = "".join(
        f'<tr><th scope="row" style="{_cell_style(0)}">{text(name)}</th>{_cell(0, str(value))}</tr>'
        for name, value in pairs
    )
    return f'<table style="border-collapse:collapse"><tbody>{body}</tbody></table>'


def folded(title: str, content: str) -> str:
    """Return HTML content below a title; a click on the title shows or hides the content."""
    return f"<details><summary>{text(title)}</summary>{content}</details>"


def bullets(items: Iterable[str]) -> str:
    """Return a list of sentences."""
    return f"<ul>{''.join(f'<li>{text(item)}</li>' for item in items)}</ul>"


def _cell(column: int, content: str) -> str:
    return f'<td style="{_cell_style(column)}">{text(content)}</td>'


def _cell_style(column: int) -> str:
    return f"padding:.2em .6em;text-align:{'right' if column else 'left'}"
