"""The one sentence of each kind of result, and what stands right below it."""

from __future__ import annotations

from msgspec.structs import replace

from equipoise.model.result import ResultDocument
from equipoise.report.builders.claims import campaign_answer
from equipoise.report.builders.why import because_sentence
from equipoise.report.document import Answer
from tests.documents import comparison_of, document_of
from tests.report.kinds import against_another, explained


def of(document: ResultDocument) -> Answer:
    return campaign_answer(document)


def test_one_comparison_is_its_own_headline() -> None:
    document = document_of("a", "b")
    answer = of(document)
    assert answer.title == ""
    assert [claim.text for claim in answer.claims] == [document.comparisons[0].summary]


def test_of_many_it_says_how_many_came_out_how_and_the_largest() -> None:
    comparisons = tuple(
        comparison_of("a", name, ratio)
        for name, ratio in (("b", 1.2), ("c", 0.5), ("d", None), ("e", 1.7))
    )
    answer = of(replace(document_of("a", "b"), comparisons=comparisons))
    assert answer.title.startswith("4 comparisons: 1 faster, 2 slower, 1 undecided")
    assert answer.lines == (
        "The largest difference: c is faster than a: it takes 50.00 % less time.",
    )


def test_of_many_that_are_undecided_none_is_the_largest() -> None:
    comparisons = tuple(comparison_of("a", name, None) for name in "bcde")
    assert of(replace(document_of("a", "b"), comparisons=comparisons)).lines == ()


def test_against_another_result_the_rows_that_changed_are_named() -> None:
    answer = of(against_another().document)
    assert answer.title.startswith("1 of 5 rows changed")
    assert answer.lines[0].startswith("Costs more: fork ×3.0")
    assert not any("Costs less" in one for one in answer.lines)


def test_a_confirmed_cause_has_what_closes_the_gap() -> None:
    document = explained().document
    assert because_sentence(document, document.comparisons[0]) == (
        "Why (confirmed): blocks  go back to the kernel at every free. "
        "Keeping freed memory closes 97 % [94, 99] of the gap."
    )


def test_a_gap_without_a_cause_says_so_and_one_that_was_not_looked_at_nothing() -> None:
    document = explained().document
    words = because_sentence(replace(document, why=()), document.comparisons[0])
    assert words.endswith("no rule finds a cause in it.")
    assert because_sentence(document_of("a", "b"), document.comparisons[0]) == ""
