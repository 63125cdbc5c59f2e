"""Effects after a design: means, contrasts, clusters, arms, subgroups and the bootstrap."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from scipy import stats

from equipoise_matching.designs.design import LEFT_OUT, Design
from equipoise_matching.designs.units import design_units
from equipoise_matching.effects.estimate import effect_of, effects_of, subgroup_effects_of
from equipoise_matching.effects.sample import DesignRows
from equipoise_matching.effects.weight_model import logistic_weight_model
from equipoise_matching.matching.options import Estimand
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.effects.samples import Data, data_of, design_of

models: Any = importlib.import_module("statsmodels.api")

DATA = data_of(11)
MANY = data_of(12, rows=900, arms=3)


def pairs_of(data: Data, effect: float, seed: int) -> tuple[Any, DesignRows]:
    """Return differences of 40 pairs around an effect, and the design of these pairs."""
    generator = np.random.default_rng(seed)
    level = generator.normal(size=40) * 5.0
    differences = effect + generator.normal(size=40)
    outcome = np.concatenate([level + differences, level])
    treat = np.repeat([1, 0], 40)
    strata = np.tile(np.arange(40), 2)
    return (outcome, differences), design_of(
        data, arm=treat, weights=np.ones(80), strata=strata, matrix=np.zeros((80, 1)), names=("x",)
    )


def test_without_covariates_the_effect_is_the_difference_of_the_weighted_means() -> None:
    effect = effect_of(DATA.number, design_of(DATA), {"covariates": None})
    treated = DATA.treat == 1
    means = [np.average(DATA.number[arm], weights=DATA.weights[arm]) for arm in (treated, ~treated)]
    assert effect.arm_values == pytest.approx(means)
    assert effect.estimate == pytest.approx(means[0] - means[1])
    assert effect.method == "the weighted means of the arms"


def test_pairs_without_covariates_have_the_error_of_the_paired_t_test() -> None:
    (outcome, differences), design = pairs_of(DATA, 0.4, 3)
    effect = effect_of(outcome, design, {"covariates": None})
    test = stats.ttest_1samp(differences, 0.0)
    # HC1 with 80 rows, 40 pairs and 2 parameters, against the divisor 39 of the t-test.
    factor = np.sqrt(79.0 / 78.0)
    assert effect.se == pytest.approx(factor * stats.sem(differences))
    assert effect.degrees_of_freedom == 39
    assert effect.p_value == pytest.approx(2 * stats.t.sf(abs(test.statistic) / factor, 39))


def test_the_att_by_regression_is_the_mean_of_treated_minus_predictions_of_the_controls() -> None:
    effect = effect_of(DATA.number, design_of(DATA, weights=np.ones(120)), {})
    controls = DATA.treat == 0
    design = models.add_constant(DATA.x)
    fitted = models.OLS(DATA.number[controls], design[controls]).fit()
    expected = (DATA.number - fitted.predict(design))[~controls].mean()
    assert effect.estimate == pytest.approx(expected)


def test_the_error_for_a_population_counts_that_effects_differ_and_the_other_does_not() -> None:
    generator = np.random.default_rng(5)
    x = generator.normal(size=400)
    treat = generator.integers(0, 2, 400)
    outcome = treat * (1.0 + 3.0 * x) + 0.1 * generator.normal(size=400)
    rows = DesignRows(treat, (0, 1), np.ones(400), "ATE", None, ("x",), x[:, None])
    population = effect_of(outcome, rows, {})
    sample = effect_of(outcome, rows, {"variance": "sample"})
    assert population.estimate == sample.estimate
    assert population.se == pytest.approx(3.0 * x.std() / 20.0, rel=0.01)
    assert sample.se < 0.02


@pytest.mark.parametrize(
    ("scale", "outcome"),
    [("risk ratio", "binary"), ("odds ratio", "binary"), ("rate ratio", "events")],
)
def test_ratios_are_marginal(scale: Any, outcome: str) -> None:
    y = getattr(DATA, outcome)
    effect = effect_of(y, design_of(DATA, "ATE"), {"scale": scale})
    family = models.families.Poisson() if outcome == "events" else models.families.Binomial()
    design = models.add_constant(DATA.x)
    means = []
    for arm in (1, 0):
        rows = DATA.treat == arm
        fitted = models.GLM(
            y[rows], design[rows], family=family, var_weights=DATA.weights[rows]
        ).fit(tol=1e-12)
        means.append(fitted.predict(design).mean())
    treated, control = means
    expected = treated / control
    if scale == "odds ratio":
        expected *= (1.0 - control) / (1.0 - treated)
    assert effect.estimate == pytest.approx(expected)
    assert effect.interval[0] < effect.estimate < effect.interval[1]


def test_matched_sets_are_clusters_and_few_large_strata_are_not() -> None:
    few = DATA.x[:, 0] > 0
    assert effect_of(DATA.number, design_of(DATA), {}).clusters == len(np.unique(DATA.strata))
    large = effect_of(DATA.number, design_of(DATA, strata=few.astype(np.int64)), {})
    assert large.clusters is None
    assert "HC3" in large.error
    chosen = effect_of(
        DATA.number, design_of(DATA, strata=few.astype(np.int64)), {"error": "clusters"}
    )
    assert chosen.clusters == 2


def test_the_callers_clusters_replace_the_strata() -> None:
    schools = np.arange(120) % 10
    effect = effect_of(DATA.number, design_of(DATA), {"clusters": schools})
    assert effect.clusters == 10
    assert effect.degrees_of_freedom == 9


def test_the_outcome_of_a_row_that_is_left_out_may_be_missing() -> None:
    weights = DATA.weights * (np.arange(120) > 3)
    y = DATA.number.copy()
    y[:3] = np.nan
    effect = effect_of(y, design_of(DATA, weights=weights), {})
    assert effect.rows == 116
    y[7] = np.nan
    with pytest.raises(UnusableInput, match=r"y is missing in row 7 \(from 0\)"):
        effect_of(y, design_of(DATA, weights=weights), {})


def test_rescaling_outcome_and_covariates_rescales_the_effect_only() -> None:
    plain = effect_of(DATA.number, design_of(DATA), {})
    large = effect_of(1e250 * DATA.number, design_of(DATA, matrix=1e-200 * DATA.x), {})
    assert large.estimate == pytest.approx(1e250 * plain.estimate)
    assert large.se == pytest.approx(1e250 * plain.se)


def test_covariates_that_an_arm_cannot_tell_apart_are_named() -> None:
    constant_among_treated = np.where(DATA.treat == 1, 1.0, DATA.x[:, 0])
    matrix = np.column_stack([DATA.x, constant_among_treated, DATA.x[:, 0] * 2.0])
    names = ("a", "b", "constant", "copy")
    effect = effect_of(DATA.number, design_of(DATA, matrix=matrix, names=names), {})
    assert effect.estimate == pytest.approx(effect_of(DATA.number, design_of(DATA), {}).estimate)
    assert "constant" in effect.notes[0]
    assert "copy" in effect.notes[0]


def test_several_arms_have_a_contrast_of_each_pair() -> None:
    rows = design_of(MANY, "ATE", strata=None)
    effects = effects_of(MANY.number, rows, {})
    assert [effect.contrast for effect in effects] == [("1", "0"), ("2", "0"), ("2", "1")]
    first, second, third = (effect.estimate for effect in effects)
    assert third == pytest.approx(second - first)
    assert "2 - 1" in effects.summary()
    with pytest.raises(UnusableInput, match="3 arms"):
        effect_of(MANY.number, rows, {})
    with pytest.raises(UnusableInput, match="needs the arm to average over"):
        effects_of(MANY.number, design_of(MANY, "ATT", strata=None), {})
    target = effects_of(MANY.number, design_of(MANY, "ATT", strata=None), {"target": 2})
    mean = np.average(MANY.number[MANY.treat == 2], weights=MANY.weights[MANY.treat == 2])
    assert target[1].arm_values is not None
    assert target[1].arm_values[0] == pytest.approx(mean)
    focal = effects_of(MANY.number, design_of(MANY, "ATT", strata=None, focal=2), {})
    assert focal[1] == target[1]


def test_subgroup_effects_have_p_values_under_a_false_discovery_rate() -> None:
    group = np.array(["a", "b", "c"])[np.arange(120) % 3]
    effects = subgroup_effects_of(DATA.number, group, design_of(DATA), {"covariates": None})
    assert [effect.label for effect in effects] == ["by = a", "by = b", "by = c"]
    p_values = [effect.p_value for effect in effects]
    expected = stats.false_discovery_control(p_values)
    assert [effect.adjusted_p_value for effect in effects] == pytest.approx(list(expected))
    rows = group == "b"
    alone = effect_of(
        DATA.number[rows],
        design_of(DATA, arm=DATA.treat[rows], weights=DATA.weights[rows],
                  strata=DATA.strata[rows], matrix=DATA.x[rows]),
        {"covariates": None},
    )  # fmt: skip
    assert effects.of("by = b").estimate == pytest.approx(alone.estimate)
    assert effects.of("by = b").se == pytest.approx(alone.se)


def test_a_subgroup_without_an_arm_is_named() -> None:
    group = np.where(DATA.treat == 1, "north", "south")
    with pytest.raises(UnusableInput, match="subgroup by = north: .* no row of the arm control"):
        subgroup_effects_of(DATA.number, group, design_of(DATA), {})


def test_the_bootstrap_of_pairs_agrees_with_the_cluster_robust_error() -> None:
    (outcome, differences), design = pairs_of(DATA, 0.4, 4)
    drawn = effect_of(
        outcome, design, {"covariates": None, "error": "bootstrap", "replications": 1000}
    )
    # The spread of 1000 draws has a relative error of 1/√(2·1000).
    expected = differences.std() / np.sqrt(40)
    assert drawn.se == pytest.approx(expected, rel=4 / np.sqrt(2000))
    again = effect_of(
        outcome, design, {"covariates": None, "error": "bootstrap", "replications": 1000}
    )
    assert again.se == drawn.se
    assert drawn.error == "bootstrapped by strata (1000 samples)"


def logistic_design(x: Any, treat: Any, estimand: Estimand) -> Design:
    """Return the design of logistic weights, with the model of the weights."""
    predictors = models.add_constant(x)
    fitted = models.GLM(treat, predictors, family=models.families.Binomial()).fit(tol=1e-12)
    e = fitted.predict(predictors)
    weights = np.where(treat == 1, 1.0 / e, 1.0 / (1.0 - e))
    if estimand == "ATT":
        weights = np.where(treat == 1, 1.0, e / (1.0 - e))
    model = logistic_weight_model(predictors, treat == 1, e, estimand)
    return Design(
        "logistic_weights", estimand, design_units(treat, x), weights, weight_model=model
    )  # fmt: skip


@pytest.mark.parametrize("estimand", ["ATE", "ATT"])
def test_m_estimation_of_weights_agrees_with_the_bootstrap_of_the_whole_design(
    estimand: Estimand,
) -> None:
    data = data_of(21, rows=600)
    design = logistic_design(data.x, data.treat, estimand)
    robust = effect_of(
        data.number,
        design_of(data, estimand, weights=design.weights, strata=None),
        {"covariates": None},
    )
    stacked = design.effect(data.number, covariates=None)
    drawn = design.effect(
        data.number,
        covariates=None,
        error="bootstrap",
        replications=200,
        redesign=lambda rows: logistic_design(data.x[rows], data.treat[rows], estimand),
    )
    # Three standard deviations of the spread of 200 draws.
    assert stacked.se == pytest.approx(drawn.se, rel=3 / np.sqrt(400))
    assert stacked.estimate == pytest.approx(robust.estimate)
    assert robust.se > 1.05 * stacked.se
    assert "M-estimation" in stacked.error
    assert "treats the weights as known" in robust.notes[-1]


def test_m_estimation_is_the_derivative_of_the_effect_by_each_row() -> None:
    """Leave-one-out changes approach the influence: the jackknife with its weights fitted again."""
    data = data_of(22, rows=300)
    design = logistic_design(data.x, data.treat, "ATE")
    stacked = design.effect(data.number, covariates=None)
    changes = []
    for row in range(300):
        kept = np.delete(np.arange(300), row)
        part = logistic_design(data.x[kept], data.treat[kept], "ATE")
        changes.append(part.effect(data.number[kept], covariates=None).estimate)
    jackknife = np.sqrt(299 / 300 * ((np.array(changes) - np.mean(changes)) ** 2).sum())
    assert stacked.se == pytest.approx(jackknife, rel=0.02)


def test_a_design_estimates_and_describes_its_effect() -> None:
    units = design_units(DATA.treat, DATA.x)
    strata = np.where(np.arange(120) == 5, LEFT_OUT, DATA.strata)
    weights = np.where(np.arange(120) == 5, 0.0, DATA.weights)
    design = Design("full_match", "ATT", units, weights, strata)
    effect = design.effect(DATA.number)
    assert effect.rows == 119
    assert "Difference" in effect.summary()
    assert effect.summary() == str(effect)
    assert "<table" in effect._repr_html_()
    sentence = effect.methods_sentence()
    assert "after full_match by g-computation with a weighted linear model" in sentence
    assert "averaged over the treated (ATT)" in sentence
    assert "cluster-robust by strata (HC1)" in sentence
    effects = design.subgroup_effects(DATA.number, DATA.x[:, 0] > 0, covariates=None)
    assert len(effects.to_frame()) == 2
    assert design.rosenbaum_bounds(DATA.number).statistic == "M"
    assert 0 <= design.robustness_value(DATA.number).value < 1


def test_an_estimand_without_a_population_averages_over_the_weighted_sample() -> None:
    effect = effect_of(DATA.number, design_of(DATA, "ATO", strata=None), {})
    both = design_of(DATA, "ATE", strata=None)
    average = np.average(DATA.x[:, 0], weights=DATA.weights)
    assert effect.estimate != effect_of(DATA.number, both, {}).estimate
    shifted = effect_of(DATA.x[:, 0] * (1 + DATA.treat), design_of(DATA, "ATO", strata=None), {})
    assert shifted.estimate == pytest.approx(average)


def test_an_imbalance_that_the_design_leaves_is_named() -> None:
    shifted = DATA.x + np.outer(DATA.treat, [0.0, 2.0])
    rows = design_of(DATA, matrix=shifted, strata=None)
    (caution, known) = effect_of(DATA.number, rows, {"covariates": None}).notes
    assert caution.startswith("x1 of control differs by 2.")
    assert "weighted means are biased if x1 matters" in caution
    assert known == "the error treats the weights as known"
    adjusted = effect_of(DATA.number, rows, {}).notes
    assert "depends on the outcome's model" in adjusted[0]
    balanced = np.column_stack([np.arange(120) // 2, np.arange(120) // 2]).astype(float)
    pairs = design_of(
        DATA, arm=np.arange(120) % 2, weights=np.ones(120), strata=np.arange(120) // 2,
        matrix=balanced,
    )  # fmt: skip
    assert effect_of(DATA.number, pairs, {"covariates": None}).notes == ()


def test_few_clusters_are_named() -> None:
    effect = effect_of(
        DATA.number, design_of(DATA), {"clusters": np.arange(120) % 8, "covariates": None}
    )
    assert "8 clusters are few: the interval may be too narrow" in effect.notes


@pytest.mark.parametrize("correction", ["HC1", "HC3"])
def test_the_corrections_by_rows_are_those_of_statsmodels(correction: Any) -> None:
    treat = DATA.treat[:, None]
    centred = DATA.x - DATA.x.mean(axis=0)
    fitted = models.OLS(
        DATA.number, models.add_constant(np.column_stack([treat, centred, treat * centred]))
    ).fit(cov_type=correction)
    design = design_of(DATA, "ATE", weights=np.ones(120), strata=None)
    effect = effect_of(DATA.number, design, {"variance": "sample", "correction": correction})
    assert effect.se == pytest.approx(fitted.bse[1])
    assert f"({correction})" in effect.error


def test_with_clusters_of_one_row_both_corrections_are_those_of_rows_but_for_their_factor() -> None:
    design = design_of(DATA, strata=np.arange(120))
    for correction, factor in (("HC1", 119 / 120), ("HC3", 1.0)):
        options: Any = {"variance": "sample", "correction": correction}
        by_rows = effect_of(DATA.number, design, options | {"error": "rows"})
        by_clusters = effect_of(DATA.number, design, options | {"error": "clusters"})
        assert by_clusters.se**2 == pytest.approx(120 / 119 * factor * by_rows.se**2)


def test_rows_with_large_weights_are_named_if_the_correction_matters() -> None:
    even = effect_of(DATA.number, design_of(DATA, weights=np.ones(120)), {})
    assert not any("large weights" in note for note in even.notes)
    heavy = np.where(np.arange(120) % 20 == 0, 30.0, 1.0)
    effect = effect_of(DATA.number, design_of(DATA, weights=heavy), {})
    (note,) = (note for note in effect.notes if "large weights" in note)
    corrected = effect_of(DATA.number, design_of(DATA, weights=heavy), {"correction": "HC3"})
    assert note.endswith(f"the error is {100 * (corrected.se / effect.se - 1):.0f} % larger")
    assert not any("large weights" in note for note in corrected.notes)
