"""Renderer that writes a document in GitHub's Markdown, for a pull request.

GitLab and others read this dialect, too (https://github.github.com/gfm/).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from urllib.parse import quote

from equipoise.report.document import (
    Answer,
    Bullets,
    Command,
    Document,
    Facts,
    Figures,
    Listing,
    Paragraph,
    Part,
    Section,
    Statement,
    Table,
    Warnings,
    parts_in,
    text_of,
)
from equipoise.shared.numbers import unbroken
from equipoise.shared.safe_text import visible
from equipoise.shared.spelling import option

_SPECIAL_CHARACTER = re.compile(r"[\\`*_{}\[\]|~$]")
"""Character with a meaning in CommonMark, tables, strikethrough or formulae."""
_SPECIAL_LINE_START = re.compile(r"^(\d*)([#+=.)/:-])")
"""Start of a heading, a list, or a command to GitLab (``/merge``) or GitHub (``::error::``)."""
_LINK_POSITION = re.compile(
    r"(?<=[@#!%~$])(?=[\w\"])|(?<=&amp;)(?=\d)|(?<=\\[\[*])(?=[a-z_\\]+:)"
    r"|(?<=:)(?!\d\d:)(?=[\w+\\-]+:|//)|(?<=\bwww)(?=\.)|(?<=\bGH)(?=-\d)",
    re.IGNORECASE,
)
"""Position in escaped text that GitHub or GitLab would turn into a link or an emoji. Examples are
@name, #12, !12, %milestone, ~label, $12, &12, [issue:12], *iteration:12, :sign:, http://, www. and
GH-12; a time such as 10:20:30 has none."""
_EMPTY_COMMENT = "<!-- -->"
"""Invisible text that prevents a link."""

FigureWriter = Callable[[Figures], Iterable[tuple[str, str]]]
"""Function that draws figures into files; it yields the title and the file name of each figure."""


def write_no_figures(figures: Figures) -> Iterable[tuple[str, str]]:
    """Draw nothing, for a text without figures."""
    return ()


def to_markdown(document: Document, write_figures: FigureWriter = write_no_figures) -> str:
    """Return a document in GitHub's Markdown; ``write_figures`` draws its figures."""
    return "\n\n".join(_blocks(parts_in(document.parts, "text"), write_figures)) + "\n"


def text(plain_text: str) -> str:
    """Return plain text with all special characters of Markdown escaped."""
    escaped = _SPECIAL_CHARACTER.sub(r"\\\g<0>", unbroken(visible(plain_text)))
    escaped = escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LINK_POSITION.sub(_EMPTY_COMMENT, escaped)


def line(plain_text: str) -> str:
    """Return plain text with escapes, which may begin a line or an item of a list."""
    return _SPECIAL_LINE_START.sub(r"\1\\\2", text(plain_text.strip()))


def code_block(*lines: str) -> str:
    """Return lines as a block of code; its fence is longer than any backticks in the lines."""
    content = "\n".join(map(visible, lines))
    max_backticks = max(map(len, re.findall("`+", content)), default=0)
    fence = "`" * max(3, max_backticks + 1)
    return f"{fence}\n{content}\n{fence}"


def _blocks(parts: Iterable[Part], write_figures: FigureWriter) -> Iterator[str]:
    for part in parts:
        match part:
            case Answer():
                yield from _answer(part)
            case Section(folded=True):
                yield f"<details>\n<summary>{text(part.title)}</summary>"
                yield from _blocks(part.parts, write_figures)
                yield "</details>"
            case Section():
                if part.title.strip():
                    yield f"**{text(part.title)}**"
                yield from _blocks(part.parts, write_figures)
            case Table():
                yield from _table(part)
            case Paragraph(style="heading"):
                yield f"## {text(part.text)}"
            case Paragraph(style="strong"):
                yield f"**{text(part.text)}**"
            case Paragraph():
                yield line(part.text)
            case Bullets():
                yield "\n".join(f"- {line(item)}" for item in part.items)
            case Facts():
                yield line(f"{facts_sentence(part)}.")
            case Command():
                yield line(part.purpose)
                yield code_block(part.line)
            case Listing():
                yield code_block(*part.lines)
            case Figures():
                for title, file in write_figures(part):
                    yield f"![{text(title)}]({quote(file)})"
            case Warnings() if part.warnings:
                yield "**Warnings**"
                yield "\n".join(_warnings(part))


def facts_sentence(facts: Facts) -> str:
    """Return facts as plain text in one line."""
    return "; ".join(f"{name}: {value}" for name, value in facts.texts(", "))


def statement_note(statement: Statement) -> str:
    """Return the estimate, the interval and the facts of a statement as plain text."""
    estimate = ", ".join(filter(None, (statement.estimate, statement.interval)))
    if statement.subject and estimate:
        estimate = f"{statement.subject}: {estimate}"
    facts = (f"{name[:1].lower()}{name[1:]}: {value}" for name, value in statement.certainty_facts)
    return "; ".join(filter(None, (estimate, *facts)))


def _answer(answer: Answer) -> Iterator[str]:
    if answer.title:
        yield line(answer.title)
    yield from map(line, answer.lines)
    for statement in answer.statements:
        yield f"**{text(statement.badge)}**: {text(statement.text)}"
        if statement.estimate and not statement.subject:
            interval = f", {text(statement.interval)}" if statement.interval else ""
            yield f"**{text(statement.estimate)}**{interval}"
        if statement.cause_sentence:
            yield line(statement.cause_sentence)
    notes: list[str] = []
    for statement in answer.statements:
        if statement.subject:
            notes.append(statement_note(statement))
        notes += statement.remarks
    if notes:
        yield "\n".join(f"- {line(note)}" for note in notes)


def _table(table: Table) -> Iterator[str]:
    if table.title.strip():
        yield f"**{text(table.title)}**"
    alignments = ("---:" if column.kind == "number" else ":---" for column in table.columns)
    rows = ([text_of(cell) for cell in row] for row in table.rows)
    yield "\n".join((_row(table.headings), f"|{'|'.join(alignments)}|", *map(_row, rows)))
    if table.notes:
        yield "\n".join(f"- {line(note)}" for note in table.notes)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(text(cell) for cell in cells)} |"


def _warnings(part: Warnings) -> Iterator[str]:
    for warning in part.shown_warnings:
        hint = f" Hint: {text(warning.hint)}" if warning.hint else ""
        yield f"- {line(warning.summary)}{hint}"
    if part.hidden_count:
        yield f"- and {part.hidden_count} more like these; `{option('json')}` has all"
