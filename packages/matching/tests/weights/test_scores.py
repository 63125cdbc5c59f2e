"""Scores of regressions and classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise_matching.matching.propensity import propensity_score
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.weights.scores import TreatmentScores, scores_for, treatment_scores
from packages.matching.tests.weights.samples import Floats, three_arms, two_arms


def with_constant(matrix: Floats) -> Floats:
    return np.column_stack([np.ones(len(matrix)), matrix])


def test_the_scores_of_the_logit_solve_its_score_equations() -> None:
    sample = two_arms(500)
    score = treatment_scores(sample.treat, sample.matrix).probabilities[:, 1]
    equations = (sample.treat - score) @ with_constant(sample.matrix) / 500
    assert np.abs(equations).max() < 1e-10


@pytest.mark.parametrize("link", ["probit", "cloglog"])
def test_the_scores_of_other_links_solve_their_score_equations(link: str) -> None:
    from scipy.stats import norm

    sample = two_arms(500)
    score = treatment_scores(sample.treat, sample.matrix, model=link).probabilities[:, 1]
    if link == "probit":
        slope = norm.pdf(norm.ppf(score))
    else:
        slope = -(1 - score) * np.log1p(-score)
    parts = (sample.treat - score) * slope / (score * (1 - score))
    assert np.abs(parts @ with_constant(sample.matrix) / 500).max() < 1e-8


def test_the_links_transform_the_score_to_a_linear_predictor() -> None:
    from scipy.stats import norm

    sample = two_arms(300)
    probit = propensity_score(sample.matrix, sample.treat, link="probit")
    cloglog = propensity_score(sample.matrix, sample.treat, link="cloglog")
    assert norm.cdf(probit.linear) == pytest.approx(probit.score)
    assert 1 - np.exp(-np.exp(cloglog.linear)) == pytest.approx(cloglog.score)


def test_the_multinomial_logit_solves_its_score_equations() -> None:
    sample = three_arms(600)
    scores = treatment_scores(sample.treat, sample.matrix)
    assert scores.arms == ("a", "b", "c")
    residuals = np.eye(3)[scores.arm] - scores.probabilities
    assert np.abs(residuals.T @ with_constant(sample.matrix) / 600).max() < 1e-10


def test_labels_of_two_arms_give_the_scores_of_0_and_1() -> None:
    sample = two_arms(200)
    labels = np.where(sample.treat == 1, "treated", "control")
    by_number = treatment_scores(sample.treat, sample.matrix)
    by_label = treatment_scores(labels, sample.matrix)
    assert np.array_equal(by_number.probabilities, by_label.probabilities)


def test_the_score_of_a_row_comes_from_a_classifier_that_never_saw_it() -> None:
    class Memory:
        """A classifier that is certain about rows that it has seen, and undecided about others."""

        def fit(self, matrix: Floats, arm: Any) -> Memory:
            self.arms = {tuple(row): int(label) for row, label in zip(matrix, arm, strict=True)}
            return self

        def predict_proba(self, matrix: Floats) -> Floats:
            rows = [self.arms.get(tuple(row)) for row in matrix]
            return np.array([[0.5, 0.5] if arm is None else np.eye(2)[arm] for arm in rows])

    sample = two_arms(100)
    crossed = treatment_scores(sample.treat, sample.matrix, model=Memory())
    fitted = treatment_scores(sample.treat, sample.matrix, model=Memory(), folds=1)
    assert (crossed.probabilities == 0.5).all()
    assert (fitted.own_probabilities == 1.0).all()


def test_every_fold_has_nearly_the_same_share_of_each_arm() -> None:
    sizes: list[tuple[int, ...]] = []

    class Counter:
        def fit(self, matrix: Floats, arm: Any) -> Counter:
            sizes.append(tuple(np.bincount(arm).tolist()))
            return self

        def predict_proba(self, matrix: Floats) -> Floats:
            return np.full((len(matrix), 3), 1 / 3)

    sample = three_arms(101)
    counts = np.bincount(treatment_scores(sample.treat, sample.matrix, model=Counter()).arm)
    assert len(sizes) == 5
    held_out = counts - np.array(sizes)
    assert (np.ptp(held_out, axis=0) <= 1).all()
    assert np.ptp(held_out.sum(axis=1)) <= 1


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(n_estimators=20, min_samples_leaf=10),
        make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=20)),
    ],
    ids=["forest", "pipeline"],
)
def test_a_seed_fixes_the_folds_and_the_random_numbers_of_the_classifier(model: Any) -> None:
    sample = two_arms(150)
    first, second, other = (
        treatment_scores(sample.treat, sample.matrix, model=model, seed=seed).probabilities
        for seed in (3, 3, 4)
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)
    assert not hasattr(model, "classes_")


def test_a_classifier_without_penalty_gives_the_scores_of_the_logit() -> None:
    sample = two_arms(400)
    model = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000)
    theirs = treatment_scores(sample.treat, sample.matrix, model=model, folds=1).probabilities
    ours = treatment_scores(sample.treat, sample.matrix).probabilities
    assert theirs == pytest.approx(ours, abs=1e-5)


def test_clipped_rows_are_counted_and_keep_the_sum_1() -> None:
    sample = three_arms(400)
    plain = treatment_scores(sample.treat, sample.matrix)
    clipped = treatment_scores(sample.treat, sample.matrix, clip=0.2)
    is_low = (plain.probabilities < 0.2).any(axis=1)
    assert 0 < clipped.clipped_rows == is_low.sum() < 400
    assert clipped.probabilities.min() >= 0.2 - 1e-15
    assert clipped.probabilities.sum(axis=1) == pytest.approx(1.0, abs=1e-14)
    assert np.array_equal(clipped.probabilities[~is_low], plain.probabilities[~is_low])


def test_two_arms_are_clipped_at_both_ends() -> None:
    sample = two_arms(400)
    plain = treatment_scores(sample.treat, sample.matrix).probabilities[:, 1]
    clipped = treatment_scores(sample.treat, sample.matrix, clip=0.3).probabilities[:, 1]
    assert clipped == pytest.approx(np.clip(plain, 0.3, 0.7), abs=1e-15)


def test_given_probabilities_of_treatment_are_kept() -> None:
    sample = two_arms(50)
    from equipoise_matching.designs.units import design_units

    units = design_units(sample.treat, sample.matrix)
    given = np.linspace(0.1, 0.9, 50)
    scores = scores_for(units, given)
    assert scores.probabilities[:, 1] == pytest.approx(given, abs=1e-15)
    assert scores_for(units, scores) is scores


SEPARATED = np.arange(20.0)
NEARLY_SEPARATED = np.repeat([0.0, 1.0], 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "linear"}, "there is no model 'linear'"),
        ({"model": object()}, "the model object has no method fit"),
        ({"folds": 5}, "folds are for a classifier"),
        ({"model": LogisticRegression(), "folds": 0}, "folds is 0"),
        ({"model": LogisticRegression(), "folds": 11}, "fewer than the 11 folds"),
        ({"model": LogisticRegression(), "seed": -1}, "seed is -1"),
        ({"clip": 0.5}, "clip is 0.5"),
        ({"clip": float("nan")}, "clip is nan"),
    ],
)
def test_invalid_options_are_refused(arguments: dict[str, Any], message: str) -> None:
    random = np.random.default_rng(1)
    with pytest.raises(UnusableInput, match=message):
        treatment_scores(np.arange(20) % 2, random.normal(size=(20, 2)), **arguments)


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_covariates_that_decide_the_treatment_are_refused(link: str) -> None:
    with pytest.raises(UnusableInput, match="separate"):
        treatment_scores(SEPARATED >= 10, SEPARATED, model=link)


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_a_value_that_only_one_arm_has_is_refused(link: str) -> None:
    # Every row with the value 1 is treated, and some with the value 0: the slope is infinite.
    treat = np.where(np.arange(20) >= 10, 1, np.arange(20) % 2)
    with pytest.raises(UnusableInput, match="there is no overlap"):
        treatment_scores(treat, NEARLY_SEPARATED, model=link)


def test_an_arm_that_a_covariate_separates_from_the_others_is_refused() -> None:
    treat = np.array(["a", "b"] * 5 + ["c"] * 10)
    with pytest.raises(UnusableInput, match="separate"):
        treatment_scores(treat, SEPARATED)


def test_probit_with_three_arms_is_refused_by_name() -> None:
    sample = three_arms(60)
    with pytest.raises(UnusableInput, match="'probit' is for two arms, but there are 3"):
        treatment_scores(sample.treat, sample.matrix, model="probit")


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        (np.array([[0.5, 0.5]]), "has shape"),
        (np.array([0.2, np.nan, 0.4, 0.5]), "scores is missing in row 1"),
        (np.array([0.2, 1.5, 0.4, 0.5]), "scores is not between 0 and 1 in row 1"),
        (np.full((4, 2), 0.4), "scores does not have the sum 1"),
        (np.full((4, 3), 1 / 3), "there are 2 arms"),
        (np.full(3, 0.5), "scores has 3 rows and X has 4"),
    ],
)
def test_invalid_probabilities_are_refused(probabilities: Floats, message: str) -> None:
    from equipoise_matching.designs.units import design_units

    units = design_units([0, 1, 0, 1], [[1.0], [2.0], [3.0], [4.0]])
    if len(probabilities) == 1:
        probabilities = np.full((4, 1, 1), 0.5)
    with pytest.raises(UnusableInput, match=message):
        scores_for(units, probabilities)


def test_scores_of_another_treatment_are_refused() -> None:
    from equipoise_matching.designs.units import design_units

    units = design_units([0, 1, 0, 1], [[1.0], [2.0], [3.0], [4.0]])
    other = TreatmentScores((0, 1), np.array([1, 0, 0, 1]), np.full((4, 2), 0.5), "given")
    with pytest.raises(UnusableInput, match="another treatment"):
        scores_for(units, other)
