"""The analysis of a recorded test of causes, and its report."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from equipoise.analysis.assignments import Replace, with_values_replaced
from equipoise.analysis.kind import AnalysisKind
from equipoise.analysis.redaction import HiddenValues, with_texts_replaced
from equipoise.kinds.explain.outcome import tested_causes
from equipoise.kinds.explain.terms import ExperimentPlan, ExplainDocument
from equipoise.model.record import RunRecord
from equipoise.model.why import Explanation
from equipoise.report.kind import ReportKind
from equipoise.why.kind import WhyKind


class ExplainAnalysis(AnalysisKind):
    """The analysis of a test of causes, which is that of a comparison."""

    def terms_replaced(self, terms: ExperimentPlan, replacement: Replace) -> ExperimentPlan:
        """Return the terms with values replaced in the advice of interventions."""
        attempts = (
            replace(
                attempt, advice=attempt.advice and with_values_replaced(attempt.advice, replacement)
            )
            for attempt in terms.attempts
        )
        return replace(terms, attempts=tuple(attempts))

    def terms_hidden(self, terms: ExperimentPlan, hidden: HiddenValues) -> Any:
        """Return the terms without hidden values in any text."""
        return with_texts_replaced(terms, hidden)


class ExplainWhy(WhyKind):
    """The explanation of a test of causes: the causes that it tested."""

    tests_causes = True

    def causes(self, record: RunRecord) -> tuple[Explanation, ...]:
        """Return the causes with the outcomes of their interventions."""
        return tested_causes(record)


class ExplainReport(ReportKind):
    """The report of a test of causes, which is that of a comparison with its causes."""

    def question(self, document: ExplainDocument) -> str | None:
        """Return the question of the campaign, unless it has a reference result."""
        return "Why do they differ?" if document.against is None else None
