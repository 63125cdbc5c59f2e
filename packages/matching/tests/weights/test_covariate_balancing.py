"""The covariate balancing propensity score against its equations and against scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, root

from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.weights.covariate_balancing import (
    _MomentDistance,
    _Sides,
    covariate_balancing_score,
)
from equipoise_matching.weights.entropy_balance import entropy_balance
from packages.matching.tests.weights.samples import Floats, three_arms, two_arms


def with_constant(matrix: Floats) -> Floats:
    return np.column_stack([np.ones(len(matrix)), matrix])


def test_the_score_of_the_att_is_entropy_balancing() -> None:
    # Both solve the same equations with weights exponential in the covariates.
    sample = two_arms(500)
    score = covariate_balancing_score(sample.treat, sample.matrix)
    entropy = entropy_balance(sample.treat, sample.matrix)
    controls = sample.treat == 0
    shares = [
        design.weights[controls] / design.weights[controls].sum() for design in (score, entropy)
    ]
    assert shares[0] == pytest.approx(shares[1], rel=1e-8)
    # With a constant in the equations, the controls weigh as much as the treated.
    assert score.weights[controls].sum() == pytest.approx((~controls).sum(), rel=1e-9)


@pytest.mark.parametrize("estimand", ["ATT", "ATC", "ATE"])
def test_the_balance_equations_hold(estimand: Any) -> None:
    sample = two_arms(500)
    design = covariate_balancing_score(sample.treat, sample.matrix, estimand=estimand)
    signs = np.where(sample.treat == 1, 1.0, -1.0)
    equations = (signs * design.weights) @ with_constant(sample.matrix) / 500
    assert np.abs(equations).max() < 1e-8
    assert design.details["Largest balance equation (mean per row)"] < 1e-8


def test_the_weights_of_the_ate_are_inverse_probabilities_of_a_logit() -> None:
    sample = two_arms(400)
    weights = covariate_balancing_score(sample.treat, sample.matrix, estimand="ATE").weights
    own = 1 / weights
    score = np.where(sample.treat == 1, own, 1 - own)
    logits = np.log(score / (1 - score))
    regressors = with_constant(sample.matrix)
    residuals = logits - regressors @ np.linalg.lstsq(regressors, logits, rcond=None)[0]
    assert np.abs(residuals).max() < 1e-9


def test_scipy_solves_the_equations_of_the_ate_with_the_same_score() -> None:
    sample = two_arms(200)
    regressors = with_constant(sample.matrix)

    def equations(parameters: Floats) -> Floats:
        score = 1 / (1 + np.exp(-regressors @ parameters))
        parts = sample.treat / score - (1 - sample.treat) / (1 - score)
        return np.asarray(parts @ regressors / 200)

    solution = root(equations, np.zeros(5), tol=1e-12)
    assert solution.success
    score = 1 / (1 + np.exp(-regressors @ solution.x))
    expected = np.where(sample.treat == 1, 1 / score, 1 / (1 - score))
    design = covariate_balancing_score(sample.treat, sample.matrix, estimand="ATE")
    assert design.weights == pytest.approx(expected, rel=1e-7)


def test_a_saturated_score_is_the_share_of_the_treated_in_each_cell() -> None:
    cells = np.array([0, 0, 0, 0, 1, 1, 1])
    treat = np.array([1, 0, 0, 0, 1, 1, 0])
    design = covariate_balancing_score(treat, cells, estimand="ATE")
    assert design.weights == pytest.approx([4, 4 / 3, 4 / 3, 4 / 3, 1.5, 1.5, 3], rel=1e-8)


@pytest.mark.parametrize("estimand", ["ATT", "ATE"])
def test_the_gradient_of_the_moment_distance_is_its_difference_quotient(estimand: str) -> None:
    sample = two_arms(80)
    regressors = with_constant(sample.matrix)
    objective = _MomentDistance(_Sides(sample.treat == 1, estimand == "ATE"), regressors)
    point = np.array([0.1, 0.3, -0.2, 0.15, 0.05])
    _, gradient = objective(point)
    step = 1e-6
    for index, direction in enumerate(np.eye(5)):
        values = [objective(point + sign * step * direction)[0] for sign in (1, -1)]
        assert gradient[index] == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-7)


@pytest.mark.parametrize("estimand", ["ATT", "ATC", "ATE"])
def test_the_over_identified_score_minimises_the_distance_of_the_paper(estimand: Any) -> None:
    sample = two_arms(300)
    regressors = with_constant(
        (sample.matrix - sample.matrix.mean(axis=0)) / sample.matrix.std(axis=0)
    )
    treat = 1 - sample.treat if estimand == "ATC" else sample.treat

    def distance(parameters: Floats) -> float:
        """The distance of section 2.2, written out with the two moments side by side."""
        score = 1 / (1 + np.exp(-regressors @ parameters))
        if estimand == "ATE":
            balance = treat / score - (1 - treat) / (1 - score)
            cross, variance = np.ones(300), 1 / (score * (1 - score))
        else:
            balance = treat - (1 - treat) * score / (1 - score)
            cross, variance = score, score / (1 - score)
        means = np.concatenate([(treat - score) @ regressors, balance @ regressors]) / 300

        def block(factor: Floats) -> Floats:
            return np.asarray(regressors.T @ (regressors * factor[:, None]) / 300)

        matrix = np.block(
            [[block(score * (1 - score)), block(cross)], [block(cross), block(variance)]]
        )
        return float(means @ np.linalg.solve(matrix, means))

    start = np.array([0.1, 0.5, 0.3, -0.3, 0.1]) * (-1 if estimand == "ATC" else 1)
    found = minimize(
        distance, start, method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-13, "maxiter": 20_000, "maxfev": 20_000},
    )  # fmt: skip
    design = covariate_balancing_score(
        sample.treat, sample.matrix, estimand=estimand, over_identified=True
    )
    assert design.details["J statistic"] == pytest.approx(300 * found.fun, rel=1e-6)
    score = 1 / (1 + np.exp(-regressors @ found.x))
    if estimand == "ATE":
        expected = np.where(treat == 1, 1 / score, 1 / (1 - score))
    else:
        expected = np.where(treat == 1, 1.0, score / (1 - score))
    assert design.weights == pytest.approx(expected, rel=1e-4)


def test_the_j_statistic_has_the_mean_of_its_chi_squared_distribution() -> None:
    # The model is right, so that the statistic has 3 degrees of freedom in large samples.
    statistics = []
    for seed in range(60):
        random = np.random.default_rng(seed)
        matrix = random.normal(size=(300, 2))
        treat = random.random(300) < 1 / (1 + np.exp(-0.5 * matrix[:, 0]))
        design = covariate_balancing_score(treat, matrix, estimand="ATE", over_identified=True)
        statistics.append(design.details["J statistic"])
    error = np.sqrt(2 * 3 / 60)
    assert abs(np.mean(statistics) - 3) < 4 * error


def test_the_equations_of_three_arms_hold() -> None:
    sample = three_arms(600)
    design = covariate_balancing_score(sample.treat, sample.matrix, estimand="ATE")
    sums = [
        design.weights[sample.treat == arm] @ with_constant(sample.matrix)[sample.treat == arm]
        for arm in "abc"
    ]
    assert sums[1] / 600 == pytest.approx(sums[0] / 600, abs=1e-8)
    assert sums[2] / 600 == pytest.approx(sums[1] / 600, abs=1e-8)
    assert (design.weights > 1).all()


def test_a_saturated_score_of_three_arms_is_the_share_of_each_arm_in_each_cell() -> None:
    cells = np.repeat([0, 1], [10, 10])
    treat = np.array(list("aaabbbbccc") + list("aabbbccccc"))
    design = covariate_balancing_score(treat, cells, estimand="ATE")
    counts = {(arm, cell): 0 for arm in "abc" for cell in (0, 1)}
    for arm, cell in zip(treat, cells, strict=True):
        counts[str(arm), int(cell)] += 1
    expected = [10 / counts[str(arm), int(cell)] for arm, cell in zip(treat, cells, strict=True)]
    assert design.weights == pytest.approx(expected, rel=1e-6)


def test_the_weights_of_two_labels_with_a_focal_arm_are_those_of_0_and_1() -> None:
    sample = two_arms(200)
    labels = np.where(sample.treat == 1, "drug", "placebo")
    by_label = covariate_balancing_score(labels, sample.matrix, focal="drug")
    by_number = covariate_balancing_score(sample.treat, sample.matrix)
    assert by_label.weights == pytest.approx(by_number.weights, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"focal": "a"}, "of 3 arms is for the ATE"),
        ({"estimand": "ATE", "over_identified": True}, "over_identified is for two arms"),
    ],
)
def test_extensions_to_several_arms_are_refused_by_name(
    arguments: dict[str, Any], message: str
) -> None:
    sample = three_arms(60)
    with pytest.raises(UnusableInput, match=message):
        covariate_balancing_score(sample.treat, sample.matrix, **arguments)


@pytest.mark.parametrize("estimand", ["ATT", "ATC", "ATE"])
def test_a_covariate_that_decides_the_treatment_is_named(estimand: Any) -> None:
    random = np.random.default_rng(1)
    columns = {"noise": random.normal(size=40), "income": np.arange(40.0)}
    with pytest.raises(UnusableInput, match="income"):
        covariate_balancing_score(np.arange(40) >= 20, columns, estimand=estimand)


def test_constant_covariates_are_refused() -> None:
    with pytest.raises(UnusableInput, match="no covariate varies"):
        covariate_balancing_score([0, 1, 0, 1], np.ones((4, 2)))
