"""Findings of a study, wherever they are shown; text that means something stays text."""

from __future__ import annotations

from markdown_it import MarkdownIt
from msgspec.structs import replace

from equipoise.model.result import Findings, FindingTable, ResultDocument
from equipoise.report.builders.result import ReportInput
from packages.equipoise.tests.documents import HOSTILE, document_of
from packages.equipoise.tests.report.forms import page, screen, to_latex, to_markdown
from packages.equipoise.tests.report.test_html import Outline


def with_findings(text: str = "") -> ResultDocument:
    """A comparison of a study with a table, a paragraph and an answer."""
    table = FindingTable(
        f"A table{text}", ("size", "cost"), (("16", f"twice{text}"),), (f"of medians{text}",)
    )
    findings = Findings((table,), (f"Claim: holds{text}.",), f"It costs twice as much{text}.")
    return replace(document_of("a", "b"), findings=findings)


def test_the_page_begins_with_the_answer_and_shows_table_note_and_paragraph() -> None:
    texts = Outline(page([ReportInput(with_findings())])).texts
    answer = texts.index("It costs twice as much.", 1)
    assert answer < texts.index("Findings") < texts.index("Conditions")
    at = texts.index("A table")
    assert texts[at : at + 6] == ["A table", "size", "cost", "16", "twice", "of medians"]
    assert "Claim: holds." in texts


def test_hostile_findings_make_no_element_of_the_page() -> None:
    outline = Outline(page([ReportInput(with_findings(HOSTILE))]))
    assert len(outline.tags("script")) == 3
    assert not outline.tags("img")
    assert sum(HOSTILE in text for text in outline.texts) >= 5


def test_markdown_has_the_answer_first_and_the_table_in_its_order() -> None:
    lines = to_markdown(with_findings()).splitlines()
    assert lines[0] == "It costs twice as much."
    at = lines.index("**A table**")
    table = ["| size | cost |", "|---:|:---|", "| 16 | twice |"]
    assert lines[at + 2 : at + 7] == [*table, "", "- of medians"]
    assert "Claim: holds." in lines


def test_hostile_findings_are_no_mark_up_in_markdown() -> None:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = parser.parse(to_markdown(with_findings(HOSTILE)))
    inline = [child for token in tokens for child in token.children or ()]
    assert not [part for part in inline if part.type in ("image", "link_open")]
    # The only HTML is the empty comment that keeps a forge from making links.
    html = [token for token in (*tokens, *inline) if token.type.startswith("html")]
    assert {part.content.strip() for part in html} <= {"<!-- -->"}


def test_latex_has_a_table_of_its_own_for_each() -> None:
    latex = to_latex(with_findings("%"))
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == 2
    assert r"\caption{A table\%}" in latex
    assert r"    16 & twice\% \\" in latex
    assert r"    of medians\%\par" in latex
    assert r"Claim: holds\%." in latex


def test_the_screen_says_the_answer_before_the_tables() -> None:
    lines = screen(with_findings()).splitlines()
    assert lines.index("It costs twice as much.") < lines.index("A table")
    assert "Claim: holds." in lines
