"""The methods paragraph: true numbers of the design, and the works that it cites."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from equipoise_matching.designs.paragraph import METHODS
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.designs.designs import confounded, weighted

FUNCTIONS = {
    *("optimal_match", "full_match", "cem", "subclassify", "cardinality_match", "profile_match"),
    *("quick_match", "nearest_match", "inverse_probability_weights", "overlap_weights"),
    *("entropy_balance", "covariate_balancing_score", "energy_balance", "match"),
}


def test_every_function_that_makes_a_design_has_a_text_with_citations() -> None:
    assert set(METHODS) == FUNCTIONS
    assert all(method.citations for method in METHODS.values())


@pytest.mark.parametrize("method", sorted(FUNCTIONS))
def test_each_work_that_a_paragraph_names_is_in_its_list(method: str) -> None:
    X, treat = confounded(60)
    paragraph = weighted(treat, X, method=method).methods_paragraph()
    listed = {re.sub(r"[,.].*", "", citation) for citation in paragraph.citations}
    first_authors = {
        clause.split(" ")[0].strip(",")
        for group in re.findall(r"\(([^()]*\d{4}[^()]*)\)", paragraph.text)
        for clause in group.split("; ")
        if re.search(r"\d{4}", clause)
    }
    assert first_authors <= listed, first_authors - listed
    assert {"Austin", "Kish"} <= first_authors


def test_the_numbers_of_the_paragraph_are_those_of_the_design() -> None:
    X, treat = confounded(400)
    weights = np.where(np.arange(400) < 300, 1.0, 0.0)
    design = weighted(treat, X, weights, method="optimal_match", details={"Caliper": 0.2})
    text = design.methods_paragraph().text
    kept = [int((weights[treat == arm] > 0).sum()) for arm in (0, 1)]
    assert f"{kept[0]} of {(treat == 0).sum()} controls" in text
    assert f"{kept[1]} of {(treat == 1).sum()} treated" in text
    assert "the average effect on the treated (ATT)" in text
    assert "from age, income and married, without the outcome" in text
    assert "caliper: 0.2" in text
    after = design.balance().overall()
    assert f"{after.largest_difference:.2f} (age)" in text


def test_the_paragraph_says_whether_differences_remain() -> None:
    X, treat = confounded(400)
    assert "Differences above 0.1 remain in age" in weighted(treat, X).methods_paragraph().text
    values = np.tile(np.arange(20.0), 2)
    even = weighted([1] * 20 + [0] * 20, {"x": values}).methods_paragraph().text
    assert "No difference exceeds 0.1." in even


def test_unknown_differences_are_not_called_small() -> None:
    # One treated row has no standard deviation, which would divide the difference.
    X = {"age": [31.0, 24.0, 31.0, 52.0], "sex": [1.0, 0.0, 1.0, 1.0]}
    text = weighted([1, 0, 0, 0], X).methods_paragraph().text
    assert "1 of 2 differences are unknown." in text
    assert "No difference exceeds" not in text
    only_age = weighted([1, 0, 0, 0], {"age": X["age"]}).methods_paragraph().text
    assert "1 of 1 differences are unknown." in only_age
    assert "nan" not in only_age
    assert "exceeds" not in only_age


def test_the_error_of_an_effect_is_named() -> None:
    class Effect:
        """An effect by its sentence."""

        def methods_sentence(self) -> str:
            return "Standard errors are clustered by pair."

    X, treat = confounded(60)
    text = weighted(treat, X).methods_paragraph(Effect()).text
    assert "Standard errors are clustered by pair." in text


def test_something_else_than_an_effect_is_refused() -> None:
    X, treat = confounded(60)
    number: Any = 3.2
    with pytest.raises(UnusableInput, match="effect is of type float"):
        weighted(treat, X).methods_paragraph(number)


def test_a_paragraph_prints_its_references_below() -> None:
    X, treat = confounded(60)
    paragraph = weighted(treat, X, method="cem").methods_paragraph()
    lines = str(paragraph).splitlines()
    assert lines[0] == paragraph.text
    assert lines[lines.index("References") + 1 :] == list(paragraph.citations)
    assert list(paragraph.citations) == sorted(paragraph.citations)
    assert paragraph._repr_html_().count("<li>") == len(paragraph.citations)


def test_numbers_about_the_computation_are_left_out() -> None:
    X, treat = confounded(60)
    details = {"Total distance": 12.3456, "Arcs": 512, "Treated, proof": "a bound"}
    text = weighted(treat, X, details=details).methods_paragraph().text
    assert "Settings and measures of the design are: total distance: 12.35." in text


def test_the_paragraph_names_whose_effect_it_is_if_target_rows_are_left_out() -> None:
    X, treat = confounded(100)
    sentence = "The effect is that on the rows in use, because others are left out."
    first_treated = int(np.flatnonzero(treat == 1)[0])
    first_control = int(np.flatnonzero(treat == 0)[0])
    for row, estimand, is_named in (
        (first_treated, "ATT", True),
        (first_control, "ATT", False),
        (first_control, "ATC", True),
        (first_control, "ATE", True),
    ):
        weights = np.ones(100)
        weights[row] = 0.0
        text = weighted(treat, X, weights, estimand=estimand).methods_paragraph().text
        assert (sentence in text) == is_named, (row, estimand)
    profile = weighted(treat, X, method="profile_match", estimand="ATE").methods_paragraph().text
    assert profile.startswith("To estimate the average effect in the target population, we chose")
