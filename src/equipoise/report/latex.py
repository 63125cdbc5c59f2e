"""A result as a LaTeX table with a caption and notes, for a paper; it needs booktabs alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from equipoise.model.result import ResultDocument
from equipoise.report.safe_text import visible
from equipoise.report.summary import Sentence, Summary, summary

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
        "±": r"\textpm{}",
        "µ": r"\textmu{}",
        "–": r"\textendash{}",
    }
)
PREAMBLE = r"% needs \usepackage{booktabs}"
_LIGATURE = re.compile(r"([-',])(?=\1)")
"""Two of these make another sign: a dash, a quotation mark."""


def to_latex(document: ResultDocument, again: str | None = None) -> str:
    """Write a result as a ``table`` environment; the preamble needs ``\\usepackage{booktabs}``.

    Letters that a name has outside Latin scripts need LuaLaTeX or XeLaTeX and a font with them.

    Parameters
    ----------
    again
        The command that runs it again; put together from the document if ``None``.
    """
    told = summary(document, again)
    return "\n".join(_lines(told, document.run.id)) + "\n"


def text(plain: str) -> str:
    """Text as LaTeX sets it letter by letter, whatever it holds."""
    shown = visible(plain.encode("utf-8", "backslashreplace").decode("utf-8"))
    return _LIGATURE.sub(r"\1{}", shown.translate(_COMMANDS))


def environment(
    caption: str,
    label: str,
    table: tuple[Sequence[str], Iterable[Sequence[str]]],
    notes: Iterable[str],
    alignment: str = "r",
) -> Iterator[str]:
    """A ``table`` environment, a line at a time; of the label only letters, digits and ``-`` stay.

    Parameters
    ----------
    caption, notes
        In LaTeX.
    table
        Headings and rows of plain text, the first column of names.
    alignment
        Of every other column: ``r`` for figures, ``l`` for words.
    """
    headings, rows = table
    yield r"\begin{table}"
    yield r"  \centering\footnotesize"
    yield rf"  \caption{{{caption}}}"
    yield rf"  \label{{tab:equipoise-{re.sub(r'[^A-Za-z0-9-]', '', label)}}}"
    yield rf"  \begin{{tabular}}{{l{alignment * (len(headings) - 1)}}}"
    yield r"    \toprule"
    yield _row(headings)
    yield r"    \midrule"
    yield from map(_row, rows)
    yield r"    \bottomrule"
    yield r"  \end{tabular}"
    below = tuple(notes)
    if below:
        yield ""
        yield r"  \smallskip"
        yield r"  \parbox{\linewidth}{\raggedright"
        yield from (rf"    {note}\par" for note in below)
        yield r"  }"
    yield r"\end{table}"


def _lines(told: Summary, label: str) -> Iterator[str]:
    caption = " ".join(map(_sentence, told.sentences))
    yield PREAMBLE
    yield from environment(caption, label, (told.table.headings, told.table.rows), _notes(told))
    for number, table in enumerate(told.findings.tables, start=1):
        yield from environment(
            text(table.title),
            f"{label}-{number}",
            (table.headings, table.rows),
            map(text, table.notes),
            alignment="l",
        )


def _sentence(one: Sentence) -> str:
    return rf"\textbf{{{text(one.verdict)}}}: {text(one.words)}" if one.verdict else text(one.words)


def _row(cells: Sequence[str]) -> str:
    return rf"    {' & '.join(map(text, cells))} \\"


def _notes(told: Summary) -> Iterator[str]:
    yield from map(text, told.notes)
    yield from map(text, told.findings.paragraphs)
    for one in told.warnings:
        yield f"Warning: {text(one.summary)} {text(one.hint)}"
    if told.unsaid_warnings:
        yield f"And {told.unsaid_warnings} warnings more like these."
    yield text("; ".join(f"{name}: {value}" for name, value in told.how))
    yield rf"Again: \texttt{{{text(told.again)}}}"
