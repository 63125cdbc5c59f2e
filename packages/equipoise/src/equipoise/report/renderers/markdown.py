"""Markdown for a pull request: the answer first, then tables, and how it was measured.

The dialect is GitHub's (https://github.github.com/gfm/), which GitLab and others read as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from urllib.parse import quote

from equipoise.report.document import (
    Answer,
    Bullets,
    Claim,
    Command,
    Document,
    Facts,
    Figures,
    Listing,
    Paragraph,
    Part,
    Section,
    Table,
    Warnings,
    parts_in,
    text_of,
)
from equipoise.shared.numbers import unbroken
from equipoise.shared.safe_text import visible
from equipoise.shared.spelling import option

_SPECIAL = re.compile(r"[\\`*_{}\[\]|~$]")
"""Characters to which CommonMark, tables, strikethrough or formulae give a meaning in a line."""
_BLOCK = re.compile(r"^(\d*)([#+=.)/:-])")
"""Beginnings that would make a heading or a list of a line, or a command to GitLab (``/merge``) or
GitHub (``::error::``)."""
_REFERENCE = re.compile(
    r"(?<=[@#!])(?=\w)|(?<=:)(?=[a-z+-][\w+-]*:|//)|(?<=\bwww)(?=\.)|(?<=\bGH)(?=-\d)",
    re.IGNORECASE,
)
"""Where a forge would make a link out of text: @name, #12, !12, :sign:, http://, www., GH-12."""
_NOTHING = "<!-- -->"


Pictures = Callable[[Figures], Iterable[tuple[str, str]]]
"""Draws figures; returns the title of each and the name of its file next to the text."""


def no_pictures(figures: Figures) -> Iterable[tuple[str, str]]:
    """Draw nothing, for a text without files next to it."""
    return ()


def to_markdown(document: Document, pictures: Pictures = no_pictures) -> str:
    """Write a document in GitHub's Markdown."""
    return "\n\n".join(_blocks(parts_in(document.parts, "text"), pictures)) + "\n"


def text(plain: str) -> str:
    """Return text as Markdown shows it letter by letter, whatever it holds."""
    escaped = _SPECIAL.sub(r"\\\g<0>", unbroken(visible(plain)))
    escaped = escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _REFERENCE.sub(_NOTHING, escaped)


def line(plain: str) -> str:
    """Return text as Markdown that begins a line or an item of a list."""
    return _BLOCK.sub(r"\1\\\2", text(plain.strip()))


def code_block(*lines: str) -> str:
    """Return lines as a block of code, whatever they hold."""
    shown = "\n".join(map(visible, lines))
    longest = max(map(len, re.findall("`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{shown}\n{fence}"


def _blocks(parts: Iterable[Part], pictures: Pictures) -> Iterator[str]:
    for part in parts:
        match part:
            case Answer():
                yield from _answer(part)
            case Section(folded=True):
                yield f"<details>\n<summary>{text(part.title)}</summary>"
                yield from _blocks(part.parts, pictures)
                yield "</details>"
            case Section():
                if part.title.strip():
                    yield f"**{text(part.title)}**"
                yield from _blocks(part.parts, pictures)
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
                for title, file in pictures(part):
                    yield f"![{text(title)}]({quote(file)})"
            case Warnings() if part.warnings:
                yield "**Warnings**"
                yield "\n".join(_warnings(part))


def facts_sentence(facts: Facts) -> str:
    """Return facts as plain text in one line."""
    return "; ".join(f"{name}: {value}" for name, value in facts.texts(", "))


def claim_note(claim: Claim) -> str:
    """Return the estimate of a claim and what is known of it as plain text; empty if nothing is."""
    estimate = ", ".join(filter(None, (claim.estimate, claim.interval)))
    if claim.subject and estimate:
        estimate = f"{claim.subject}: {estimate}"
    facts = (f"{name[:1].lower()}{name[1:]}: {value}" for name, value in claim.facts)
    return "; ".join(filter(None, (estimate, *facts)))


def _answer(answer: Answer) -> Iterator[str]:
    if answer.title:
        yield line(answer.title)
    yield from map(line, answer.lines)
    for claim in answer.claims:
        yield f"**{text(claim.badge)}**: {text(claim.text)}"
        if claim.estimate and not claim.subject:
            interval = f", {text(claim.interval)}" if claim.interval else ""
            yield f"**{text(claim.estimate)}**{interval}"
        if claim.because:
            yield line(claim.because)
    notes: list[str] = []
    for claim in answer.claims:
        if claim.subject:
            notes.append(claim_note(claim))
        notes += claim.remarks
    if notes:
        yield "\n".join(f"- {line(note)}" for note in notes)


def _table(table: Table) -> Iterator[str]:
    if table.title.strip():
        yield f"**{text(table.title)}**"
    aligned = ("---:" if column.kind == "number" else ":---" for column in table.columns)
    rows = ([text_of(cell) for cell in row] for row in table.rows)
    yield "\n".join((_row(table.headings), f"|{'|'.join(aligned)}|", *map(_row, rows)))
    if table.notes:
        yield "\n".join(f"- {line(note)}" for note in table.notes)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(text(cell) for cell in cells)} |"


def _warnings(part: Warnings) -> Iterator[str]:
    for warning in part.first_of_each_code:
        hint = f" Hint: {text(warning.hint)}" if warning.hint else ""
        yield f"- {line(warning.summary)}{hint}"
    if part.hidden_count:
        yield f"- and {part.hidden_count} more like these; `{option('json')}` has all"
