"""The terms of campaigns over commits without the values of environment variables."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from equipoise.analysis.assignments import (
    Replace,
    with_values_replaced,
)
from equipoise.analysis.kind import AnalysisKind
from equipoise.analysis.redaction import HiddenValues


class CommitsAnalysis(AnalysisKind):
    """What the analyses of all campaigns over commits share."""

    def terms_replaced(self, terms: Any, replacement: Replace) -> Any:
        """Return the terms with the values replaced that its build sets."""
        return replace(
            terms,
            build=terms.build and with_values_replaced(terms.build, replacement),
        )

    def terms_hidden(self, terms: Any, hidden: HiddenValues) -> Any:
        """Return the terms without hidden values in the names of benchmarks."""
        return replace(
            terms,
            benchmarks=tuple(
                replace(one, name=hidden.in_text(one.name)) for one in terms.benchmarks
            ),
        )
