"""Interface by which a kind of campaign adds to the result of its comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from equipoise.analysis.assignments import Replace
from equipoise.model.kinds import kind_of
from equipoise.model.record import CampaignWarning, RunRecord
from equipoise.model.result import ResultDocument

if TYPE_CHECKING:
    from equipoise.analysis.comparisons import Blocks
    from equipoise.analysis.redaction import HiddenValues


class KindResult(Struct, frozen=True):
    """Additions of one kind of campaign to the document of its comparisons."""

    fields: dict[str, Any] = field(default_factory=dict)
    """Additional fields of its document, by name."""
    warnings: tuple[CampaignWarning, ...] = ()
    has_own_sentences: bool = False
    """Whether the kind has its own sentences about the comparisons."""
    outcomes: tuple[str, ...] | None = None
    """Outcomes that ended the campaign; ``None`` for the verdicts of its comparisons."""


class AnalysisKind:
    """Analysis of a record; the methods here are those of an ordinary comparison."""

    def document(self, record: RunRecord) -> ResultDocument | None:
        """Return the whole document; ``None`` if it is that of comparisons with additions."""
        return None

    def result(self, record: RunRecord, blocks: Blocks) -> KindResult:
        """Return the kind's additions to a document; ``blocks`` are the decisive blocks."""
        return KindResult()

    keeps_rows_with_failures = False
    """Whether a row with failed trials is still compared with that of another result."""

    def row_metrics(self, document: Any) -> tuple[str, ...]:
        """Return metrics for rows of a reference comparison; a row uses the first that it has."""
        return (document.primary_metric,)

    def replace_in_terms(self, terms: Any, replacement: Replace) -> Any:
        """Replace the values of the variables that texts in the terms set."""
        return terms

    def hide_in_terms(self, terms: Any, hidden: HiddenValues) -> Any:
        """Hide values of the conditions' variables in the terms."""
        return terms

    def hide_in_document(self, document: Any) -> Any:
        """Hide variables in the kind's own parts of a document that was read."""
        return document


def analysis_of(part: object) -> AnalysisKind:
    """Return the analysis for the kind of terms or of a document."""
    return kind_of(part).part("analysis", AnalysisKind)
