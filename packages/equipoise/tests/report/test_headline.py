"""The one sentence of each kind of result, and the lines right below it."""

from __future__ import annotations

from msgspec.structs import replace

from equipoise.kinds.functions.result import FunctionsDocument
from equipoise.kinds.functions.terms import FunctionsPlan
from equipoise.model.quantities import Interval
from equipoise.model.result import (
    Comparison,
    RankedCondition,
    Ranking,
    ResultDocument,
    StatisticAnswer,
    Verdict,
)
from equipoise.report.builders.origin import origin_of
from equipoise.report.builders.statements import campaign_answer, statements_of
from equipoise.report.builders.why import cause_sentence
from equipoise.report.document import Answer
from packages.equipoise.tests.documents import comparison_of, document_as, document_of
from packages.equipoise.tests.report.kinds import against_another, explained, strata, varied


def of(document: ResultDocument) -> Answer:
    return campaign_answer(document)


def test_one_comparison_is_its_own_headline() -> None:
    document = document_of("a", "b")
    answer = of(document)
    assert answer.title == ""
    assert [statement.text for statement in answer.statements] == [document.comparisons[0].summary]


def certainty_of(comparison: Comparison) -> tuple[str, ...]:
    (statement,) = statements_of(replace(document_of("a", "b"), comparisons=(comparison,)))
    return statement.certainty_lines


def test_the_interval_that_decided_on_equivalent_stands_beside_that_of_the_ratio() -> None:
    equivalent = replace(
        comparison_of("a", "b", 1.0, ratio_ci=(0.992, 1.009), verdict="equivalent"),
        equivalence_ci=(0.993, 1.008),
        equivalence_level=0.1,
    )
    line = "90 % equivalence interval -0.70 % to +0.80 %"
    assert line in certainty_of(equivalent)
    assert line in certainty_of(
        replace(equivalent, verdict="undecided", means_forbid_equivalence=True)
    )
    slower = replace(equivalent, verdict="slower")
    for other in (slower, replace(equivalent, equivalence_ci=equivalent.ratio_ci)):
        assert not any("equivalence" in sentence for sentence in certainty_of(other))


def test_typical_ratio_medians_and_means_stand_side_by_side_where_they_disagree() -> None:
    median = StatisticAnswer("p50", 0.901, "faster")
    comparison = replace(comparison_of("a", "b", 0.903), answers=(median,), mean_ratio=1.309)
    (line,) = (sentence for sentence in certainty_of(comparison) if sentence.startswith("typical"))
    assert line.startswith("typical -9.70 %, medians -9.90 %, means +30.9 %: ")
    agreeing = replace(comparison, mean_ratio=0.905)
    assert not any(sentence.startswith("typical") for sentence in certainty_of(agreeing))
    unknown = replace(comparison, mean_ratio=None)
    assert not any(sentence.startswith("typical") for sentence in certainty_of(unknown))


def test_the_level_of_three_that_share_alpha_is_that_of_all_of_them() -> None:
    three = tuple(
        replace(
            comparison_of("a", name, ratio, ratio_ci=(0.99, 2.4)),
            significance_level=0.05 / 3.0,
            verdict="equivalent",
            equivalence_ci=(0.995, 1.004),
            equivalence_level=0.1 / 3.0,
        )
        for name, ratio in (("b", 1.2), ("c", 1.5), ("d", 1.7))
    )
    first, *_ = statements_of(replace(document_of("a", "b", "c", "d"), comparisons=three))
    assert (first.estimate, first.interval) == (
        "×1.20",
        "interval ÷1.01 to ×2.40 (95 % over the comparisons reported)",
    )
    assert (
        "equivalence interval -0.50 % to +0.40 % (90 % over the comparisons reported)"
        in first.certainty_lines
    )


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
    answer = of(replace(document_of("a", "b"), comparisons=comparisons))
    assert answer.title == "No difference found; all intervals are still unlimited"
    assert answer.lines == ("4 comparisons: 4 undecided.",)
    assert answer.statements == ()


def answer_without_difference(
    *intervals: Interval, verdict: Verdict = "undecided", ranking: tuple[Ranking, ...] = ()
) -> str:
    comparisons = tuple(
        comparison_of("a", name, 1.0, ratio_ci=interval, verdict=verdict)
        for name, interval in zip("bcd", intervals, strict=False)
    )
    document = replace(document_of("a", "b"), comparisons=comparisons, ranking=ranking)
    return of(document).title


