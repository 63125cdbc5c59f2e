"""A ranking in every form: one sentence on the screen, a table elsewhere."""

from __future__ import annotations

from msgspec.structs import replace

from equipoise.model.result import RankedCondition, Ranking
from equipoise.report.builders.result import ReportInput
from equipoise.report.builders.statements import campaign_answer
from packages.equipoise.tests.documents import document_of
from packages.equipoise.tests.report.forms import page, screen, to_latex, to_markdown

SENTENCE = "a is the fastest of 3."


def ranked() -> Ranking:
    """The first of three is certainly the fastest."""
    return Ranking(
        "a",
        ("a",),
        "a",
        (
            RankedCondition("a", 1.0, (), ("b", "c"), (), ()),
            RankedCondition("b", 1.1, ("a",), (), (), ("c",)),
            RankedCondition("c", None, ("a",), (), (), ("b",)),
        ),
        (),
        0.05,
        SENTENCE,
    )


def test_the_ranking_is_a_sentence_on_the_screen_and_a_table_elsewhere() -> None:
    document = replace(document_of("a", "b", "c", blocks=10), ranking=(ranked(),))
    printed = screen(document)
    assert SENTENCE in printed
    assert "Certainly slower than" not in printed
    # The sentence is the answer: it comes before the comparisons, and only there.
    assert printed.index(SENTENCE) < printed.index("b is slower than a")
    assert printed.count(SENTENCE) == 1
    markdown = to_markdown(document)
    assert markdown.startswith(SENTENCE)
    assert "| 1 | a | baseline | – | – | – |" in markdown
    assert "| 2 to 3 | b | +10.0 % | a | – | c |" in markdown
    assert SENTENCE in to_latex(document)


def test_of_many_candidates_the_first_sentence_of_the_page_is_the_ranking() -> None:
    names = tuple("abcdef")
    ranking = Ranking(
        "a",
        ("a",),
        "a",
        tuple(RankedCondition(name, 1.0, (), (), (), ()) for name in names),
        (),
        0.05,
        SENTENCE,
    )
    document = replace(document_of(*names, blocks=9), ranking=(ranking,))
    answer = campaign_answer(document)
    assert answer.title == SENTENCE
    assert answer.lines[0].startswith("5 comparisons: ")
    first = page([ReportInput(document)]).partition("<h1")[2].partition("</h1>")[0]
    assert SENTENCE in first


def test_a_ranking_of_a_part_of_the_conditions_is_no_answer() -> None:
    document = replace(document_of("a", "b", "c", "d", blocks=9), ranking=(ranked(),))
    answer = campaign_answer(document)
    assert answer.title == ""
    assert answer.statements[0].text.startswith("b is slower than a")
