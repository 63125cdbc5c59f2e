"""Every form of a campaign's result, as the tests of the forms ask for it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from pathlib import Path

from equipoise.model.record import RunSummary
from equipoise.model.result import ResultDocument
from equipoise.report.builders.result import ReportInput, campaign_document, campaign_documents
from equipoise.report.document import Answer, Document, Form
from equipoise.report.renderers import csv, html, latex, markdown, terminal


def answer_of(document: Document) -> Answer:
    """Return the answer of a document."""
    return next(part for part in document.parts if isinstance(part, Answer))


def breakable(text: str) -> str:
    """Return text with plain spaces where a form has those that no line breaks at.

    So a test can quote a sentence; tests/report/test_unbroken.py has the spaces themselves.
    """
    return text.replace("\N{NO-BREAK SPACE}", " ")


def page(reports: Sequence[ReportInput]) -> str:
    """Return the page of these campaigns."""
    return breakable(html.page(campaign_documents(reports)))


def screen(
    document: ResultDocument,
    *earlier: RunSummary,
    ledger: Path = Path("ledger.db"),
    form: Form = "verbose",
) -> str:
    """Return a result as the screen has it, by default all of it."""
    report = ReportInput(document, ledger=ledger, other_campaigns=earlier)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        terminal.print_document(campaign_document(report), color=False, form=form)
    return printed.getvalue()


def to_markdown(document: ResultDocument) -> str:
    """Return a result in Markdown."""
    return breakable(markdown.to_markdown(campaign_document(ReportInput(document))))


def to_latex(document: ResultDocument) -> str:
    """Return a result in LaTeX."""
    return latex.to_latex(campaign_document(ReportInput(document)))


def to_csv(documents: Sequence[ResultDocument]) -> str:
    """Return the numbers of results."""
    return csv.to_csv([campaign_document(ReportInput(document)) for document in documents])
