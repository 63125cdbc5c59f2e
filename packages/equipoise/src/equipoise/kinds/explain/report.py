"""The document of a campaign that tests causes: its question."""

from __future__ import annotations

from equipoise.kinds.explain.result import ExplainDocument
from equipoise.report.kind import ReportKind


class ExplainReport(ReportKind):
    """How the document of a test of causes is shown: as a comparison, with its causes."""

    def question(self, document: ExplainDocument) -> str | None:
        """Return what the campaign asks, unless it is held against another result."""
        return "Why do they differ?" if document.against is None else None
