"""The report of an imported run: its question, its answer, and the source of its trials.

``SCREEN`` marks parts for the terminal, and ``VERBOSE`` parts for ``--verbose``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from equipoise.kinds.imported.terms import ImportedDocument
from equipoise.model.result import SampleComparison
from equipoise.report.builders.statements import sample_effect
from equipoise.report.document import (
    MAX_STATEMENTS,
    TERMINAL,
    UNKNOWN,
    VERBOSE_TERMINAL,
    Bullets,
    Paragraph,
    Part,
    Statement,
    Table,
    columns_and_rows,
)
from equipoise.report.kind import KindReport, Title

if TYPE_CHECKING:
    from equipoise.report.builders.result import ReportInput

_MAX_ROWS = 60
"""Largest number of comparisons in the terminal's table."""


class ImportedReport(KindReport):
    """The report of an imported run."""

    verb = "imported"

    def question(self, document: ImportedDocument) -> str:
        """Return the question of an imported run."""
        return "What do trials of another tool show?"

    def title(self, document: ImportedDocument, statements: Sequence[Statement]) -> Title | None:
        """Return the number of comparisons as the title; ``None`` if a statement is the answer."""
        if document.against is not None:
            return None
        if len(statements) > MAX_STATEMENTS:
            return f"{len(statements)} comparisons of imported trials", (document.imported.summary,)
        if statements:
            return None
        names = " and ".join(condition.name for condition in document.conditions)
        hint = "add --baseline NAME to equipoise import to compare with one of the conditions"
        return f"{names}: nothing was compared", (hint,)

    def measured_parts(self, document: ImportedDocument) -> Iterator[Part]:
        """Build the terminal's table of comparisons, and the sentence about their intervals."""
        imported = document.imported
        if len(imported.comparisons) > MAX_STATEMENTS:
            rows = columns_and_rows(map(_comparison_row, imported.comparisons))
            yield Table(*rows, max_rows=_MAX_ROWS, forms=TERMINAL)
        if imported.comparisons:
            yield Paragraph(imported.summary, "dim", forms=TERMINAL)

    def how_it_ran(self, report: ReportInput) -> Iterator[Part]:
        """Build the terminal's lines about the files."""
        document = report.result
        assert isinstance(document, ImportedDocument)
        source = document.imported.source
        tool = "a tool that the file does not name" if source.tool is None else source.tool
        files = ", ".join(source.files)
        ledger = f", ledger {report.ledger}" if report.ledger is not None else ""
        yield Bullets(
            (
                f"imported from {files}, measured by {tool}; order: {source.order}",
                f"run {document.run.id}{ledger}",
            ),
            "dim",
            forms=VERBOSE_TERMINAL,
        )

    def origin(self, document: ImportedDocument) -> str:
        """Return the files that the trials come from."""
        return f"imported from {', '.join(document.imported.source.files)}"

    def facts(self, document: ImportedDocument) -> Iterator[tuple[str, str]]:
        """Yield facts about the source of the trials."""
        source = document.imported.source
        yield "Imported", document.run.started
        yield "From", ", ".join(source.files)
        yield "Measured by", source.tool or "unknown"
        yield "Order of the trials", source.order


def _comparison_row(comparison: SampleComparison) -> Mapping[str, str]:
    """Return the cells by heading; ``:name`` and ``:number`` are kinds of columns."""
    ratio, interval = sample_effect(comparison, UNKNOWN, f"none: {comparison.unknown or ''}")
    return {
        "imported:name": comparison.candidate,
        "against": comparison.baseline,
        "ratio:number": ratio,
        "interval": interval,
        "trials": f"{comparison.baseline_trials} : {comparison.candidate_trials}",
    }
