"""A document as a notebook shows it: a small piece of HTML, light or dark.

No colour is set, so that a notebook's own hold; no script and no style sheet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

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
from equipoise.shared import html
from equipoise.shared.html import text
from equipoise.shared.pictures import MimeBundle as MimeBundle

if TYPE_CHECKING:
    import altair


def to_html(document: Document) -> str:
    """Write a document as a piece of HTML for ``_repr_html_``."""
    return parts_to_html(document.parts)


def with_picture(document: Document, draw: Callable[[], altair.LayerChart | None]) -> MimeBundle:
    """Return a document for a notebook: HTML with a chart below it, and the chart alone."""
    return html.with_picture(to_html(document), draw)


def parts_to_html(parts: Iterable[Part]) -> str:
    """Write some parts of a document as a piece of HTML."""
    return f"<div>{''.join(_pieces(parts_in(parts, 'notebook')))}</div>"


def _pieces(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        match part:
            case Answer():
                yield from (f"<p>{text(line)}</p>" for line in (part.title, *part.lines) if line)
                for claim in part.claims:
                    yield f"<p><strong>{text(claim.badge)}</strong>: {text(claim.text)}</p>"
                    for note in (claim.because, *claim.remarks):
                        if note:
                            yield f"<p>{text(note)}</p>"
                notes = list(filter(None, map(claim_note, part.claims)))
                if notes:
                    yield html.folded("How sure, and of what", html.bullets(notes))
            case Section():
                within = "".join(_pieces(part.parts))
                if part.folded:
                    yield html.folded(part.title, within)
                else:
                    yield f"<p><strong>{text(part.title)}</strong></p>{within}"
            case Table():
                if part.title:
                    yield f"<p><strong>{text(part.title)}</strong></p>"
                yield html.table(
                    part.headings, ([text_of(cell) for cell in row] for row in part.rows)
                )
                yield from (f"<p>{text(note)}</p>" for note in part.notes)
            case Paragraph():
                yield f"<p>{text(part.text)}</p>"
            case Bullets():
                yield html.bullets(part.items)
            case Facts():
                yield html.facts(part.texts("; "))
            case Command():
                yield f"<p>{text(part.purpose)} <code>{html.typed(part.line)}</code></p>"
            case Listing():
                lines = "\n".join(map(html.typed, part.lines))
                yield f"<pre>{lines}</pre>"
            case Warnings():
                yield from _warnings(part)


def _warnings(part: Warnings) -> Iterator[str]:
    for warning in part.first_of_each_code:
        hint = f" Hint: {text(warning.hint)}" if warning.hint else ""
        yield f"<p><strong>Warning</strong>: {text(warning.summary)}{hint}</p>"
    if part.hidden_count:
        yield f"<p>And {part.hidden_count} warnings more like these.</p>"
