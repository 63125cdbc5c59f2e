"""How the document of each kind of campaign is shown: what a kind may show instead of the usual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.model.kinds import kind_of
from equipoise.report.document import Claim, Document, Part, Section, Table

if TYPE_CHECKING:
    from equipoise.model.result import ConditionResult
    from equipoise.report.builders.result import CampaignReport

Title = tuple[str, tuple[str, ...]]
"""The sentence above the claims of an answer, and the lines below it."""


class ReportKind:
    """How an ordinary comparison is shown; a kind overrides what it shows instead.

    ``document`` is the kind's own `equipoise.model.result.ResultDocument`.
    """

    verb = "measured"
    """Verb for the moment at which the trials came: measured or imported."""
    scope: str | None = None
    """Scope of the claims, where no comparison has it."""
    first_figures: frozenset[str] = frozenset()
    """Names of figures of the kind that are right below the answer."""
    figures_per_comparison: frozenset[str] = frozenset()
    """Names of figures of the kind of which there is one for each comparison."""
    repetition_purpose = "The same question with the same coin:"
    """Sentence before the line that runs the campaign again."""

    def scope_of(self, document: Any) -> str | None:
        """Return the scope of the claims, where no comparison has it."""
        return self.scope

    def question(self, document: Any) -> str | None:
        """Return the question that the campaign answers; ``None`` for that of a comparison."""
        return None

    def machine(self, document: Any) -> str | None:
        """Return where the trials ran; ``None`` for the host of the campaign."""
        return None

    def title(self, document: Any, claims: Sequence[Claim]) -> Title | None:
        """Return the sentence above the claims; ``None`` for that of a comparison."""
        return None

    def tables(self, document: Any) -> Sequence[Table]:
        """Return the tables of rows that replace those of conditions; none by default."""
        return ()

    def brief_tables(self, document: Any) -> Sequence[Table]:
        """Return the tables that replace `tables` on a terminal without ``--verbose``."""
        return self.tables(document)

    def tiles(self, document: Any) -> Iterator[tuple[str, str]]:
        """Yield the names and the values that a page shows first."""
        yield from ()

    def metric_of(self, document: Any, condition: ConditionResult) -> str:
        """Return the metric of which the shape of a condition is shown."""
        return str(document.primary_metric)

    def document(self, report: CampaignReport) -> Document | None:
        """Return the whole document; ``None`` for that of a comparison."""
        return None

    def measured_parts(self, document: Any) -> Iterator[Part]:
        """Build the parts before the conditions."""
        yield from ()

    def how_it_ran(self, report: CampaignReport) -> Iterator[Part] | None:
        """Build the terminal's lines on the campaign; ``None`` for those of a comparison."""
        return None

    def origin(self, document: Any) -> str | None:
        """Return where the trials come from, in a few words; ``None`` for those of a campaign."""
        return None

    def gap_parts(self, document: Any) -> Iterator[Part]:
        """Build what is known of a gap that the kind found, beyond its causes."""
        yield from ()

    def environments(self, document: Any) -> Iterator[Section] | None:
        """Build the environments; ``None`` for that of the campaign."""
        return None

    def contradictions(self, document: Any) -> Iterator[str]:
        """Yield contradictions in a document that was read: no campaign computes them."""
        yield from ()

    def facts(self, document: Any) -> Iterator[tuple[str, str]] | None:
        """Return the facts of the campaign; ``None`` for those of a comparison."""
        return None


def report_kind(document: object) -> ReportKind:
    """Return how the kind of a document is shown."""
    return kind_of(document).part("report", ReportKind)
