"""Base class for the report of a kind of campaign, such as `gate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.model.kinds import kind_of
from equipoise.report.document import Document, Part, Section, Statement, Table
from equipoise.report.news import Badge, Change

if TYPE_CHECKING:
    from equipoise.model.result import ConditionResult
    from equipoise.report.builders.result import ReportInput

Title = tuple[str, tuple[str, ...]]
"""Sentence above the statements of an answer, and the lines below this sentence."""


class KindReport:
    """Parts of the report of an ordinary comparison, which a kind of campaign may override.

    The class of the argument ``result`` is the kind's subclass of `ResultDocument`. If a method
    returns ``None``, the report has the part of an ordinary comparison.
    """

    verb = "measured"
    """Verb before the time of the campaign, such as ``measured`` or ``imported``."""
    scope: str | None = None
    """Scope of a result without comparisons, such as ``on this host``."""
    top_figures: frozenset[str] = frozenset()
    """Names of the figures directly below the answer."""
    figures_per_comparison: frozenset[str] = frozenset()
    """Names of the figures that exist once for each comparison."""
    repetition_purpose = "The same question with the same coin:"
    """Sentence before the command that runs the campaign again."""

    def scope_of(self, result: Any) -> str | None:
        """Return the scope of a result without comparisons."""
        return self.scope

    def question(self, result: Any) -> str | None:
        """Return the question that the campaign answers."""
        return None

    def machine(self, result: Any) -> str | None:
        """Return a description of the machines that ran the trials."""
        return None

    def title(self, result: Any, statements: Sequence[Statement]) -> Title | None:
        """Return the sentence above the statements, and the lines below this sentence."""
        return None

    def tables(self, result: Any) -> Sequence[Table]:
        """Return the tables that replace the table of conditions; none by default."""
        return ()

    def brief_tables(self, result: Any) -> Sequence[Table]:
        """Return the tables that replace `tables` on a terminal without ``--verbose``."""
        return self.tables(result)

    def tiles(self, result: Any) -> Iterator[tuple[str, str]]:
        """Yield names and values that a page shows as large tiles in the answer."""
        yield from ()

    def metric_of(self, result: Any, condition: ConditionResult) -> str:
        """Return the metric whose distribution the report describes."""
        return str(result.primary_metric)

    def document(self, report_input: ReportInput) -> Document | None:
        """Return the complete document."""
        return None

    def measured_parts(self, result: Any) -> Iterator[Part]:
        """Build the parts directly before the table of conditions."""
        yield from ()

    def how_it_ran(self, report_input: ReportInput) -> Iterator[Part] | None:
        """Build the lines of a terminal that say how the campaign ran."""
        return None

    def origin(self, result: Any) -> str | None:
        """Return the origin of the trials in a few words."""
        return None

    def gap_parts(self, result: Any) -> Iterator[Part]:
        """Build the parts on the gap that this kind found; parts on its causes come later."""
        yield from ()

    def environments(self, result: Any) -> Iterator[Section] | None:
        """Build a section for each environment."""
        return None

    def contradictions(self, result: Any) -> Iterator[str]:
        """Yield a phrase for each impossible value in a result from a file."""
        yield from ()

    def facts(self, result: Any) -> Iterator[tuple[str, str]] | None:
        """Return names and values that describe the campaign."""
        return None

    def series(self, result: Any) -> str | None:
        """Return a key of the series whose latest campaign has all changes; ``None`` if none."""
        return None

    def changes(self, result: Any) -> Iterator[Change]:
        """Yield the changes that the campaign is certain of, for a site."""
        yield from ()

    def badges(self, result: Any) -> Iterator[Badge]:
        """Yield a badge for each benchmark, for a site."""
        yield from ()


def kind_report(result: object) -> KindReport:
    """Return the report methods for a result's kind of campaign."""
    return kind_of(result).part("report", KindReport)
