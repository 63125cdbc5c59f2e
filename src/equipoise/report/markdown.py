"""A result in Markdown, for a pull request: the verdict first, one table, and how it was measured.

The dialect is GitHub's (https://github.github.com/gfm/), which GitLab and others read as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from equipoise.model.findings import Findings
from equipoise.model.record import CampaignWarning
from equipoise.model.result import ResultDocument
from equipoise.report.safe_text import visible
from equipoise.report.summary import Summary, summary

_SPECIAL = re.compile(r"[\\`*_{}\[\]|~$]")
"""What CommonMark, tables, strikethrough or formulae give a meaning within a line."""
_BLOCK = re.compile(r"^(\d*)([#+=.)/:-])")
"""What would make a heading or a list of a line, or a command to GitLab (``/merge``) or GitHub
(``::error::``)."""
_REFERENCE = re.compile(
    r"(?<=[@#!])(?=\w)|(?<=:)(?=[a-z+-][\w+-]*:|//)|(?<=\bwww)(?=\.)|(?<=\bGH)(?=-\d)",
    re.IGNORECASE,
)
"""Where a forge would make a link out of text: @name, #12, !12, :sign:, http://, www., GH-12."""
_NOTHING = "<!-- -->"


def to_markdown(document: ResultDocument, again: str | None = None) -> str:
    """Write a result in GitHub's Markdown.

    Parameters
    ----------
    again
        The command that runs it again; put together from the document if ``None``.
    """
    told = summary(document, again)
    return "\n\n".join(_parts(told)) + "\n"


def text(plain: str) -> str:
    """Text as Markdown within a line or a cell: it is read as it stands, whatever it holds."""
    shown = visible(plain.encode("utf-8", "backslashreplace").decode("utf-8"))
    escaped = _SPECIAL.sub(r"\\\g<0>", shown)
    escaped = escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _REFERENCE.sub(_NOTHING, escaped)


def line(plain: str) -> str:
    """Text as Markdown that begins a line or an item of a list."""
    return _BLOCK.sub(r"\1\\\2", text(plain.strip()))


def code_block(plain: str) -> str:
    """Text as a block of code, whatever it holds."""
    shown = visible(plain.encode("utf-8", "backslashreplace").decode("utf-8"))
    longest = max((len(found) for found in re.findall("`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{shown}\n{fence}"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is of names and whose others are of figures."""
    aligned = (":---", *("---:" for _ in headings[1:]))
    return "\n".join((_row(headings), f"|{'|'.join(aligned)}|", *map(_row, rows)))


def warning(one: CampaignWarning) -> str:
    """A warning and its hint as an item of a list."""
    return f"- {line(one.summary)} Hint: {text(one.hint)}"


def _parts(told: Summary) -> Iterator[str]:
    for one in told.sentences:
        yield f"**{one.verdict}**: {text(one.words)}" if one.verdict else line(one.words)
    yield table(told.table.headings, told.table.rows)
    if told.notes:
        yield "\n".join(f"- {line(note)}" for note in told.notes)
    yield from _findings(told.findings)
    if told.warnings:
        yield "**Warnings**"
        yield "\n".join(_warnings(told))
    how = "; ".join(f"{name}: {value}" for name, value in told.how)
    yield f"**How it was measured**: {text(how)}. Again:"
    yield code_block(told.again)


def _findings(findings: Findings) -> Iterator[str]:
    """A study's own paragraphs, and its tables with their notes."""
    if findings.paragraphs:
        yield "\n".join(f"- {line(words)}" for words in findings.paragraphs)
    for one in findings.tables:
        yield f"**{text(one.title)}**"
        yield table(one.headings, one.rows)
        if one.notes:
            yield "\n".join(f"- {line(note)}" for note in one.notes)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(text(cell) for cell in cells)} |"


def _warnings(told: Summary) -> Iterator[str]:
    yield from map(warning, told.warnings)
    if told.unsaid_warnings:
        yield f"- and {told.unsaid_warnings} more like these; `--json` has all"
