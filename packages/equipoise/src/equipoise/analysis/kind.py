"""Interface with which a kind of campaign extends the result document of its comparisons."""

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
    """Additions of one kind of campaign to the result document of its comparisons."""

    fields: dict[str, Any] = field(default_factory=dict)
    """Additional fields of the document, by name."""
    warnings: tuple[CampaignWarning, ...] = ()
    has_own_sentences: bool = False
    """Whether the kind has its own sentences about the comparisons."""
    outcomes: tuple[str, ...] | None = None
    """Outcomes that the kind uses in place of verdicts; ``None`` if it uses the verdicts."""


class AnalysisKind:
    """Analysis of a run record; a kind overrides the methods that differ from a comparison's."""

    def document(self, record: RunRecord) -> ResultDocument | None:
        """Return the kind's own document; ``None`` to extend that of comparisons by `result`."""
        return None

    def result(self, record: RunRecord, blocks: Blocks) -> KindResult:
        """Return the kind's additions to a document, from the blocks that decide the verdict."""
        return KindResult()

    keeps_rows_with_failures = False
    """Whether a row with failed trials is still compared with the same row of another result."""

    def row_metrics(self, document: Any) -> tuple[str, ...]:
        """Return the metrics by which rows are compared with those of a reference result.

        Each row uses the first of these metrics for which it has a value.
        """
        return (document.primary_metric,)

    def replace_in_terms(self, terms: Any, replacement: Replace) -> Any:
        """Return the terms with the values in assignments such as ``NAME=value`` replaced."""
        return terms

    def hide_in_terms(self, terms: Any, hidden: HiddenValues) -> Any:
        """Return the terms with the values of the conditions' environment variables hidden."""
        return terms

    def hide_in_document(self, document: Any) -> Any:
        """Return a stored document with variables hidden in the fields that the kind added."""
        return document


def analysis_of(terms_or_document: object) -> AnalysisKind:
    """Return the analysis of the kind to which the terms or the document belong."""
    return kind_of(terms_or_document).part("analysis", AnalysisKind)
