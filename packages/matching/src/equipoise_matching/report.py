"""The report of a result, as text and as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from equipoise_matching.shared import html
from equipoise_matching.warning import AnalysisWarning

UNKNOWN = "–"
"""Text of a table cell whose number is unknown."""
MAX_WARNINGS_PER_CODE = 3
"""Largest number of warnings with the same code that a notebook shows."""


class TextTable(Struct, frozen=True):
    """Rows of text under headings."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    notes: tuple[str, ...] = ()
    label_columns: int = 1
    """Number of columns at the left that have no numbers."""

    def to_html(self) -> str:
        """Return the table as HTML, with its title above and its notes below."""
        title = f"<p><strong>{html.text(self.title)}</strong></p>" if self.title else ""
        notes = "".join(f"<p>{html.text(note)}</p>" for note in self.notes)
        return f"{title}{html.table(self.headings, self.rows)}{notes}"

    def to_text(self) -> str:
        """Return the table as lines of text in aligned columns, without its title and notes."""
        lines = (self.headings, *self.rows)
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                f"{cell:<{width}}" if column < self.label_columns else f"{cell:>{width}}"
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )


class Report(Struct, frozen=True, kw_only=True):
    """The answer, its facts, its warnings and its method."""

    badge: str
    """One or two words for the kind of answer: ``observed``, ``refused``."""
    text: str
    """The answer in one sentence."""
    estimate: str = ""
    interval: str = ""
    """Interval with its coverage; empty without an interval."""
    remarks: tuple[str, ...] = ()
    """Sentences that a reader needs in addition to the answer."""
    tables: tuple[TextTable, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """Names and values of the facts behind the answer."""
    warnings: tuple[AnalysisWarning, ...] = ()
    method: tuple[str, ...] = ()
    """Sentences about how the answer was computed."""

    def to_html(self) -> str:
        """Return the report as an HTML element, for ``_repr_html_``."""
        return f"<div>{''.join(self._elements())}</div>"

    def to_text(self) -> str:
        """Return the answer, the remarks and the warnings as lines of text."""
        warnings = (f"warning: {warning.summary}" for warning in self.warnings)
        return "\n".join((self.text, *self.remarks, *warnings))

    def _elements(self) -> Iterator[str]:
        yield f"<p><strong>{html.text(self.badge)}</strong>: {html.text(self.text)}</p>"
        yield from (f"<p>{html.text(remark)}</p>" for remark in self.remarks)
        estimate = ", ".join(filter(None, (self.estimate, self.interval)))
        if estimate:
            yield html.folded("How sure, and of what", html.bullets((estimate,)))
        yield from (table.to_html() for table in self.tables)
        yield from _warnings(self.warnings)
        yield f"<p><strong>What it rests on</strong></p>{html.facts(self.facts)}"
        method = "".join(f"<p>{html.text(sentence)}</p>" for sentence in self.method)
        yield f"<p><strong>How it was computed</strong></p>{method}"


def _warnings(warnings: Sequence[AnalysisWarning]) -> Iterator[str]:
    shown_warnings = list(_first_of_each_code(warnings))
    for warning in shown_warnings:
        hint = f" Hint: {html.text(warning.hint)}" if warning.hint else ""
        yield f"<p><strong>Warning</strong>: {html.text(warning.summary)}{hint}</p>"
    omitted = len(warnings) - len(shown_warnings)
    if omitted:
        yield f"<p>And {omitted} more warnings like these.</p>"


def _first_of_each_code(warnings: Iterable[AnalysisWarning]) -> Iterator[AnalysisWarning]:
    counts: dict[str, int] = {}
    for warning in warnings:
        counts[warning.code] = counts.get(warning.code, 0) + 1
        if counts[warning.code] <= MAX_WARNINGS_PER_CODE:
            yield warning
