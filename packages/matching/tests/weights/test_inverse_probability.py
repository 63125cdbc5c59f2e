"""Inverse probability weights and overlap weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.weights.inverse_probability import (
    inverse_probability_weights,
    overlap_weights,
)
from equipoise_matching.weights.scores import treatment_scores
from packages.matching.tests.weights.samples import three_arms, two_arms, weighted_mean

TREAT = np.array([1, 0, 1, 0])
SCORE = np.array([0.8, 0.6, 0.25, 0.2])
X = np.array([[1.0], [2.0], [3.0], [4.0]])


@pytest.mark.parametrize(
    ("estimand", "expected"),
    [
        ("ATE", [1 / 0.8, 1 / 0.4, 1 / 0.25, 1 / 0.8]),
        ("ATT", [1, 0.6 / 0.4, 1, 0.2 / 0.8]),
        ("ATC", [0.2 / 0.8, 1, 0.75 / 0.25, 1]),
    ],
)
def test_the_weights_are_the_formulae_of_the_estimand(estimand: Any, expected: list[float]) -> None:
    design = inverse_probability_weights(TREAT, X, estimand=estimand, scores=SCORE)
    assert design.weights == pytest.approx(expected, rel=1e-14)
    assert design.estimand == estimand


def test_weights_of_several_arms_are_the_formulae_of_the_literature() -> None:
    treat = np.array(["a", "b", "c"])
    probabilities = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]])
    ate = inverse_probability_weights(treat, X[:3], estimand="ATE", scores=probabilities)
    att = inverse_probability_weights(treat, X[:3], focal="b", scores=probabilities)
    assert ate.weights == pytest.approx([1 / 0.5, 1 / 0.6, 1 / 0.5])
    assert att.weights == pytest.approx([0.3 / 0.5, 1, 0.25 / 0.5])
    assert att.details["Focal arm"] == "b"
    overlap = overlap_weights(treat, X[:3], scores=probabilities)
    harmonic = 1 / (1 / probabilities).sum(axis=1)
    assert overlap.weights == pytest.approx(harmonic / probabilities[range(3), range(3)])


def test_overlap_weights_of_two_arms_are_the_score_of_the_other_arm() -> None:
    assert overlap_weights(TREAT, X, scores=SCORE).weights == pytest.approx([0.2, 0.6, 0.75, 0.2])


def test_saturated_scores_reproduce_the_cell_shares_of_all_rows() -> None:
    # Without a model error, each arm's weighted share of a cell is that of all rows.
    cells = np.array([0, 0, 0, 0, 1, 1, 1])
    treat = np.array([1, 0, 0, 0, 1, 1, 0])
    design = inverse_probability_weights(treat, cells, estimand="ATE")
    for arm in (0, 1):
        weights = design.weights[treat == arm]
        assert np.bincount(cells[treat == arm], weights) == pytest.approx([4, 3], rel=1e-9)


def test_overlap_weights_of_the_logit_balance_the_means_exactly() -> None:
    sample = two_arms(500)
    design = overlap_weights(sample.treat, sample.matrix)
    assert design.estimand == "ATO"
    assert design.details["Largest difference of means (standard deviations)"] < 1e-10


def test_the_error_with_overlap_weights_is_that_of_many_samples() -> None:
    errors, estimates = [], []
    for seed in range(150):
        sample = two_arms(250, seed=seed)
        effect = overlap_weights(sample.treat, sample.matrix).effect(
            sample.outcome, covariates=None
        )
        estimates.append(effect.estimate)
        errors.append(effect.se)
    ratio = np.mean(errors) / np.std(estimates, ddof=1)
    # The standard deviation of 150 estimates has a relative Monte Carlo error of 1 / sqrt(300).
    assert abs(ratio - 1) < 3 / np.sqrt(300)
    # Errors that take the weights as known are too wide by more than that.
    given = overlap_weights(
        sample.treat, sample.matrix, scores=treatment_scores(sample.treat, sample.matrix)
    )
    known = given.effect(sample.outcome, covariates=None).se
    assert known > 1.3 * errors[-1]


def test_stabilised_weights_are_multiplied_by_the_share_of_the_arm() -> None:
    sample = two_arms(300)
    plain = inverse_probability_weights(sample.treat, sample.matrix, estimand="ATE")
    stable = inverse_probability_weights(
        sample.treat, sample.matrix, estimand="ATE", stabilized=True
    )
    shares = np.array([1 - sample.treat.mean(), sample.treat.mean()])[sample.treat]
    assert stable.weights == pytest.approx(plain.weights * shares, rel=1e-14)


def test_trimming_lowers_large_weights_to_their_percentile() -> None:
    sample = two_arms(400)
    plain = inverse_probability_weights(sample.treat, sample.matrix, estimand="ATE").weights
    design = inverse_probability_weights(sample.treat, sample.matrix, estimand="ATE", trim=95)
    limit = np.quantile(plain, 0.95)
    assert design.weights == pytest.approx(np.minimum(plain, limit))
    assert design.details["Trimmed rows"] == (plain > limit).sum() == 20


def test_trimming_for_the_att_leaves_the_treated_out_of_the_percentile() -> None:
    sample = two_arms(400)
    plain = inverse_probability_weights(sample.treat, sample.matrix).weights
    trimmed = inverse_probability_weights(sample.treat, sample.matrix, trim=90).weights
    controls = sample.treat == 0
    limit = np.quantile(plain[controls], 0.9)
    assert trimmed[controls] == pytest.approx(np.minimum(plain[controls], limit))
    assert (trimmed[~controls] == 1).all()


def test_the_details_have_the_numbers_that_judge_weights() -> None:
    sample = two_arms(300)
    scores = treatment_scores(sample.treat, sample.matrix, clip=0.3)
    design = inverse_probability_weights(sample.treat, sample.matrix, estimand="ATE", scores=scores)
    assert design.details["Largest weight"] == design.weights.max()
    assert design.details["Rows with clipped scores"] == scores.clipped_rows > 0
    shares = [design.weights[sample.treat == arm] for arm in (0, 1)]
    largest = max(float((weights / weights.sum()).max()) for weights in shares)
    assert design.details["Largest share of an arm in one row"] == pytest.approx(largest)
    means = [weighted_mean(sample.matrix, design.weights, sample.treat == arm) for arm in (0, 1)]
    difference = np.abs(means[1] - means[0]) / sample.matrix.std(axis=0)
    assert design.details["Largest difference of means (standard deviations)"] == pytest.approx(
        difference.max()
    )
    assert "Largest weight" in design.summary()


def test_inverse_probability_weights_estimate_the_effect() -> None:
    # 200 data sets of 400 rows with the effect 2: the mean is within four Monte Carlo errors.
    estimates = []
    for seed in range(200):
        sample = two_arms(400, seed=100 + seed)
        design = overlap_weights(sample.treat, sample.matrix)
        means = [
            np.average(sample.outcome[rows], weights=design.weights[rows])
            for rows in (sample.treat == 1, sample.treat == 0)
        ]
        estimates.append(means[0] - means[1])
    error = np.std(estimates, ddof=1) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - 2.0) < 4 * error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimand": "ATX"}, "there is no estimand 'ATX'"),
        ({"estimand": "ATE", "focal": 1}, "the ATE has no focal arm"),
        ({"estimand": "ATT", "focal": 0}, "the ATT has the focal arm 1"),
        ({"stabilized": True}, "stabilized weights are for the ATE"),
        ({"trim": 40}, "trim is 40"),
        ({"trim": float("nan")}, "trim is nan"),
        ({"scores": [0.5, 1.0, 0.5, 0.5]}, "probability of an arm is 0 in row 1"),
        ({"scores": [1.0, 0.5, 0.5, 0.5]}, "probability of an arm is 0 in row 0"),
        ({"scores": [0.5, 0.0, 0.5, 0.0]}, "every row of an arm has the weight 0"),
    ],
)
def test_invalid_options_and_scores_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UnusableInput, match=message):
        inverse_probability_weights(TREAT, X, **{"scores": SCORE, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs a focal arm"),
        ({"focal": "d"}, "focal is 'd', which is not an arm"),
        ({"estimand": "ATC"}, "the ATC needs a treatment of 0 and 1"),
    ],
)
def test_several_arms_need_a_focal_arm(arguments: dict[str, Any], message: str) -> None:
    sample = three_arms(60)
    with pytest.raises(UnusableInput, match=message):
        inverse_probability_weights(sample.treat, sample.matrix, **arguments)


def test_arms_without_overlap_are_refused_by_overlap_weights() -> None:
    with pytest.raises(UnusableInput, match="does not overlap"):
        overlap_weights(TREAT, X, scores=TREAT.astype(float))
