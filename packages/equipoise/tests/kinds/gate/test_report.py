"""The Markdown of a gate: its rows, and names that stay text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace

from equipoise.kinds.gate.report import gate_document
from equipoise.kinds.gate.terms import COMMENT_MARK, GateDocument, GateOutcome, GateResult, GateRow
from equipoise.model.record import CampaignWarning
from equipoise.model.revisions import Revision
from equipoise.report.builders.result import ReportInput
from equipoise.report.renderers import markdown as renderer
from equipoise.shared.safe_text import visible
from packages.equipoise.tests.documents import document_as, document_of
from packages.equipoise.tests.payloads import PAYLOADS
from packages.equipoise.tests.report.forms import breakable, page, screen

OLD, NEW = Revision("main", "1" * 40), Revision("HEAD", "2" * 40, uncommitted=True)
HARMLESS = {"paragraph", "inline", "text", "text_special", "softbreak", "heading", "fence"}
HARMLESS |= {"table", "thead", "tbody", "tr", "th", "td", "bullet_list", "list_item"}

NOTHING = "<!-- -->"
"""Character that keeps a forge from making a link of text."""


def to_markdown(document: GateDocument) -> str:
    return breakable(renderer.to_markdown(gate_document(document)))


def row(name: str, outcome: GateOutcome, low: float | None, high: float | None) -> GateRow:
    return GateRow(
        name, "wall_s", 0.010, 0.011, 1.1, (low, high), 0.05, 9, outcome, "words.",
        equivalence_ci=(low, high), equivalence_level=0.1,
    )  # fmt: skip


def gate_document_of(*rows: GateRow, passed: bool = False, words: str = "said.") -> GateDocument:
    gate = GateResult(OLD, NEW, 2.0, passed, rows, words)
    return document_as(GateDocument, document_of(), gate=gate, warnings=())


PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def tokens(markdown: str) -> Iterator[Token]:
    for token in PARSER.parse(markdown):
        yield token
        yield from token.children or ()


def kinds(markdown: str | Iterable[Token]) -> set[str]:
    return {
        token.type.removesuffix("_open").removesuffix("_close")
        for token in (tokens(markdown) if isinstance(markdown, str) else markdown)
        if token.content != NOTHING
    }


def test_every_benchmark_has_a_row_with_its_outcome() -> None:
    lines = to_markdown(
        gate_document_of(
            row("b", "passes", 0.9, 1.01),
            row("c", "undecided", None, None),
            row("a", "slower", 1.05, 1.2),
        )
    ).splitlines()
    assert lines[0] == "## Equipoise gate: ❌ fails"
    assert lines[2] == "said."
    assert lines[6:9] == [
        "| a | 10.0 ms | 11.0 ms | +10.0 % | +5.00 % to +20.0 % "
        "| +5.00 % to +20.0 % (90 %) | ❌ slower |",
        "| c | 10.0 ms | 11.0 ms | +10.0 % | open | open (90 %) | ❔ undecided |",
        # Its estimate lies outside of its interval.
        "| b | 10.0 ms | 11.0 ms | no single ratio | -10.0 % to +1.00 % "
        "| -10.0 % to +1.00 % (90 %) | ✅ passes |",
    ]
    assert to_markdown(gate_document_of(passed=True)).startswith("## Equipoise gate: ✅ passes\n")


def test_the_table_says_that_benchmarks_share_alpha() -> None:
    shared_row = replace(
        row("a", "passes", 0.9, 1.01), significance_level=0.05 / 3.0, equivalence_level=0.1 / 3.0
    )
    message = "-10.0 % to +1.00 % (90 % over the benchmarks reported)"
    assert message in to_markdown(gate_document_of(shared_row))


def test_many_passing_benchmarks_are_folded() -> None:
    passing = [row(f"p{number}", "passes", 0.9, 1.01) for number in range(30)]
    markdown = to_markdown(
        gate_document_of(*passing[:20], row("slow", "slower", 1.05, 1.2), *passing[20:])
    )
    fold = "<details>\n<summary>30 benchmarks pass</summary>\n\n| benchmark |"
    before, _, rest = markdown.partition(fold)
    assert "| slow |" in before
    assert "| p" not in before
    inside, _, after = rest.partition("</details>\n\n")
    assert inside.count("\n| p") == 30
    assert "blocks in random order" in after.splitlines()[0]
    assert {"html_block", "table"} <= kinds(markdown)
    assert "<details>" not in to_markdown(gate_document_of(*passing[:10]))


@pytest.mark.parametrize("outcome", ["slower", "passes"])
def test_any_number_of_benchmarks_fits_into_a_comment(outcome: GateOutcome) -> None:
    rows = [row(f"b{number}", outcome, 1.05, 1.2) for number in range(5000)]
    comment = to_markdown(gate_document_of(row("first", "slower", 1.05, 1.2), *rows))
    assert len(comment) + len(COMMENT_MARK) + 2 < 65_536
    assert "| first |" in comment
    count = re.search(r"^(\d+) more are in the document", comment, re.MULTILINE)
    assert count is not None
    assert int(count[1]) + len(re.findall(r"^\| b\d", comment, re.MULTILINE)) == len(rows)


def test_a_timeout_has_no_number() -> None:
    timed_out = replace(row("a", "slower", None, None), candidate_median=None, ratio=None)
    assert "| a | 10.0 ms | timed out | – | open |" in to_markdown(gate_document_of(timed_out))


def test_a_slower_benchmark_has_the_line_that_finds_its_commit() -> None:
    document = gate_document_of(row("parse", "slower", 1.05, 1.2))
    assert document.gate is not None
    line = "equipoise bisect --good 1111 --bad 2222 -- ./bench parse"
    document = replace(document, gate=replace(document.gate, bisect_lines={"parse": line}))
    assert f"Which commit made parse slower?\n\n```\n{line}\n```" in to_markdown(document)


def test_benchmarks_that_are_bisected_together_have_one_line() -> None:
    document = gate_document_of(
        row("parse", "slower", 1.05, 1.2), row("render", "slower", 1.05, 1.2)
    )
    assert document.gate is not None
    line = "equipoise bisect --good 1111 --bad 2222 --bench 'parse=./p' --bench 'render=./r'"
    gate = replace(document.gate, bisect_lines={"parse": line, "render": line})
    markdown = to_markdown(replace(document, gate=gate))
    assert f"Which commits made parse and render slower?\n\n```\n{line}\n```" in markdown
    assert markdown.count("--bench") == 2


def test_warnings_come_with_their_hint() -> None:
    document = replace(
        gate_document_of(), warnings=(CampaignWarning("code", "what is wrong", "the hint"),)
    )
    assert to_markdown(document).endswith("\n- what is wrong; the hint\n")


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_name_becomes_mark_up(payload: str) -> None:
    document = replace(
        gate_document_of(row(payload, "slower", 1.05, 1.2), words=f"{payload} is slower."),
        warnings=(CampaignWarning("code", f"{payload} is wrong", f"hint {payload}"),),
    )
    markdown = to_markdown(document)
    assert kinds(markdown) <= HARMLESS
    assert (
        markdown.count("\n")
        == to_markdown(gate_document_of(row("a", "slower", 1.05, 1.2))).count("\n") + 2
    )
    texts = "".join(
        token.content for token in tokens(markdown) if token.type in ("text", "text_special")
    )
    assert f"{visible(payload)} is slower.".strip() in texts
    assert texts.count(visible(payload).strip()) >= 4


def test_a_result_without_a_gate_mentions_none() -> None:
    assert "@ada" not in to_markdown(
        gate_document_of(row("@ada", "slower", None, None), words="@ada")
    )


def test_the_screen_of_a_run_shows_the_outcome_of_the_gate() -> None:
    assert "The gate fails: \\x1b[31mred.\n" in screen(gate_document_of(words="\x1b[31mred."))


def test_the_page_begins_with_the_outcome_of_the_gate_and_shows_the_command() -> None:
    text = page([ReportInput(gate_document_of(words="<b>slower</b>."))])
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", text)
    assert heading is not None
    assert heading[1] == "The gate fails: &lt;b&gt;slower&lt;/b&gt;."
    assert "equipoise compare" in text
