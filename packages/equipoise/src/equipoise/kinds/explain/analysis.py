"""The terms of a test of causes without the values of environment variables."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from equipoise.analysis.assignments import (
    Replace,
    named_command_with_values_replaced,
    with_values_replaced,
)
from equipoise.analysis.kind import AnalysisKind
from equipoise.analysis.redaction import HiddenValues, with_texts_replaced
from equipoise.kinds.explain.terms import ExperimentPlan, PlannedIntervention


class ExplainAnalysis(AnalysisKind):
    """How the record of a test of causes is analysed: as any comparison."""

    def terms_replaced(self, terms: ExperimentPlan, replacement: Replace) -> ExperimentPlan:
        """Return the terms with the values replaced that the user's own interventions set."""
        return replace(
            terms, attempts=tuple(_attempt(attempt, replacement) for attempt in terms.attempts)
        )

    def terms_hidden(self, terms: ExperimentPlan, hidden: HiddenValues) -> Any:
        """Return the terms without hidden values in any text."""
        return with_texts_replaced(terms, hidden)


def _attempt(attempt: PlannedIntervention, replacement: Replace) -> PlannedIntervention:
    """Replace the values in the text of an intervention that the user asked for."""
    option, text = attempt.asked_by or ("", "")
    advice = attempt.advice and with_values_replaced(attempt.advice, replacement)
    match option:
        case "--try":
            name, colon, assignment = text.partition(":")
            key, equals, value = assignment.partition("=")
            shown = replacement(key, value) if value else None
            text = text if shown is None else f"{name}{colon}{key}{equals}{shown}"
        case "--try-command":
            text = named_command_with_values_replaced(text, replacement)
        case _:
            return attempt
    return replace(attempt, advice=advice, asked_by=(option, text))
