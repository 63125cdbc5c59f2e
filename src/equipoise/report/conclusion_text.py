"""A conclusion for a pull request, for a paper and for other programs."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.model.conclusion import Conclusion
from equipoise.model.csv_text import csv_text
from equipoise.report import latex, markdown


def to_markdown(found: Conclusion) -> str:
    """Write it in GitHub's Markdown."""
    return "\n\n".join(_markdown(found)) + "\n"


def to_latex(found: Conclusion) -> str:
    """Write its tables as ``table`` environments; the preamble needs ``\\usepackage{booktabs}``.

    The answer is the caption of the first; how it was computed stands below the last.
    """
    return "\n".join(_latex(found)) + "\n"


def to_csv(found: Conclusion) -> str:
    """A header and its numbers: RFC 4180 quoting, empty where there is none."""
    columns = list(dict.fromkeys(name for row in found.numbers for name in row))
    return csv_text([columns, *([row.get(name) for name in columns] for row in found.numbers)])


def _markdown(found: Conclusion) -> Iterator[str]:
    yield f"**{markdown.text(found.badge)}**: {markdown.text(found.words)}"
    if found.estimate is not None:
        value, interval = map(markdown.text, found.estimate)
        yield f"**{value}**, 95 % interval {interval}"
    if found.beside:
        yield "\n".join(f"- {markdown.line(one)}" for one in found.beside)
    for table in found.tables:
        yield f"**{markdown.text(table.title)}**"
        yield markdown.table(table.headings, table.rows)
        yield from (markdown.line(note) for note in table.notes)
    if found.warnings:
        yield "**Warnings**"
        yield "\n".join(map(markdown.warning, found.warnings))
    facts = "; ".join(f"{name}: {value}" for name, value in found.facts)
    yield f"**What it rests on**: {markdown.text(facts)}."
    method = " ".join(found.method)
    yield f"**How it was computed**: {markdown.text(method)} Again:"
    yield markdown.code_block(found.again)


def _latex(found: Conclusion) -> Iterator[str]:
    answer = f"{latex.text(found.words)} {' '.join(map(latex.text, found.beside))}".strip()
    last = len(found.tables) - 1
    yield latex.PREAMBLE
    for place, table in enumerate(found.tables):
        notes = [latex.text(note) for note in table.notes]
        yield from latex.environment(
            answer if place == 0 else latex.text(table.title),
            f"{found.badge} {place + 1}",
            (table.headings, table.rows),
            notes if place < last else [*notes, *_latex_notes(found)],
        )


def _latex_notes(found: Conclusion) -> Iterator[str]:
    for one in found.warnings:
        yield f"Warning: {latex.text(one.summary)} {latex.text(one.hint)}"
    yield latex.text("; ".join(f"{name}: {value}" for name, value in found.facts))
    yield from map(latex.text, found.method)
    yield rf"Again: \texttt{{{latex.text(found.again)}}}"
