"""Base class for the report of a kind of campaign, such as `gate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.model.kinds import kind_of
from equipoise.report.document import Claim, Document, Part, Section, Table

if TYPE_CHECKING:
    from equipoise.model.result import ConditionResult
    from equipoise.report.builders.result import CampaignReport

Title = tuple[str, tuple[str, ...]]
"""Sentence above the claims of an answer, and the lines below this sentence."""


class ReportKind:
    """Parts of the report of an ordinary comparison, which a kind of campaign may override.

    The argument ``document`` is a result of this kind: an instance of a subclass of
    `equipoise.model.result.ResultDocument`. If a method returns ``None``, the report has the part
    of an ordinary comparison.
    """

    verb = "measured"
    """Verb before the time of the campaign, such as ``measured`` or ``imported``."""
    scope: str | None = None
    """Scope of the claims of a result without comparisons, such as ``on this host``."""
    first_figures: frozenset[str] = frozenset()
    """Names of the figures directly below the answer."""
    figures_per_comparison: frozenset[str] = frozenset()
    """Names of the figures that exist once for each comparison."""
    repetition_purpose = "The same question with the same coin:"
    """Sentence before the command that runs the campaign again."""

    def scope_of(self, document: Any) -> str | None:
        """Return the scope of the claims of a result without comparisons."""
        return self.scope

    def question(self, document: Any) -> str | None:
        """Return the question that the campaign answers."""
        return None

    def machine(self, document: Any) -> str | None:
        """Return a description of the machines on which the trials ran."""
        return None

    def title(self, document: Any, claims: Sequence[Claim]) -> Title | None:
        """Return the sentence above the claims, and the lines below this sentence."""
        return None

    def tables(self, document: Any) -> Sequence[Table]:
        """Return the tables that replace the table of conditions; none by default."""
        return ()

    def brief_tables(self, document: Any) -> Sequence[Table]:
        """Return the tables that replace `tables` on a terminal without ``--verbose``."""
        return self.tables(document)

    def tiles(self, document: Any) -> Iterator[tuple[str, str]]:
        """Yield names and values that a page shows as large tiles in the answer."""
        yield from ()

    def metric_of(self, document: Any, condition: ConditionResult) -> str:
        """Return the metric whose distribution the report describes."""
        return str(document.primary_metric)

    def document(self, report: CampaignReport) -> Document | None:
        """Return the complete document."""
        return None

    def measured_parts(self, document: Any) -> Iterator[Part]:
        """Build the parts directly before the table of conditions."""
        yield from ()

    def how_it_ran(self, report: CampaignReport) -> Iterator[Part] | None:
        """Build the lines of a terminal that say how the campaign ran."""
        return None

    def origin(self, document: Any) -> str | None:
        """Return the origin of the trials in a few words."""
        return None

    def gap_parts(self, document: Any) -> Iterator[Part]:
        """Build the parts on the gap that this kind found; parts on its causes come later."""
        yield from ()

    def environments(self, document: Any) -> Iterator[Section] | None:
        """Build a section for each environment."""
        return None

    def contradictions(self, document: Any) -> Iterator[str]:
        """Yield a phrase for each impossible value in a document from a file."""
        yield from ()

    def facts(self, document: Any) -> Iterator[tuple[str, str]] | None:
        """Return names and values that describe the campaign."""
        return None


def report_kind(document: object) -> ReportKind:
    """Return the report methods of the kind of campaign of a document."""
    return kind_of(document).part("report", ReportKind)
