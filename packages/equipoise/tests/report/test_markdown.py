"""Markdown has the verdict first, then one table, and shows every name letter by letter."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace

from equipoise.model.record import CampaignWarning
from equipoise.report.renderers.markdown import code_block, line, text
from equipoise.shared.numbers import unbroken
from equipoise.shared.safe_text import visible
from packages.equipoise.tests.documents import comparison_of, document_of, explanation_of
from packages.equipoise.tests.payloads import PAYLOADS
from packages.equipoise.tests.report.forms import to_markdown

COMMENT = "<!-- -->"


def parsed(markdown: str) -> list[Token]:
    """The blocks, as a parser has them that lets HTML through."""
    return (
        MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(markdown)
    )


def shown(inline: Token) -> str:
    """Text that a reader sees of a line, if there is nothing in it but text."""
    contents = []
    for token in inline.children or []:
        if token.type == "html_inline":
            assert token.content == COMMENT
        else:
            assert token.type == "text", token
            contents.append(token.content)
    return "".join(contents)


def as_shown(payload: str) -> str:
    """Text that a reader should see of it: controls and bytes that are not text as escapes."""
    return visible(payload.encode("utf-8", "backslashreplace").decode("utf-8"))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_name_in_a_cell_is_read_as_it_stands(payload: str) -> None:
    tokens = parsed(f"| a | b |\n|---|---|\n| {text(payload)} | 1 |")
    cells = [shown(token) for token in tokens if token.type == "inline"]
    assert cells == ["a", "b", unbroken(as_shown(payload)).strip(), "1"]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_name_that_begins_a_line_makes_no_block(payload: str) -> None:
    tokens = parsed(f"- {line(payload)} x")
    assert [token.type for token in tokens if token.level == 2] == [
        "paragraph_open",
        "paragraph_close",
    ]
    assert [shown(token) for token in tokens if token.type == "inline"] == [
        f"{unbroken(as_shown(payload)).strip()} x".strip()
    ]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_command_does_not_leave_its_block_of_code(payload: str) -> None:
    (token,) = parsed(code_block(payload))
    assert token.type == "fence"
    assert token.content == as_shown(payload) + "\n"


@pytest.mark.parametrize(
    "payload", ["@somebody", "x #12", "http://a.b", "www.a.b", ":tada:", "GH-1"]
)
def test_a_forge_finds_no_reference_in_a_name(payload: str) -> None:
    assert COMMENT in text(payload)


@pytest.mark.parametrize("plain", ["mail me at 12:34:56", "a::b", "sort --parallel=2", "50 % #"])
def test_text_without_a_reference_is_unchanged(plain: str) -> None:
    assert COMMENT not in text(plain)


def test_the_verdict_stands_first_and_the_table_once() -> None:
    tokens = parsed(to_markdown(document_of()))
    first = next(token for token in tokens if token.type == "inline")
    assert first.content.startswith(
        "**slower**: sort --parallel=2 words is slower than sort words: it takes 5"
    )
    assert [token.type for token in tokens].count("table_open") == 1


def test_the_table_has_a_row_for_each_condition_with_ratio_interval_and_verdict() -> None:
    tokens = parsed(to_markdown(document_of()))
    cells = [token.content for token in tokens if token.type == "inline" and token.level == 4]
    width = cells.index("Verdict") + 1
    rows = [cells[begin : begin + width] for begin in range(0, len(cells), width)]
    assert [row[0] for row in rows] == ["Condition", "sort words", "sort --parallel=2 words"]
    assert rows[1][-3:] == ["baseline", "", ""]
    assert rows[2][-3:] == ["+5.15 %", "+3.04 % to +7.25 %", "slower"]


def test_each_warning_has_its_hint_and_many_of_one_code_are_counted() -> None:
    assert "Hint: close what else runs" in to_markdown(document_of())
    warnings = tuple(CampaignWarning("same", f"warning {number}.", "do it") for number in range(7))
    markdown = to_markdown(replace(document_of(), warnings=warnings))
    assert "warning 2." in markdown
    assert "warning 3." not in markdown
    assert "and 4 more like these" in markdown
    assert "Warnings" not in to_markdown(replace(document_of(), warnings=()))


def test_the_text_has_how_it_was_measured_and_the_command() -> None:
    markdown = to_markdown(document_of(seed=4711))
    for expected in ("Blocks: 60", "Seed: 4711", "Example CPU", "equipoise compare --seed 4711"):
        assert expected in markdown


def test_many_comparisons_are_counted_not_listed() -> None:
    names = [f"version {number}" for number in range(6)]
    tokens = parsed(to_markdown(document_of(*names)))
    first = next(token for token in tokens if token.type == "inline")
    assert first.content.startswith("5 comparisons: ")


def test_other_metrics_and_causes_stand_below_the_table() -> None:
    document = document_of()
    other = comparison_of("sort words", "sort --parallel=2 words", 1.2, metric="minor_faults")
    document = replace(
        document,
        comparisons=(*document.comparisons, other),
        why=(explanation_of("more page faults"),),
    )
    markdown = to_markdown(document)
    assert r"| minor\_faults | sort --parallel=2 words | +20.0 % |" in markdown
    assert "- more page faults" in markdown


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_text_anywhere_in_a_document_makes_no_html(payload: str) -> None:
    document = replace(
        document_of(payload, f"other {payload}", words=payload),
        why=(explanation_of(payload),),
        warnings=(CampaignWarning("hostile", payload, payload),),
    )
    for token in parsed(to_markdown(document)):
        assert token.type not in ("html_block", "heading_open", "blockquote_open", "hr")
        for child in token.children or []:
            assert child.type in ("text", "html_inline", "strong_open", "strong_close")
            assert child.type != "html_inline" or child.content == COMMENT
