"""What the result of each kind of campaign has beyond comparisons: what a kind may add."""

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
    """What one kind of campaign adds to the document of its comparisons."""

    fields: dict[str, Any] = field(default_factory=dict)
    """Fields that its document has beyond those of every document, by name."""
    warnings: tuple[CampaignWarning, ...] = ()
    has_own_sentences: bool = False
    """Whether the kind has sentences of its own about the comparisons."""
    outcomes: tuple[str, ...] | None = None
    """Outcomes that ended the campaign, if not the verdicts of its comparisons."""


class AnalysisKind:
    """How a record of an ordinary comparison is analysed; a kind overrides what it does instead."""

    def document(self, record: RunRecord) -> ResultDocument | None:
        """Return the whole document; ``None`` if it is that of comparisons with an addition."""
        return None

    def result(self, record: RunRecord, blocks: Blocks) -> KindResult:
        """Return what the kind adds to a document; ``blocks`` are the decisive ones."""
        return KindResult()

    keeps_rows_with_failures = False
    """Whether a row is compared with that of another result though some of its trials failed."""

    def row_metrics(self, document: Any) -> tuple[str, ...]:
        """Return the metrics of which a row, held against another result, has the first it can."""
        return (document.primary_metric,)

    def terms_replaced(self, terms: Any, replacement: Replace) -> Any:
        """Return the terms with the values of the variables that their texts set replaced."""
        return terms

    def terms_hidden(self, terms: Any, hidden: HiddenValues) -> Any:
        """Return the terms without the hidden values of the variables of conditions."""
        return terms

    def document_hidden(self, document: Any) -> Any:
        """Return a document that was read, without hidden variables of the kind's own parts."""
        return document


def analysis_of(part: object) -> AnalysisKind:
    """Return how the kind of terms or of a document is analysed."""
    return kind_of(part).part("analysis", AnalysisKind)