def test_a_study_without_a_difference_says_so_in_one_sentence() -> None:
    told = answer_without_difference
    assert told((0.9524, 1.03), (0.99, 1.0412)) == "No difference found; all within ±5 %"
    assert told((0.99, 1.0412), (0.99, 1.01)) == "No difference found; all within ±4.2 %"
    assert told((0.4, 1.2), (0.9, 1.1)) == "No difference found; all within a factor of 2.5"
    assert told((0.818, 7.04), (0.9, 1.1)) == "No difference found; all within a factor of 7.1"
    assert told((0.818, 123.4), (0.9, 1.1)) == "No difference found; all within a factor of 130"
    assert told((None, 1.2), (0.9, 1.1)) == (
        "No difference found; 1 of 2 intervals are still unlimited"
    )
    assert told((0.995, 1.005), (0.999, 1.001), verdict="equivalent") == (
        "No difference: all are the same as a within ±1 %"
    )


def test_where_a_direction_is_certain_or_a_candidate_is_beaten_there_is_a_difference() -> None:
    assert answer_without_difference((1.002, 1.03), (0.99, 1.01)) == ""
    assert answer_without_difference((0.9, 1.1)) == ""
    loser = RankedCondition("b", 1.0, (), (), (), ())
    summary = "c is faster than b."
    ranking = (Ranking("a", ("a",), "a", (loser, loser), (), 0.05, summary),)
    assert answer_without_difference((0.9, 1.1), (0.9, 1.1), ranking=ranking) == summary


def test_a_refuted_cause_is_never_the_headline() -> None:
    document = explained().result
    (cause,) = document.why
    refuted = replace(cause, status="refuted", tested=(), summary="locks are slow")
    still_open = replace(cause, status="open", tested=(), summary="page faults cost it")
    said = cause_sentence(replace(document, why=(refuted, still_open)), document.comparisons[0])
    assert "page faults cost it" in said
    assert "locks" not in said
    said = cause_sentence(replace(document, why=(refuted,)), document.comparisons[0])
    assert said == ("Why: 98 % of the extra time is system time; every tested cause is refuted.")


def test_against_another_result_the_rows_that_changed_are_named() -> None:
    answer = of(against_another().result)
    assert answer.title.startswith("1 of 5 rows changed")
    assert answer.lines[0].startswith("Costs more: fork ×3.0")
    assert not any("Costs less" in line for line in answer.lines)


def test_a_confirmed_cause_has_what_closes_the_gap() -> None:
    document = explained().result
    assert cause_sentence(document, document.comparisons[0]) == (
        "Why (confirmed): blocks  go back to the kernel at every free. "
        "Keeping freed memory closes 97 % [94, 99] of the gap."
    )


def test_a_gap_without_a_cause_says_so_and_one_that_was_not_looked_at_nothing() -> None:
    document = explained().result
    words = cause_sentence(replace(document, why=()), document.comparisons[0])
    assert words.endswith("no rule finds a cause for it.")
    assert cause_sentence(document_of("a", "b"), document.comparisons[0]) == ""


def test_the_question_is_that_of_the_campaign() -> None:
    def question(document: ResultDocument) -> str:
        return origin_of(document, "equipoise compare").question

    stratified = strata().result
    assert question(stratified) == "Which of 3 is the fastest, at each n?"
    pairs = tuple(
        comparison for comparison in stratified.comparisons if comparison.candidate.startswith("b")
    )
    assert question(replace(stratified, comparisons=pairs)) == (
        "Is b faster or slower than a, at each n?"
    )
    assert question(varied().result) == "What makes the time of nothing held vary?"
    of_functions = document_of("f", "g")
    of_functions = document_as(
        FunctionsDocument,
        of_functions,
        run=replace(of_functions.run, study="functions"),
        comparisons=(comparison_of("f", "g", 1.1, metric="call_s"),),
        functions=FunctionsPlan((1, 1), 1, False, None, ("0", "1"), "CPython 3.12.1", ""),
    )
    assert question(of_functions) == "Is g faster or slower than f?"
