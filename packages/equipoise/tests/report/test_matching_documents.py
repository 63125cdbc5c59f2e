"""Documents of a match, its balance and a search for weights."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from scipy import stats

from equipoise.report.builders.matching import balance_document, match_document, search_document
from equipoise.report.document import (
    Command,
    Document,
    Facts,
    Paragraph,
    Part,
    ReportWarning,
    Section,
    Statement,
    Table,
    Warnings,
    parts_in,
)
from equipoise_matching import gen_match, match, match_balance, match_by
from equipoise_matching.matching.balance import Balance
from equipoise_matching.matching.match import MatchResult
from equipoise_matching.matching.report import MAX_STRATA
from equipoise_matching.matching.wording import (
    Difference,
    MatchQuestion,
    effect_sentence,
    matched_difference,
    naive_difference,
)
from packages.equipoise.tests.report.forms import answer_of

QUESTION = MatchQuestion("people.csv", "t", "y", ("Each by its nearest.",))
COMMAND = "equipoise match people.csv"


def statement_of(document: Document) -> Statement:
    """The one statement of a document."""
    (statement,) = answer_of(document).statements
    return statement


def tables_of(document: Document) -> list[Table]:
    """The tables of a document's page."""
    return [part for part in parts_in(document.parts, "page") if isinstance(part, Table)]


def codes_of(document: Document) -> list[str]:
    """The codes of the warnings of a document."""
    return [warning.code for warning in warnings_of(document)]


def warnings_of(document: Document) -> list[ReportWarning]:
    """The warnings of a document's page."""
    parts = [part for part in parts_in(document.parts, "page") if isinstance(part, Warnings)]
    return [warning for part in parts for warning in part.warnings]


def section_of(document: Document, title: str) -> tuple[Part, ...]:
    """The parts of a section of a document."""
    sections = [part for part in document.parts if isinstance(part, Section)]
    return next(section.parts for section in sections if section.title == title)


def people(rows: int = 120) -> tuple[Any, Any, Any]:
    """Outcome, who was treated, and two covariates of which the first decides both."""
    generator = np.random.default_rng(6)
    x = np.column_stack([generator.normal(size=rows), generator.integers(0, 2, rows)])
    treated = x[:, 0] + generator.normal(size=rows) > 0.6
    return 2.0 * x[:, 0] + 300.0 * treated + generator.normal(size=rows), treated, x


def balance_of(result: MatchResult | None) -> Balance:
    _, treated, x = people()
    return match_balance({"age": x[:, 0], "black": x[:, 1]}, treated, result, boot=0)


def matched(**how: Any) -> MatchResult:
    outcome, treated, x = people()
    return match(outcome, treated, x, **how)


def test_the_sentence_of_an_effect_has_its_interval_and_its_direction() -> None:
    assert effect_sentence(Difference(1794.3, (474.2, 3114.9)), "re78", "treat") == (
        "treat raises re78 by 1,794 (95 % interval 474 to 3,115), on average over the treated "
        "units."
    )
    assert effect_sentence(Difference(-0.125, (-0.2, -0.05)), "y", "t", "ATE") == (
        "t lowers y by 0.125 (95 % interval 0.05 to 0.2), on average over all units."
    )
    assert effect_sentence(Difference(1.0, (-2.0, 4.0)), "y", "t") == (
        "No effect of t on y can be shown (95 % interval -2 to +4), on average over the treated "
        "units."
    )
    assert effect_sentence(Difference(1.0, None), "y", "t") == (
        "t raises y by 1, on average over the treated units; its interval is unknown."
    )


def test_the_interval_is_the_estimate_and_1_96_errors() -> None:
    result = matched()
    effect = matched_difference(result)
    assert effect is not None
    assert effect.interval is not None
    assert result.se is not None
    half = (effect.interval[1] - effect.interval[0]) / 2.0
    assert half == pytest.approx(stats.norm.ppf(0.975) * result.se)
    assert matched_difference(replace(result, estimate=None)) is None
    single = matched_difference(replace(result, se=None, se_standard=math.nan))
    assert single is not None
    assert single.interval is None


