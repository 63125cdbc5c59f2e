"""AIPW with cross-fitting: formula by hand, learners, double robustness, coverage."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest

from equipoise_matching import aipw_effect, aipw_effects
from equipoise_matching.effects.aipw import fold_of_rows
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.effects.samples import data_of

ensemble: Any = importlib.import_module("sklearn.ensemble")
linear_model: Any = importlib.import_module("sklearn.linear_model")

DATA = data_of(41, rows=400)


class Known:
    """A learner that knows the answer, as a function of the covariates."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def fit(self, columns: Any, target: Any) -> None:
        pass

    def predict(self, columns: Any) -> Any:
        return self.function(columns)

    def predict_proba(self, columns: Any) -> Any:
        chance = self.function(columns)
        return np.column_stack([1.0 - chance, chance])


def chance_of(columns: Any) -> Any:
    return 0.2 + 0.6 / (1.0 + np.exp(-columns[:, 0]))


def outcome_of(columns: Any) -> Any:
    return 0.3 * columns[:, 1]


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATC"])
def test_the_estimate_and_its_error_are_those_of_the_formula(estimand: Any) -> None:
    effect = aipw_effect(
        DATA.number, DATA.treat, DATA.x, estimand=estimand,
        treatment_learner=Known(chance_of), outcome_learner=Known(outcome_of),
    )  # fmt: skip
    columns = (DATA.x - DATA.x.mean(axis=0)) / DATA.x.std(axis=0)
    e, mu, t = chance_of(columns), outcome_of(columns), DATA.treat
    residual = DATA.number - mu
    if estimand == "ATE":
        psi, target = residual * (t / e - (1 - t) / (1 - e)), np.ones_like(t)
    elif estimand == "ATT":
        psi, target = residual * (t - (1 - t) * e / (1 - e)), t
    else:
        psi, target = residual * (t * (1 - e) / e - (1 - t)), 1 - t
    value = psi.mean() / target.mean()
    error = math.sqrt(((psi - target * value) ** 2).sum()) / (400 * target.mean())
    assert effect.estimate == pytest.approx(value)
    assert effect.se == pytest.approx(error)


def test_the_folds_do_not_see_the_rows_they_predict() -> None:
    seen: list[set[float]] = []

    class Watcher(Known):
        def fit(self, columns: Any, target: Any) -> None:
            self.rows = set(columns[:, 0].tolist())

        def predict_proba(self, columns: Any) -> Any:
            seen.append(self.rows & set(columns[:, 0].tolist()))
            return super().predict_proba(columns)

    aipw_effect(DATA.number, DATA.treat, DATA.x, treatment_learner=Watcher(chance_of), folds=4)
    assert seen == [set()] * 4


@pytest.mark.parametrize("wrong", ["treatment", "outcome"])
def test_one_wrong_model_does_not_bias_the_estimate(wrong: str) -> None:
    data = data_of(42, rows=20_000)
    learners: dict[str, Any] = {f"{wrong}_learner": Known(lambda x: np.full(len(x), 0.4))}
    effect = aipw_effect(data.number, data.treat, data.x, **learners)
    assert effect.estimate == pytest.approx(0.5, abs=4 * effect.se)
    assert effect.se < 0.03


def test_learners_of_scikit_learn_take_the_place_of_the_models() -> None:
    forests = {
        "treatment_learner": ensemble.RandomForestClassifier(
            50, min_samples_leaf=10, random_state=1
        ),
        "outcome_learner": ensemble.RandomForestRegressor(50, min_samples_leaf=5, random_state=1),
    }
    effect = aipw_effect(DATA.number, DATA.treat, DATA.x, **forests)
    assert "RandomForestClassifier for the treatment" in effect.method
    assert effect.estimate == pytest.approx(0.5, abs=4 * effect.se)
    plain = aipw_effect(
        DATA.binary, DATA.treat, DATA.x, outcome_learner=linear_model.LogisticRegression(C=1e6)
    )
    default = aipw_effect(DATA.binary, DATA.treat, DATA.x)
    assert plain.estimate == pytest.approx(default.estimate, abs=1e-3)


