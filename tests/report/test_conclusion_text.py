"""A conclusion for a pull request, a paper and other programs: every name as it stands."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from equipoise.model.conclusion import Conclusion
from equipoise.model.findings import FindingTable
from equipoise.model.record import CampaignWarning
from equipoise.report.builders.conclusion import conclusion_document
from equipoise.report.document import Document
from equipoise.report.renderers import csv as csv_form
from equipoise.report.renderers.latex import to_latex
from equipoise.report.renderers.markdown import to_markdown
from tests.payloads import PAYLOADS

FOUND = Conclusion(
    title="t in people.csv",
    badge="matched",
    tone="equivalent",
    words="Among comparable units y is 3 higher with t [1, 5].",
    estimate=("+3", "+1 to +5"),
    beside=("All 7 treated found a match.",),
    facts=(("Observations", "20"),),
    tables=(
        FindingTable("Balance", ("covariate", "apart"), (("age", "1.5"),)),
        FindingTable("Weights", ("covariate", "weight"), (("age", "7"),), ("Of one search.",)),
    ),
    method=("By the nearest.",),
    warnings=(CampaignWarning("dropped", "One is left out.", "widen it"),),
    again="equipoise match people.csv --m 2",
    numbers=(
        {"kind": "effect", "name": "y", "estimate": 3.0},
        {"kind": "covariate", "name": "age", "apart": 0.1 + 0.2},
    ),
)


def built(conclusion: Conclusion) -> Document:
    return conclusion_document(conclusion, tuple)


def to_csv(conclusion: Document) -> str:
    return csv_form.to_csv([conclusion])


def hostile(payload: str) -> Conclusion:
    """Everything that somebody else may name."""
    table = FindingTable("Balance", (payload, payload), ((payload, payload),), (payload,))
    return replace(
        FOUND,
        words=payload,
        beside=(payload,),
        facts=((payload, payload),),
        tables=(table, table),
        method=(payload,),
        warnings=(CampaignWarning(payload, payload, payload),),
        again=payload,
        numbers=({"kind": "effect", "name": payload},),
    )


def test_markdown_has_the_answer_first_then_the_tables_and_the_command() -> None:
    lines = to_markdown(built(FOUND)).splitlines()
    assert lines[0] == "**matched**: Among comparable units y is 3 higher with t \\[1, 5\\]."
    assert lines[2] == "**+3**, 95 % interval +1 to +5"
    assert lines[4] == "- All 7 treated found a match."
    assert "| age | 1.5 |" in lines
    assert "- One is left out. Hint: widen it" in lines
    assert lines[-3:] == ["```", FOUND.again, "```"]


def test_latex_has_the_answer_as_the_first_caption_and_the_rest_below_the_last_table() -> None:
    text = to_latex(built(FOUND))
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    first, last = text.split(r"\end{table}")[:2]
    assert (
        r"\caption{\textbf{matched}: Among comparable units y is 3 higher with t {[}1, 5{]}.}"
        in first
    )
    assert "All 7 treated found a match." in last
    assert r"Again: \texttt{equipoise match people.csv -{}-m 2}" in last
    assert "Warning" not in first


def test_csv_has_a_column_for_whatever_a_row_says_and_numbers_in_full() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(built(FOUND)))))
    assert list(rows[0]) == ["kind", "name", "estimate", "apart"]
    assert [row["apart"] for row in rows] == ["", repr(0.1 + 0.2)]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_hostile_name_makes_no_html_no_heading_no_link_and_no_command(payload: str) -> None:
    tokens = (
        MarkdownIt("commonmark", {"html": True})
        .enable("table")
        .parse(to_markdown(built(hostile(payload))))
    )
    kinds = [token.type for token in tokens]
    inline = {one.type for token in tokens for one in token.children or []}
    assert not {"html_block", "heading_open", "hr", "blockquote_open", "ordered_list_open"} & {
        *kinds
    }
    assert inline <= {"text", "strong_open", "strong_close", "html_inline"}
    # Nothing but the comment that keeps a forge from making a link.
    html = [
        one.content for token in tokens for one in token.children or [] if one.type == "html_inline"
    ]
    assert set(html) <= {"<!-- -->"}
    assert kinds.count("fence") == 1
    latex = to_latex(built(hostile(payload)))
    assert latex.count(r"\begin{") == latex.count(r"\end{") == 4
    assert r"\input" not in latex
    (row,) = csv.DictReader(io.StringIO(to_csv(built(hostile(payload))), newline=""))
    assert row["name"] == payload
