"""A number and its unit stay on one line, and a command keeps the spaces that were typed."""

from __future__ import annotations

import re

import pytest

from equipoise.report.builders.result import ReportInput, campaign_document
from equipoise.report.document import Answer, Command, Document, Paragraph, Section
from equipoise.report.renderers import html, markdown, notebook, terminal
from equipoise.shared.numbers import unbroken
from packages.equipoise.tests.documents import document_of
from packages.equipoise.tests.report.chromium import Browser

SENTENCE = "It takes 5 % longer: 12.5 ms, or 3 µs; at most 20 MiB. 100 bottles stand by."
COMMAND = "run --share '5 %' --wait 12 ms"
SPACE = "\N{NO-BREAK SPACE}"
BROKEN = re.compile(r"\d (%|ms|s|µs|MiB|MB|kB)\b")


def document() -> Document:
    """A sentence with numbers, and a command with the same."""
    parts = (Answer("Title"), Paragraph(SENTENCE), Section("Again", (Command(COMMAND, "Run:"),)))
    return Document("name", "Title", parts)


@pytest.mark.parametrize(
    "write", [markdown.to_markdown, notebook.to_html, lambda d: html.page([d])]
)
def test_no_line_ends_between_a_number_and_its_unit(write: object) -> None:
    assert callable(write)
    text = write(document())
    assert f"5{SPACE}% longer: 12.5{SPACE}ms, or 3{SPACE}µs; at most 20{SPACE}MiB. 100 bott" in text
    assert COMMAND in text.replace("&#39;", "'").replace("&#x27;", "'")


def test_a_terminal_has_plain_spaces(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_document(document(), color=False)
    assert SPACE not in capsys.readouterr().out


def test_only_a_number_holds_what_follows() -> None:
    for text in ("v5 says", "a % b", "5 %", "5 min ago", "2 sisters", "1 B"):
        assert unbroken(text).replace(SPACE, " ") == text
    assert unbroken("2 sisters, a % b, v5 says") == "2 sisters, a % b, v5 says"


@pytest.mark.live("chromium")
def test_a_page_as_narrow_as_a_phone_breaks_no_number_from_its_unit(browser: Browser) -> None:
    browser.show(html.page([campaign_document(ReportInput(document_of()))]), 390, 844)
    text = browser.evaluate(
        "[...document.querySelectorAll('p, h1')].map(e => e.textContent).join('\\n')"
    )
    assert f"5.15{SPACE}%" in text
    assert not BROKEN.search(text)