def test_the_naive_interval_is_that_of_welch() -> None:
    outcome, treated, _ = people()
    naive = naive_difference(outcome, treated, None)
    welch = stats.ttest_ind(outcome[treated], outcome[~treated], equal_var=False)
    assert naive.interval == pytest.approx(tuple(welch.confidence_interval()), rel=1e-9)
    huge = naive_difference(1e300 * outcome, treated, None)
    assert huge.interval == pytest.approx([1e300 * end for end in naive.interval or ()], rel=1e-9)
    assert naive_difference(np.ones(4), np.array([True, False] * 2), None).interval is None


def test_a_match_has_effect_naive_difference_worst_covariate_and_dropped_units() -> None:
    outcome, treated, _ = people()
    result = matched(caliper=0.05)
    document = match_document(
        result, balance_of(result), naive_difference(outcome, treated, None), QUESTION, COMMAND
    )
    statement = statement_of(document)
    assert statement.text.startswith("t raises y by 30")
    assert statement.estimate.startswith("+30")
    naively, worst, smallest, dropped, effective = statement.remarks
    assert naively.startswith("Without matching, the treated rows are 30")
    assert " differs most, by " in worst
    assert worst.endswith("; before, age did, by 182.2 %.")
    assert smallest.startswith("The smallest p-value of balance was ")
    assert dropped == (
        f"{result.n_dropped} of {int(treated.sum())} treated found no match and are left out."
    )
    treated_size, control_size = result.effective_sizes
    assert f"worth {treated_size:,.4g} and {control_size:,.4g} (effective" in effective
    assert "dropped" in codes_of(document)
    assert section_of(document, "How it was computed")[0] == Paragraph("Each by its nearest.")
    (command,) = section_of(document, "Do it again")
    assert isinstance(command, Command)
    assert command.line == COMMAND


def test_a_covariate_that_matching_made_less_alike_is_named() -> None:
    # Each treated unit has a control of its age, and all of these are black.
    age = np.array([0, 1, 2, 3, 0, 1, 2, 3, 10, 11, 12, 13], dtype=float)
    black = np.array([0, 1, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0], dtype=float)
    treated = np.arange(12) < 4
    result = match(None, treated, age)
    balance = match_balance({"age": age, "black": black}, treated, result, boot=0)
    (worsened,) = balance.worsened()
    assert (worsened.variable, worsened.before) == ("black", 0.0)
    document = match_document(result, balance, None, QUESTION, COMMAND)
    assert codes_of(document) == ["worse-balance", "unbalanced"]
    assert "less alike in 1 of 2 covariates, in standard deviations: black from +0.0 % to -86." in (
        warnings_of(document)[0].summary
    )
    alike = match_balance({"age": age}, treated, result, boot=0)
    assert alike.worsened() == ()
    assert match_balance({"age": age}, treated, boot=0).worsened() == ()


def test_a_match_without_an_outcome_answers_with_its_balance() -> None:
    _, treated, x = people()
    result = match(None, treated, x)
    document = match_document(
        result, balance_of(result), None, structs.replace(QUESTION, outcome=None), COMMAND
    )
    assert statement_of(document).text.startswith("After matching age differs most, by ")
    assert statement_of(document).estimate == ""
    assert {row["kind"] for row in document.csv_rows} == {"covariate"}


def test_balance_alone_describes_all_rows_and_has_no_warning() -> None:
    document = balance_document(balance_of(None), None, QUESTION, COMMAND)
    statement = statement_of(document)
    assert statement.text == (
        "Without matching, age differs most, by 182.2 % of a standard deviation."
    )
    assert statement.remarks[0].startswith("The smallest p-value of balance is ")
    assert codes_of(document) == []
    assert statement.color_verdict == "undecided"


def test_two_constants_are_apart_without_limit_and_are_warned_of() -> None:
    treated = np.arange(6) % 2 == 0
    columns = {"side": treated.astype(float), "x": np.array([1.0, 1.1, 2.0, 2.1, 3.0, 3.1])}
    result = match(None, treated, np.column_stack([columns["x"]]))
    balance = match_balance(columns, treated, result, boot=0)
    document = balance_document(balance, result, QUESTION, COMMAND)
    assert statement_of(document).text == (
        "After matching side differs most, without limit; before, side did, without limit."
    )
    assert codes_of(document) == ["unbalanced"]


