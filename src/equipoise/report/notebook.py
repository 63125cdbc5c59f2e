"""A result as a notebook shows it: the verdict, one table, the rest behind a fold."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.model.result import ResultDocument
from equipoise.report.html_table import facts, table, text
from equipoise.report.summary import Sentence, Summary, summary


def to_html(document: ResultDocument) -> str:
    """Write a result as a piece of HTML for ``_repr_html_``."""
    return f"<div>{''.join(_parts(summary(document)))}</div>"


def _parts(told: Summary) -> Iterator[str]:
    for one in told.sentences:
        yield f"<p>{_sentence(one)}</p>"
    yield table(told.table.headings, told.table.rows)
    for warning in told.warnings:
        yield f"<p><strong>Warning</strong>: {text(warning.summary)} Hint: {text(warning.hint)}</p>"
    if told.unsaid_warnings:
        yield f"<p>And {told.unsaid_warnings} warnings more like these.</p>"
    notes = "".join(f"<li>{text(note)}</li>" for note in told.notes)
    yield (
        "<details><summary>How it was measured</summary>"
        f"<ul>{notes}</ul>{facts(told.how)}<p>Again: <code>{text(told.again)}</code></p></details>"
    )


def _sentence(one: Sentence) -> str:
    verdict = f"<strong>{text(one.verdict)}</strong>: " if one.verdict else ""
    return verdict + text(one.words)
