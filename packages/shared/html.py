"""Pieces of HTML for notebooks: text, tables and facts, and a chart below them.

No colour is set, so that a notebook's own hold; no script and no style sheet.
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

_LINE = "border-bottom:1px solid rgba(128,128,128,.4)"


def with_picture(piece: str, draw: Callable[[], altair.LayerChart | None]) -> MimeBundle:
    """Return a piece of HTML for a notebook with a chart below it, and the chart by itself.

    The chart is left out where altair or vl-convert is not installed, or there is nothing to draw.
    """
    chart = draw() if has_figures() else None
    if chart is None:
        return {"text/html": piece}, {}
    specification = chart.to_dict(validate=False)
    pictures, sizes = notebook_pictures(specification)
    # As an address a picture shares no id and no style with the notebook around it.
    kind = next(kind for kind in ("image/svg+xml", "image/png") if kind in pictures)
    content = pictures[kind] if kind == "image/png" else pictures[kind].encode()
    address = f"data:{kind};base64,{base64.b64encode(content).decode()}"
    width = round(sizes["image/png"]["width"])
    image = (
        f'<img alt="{text(str(specification["description"]))}" src="{address}" '
        f'style="width:{width}px;max-width:100%">'
    )
    return {"text/html": f"{piece}{image}", **pictures}, sizes


def text(plain: str) -> str:
    """Return text as HTML, between tags or within an attribute, whatever it holds."""
    return unbroken(typed(plain))


def typed(plain: str) -> str:
    """Return a command as HTML: whoever copies it gets the spaces that were typed."""
    return html.escape(visible(plain))


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table under headings: names in the first column, numbers in the others."""
    head = "".join(
        f'<th scope="col" style="{_LINE};{_cell_style(place)}">{text(heading)}</th>'
        for place, heading in enumerate(headings)
    )
    body = "".join(f"<tr>{''.join(map(_cell, itertools.count(), cells))}</tr>" for cells in rows)
    return (
        '<div style="overflow-x:auto"><table style="border-collapse:collapse">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Write names and their values, a line each."""
    body = "".join(
        f'<tr><th scope="row" style="{_cell_style(0)}">{text(name)}</th>{_cell(0, str(value))}</tr>'
        for name, value in pairs
    )
    return f'<table style="border-collapse:collapse"><tbody>{body}</tbody></table>'


def folded(title: str, within: str) -> str:
    """Write a heading that opens what is below it."""
    return f"<details><summary>{text(title)}</summary>{within}</details>"


def bullets(items: Iterable[str]) -> str:
    """Write a list of sentences."""
    return f"<ul>{''.join(f'<li>{text(item)}</li>' for item in items)}</ul>"


def _cell(place: int, content: str) -> str:
    return f'<td style="{_cell_style(place)}">{text(content)}</td>'


def _cell_style(place: int) -> str:
    return f"padding:.2em .6em;text-align:{'right' if place else 'left'}"
