"""Renderer that writes a document as a small piece of HTML for a notebook.

The HTML has no colours, so the light or dark theme of the notebook applies, and no scripts.
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
from equipoise.report.renderers.markdown import statement_note
from equipoise.shared import html
from equipoise.shared.html import text
from equipoise.shared.pictures import MimeBundle as MimeBundle

if TYPE_CHECKING:
    import altair


def to_html(document: Document) -> str:
    """Return a document as a piece of HTML for ``_repr_html_``."""
    return parts_to_html(document.parts)


def with_picture(document: Document, draw: Callable[[], altair.LayerChart | None]) -> MimeBundle:
    """Return two formats for a notebook: HTML with a chart, and the chart alone."""
    return html.with_picture(to_html(document), draw)


def parts_to_html(parts: Iterable[Part]) -> str:
    """Return parts of a document as a piece of HTML."""
    return f"<div>{''.join(_html_pieces(parts_in(parts, 'notebook')))}</div>"


def _html_pieces(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        match part:
            case Answer():
                yield from (f"<p>{text(line)}</p>" for line in (part.title, *part.lines) if line)
                for statement in part.statements:
                    yield f"<p><strong>{text(statement.badge)}</strong>: {text(statement.text)}</p>"
                    for note in (statement.cause_sentence, *statement.remarks):
                        if note:
                            yield f"<p>{text(note)}</p>"
                notes = list(filter(None, map(statement_note, part.statements)))
                if notes:
                    yield html.folded("How sure, and of what", html.bullets(notes))
            case Section():
                inner_html = "".join(_html_pieces(part.parts))
                if part.folded:
                    yield html.folded(part.title, inner_html)
                else:
                    yield f"<p><strong>{text(part.title)}</strong></p>{inner_html}"
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
                yield f"<p>{text(part.purpose)} <code>{html.command(part.line)}</code></p>"
            case Listing():
                lines = "\n".join(map(html.command, part.lines))
                yield f"<pre>{lines}</pre>"
            case Warnings():
                yield from _warnings(part)


def _warnings(part: Warnings) -> Iterator[str]:
    for warning in part.shown_warnings:
        hint = f" Hint: {text(warning.hint)}" if warning.hint else ""
        yield f"<p><strong>Warning</strong>: {text(warning.summary)}{hint}</p>"
    if part.hidden_count:
        yield f"<p>And {part.hidden_count} more warnings like these.</p>"
