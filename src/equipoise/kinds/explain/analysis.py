"""The terms of a test of causes without the values of environment variables."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from equipoise.analysis.assignments import Replace, with_values_replaced
from equipoise.analysis.kind import AnalysisKind
from equipoise.analysis.redaction import HiddenValues, with_texts_replaced
from equipoise.kinds.explain.terms import ExperimentPlan


class ExplainAnalysis(AnalysisKind):
    """How the record of a test of causes is analysed: as any comparison."""

    def terms_replaced(self, terms: ExperimentPlan, replacement: Replace) -> ExperimentPlan:
        """Return the terms with the values replaced that the advice of interventions sets."""
        attempts = (
            replace(one, advice=one.advice and with_values_replaced(one.advice, replacement))
            for one in terms.attempts
        )
        return replace(terms, attempts=tuple(attempts))

    def terms_hidden(self, terms: ExperimentPlan, hidden: HiddenValues) -> Any:
        """Return the terms without hidden values in any text."""
        return with_texts_replaced(terms, hidden)
