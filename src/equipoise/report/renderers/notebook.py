"""A document as a notebook shows it: a small piece of HTML, light or dark.

No colour is set, so that a notebook's own hold; no script and no style sheet.
"""

from __future__ import annotations

import base64
import html
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from equipoise.figures.save import MimeBundle as MimeBundle
from equipoise.figures.save import has_figures, notebook_pictures
from equipoise.model.safe_text import visible
from equipoise.report.document import (
    Answer,
    Bullets,
    Command,
    Document,
    Facts,
    Listing,
    Paragraph,
    Part,
    Section,
    Table,
    Warnings,
    parts_in,
    text_of,
)
from equipoise.report.renderers.markdown import claim_note
from equipoise.report.units import unbroken

if TYPE_CHECKING:
    import altair

_LINE = "border-bottom:1px solid rgba(128,128,128,.4)"


def to_html(document: Document) -> str:
    """Write a document as a piece of HTML for ``_repr_html_``."""
    return parts_to_html(document.parts)


def with_picture(document: Document, draw: Callable[[], altair.LayerChart | None]) -> MimeBundle:
    """Return a document for a notebook: HTML with a chart below it, and the chart by itself.

    The chart is left out where altair or vl-convert is not installed, or there is nothing to draw.
    """
    text_alone = to_html(document)
    chart = draw() if has_figures() else None
    if chart is None:
        return {"text/html": text_alone}, {}
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
    return {"text/html": f"{text_alone}{image}", **pictures}, sizes


def parts_to_html(parts: Iterable[Part]) -> str:
    """Write some parts of a document as a piece of HTML."""
    return f"<div>{''.join(_pieces(parts_in(parts, 'notebook')))}</div>"


def text(plain: str) -> str:
    """Return text as HTML, between tags or within an attribute, whatever it holds."""
    return unbroken(_typed(plain))


def _typed(plain: str) -> str:
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


def _pieces(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        match part:
            case Answer():
                yield from (f"<p>{text(one)}</p>" for one in (part.title, *part.lines) if one)
                for claim in part.claims:
                    yield f"<p><strong>{text(claim.badge)}</strong>: {text(claim.text)}</p>"
                    for note in (claim.because, *claim.remarks):
                        if note:
                            yield f"<p>{text(note)}</p>"
                notes = list(filter(None, map(claim_note, part.claims)))
                if notes:
                    yield _folded("How sure, and of what", _listed(notes))
            case Section():
                within = "".join(_pieces(part.parts))
                if part.folded:
                    yield _folded(part.title, within)
                else:
                    yield f"<p><strong>{text(part.title)}</strong></p>{within}"
            case Table():
                if part.title:
                    yield f"<p><strong>{text(part.title)}</strong></p>"
                yield table(part.headings, ([text_of(cell) for cell in row] for row in part.rows))
                yield from (f"<p>{text(note)}</p>" for note in part.notes)
            case Paragraph():
                yield f"<p>{text(part.text)}</p>"
            case Bullets():
                yield _listed(part.items)
            case Facts():
                yield facts(part.texts("; "))
            case Command():
                yield f"<p>{text(part.purpose)} <code>{_typed(part.line)}</code></p>"
            case Listing():
                lines = "\n".join(map(_typed, part.lines))
                yield f"<pre>{lines}</pre>"
            case Warnings():
                yield from _warnings(part)


def _folded(title: str, within: str) -> str:
    return f"<details><summary>{text(title)}</summary>{within}</details>"


def _listed(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{text(item)}</li>' for item in items)}</ul>"


def _warnings(part: Warnings) -> Iterator[str]:
    for warning in part.first_of_each_code:
        hint = f" Hint: {text(warning.hint)}" if warning.hint else ""
        yield f"<p><strong>Warning</strong>: {text(warning.summary)}{hint}</p>"
    if part.more:
        yield f"<p>And {part.more} warnings more like these.</p>"


def _cell(place: int, content: str) -> str:
    return f'<td style="{_cell_style(place)}">{text(content)}</td>'


def _cell_style(place: int) -> str:
    return f"padding:.2em .6em;text-align:{'right' if place else 'left'}"