def test_every_covariate_has_its_row_before_and_after_with_its_name() -> None:
    result = matched()
    (table,) = tables_of(match_document(result, balance_of(result), None, QUESTION, COMMAND))
    assert [row[:2] for row in table.rows] == [
        ("age", "before"),
        ("age", "after"),
        ("black", "before"),
        ("black", "after"),
    ]
    assert all(len(row) == len(table.headings) for row in table.rows)


def test_of_many_strata_the_largest_stand_in_the_table_and_the_skipped_are_warned_of() -> None:
    outcome, treated, x = people()
    strata = np.arange(120) % 40 + np.where(np.arange(120) < 60, 0, 100)
    result = match_by(outcome, treated, x, by={"city": strata})
    balance = match_balance({"age": x[:, 0]}, treated, result, boot=0)
    document = match_document(result, balance, None, QUESTION, COMMAND)
    table = tables_of(document)[0]
    assert len(table.rows) == min(MAX_STRATA, len(result.strata))
    assert table.notes == (
        f"The table has the largest strata; --json has the other {len(result.strata) - MAX_STRATA} "
        "too.",
    )
    assert result.skipped
    assert "skipped" in codes_of(document)


def test_a_search_has_the_smallest_p_value_before_and_after_and_its_weights() -> None:
    outcome, treated, x = people()
    search = gen_match(treated, x, population=10, generations=1, seed=1)
    balance = search.balance()
    report = search_document(search, None, balance, None, QUESTION, COMMAND)
    before, after = balance.smallest_before, balance.smallest_after
    assert after is not None
    text = statement_of(report).text
    assert text.startswith(f"The smallest p-value of balance was {before.value:.3g} (")
    assert f"and is {after.value:.3g} (" in text
    weights = {row["name"]: row["weight"] for row in report.csv_rows if row["kind"] == "weight"}
    assert weights == dict(zip(search.names, search.weights.tolist(), strict=True))
    effect = match(outcome, treated, x, metric=search.to_metric())
    effect_report = search_document(search, effect, balance, None, QUESTION, COMMAND)
    assert statement_of(effect_report).text.startswith("t raises y by ")
    assert statement_of(effect_report).remarks[0] == text
    (facts,) = section_of(effect_report, "What it rests on")
    assert isinstance(facts, Facts)
    assert len({name for name, _ in facts.pairs}) == len(facts.pairs)


def method_of(document: Document) -> str:
    """The paragraphs on how a document was computed."""
    parts = section_of(document, "How it was computed")
    return " ".join(part.text for part in parts if isinstance(part, Paragraph))


def test_the_method_says_where_the_variances_come_from() -> None:
    def method(result: MatchResult) -> str:
        return method_of(match_document(result, balance_of(result), None, QUESTION, COMMAND))

    assert "The variance of each unit comes from its 2 nearest units in its own arm." in method(
        matched()
    )
    assert "comes from its nearest unit in its own arm" in method(matched(variance_neighbors=1))
    for more in ({"variance_neighbors": 0}, {"r_compatible": True}):
        assert "All units share one variance: the interval is too narrow where" in method(
            matched(**more)
        )


def test_many_units_without_neighbours_are_warned_of() -> None:
    outcome, treated, x = people(240)
    # Cells so small that about half of the units are alone in their arm.
    cell = np.round(x[:, 0] * 30)
    result = match(outcome, treated, cell, exact=True)
    assert result.n_without_neighbors
    balance = match_balance({"age": x[:, 0]}, treated, result, boot=0)
    found = match_document(result, balance, None, QUESTION, COMMAND)
    assert "few-neighbours" in codes_of(found)
    number, units = result.n_without_neighbors, len(np.unique(result.treated_index))
    units += len(np.unique(result.control_index))
    assert f"{number} of {units} matched units have no such unit near enough" in method_of(found)
    (warning,) = [
        warning
        for part in found.parts
        if isinstance(part, Warnings)
        for warning in part.warnings
        if warning.code == "few-neighbours"
    ]
    assert warning.summary.startswith(f"{number} of {units} matched units have no comparable unit")
    assert "few-neighbours" not in codes_of(
        match_document(matched(), balance, None, QUESTION, COMMAND)
    )