def test_the_same_seed_gives_the_same_answer_and_another_one_other_folds() -> None:
    first, again = (aipw_effect(DATA.number, DATA.treat, DATA.x, seed=5) for _ in range(2))
    assert first == again
    assert first.estimate != aipw_effect(DATA.number, DATA.treat, DATA.x, seed=6).estimate


def test_several_arms_have_a_contrast_of_each_pair() -> None:
    data = data_of(43, rows=600, arms=3)
    effects = aipw_effects(data.number, data.treat, data.x)
    assert [effect.contrast for effect in effects] == [("1", "0"), ("2", "0"), ("2", "1")]
    for effect in effects:
        arms = [int(name) for name in effect.contrast]
        assert effect.estimate == pytest.approx(0.5 * (arms[0] - arms[1]), abs=4 * effect.se)
    with pytest.raises(UnusableInput, match="more than two values"):
        aipw_effect(data.number, data.treat, data.x)
    of_last = aipw_effects(data.number, data.treat, data.x, estimand="ATT", target=2)
    assert of_last[2].arm_values is not None
    assert of_last[2].arm_values[0] == pytest.approx(data.number[data.treat == 2].mean())


def test_clusters_stay_in_one_fold() -> None:
    clusters = np.repeat(np.arange(40), 10)
    fold = fold_of_rows(DATA.treat, clusters, 5, 1)
    assert len(np.unique(np.column_stack([clusters, fold]), axis=0)) == 40
    assert np.bincount(fold).tolist() == [80] * 5
    effect = aipw_effect(DATA.number, DATA.treat, DATA.x, clusters=clusters)
    assert effect.clusters == 40


def test_rows_without_overlap_are_counted() -> None:
    x = np.column_stack([DATA.x, 4.0 * DATA.treat + DATA.x[:, 0]])
    rows = Known(lambda columns: np.where(columns[:, 0] > 1.0, 0.9999, 0.5))
    effect = aipw_effect(DATA.number, DATA.treat, x, treatment_learner=rows)
    assert "rows have a probability of an arm below 0.01" in effect.notes[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"treat": np.ones(400)}, "1 different values"),
        ({"scale": "hazard ratio"}, "no scale 'hazard ratio'"),
        ({"estimand": "ATO"}, "no estimand 'ATO'"),
        ({"folds": 1}, "folds is 1"),
        ({"folds": 400}, "rows for 400 folds"),
        ({"min_probability": 0.9}, "min_probability is 0.9"),
        ({"y": np.full(400, np.nan)}, "y is missing"),
        ({"scale": "risk ratio"}, "other values than 0 and 1"),
        ({"X": np.column_stack([DATA.x, DATA.treat])}, "separate"),
        ({"treat": DATA.treat[:-1]}, "399 rows"),
        ({"outcome_learner": Known(lambda x: np.ones(3))}, "outcome_learner predicts"),
    ],
)
def test_unusable_input_is_one_line(changes: Any, message: str) -> None:
    arguments: dict[str, Any] = {"y": DATA.number, "treat": DATA.treat, "X": DATA.x, **changes}
    with pytest.raises(UnusableInput, match=message):
        aipw_effect(**arguments)


def test_intervals_cover() -> None:
    generator = np.random.default_rng(44)
    hits, draws = 0, 120
    for _ in range(draws):
        x = generator.normal(size=(200, 2))
        treat = (generator.random(200) < 1.0 / (1.0 + np.exp(-0.7 * x[:, 0]))).astype(int)
        y = x[:, 0] + (1.0 + x[:, 1]) * treat + generator.normal(size=200)
        effect = aipw_effect(y, treat, x)
        hits += effect.interval[0] < 1.0 < effect.interval[1]
    assert hits / draws == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / draws))
