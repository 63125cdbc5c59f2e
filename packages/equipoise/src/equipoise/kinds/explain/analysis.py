"""The analysis of a recorded experiment, its report and its explanation."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from equipoise.analysis.assignments import Replacer, replace_values
from equipoise.analysis.kind import AnalysisKind
from equipoise.analysis.redaction import TextReplacements, replace_texts
from equipoise.kinds.explain.outcome import tested_causes
from equipoise.kinds.explain.terms import ExperimentPlan, ExplainDocument
from equipoise.model.record import RunRecord
from equipoise.model.why import Explanation
from equipoise.report.kind import KindReport
from equipoise.why.kind import WhyKind


class ExplainAnalysis(AnalysisKind):
    """Analyse an experiment like a comparison, and hide values in its terms."""

    def replace_in_terms(self, terms: ExperimentPlan, replacement: Replacer) -> ExperimentPlan:
        """Return the terms with values replaced in the advice of the interventions."""
        attempts = (
            replace(attempt, advice=attempt.advice and replace_values(attempt.advice, replacement))
            for attempt in terms.attempts
        )
        return replace(terms, attempts=tuple(attempts))

    def hide_in_terms(self, terms: ExperimentPlan, hidden: TextReplacements) -> Any:
        """Return the terms without hidden values in any text."""
        return replace_texts(terms, hidden)


class ExplainWhy(WhyKind):
    """The explanation of an experiment: the causes that it tested."""

    is_experiment = True

    def tested_causes(self, record: RunRecord) -> tuple[Explanation, ...]:
        """Return the causes with the outcomes of their interventions."""
        return tested_causes(record)


class ExplainReport(KindReport):
    """The report of an experiment, which has the sections of a comparison's report."""

    def question(self, document: ExplainDocument) -> str | None:
        """Return the question of the report; ``None`` if there is a reference result."""
        return "Why do they differ?" if document.against is None else None
