"""The result document of a comparison of Python functions, and its analysis."""

from __future__ import annotations

from equipoise.analysis.comparisons import Blocks
from equipoise.analysis.kind import AnalysisKind, KindResult
from equipoise.kinds.functions.terms import FunctionsPlan
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument


class FunctionsDocument(ResultDocument, frozen=True, kw_only=True, tag="functions"):
    """The result document of a comparison of functions."""

    functions: FunctionsPlan
    """Terms of the comparison, such as the number of calls in a batch."""

    @property
    def shares_processes(self) -> bool:
        """Whether the functions ran in one process; always true."""
        return True


class FunctionsAnalysis(AnalysisKind):
    """The analysis of a comparison of functions, which adds the terms to the result."""

    def result(self, record: RunRecord, blocks: Blocks) -> KindResult:
        """Return the terms as an addition to the result."""
        return KindResult({"functions": record.plan.terms})
