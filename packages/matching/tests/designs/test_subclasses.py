"""Subclassification on the score: quantiles by estimand, merged subclasses, and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise_matching import propensity_score, subclassify
from equipoise_matching.designs.design import Design
from equipoise_matching.shared.errors import UnusableInput

GENERATOR = np.random.default_rng(38)
ROWS = 900
X = GENERATOR.normal(size=(ROWS, 2))
TREAT = (GENERATOR.random(ROWS) < 1 / (1 + np.exp(0.5 - X[:, 0]))).astype(int)


def strata_of(design: Design) -> Any:
    assert design.strata is not None
    return design.strata


@pytest.mark.parametrize(
    ("estimand", "population"),
    [("ATT", TREAT == 1), ("ATC", TREAT == 0), ("ATE", TREAT >= 0)],
)
def test_subclasses_have_equal_numbers_of_the_rows_that_the_estimand_is_about(
    estimand: Any, population: Any
) -> None:
    design = subclassify(TREAT, X, estimand=estimand)
    counts = np.bincount(strata_of(design)[population])
    assert len(counts) == 5
    assert counts.max() - counts.min() <= 1


def test_a_higher_score_is_in_a_higher_subclass() -> None:
    strata = strata_of(subclassify(TREAT, X))
    score = propensity_score(X, TREAT).score
    assert (np.diff(strata[np.argsort(score)]) >= 0).all()


def test_a_given_score_replaces_the_model() -> None:
    score = propensity_score(X, TREAT).score
    given_score = subclassify(TREAT, {"noise": np.arange(ROWS)}, score=score)
    np.testing.assert_array_equal(strata_of(given_score), strata_of(subclassify(TREAT, X)))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), min_size=4, max_size=60),
    subclasses=st.integers(2, 4),
    estimand=st.sampled_from(["ATT", "ATC", "ATE"]),
    min_n=st.integers(1, 3),
)
def test_every_subclass_has_both_arms_and_the_weights_of_its_stratum(
    rows: list[tuple[int, int]], subclasses: int, estimand: Any, min_n: int
) -> None:
    treat, score = np.array([(0, 0), (1, 9), *rows]).T
    arguments: dict[str, Any] = {"subclasses": subclasses, "estimand": estimand, "min_n": min_n}
    try:
        design = subclassify(treat, {"x": score}, score=score, **arguments)
    except UnusableInput as error:
        assert "no cut of the score" in error.what
        return
    strata = strata_of(design)
    assert (strata >= 0).all()
    assert (np.diff(strata[np.argsort(score, kind="stable")]) >= 0).all()
    for stratum in range(int(strata.max()) + 1):
        counts = [int(((strata == stratum) & (treat == arm)).sum()) for arm in (0, 1)]
        assert min(counts) >= min_n
        total = {"ATT": counts[1], "ATC": counts[0], "ATE": sum(counts)}[estimand]
        for arm in (0, 1):
            weights = design.weights[(strata == stratum) & (treat == arm)]
            np.testing.assert_allclose(weights, total / counts[arm])


def test_a_subclass_without_controls_is_merged_with_its_smaller_neighbour() -> None:
    score = np.arange(12)
    treat = np.array([0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1])
    # Quantiles of all rows cut off the rows 0-2, 3-5, 6-8 and 9-11; the last has no controls.
    design = subclassify(treat, {"x": score}, score=score, subclasses=4, estimand="ATE")
    assert strata_of(design).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2]
    assert design.details["Subclasses"] == "3 of 4"
    assert "Merged" in design.summary()


def test_subclasses_remove_most_of_the_bias_of_one_covariate() -> None:
    generator = np.random.default_rng(5)
    x = generator.normal(size=40_000)
    treat = (generator.random(len(x)) < 1 / (1 + np.exp(1 - x))).astype(int)
    design = subclassify(treat, {"x": x}, estimand="ATE")
    differences = []
    for weights in (np.ones(len(x)), design.weights):
        means = [np.average(x[treat == arm], weights=weights[treat == arm]) for arm in (1, 0)]
        differences.append(means[0] - means[1])
    # Rosenbaum and Rubin 1984: five subclasses remove about 90 %.
    assert 0.85 < 1 - differences[1] / differences[0] < 0.95


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subclasses": 1}, "subclasses is 1"),
        ({"subclasses": 901}, "901 subclasses are more than the 900 rows"),
        ({"min_n": 0}, "min_n is 0"),
        ({"min_n": 500}, "no cut of the score leaves 500 rows of each arm"),
        ({"estimand": "ATX"}, "there is no estimand 'ATX'"),
        ({"score": np.ones(3)}, "score has 3 rows and X has 900"),
        ({"score": np.full(ROWS, np.nan)}, "score, column 'score1' is missing in rows"),
        ({"score": np.ones(ROWS)}, "no cut of the score leaves 1 rows"),
        ({"score": TREAT}, "no cut of the score"),
        ({"X": TREAT.astype(float)}, "the covariates separate treated rows"),
        ({"X": np.ones(ROWS)}, "no cut of the score"),
        ({"treat": TREAT + 1, "estimand": "ATE"}, "subclassify needs the arms 0 and 1, not 1, 2"),
        ({"treat": TREAT + 1, "score": X}, "subclasses of 2 arms give the ATE, not the ATT"),
        ({"treat": TREAT + 1, "score": X[:, 0], "estimand": "ATE"}, "score has 1 columns"),
        ({"score": X}, "score has 2 columns"),
    ],
)
def test_an_error_names_the_fault(options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"treat": TREAT, "X": X}
    with pytest.raises(UnusableInput, match=message) as raised:
        subclassify(**(arguments | options))
    assert raised.value.hint


def test_with_several_arms_each_arm_gets_the_distribution_of_all_rows() -> None:
    generator = np.random.default_rng(6)
    x = generator.normal(size=30_000)
    utilities = np.column_stack([np.zeros(len(x)), x, 0.5 * x + 0.3])
    scores = np.exp(utilities) / np.exp(utilities).sum(axis=1)[:, np.newaxis]
    arm = np.argmax(utilities + generator.gumbel(size=scores.shape), axis=1)
    labels = np.array(["a", "b", "c"])[arm]
    design = subclassify(labels, {"x": x}, score=scores, estimand="ATE", subclasses=20)
    assert design.strata is None
    before = [abs(x[labels == label].mean() - x.mean()) for label in "abc"]
    assert max(before) > 0.3
    for label in "abc":
        is_in_arm = labels == label
        assert design.weights[is_in_arm].sum() == pytest.approx(len(x))
        mean = np.average(x[is_in_arm], weights=design.weights[is_in_arm])
        assert abs(mean - x.mean()) < 0.05


def test_two_named_arms_have_the_weights_of_0_and_1() -> None:
    score = propensity_score(X, TREAT).score
    names = np.array(["control", "treated"])[TREAT]
    named = subclassify(names, X, score=np.column_stack([1 - score, score]), estimand="ATE")
    coded = subclassify(TREAT, X, estimand="ATE")
    np.testing.assert_allclose(named.weights[TREAT == 1], coded.weights[TREAT == 1])
