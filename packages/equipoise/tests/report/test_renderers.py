"""A document for a pull request, a paper and other programs: every name letter by letter."""

from __future__ import annotations

import csv
import io

import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace

from equipoise.model.record import CampaignWarning
from equipoise.report.document import (
    Answer,
    Column,
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
)
from equipoise.report.renderers import csv as csv_form
from equipoise.report.renderers.latex import to_latex
from equipoise.report.renderers.markdown import to_markdown
from packages.equipoise.tests.payloads import PAYLOADS
from packages.equipoise.tests.report.forms import breakable

STATEMENT = Statement(
    "matched",
    "equivalent",
    "Treatment raises y by 3 [1, 5].",
    estimate="+3",
    interval="95 % interval +1 to +5",
    remarks=("All 7 treated found a match.",),
)
BALANCE = Table(
    (Column("covariate", "name"), Column("apart", "number")), (("age", "1.5"),), "Balance"
)
WEIGHTS = replace(BALANCE, title="Weights", rows=(("age", "7"),), notes=("Of one search.",))
COMMAND = "equipoise match people.csv --m 2"


def parts_of(
    statement: Statement, tables: tuple[Table, ...], text: tuple[str, str, str], command: str
) -> tuple[Part, ...]:
    """The parts of a document with this answer, these tables and these texts."""
    method, summary, hint = text
    return (
        Answer("", statements=(statement,)),
        *tables,
        Warnings((CampaignWarning("dropped", summary, hint),)),
        Section("What it rests on", (Facts(((summary, hint),)),)),
        Section("How it was computed", (Paragraph(method),)),
        Section("What changed", (Listing((f"+{summary}", f" {hint}")),)),
        Command(command, "Again:"),
    )


FOUND = Document(
    "matched",
    "t in people.csv",
    parts_of(
        STATEMENT, (BALANCE, WEIGHTS), ("By the nearest.", "One is left out.", "widen it"), COMMAND
    ),
    (
        {"kind": "effect", "name": "y", "estimate": 3.0},
        {"kind": "covariate", "name": "age", "apart": 0.1 + 0.2},
    ),
)


def hostile(payload: str) -> Document:
    """Everything that somebody else may name."""
    columns = (Column(payload, "name"), Column(payload, "number"))
    table = Table(columns, ((payload, payload),), payload, notes=(payload,))
    statement = replace(STATEMENT, text=payload, remarks=(payload,))
    parts = parts_of(statement, (table, table), (payload, payload, payload), payload)
    return replace(FOUND, parts=parts, csv_rows=({"kind": "effect", "name": payload},))


def to_csv(document: Document) -> str:
    """The numbers of one document."""
    return csv_form.to_csv([document])


def test_markdown_has_the_answer_first_then_the_tables_and_the_command() -> None:
    lines = breakable(to_markdown(FOUND)).splitlines()
    assert lines[0] == "**matched**: Treatment raises y by 3 \\[1, 5\\]."
    assert lines[2] == "**+3**, 95 % interval +1 to +5"
    assert lines[4] == "- All 7 treated found a match."
    assert "| age | 1.5 |" in lines
    assert "- One is left out. Hint: widen it" in lines
    assert lines[-3:] == ["```", COMMAND, "```"]


def test_latex_has_the_answer_as_the_first_caption_and_the_rest_below_the_last_table() -> None:
    text = to_latex(FOUND)
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    first, last = text.split(r"\end{table}")[:2]
    assert r"\caption{\textbf{matched}: Treatment raises y by 3 {[}1, 5{]}. Balance}" in first
    assert "All 7 treated found a match." in last
    assert r"Again: \texttt{equipoise match people.csv -{}-m 2}" in last
    assert "Warning" not in first


def test_csv_has_a_column_for_whatever_a_row_says_and_numbers_in_full() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(FOUND))))
    assert list(rows[0]) == ["kind", "name", "estimate", "apart"]
    assert [row["apart"] for row in rows] == ["", repr(0.1 + 0.2)]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_hostile_name_makes_no_html_no_heading_no_link_and_no_command(payload: str) -> None:
    tokens = (
        MarkdownIt("commonmark", {"html": True})
        .enable("table")
        .parse(to_markdown(hostile(payload)))
    )
    kinds = [token.type for token in tokens]
    inline = {child.type for token in tokens for child in token.children or []}
    assert not {"html_block", "heading_open", "hr", "blockquote_open", "ordered_list_open"} & {
        *kinds
    }
    assert inline <= {"text", "strong_open", "strong_close", "html_inline"}
    # Nothing but the comment that keeps a forge from making a link.
    html = [
        child.content
        for token in tokens
        for child in token.children or []
        if child.type == "html_inline"
    ]
    assert set(html) <= {"<!-- -->"}
    # The listing and the command.
    assert kinds.count("fence") == 2
    latex = to_latex(hostile(payload))
    assert latex.count(r"\begin{") == latex.count(r"\end{") == 4
    assert r"\input" not in latex
    (row,) = csv.DictReader(io.StringIO(to_csv(hostile(payload)), newline=""))
    assert row["name"] == payload
