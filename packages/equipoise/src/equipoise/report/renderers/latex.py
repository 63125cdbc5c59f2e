"""Renderer that writes the tables of a document in LaTeX, with captions and notes, for a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from equipoise.report.document import (
    Answer,
    Bullets,
    Command,
    Document,
    Facts,
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
from equipoise.report.renderers.markdown import facts_sentence, statement_note
from equipoise.shared.safe_text import visible

_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "%": r"\%",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\textasciigrave{}",
        '"': r"\char34{}",
        # At the beginning of a row, LaTeX would read these characters as options of the line break.
        "[": "{[}",
        "]": "{]}",
        "*": "{*}",
        # Some font encodings lack these characters.
        "×": r"\texttimes{}",
        "÷": r"\textdiv{}",
        "±": r"\textpm{}",
        "µ": r"\textmu{}",
        "–": r"\textendash{}",
    }
)
_LIGATURE = re.compile(r"([-',])(?=\1)")
"""First of two equal characters that LaTeX would join: hyphens or quotation marks."""


def to_latex(document: Document) -> str:
    """Return the tables of a document as LaTeX; the preamble needs the package booktabs.

    The caption of the first table is the answer. All other texts are below the last table. For
    letters that are not Latin, compile with LuaLaTeX or XeLaTeX, and a font with these letters.
    """
    parts = tuple(_without_sections(parts_in(document.parts, "text")))
    tables = [part for part in parts if isinstance(part, Table)]
    answer = " ".join(_answer_sentences(parts))
    other_texts = list(_other_texts(parts))
    lines = [r"% needs \usepackage{booktabs}"]
    for number, table in enumerate(tables, start=1):
        caption = " ".join(filter(None, (answer if number == 1 else "", text(table.title))))
        notes = [*map(text, table.notes), *(other_texts if number == len(tables) else ())]
        label = document.name if number == 1 else f"{document.name}-{number}"
        lines += _table_lines(caption, label, table, notes)
    return "\n".join(lines if tables else [*lines, answer, *other_texts]) + "\n"


def text(plain_text: str) -> str:
    """Return plain text with all special characters of LaTeX escaped."""
    return _LIGATURE.sub(r"\1{}", visible(plain_text).translate(_ESCAPES))


def _without_sections(parts: Iterable[Part]) -> Iterator[Part]:
    """Replace each section by its parts; a table without a title gets the title of the section."""
    for part in parts:
        if not isinstance(part, Section):
            yield part
            continue
        for inner_part in _without_sections(part.parts):
            is_untitled = isinstance(inner_part, Table) and not inner_part.title
            yield replace(inner_part, title=part.title) if is_untitled else inner_part


def _answer_sentences(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Answer):
            yield from map(text, filter(None, (part.title, *part.lines)))
            yield from map(_statement_sentence, part.statements)


def _statement_sentence(statement: Statement) -> str:
    cause = f" {text(statement.cause_sentence)}" if statement.cause_sentence else ""
    return rf"\textbf{{{text(statement.badge)}}}: {text(statement.text)}{cause}"


def _other_texts(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        match part:
            case Answer():
                for statement in part.statements:
                    notes = (statement_note(statement), *statement.remarks)
                    yield from map(text, filter(None, notes))
            case Paragraph():
                yield text(part.text)
            case Bullets():
                yield from map(text, part.items)
            case Facts():
                yield text(facts_sentence(part))
            case Warnings():
                for warning in part.shown_warnings:
                    yield f"Warning: {text(warning.summary)} {text(warning.hint)}"
                if part.hidden_count:
                    yield f"And {part.hidden_count} more warnings like these."
            case Command():
                yield rf"{text(part.purpose)} \texttt{{{text(part.line)}}}"
            case Listing():
                yield from (rf"\texttt{{{text(line)}}}" for line in part.lines)


def _table_lines(caption: str, label: str, table: Table, notes: Sequence[str]) -> Iterator[str]:
    alignment = "".join("r" if column.kind == "number" else "l" for column in table.columns[1:])
    yield r"\begin{table}"
    yield r"  \centering\footnotesize"
    yield rf"  \caption{{{caption}}}"
    yield rf"  \label{{tab:equipoise-{re.sub(r'[^A-Za-z0-9-]', '', label)}}}"
    yield rf"  \begin{{tabular}}{{l{alignment}}}"
    yield r"    \toprule"
    yield _row(table.headings)
    yield r"    \midrule"
    yield from (_row([text_of(cell) for cell in row]) for row in table.rows)
    yield r"    \bottomrule"
    yield r"  \end{tabular}"
    if notes:
        yield ""
        yield r"  \smallskip"
        yield r"  \parbox{\linewidth}{\raggedright"
        yield from (rf"    {note}\par" for note in notes)
        yield r"  }"
    yield r"\end{table}"


def _row(cells: Sequence[str]) -> str:
    return rf"    {' & '.join(map(text, cells))} \\"
