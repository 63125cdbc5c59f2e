"""Analyses of kinds of campaigns: each extends or replaces the result document of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from equipoise.analysis.assignments import Replacer
from equipoise.model.kinds import kind_of
from equipoise.model.record import CampaignWarning, RunRecord
from equipoise.model.result import ResultDocument

if TYPE_CHECKING:
    from equipoise.analysis.comparisons import Blocks
    from equipoise.analysis.redaction import TextReplacements


class KindResult(Struct, frozen=True):
    """Additions of a kind of campaign to a result document."""

    fields: dict[str, Any] = field(default_factory=dict)
    """Values of the additional fields of the document, by name."""
    warnings: tuple[CampaignWarning, ...] = ()
    has_own_sentences: bool = False
    """Whether the kind of campaign writes the warnings about its comparisons itself."""
    outcomes: tuple[str, ...] | None = None
    """Outcomes that the kind reports instead of verdicts; ``None`` if it reports verdicts."""


class AnalysisKind:
    """Analysis of a kind of campaign; by default the analysis of a comparison."""

    def document(self, record: RunRecord) -> ResultDocument | None:
        """Return the whole document; if it is ``None``, `result` extends the ordinary document."""
        return None

    def result(self, record: RunRecord, blocks: Blocks) -> KindResult:
        """Return the additions to the document; ``blocks`` are the blocks that are analysed."""
        return KindResult()

    keeps_rows_with_failures = False
    """Whether conditions with failed trials are compared with an earlier result, too."""

    def row_metrics(self, document: Any) -> tuple[str, ...]:
        """Return the metrics on which conditions are compared with an earlier result.

        For each condition, the first metric with a value is used.
        """
        return (document.primary_metric,)

    def replace_in_terms(self, terms: Any, replacement: Replacer) -> Any:
        """Return the terms with replaced values in assignments such as ``NAME=value``."""
        return terms

    def hide_in_terms(self, terms: Any, hidden: TextReplacements) -> Any:
        """Return the terms with hidden values of environment variables."""
        return terms

    def hide_in_document(self, document: Any) -> Any:
        """Return a stored document with hidden values in the fields that this kind adds."""
        return document


def analysis_of(terms_or_document: object) -> AnalysisKind:
    """Return the analysis of the kind of campaign that the terms or the document belong to."""
    return kind_of(terms_or_document).part("analysis", AnalysisKind)
