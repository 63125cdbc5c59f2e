"""LaTeX tables with captions and notes, for a paper; they need booktabs alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from equipoise.report.document import (
    Answer,
    Bullets,
    Claim,
    Command,
    Document,
    Facts,
    Listing,
    Paragraph,
    Part,
    Section,
    Table,
    Warnings,
    parts_in,
    text_of,
)
from equipoise.report.renderers.markdown import claim_note, facts_sentence
from equipoise.shared.safe_text import visible

_COMMANDS = str.maketrans(
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
        # After the end of a row these would be an option and a star of it.
        "[": "{[}",
        "]": "{]}",
        "*": "{*}",
        # Not every encoding of fonts has these letters.
        "×": r"\texttimes{}",
        "÷": r"\textdiv{}",
        "±": r"\textpm{}",
        "µ": r"\textmu{}",
        "–": r"\textendash{}",
    }
)
_LIGATURE = re.compile(r"([-',])(?=\1)")
"""Two of these make another sign: a dash, a quotation mark."""


def to_latex(document: Document) -> str:
    """Write the tables of a document; the preamble needs booktabs.

    The answer is the caption of the first table; everything else is below the last one.
    Letters outside Latin scripts need LuaLaTeX or XeLaTeX and a font with them.
    """
    parts = tuple(_flat(parts_in(document.parts, "text")))
    tables = [part for part in parts if isinstance(part, Table)]
    answer = " ".join(_sentences(parts))
    below = list(_notes(parts))
    lines = [r"% needs \usepackage{booktabs}"]
    for number, table in enumerate(tables, start=1):
        caption = " ".join(filter(None, (answer if number == 1 else "", text(table.title))))
        notes = [*map(text, table.notes), *(below if number == len(tables) else ())]
        label = document.name if number == 1 else f"{document.name}-{number}"
        lines += _environment(caption, label, table, notes)
    return "\n".join(lines if tables else [*lines, answer, *below]) + "\n"


def text(plain: str) -> str:
    """Return text as LaTeX sets it letter by letter, whatever it holds."""
    return _LIGATURE.sub(r"\1{}", visible(plain).translate(_COMMANDS))


def _flat(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield parts out of their sections; a table without a title gets that of its section."""
    for part in parts:
        if not isinstance(part, Section):
            yield part
            continue
        for inner in _flat(part.parts):
            untitled = isinstance(inner, Table) and not inner.title
            yield replace(inner, title=part.title) if untitled else inner


def _sentences(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Answer):
            yield from map(text, filter(None, (part.title, *part.lines)))
            yield from map(_sentence, part.claims)


def _sentence(claim: Claim) -> str:
    because = f" {text(claim.because)}" if claim.because else ""
    return rf"\textbf{{{text(claim.badge)}}}: {text(claim.text)}{because}"


def _notes(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        match part:
            case Answer():
                for claim in part.claims:
                    yield from map(text, filter(None, (claim_note(claim), *claim.remarks)))
            case Paragraph():
                yield text(part.text)
            case Bullets():
                yield from map(text, part.items)
            case Facts():
                yield text(facts_sentence(part))
            case Warnings():
                for warning in part.first_of_each_code:
                    yield f"Warning: {text(warning.summary)} {text(warning.hint)}"
                if part.hidden_count:
                    yield f"And {part.hidden_count} warnings more like these."
            case Command():
                yield rf"{text(part.purpose)} \texttt{{{text(part.line)}}}"
            case Listing():
                yield from (rf"\texttt{{{text(line)}}}" for line in part.lines)


def _environment(caption: str, label: str, table: Table, notes: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a ``table`` environment; of a label letters, digits and ``-`` stay."""
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
