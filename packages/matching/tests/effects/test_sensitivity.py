"""Sensitivity to hidden factors: published tables, enumeration, constructed factors."""

from __future__ import annotations

import importlib
import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from equipoise_matching import e_value, robustness_value, rosenbaum_bounds
from equipoise_matching.effects.matched_sets import (
    largest_moments,
    m_p_value,
    set_blocks,
    set_scores,
)
from equipoise_matching.effects.omitted_factor import (
    adjusted_slope,
    robustness_value_of,
    significance_robustness_value,
)
from equipoise_matching.effects.result import EffectEstimate
from equipoise_matching.effects.signed_rank import normal_p_value, signed_rank_p_value
from equipoise_matching.shared.errors import UnusableInput

models: Any = importlib.import_module("statsmodels.api")

LEAD_EXPOSED = (
    *(38, 23, 41, 18, 37, 36, 23, 62, 31, 34, 24, 14, 21, 17, 16, 20, 15),
    *(10, 45, 39, 22, 35, 49, 48, 44, 35, 43, 39, 34, 13, 73, 25, 27),
)
LEAD_CONTROL = (
    *(16, 18, 18, 24, 19, 11, 10, 15, 16, 18, 18, 13, 19, 10, 16, 16, 24),
    *(13, 9, 14, 21, 19, 7, 18, 19, 12, 11, 22, 25, 16, 13, 11, 13),
)
"""Lead in the blood of 33 children whose parents worked with lead, and of their matched controls
(Morton et al. 1982; Rosenbaum 2002, Observational Studies, table 3.1)."""
TABLE = {1.0: 0.0001, 2.0: 0.0018, 3.0: 0.0136, 4.0: 0.0388, 4.25: 0.0468, 5.0: 0.0740}
"""Upper bound of the one-sided p-value at each Γ (Rosenbaum 2002, table 4.2)."""


def lead() -> tuple[Any, Any, Any]:
    outcome = np.array([*LEAD_EXPOSED, *LEAD_CONTROL], dtype=float)
    return outcome, np.repeat([1, 0], 33), np.tile(np.arange(33), 2)


def test_the_published_bounds_of_lead_in_children_are_met() -> None:
    differences = np.subtract(LEAD_EXPOSED, LEAD_CONTROL).astype(float)
    # The book ranks the pair without a difference too.
    ranks = stats.rankdata(np.abs(differences))
    rank_sum = ranks[differences > 0].sum()
    ranks = ranks[differences != 0]
    assert rank_sum == 527
    for gamma, published in TABLE.items():
        p_value = normal_p_value(ranks, rank_sum, gamma / (1 + gamma))
        assert p_value == pytest.approx(published, abs=6e-5) or p_value < published == 0.0001
        # With 33 pairs, the bound is exact, and the book's approximation is larger.
        assert signed_rank_p_value(differences, gamma) < p_value
    bounds = rosenbaum_bounds(*lead(), gammas=[1.0, 4.25], confidence=0.9)
    assert bounds.statistic == "signed rank"
    assert bounds.gamma is not None
    assert signed_rank_p_value(differences, bounds.gamma) == pytest.approx(0.05)


def random_sets(seed: int, sizes: list[int]) -> tuple[Any, Any, Any]:
    """Return outcome, treatment and set; sets of a negative size have one control."""
    generator = np.random.default_rng(seed)
    treat, sets = [], []
    for index, size in enumerate(sizes):
        focal = [1] + [0] * (size - 1) if size > 0 else [0] + [1] * (-size - 1)
        treat += generator.permutation(focal).tolist()
        sets += [index] * abs(size)
    treated = np.array(treat)
    return generator.normal(size=len(treated)) + 0.8 * treated, treated, np.array(sets)


def test_the_worst_hidden_factor_of_a_set_is_that_of_all_factors_enumerated() -> None:
    generator = np.random.default_rng(7)
    for size in (2, 3, 5):
        scores = generator.normal(size=size)
        for gamma in (1.0, 1.7, 4.0):
            means = []
            for factor in itertools.product((0.0, 1.0), repeat=size):
                chance = gamma ** np.array(factor)
                chance /= chance.sum()
                mean = float(chance @ scores)
                means.append((mean, float(chance @ scores**2) - mean**2))
            means_of_sets, variances = largest_moments(scores[None, :], gamma)
            best = max(means)
            assert means_of_sets[0] == pytest.approx(best[0])
            assert variances[0] == pytest.approx(best[1])


def test_without_a_hidden_factor_the_moments_are_those_of_all_assignments() -> None:
    outcome, treat, sets = random_sets(8, [2, 3, -3, 4])
    blocks = set_blocks(treat == 1, sets)
    scores = set_scores([outcome[block.rows] for block in blocks])
    mean, variance = np.zeros(1), np.zeros(1)
    statistics = [0.0]
    for block, values in zip(blocks, scores, strict=True):
        for sign, row in zip(block.signs, values, strict=True):
            set_mean, set_variance = largest_moments(sign * row[None, :], 1.0)
            mean, variance = mean + set_mean, variance + set_variance
            statistics = [total + sign * score for total in statistics for score in row]
    assert mean[0] == pytest.approx(np.mean(statistics))
    assert variance[0] == pytest.approx(np.var(statistics))


def test_the_focal_row_is_the_only_row_of_its_arm() -> None:
    _, treat, sets = random_sets(9, [3, -4, 2, 3])
    for block in set_blocks(treat == 1, sets):
        for rows, sign in zip(block.rows, block.signs, strict=True):
            assert treat[rows[0]] == (sign == 1)
            assert set(treat[rows[1:]]) == {int(sign == -1)}
            assert len(set(sets[rows])) == 1


def test_matched_sets_have_intervals_that_widen_with_the_factor_and_hold_the_effect() -> None:
    outcome, treat, sets = random_sets(10, [3] * 60 + [-3] * 30)
    bounds = rosenbaum_bounds(outcome, treat, sets, gammas=[1.0, 2.0])
    assert bounds.statistic == "M"
    (first, second) = bounds.rows
    assert first.low is not None and first.high is not None
    assert second.low is not None and second.high is not None
    assert second.low < first.low < 0.8 < first.high < second.high
    assert first.p_value < second.p_value
    mirrored = rosenbaum_bounds(-outcome, treat, sets, gammas=[1.0])
    assert mirrored.rows[0].p_value == pytest.approx(first.p_value)
    assert mirrored.rows[0].low == pytest.approx(-first.high)


def test_at_the_factor_that_removes_the_effect_the_interval_ends_at_zero() -> None:
    outcome, treat, sets = random_sets(11, [3] * 60)
    gamma = rosenbaum_bounds(outcome, treat, sets).gamma
    assert gamma is not None
    (row,) = rosenbaum_bounds(outcome, treat, sets, gammas=[gamma]).rows
    assert row.p_value == pytest.approx(0.05, rel=1e-4)
    assert row.low == pytest.approx(0.0, abs=0.02)


def test_at_most_five_per_cent_reject_without_an_effect_under_the_hidden_factor_itself() -> None:
    """A factor of strength 2 decides both treatment and outcome; the bound at 2 holds."""
    generator = np.random.default_rng(12)
    rejections, draws = 0, 300
    for _ in range(draws):
        factor = generator.integers(0, 2, (80, 3))
        chance = 2.0**factor
        chosen = (generator.random((80, 1)) * chance.sum(axis=1, keepdims=True)
                  > np.cumsum(chance, axis=1)).sum(axis=1)  # fmt: skip
        treat = (np.arange(3) == chosen[:, None]).astype(int)
        outcome = factor + 0.1 * generator.normal(size=(80, 3))
        blocks = set_blocks(treat.ravel() == 1, np.repeat(np.arange(80), 3))
        rejections += m_p_value(outcome.ravel(), treat.ravel() == 1, blocks, 2.0) <= 0.05
    assert rejections / draws <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)


def test_strata_with_several_rows_of_both_arms_have_no_bounds() -> None:
    with pytest.raises(UnusableInput, match="several treated rows and several controls"):
        rosenbaum_bounds(np.arange(4.0), [1, 1, 0, 0], [0, 0, 0, 0])
    with pytest.raises(UnusableInput, match="no stratum has a treated row and a control"):
        rosenbaum_bounds(np.arange(4.0), [1, 1, 0, 0], [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("value", "interval", "expected"),
    [
        (3.9, (1.8, 8.7), (7.26, 3.0)),
        (1 / 3.9, (1 / 8.7, 1 / 1.8), (7.26, 3.0)),
        (1.5, (0.9, 2.5), (2.37, 1.0)),
    ],
)
def test_published_e_values_are_met(value: float, interval: Any, expected: Any) -> None:
    """VanderWeele and Ding 2017: 3.9 (1.8 to 8.7) gives 7.26 and 3.0."""
    result = e_value(value, interval)
    assert result.estimate == pytest.approx(expected[0], abs=0.005)
    assert result.interval == pytest.approx(expected[1], abs=0.005)
    assert f"{result.estimate:.2f}" in result.sentence()


def test_a_factor_as_strong_as_the_e_value_explains_the_ratio() -> None:
    """Ding and VanderWeele 2016: the bias factor is e²/(2e − 1) if both ratios are e."""
    for ratio in (1.2, 2.0, 10.0):
        e = e_value(ratio).estimate
        assert e * e / (2 * e - 1) == pytest.approx(ratio)


def test_other_scales_are_converted_to_a_risk_ratio() -> None:
    assert e_value(4.0, scale="odds ratio").ratio == 4.0
    assert e_value(4.0, scale="odds ratio", common=True).ratio == 2.0
    common = e_value(2.0, scale="hazard ratio", common=True).ratio
    assert common == pytest.approx((1 - 0.5 ** math.sqrt(2)) / (1 - 0.5 ** math.sqrt(0.5)))
    difference = e_value(1.0, (0.4, 1.6), scale="difference", standard_deviation=2.0)
    assert difference.ratio == pytest.approx(math.exp(0.455))
    with pytest.raises(UnusableInput, match="standard deviation"):
        e_value(1.0, scale="difference")
    with pytest.raises(UnusableInput, match="ratios above 0"):
        e_value(-1.0)
    effect = EffectEstimate(
        estimate=3.9, se=0.1, interval=(1.8, 8.7), p_value=0.0, scale="risk ratio", estimand="ATE",
        contrast=("1", "0"), method="", error="", rows=1,
    )  # fmt: skip
    assert e_value(effect) == e_value(3.9, (1.8, 8.7))


def test_the_published_table_of_the_study_of_darfur_is_met() -> None:
    """Cinelli and Hazlett 2020, table 1 and §4.4: 0.097, error 0.023, t 4.18, 783 degrees."""
    estimate, se, t, freedom = 0.09732, 0.02326, 4.18445, 783
    f_squared = t**2 / freedom
    assert f_squared / (1 + f_squared) == pytest.approx(0.0219, abs=5e-5)
    assert robustness_value_of(f_squared) == pytest.approx(0.1388, abs=5e-5)
    assert significance_robustness_value(t, freedom, 1.0, 0.95) == pytest.approx(0.0763, abs=5e-5)
    adjusted, error = adjusted_slope(estimate, se, freedom, 0.12464, 0.00916)
    assert adjusted == pytest.approx(0.0752, abs=5e-5)
    assert error == pytest.approx(0.0219, abs=5e-5)


DRAW = np.random.default_rng(15)
X = DRAW.normal(size=(400, 3)) * (1.0, 50.0, 0.01)
TREAT = (X[:, 0] + 0.01 * X[:, 1] + DRAW.normal(size=400) > 0).astype(float)
Y = X @ (1.0, 0.01, 20.0) + 0.6 * TREAT + DRAW.normal(size=400)
NAMES = ("a", "b", "c")
COLUMNS = dict(zip(NAMES, X.T, strict=True))


def test_slope_and_error_are_those_of_least_squares_with_and_without_weights() -> None:
    weights = DRAW.uniform(0.0, 2.0, 400) * (np.arange(400) > 9)
    design = models.add_constant(np.column_stack([TREAT, X]))
    plain = robustness_value(Y, TREAT, COLUMNS)
    fitted = models.OLS(Y, design).fit()
    assert (plain.estimate, plain.se) == pytest.approx((fitted.params[1], fitted.bse[1]))
    assert plain.degrees_of_freedom == fitted.df_resid
    weighted = robustness_value(Y, TREAT, COLUMNS, weights=weights)
    kept = weights > 0
    fitted = models.WLS(Y[kept], design[kept], weights=weights[kept]).fit()
    assert (weighted.estimate, weighted.se) == pytest.approx((fitted.params[1], fitted.bse[1]))


def test_the_value_of_the_interval_is_where_the_interval_reaches_zero() -> None:
    value = robustness_value(Y, TREAT, COLUMNS)
    adjusted, error = adjusted_slope(
        value.estimate, value.se, value.degrees_of_freedom,
        value.value_of_interval, value.value_of_interval,
    )  # fmt: skip
    quantile = stats.t.ppf(0.975, value.degrees_of_freedom - 1)
    assert adjusted == pytest.approx(quantile * error)


@pytest.mark.parametrize("t", [4.0, 90.0])
def test_the_worst_factor_within_the_value_of_the_interval_moves_the_interval_to_zero(
    t: float,
) -> None:
    """The worst partial R² with the outcome may be smaller than the value if the slope is clear."""
    value = significance_robustness_value(t, 20, 1.0, 0.95)
    smallest = min(
        slope / error
        for share in np.linspace(0.0, value, 20_001).tolist()
        for slope, error in (adjusted_slope(t, 1.0, 20, share, value),)
    )
    assert smallest == pytest.approx(stats.t.ppf(0.975, 19), rel=1e-4)


def test_the_bound_of_a_covariate_is_a_factor_that_repeats_its_strength() -> None:
    """A covariate that is left out and whose twin serves as the benchmark bounds its own effect."""
    generator = np.random.default_rng(16)
    rows = 20_000
    first, second = generator.normal(size=(2, rows))
    treat = 0.5 * first + 0.5 * second + generator.normal(size=rows)
    y = treat + first + second + generator.normal(size=rows)
    value = robustness_value(y, treat, {"first": first}, benchmarks=["first"], multiples=[1.0])
    full = robustness_value(y, treat, {"first": first, "second": second})
    (bound,) = value.bounds
    assert bound.estimate is not None and bound.r2_treatment is not None
    # In the paper's bound the twin's correlation with the benchmark, given the treatment, counts.
    left = models.OLS(treat, models.add_constant(first)).fit().resid
    twin = np.corrcoef(left, second)[0, 1] ** 2
    assert bound.r2_treatment == pytest.approx(twin, rel=0.1)
    assert bound.estimate == pytest.approx(full.estimate, abs=0.06)


def test_a_factor_that_cannot_be_so_strong_has_no_bound() -> None:
    treat = X[:, 0] + 0.5 * DRAW.normal(size=400)
    value = robustness_value(Y, treat, COLUMNS, benchmarks=["a"], multiples=[5.0])
    assert value.bounds[0].estimate is None
    assert "–" in value.summary()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"benchmarks": ["d"]}, "'d' is not a covariate"),
        ({"share": 0.0}, "share is 0.0"),
        ({"treat": X[:, 0] * 3.0 + 1.0}, "determine the treatment"),
        ({"weights": -np.ones(400)}, "weights is negative"),
        ({"multiples": [0.0]}, "multiples are"),
    ],
)
def test_a_regression_without_a_robustness_value_is_refused(changes: Any, message: str) -> None:
    arguments: dict[str, Any] = {"y": Y, "treat": TREAT, "X": COLUMNS, **changes}
    with pytest.raises(UnusableInput, match=message):
        robustness_value(**arguments)


def test_results_describe_themselves() -> None:
    value = robustness_value(Y, TREAT, COLUMNS, benchmarks=["a"])
    bounds = rosenbaum_bounds(*lead())
    for result in (value, bounds, e_value(2.0)):
        assert str(result) == result.summary()
        assert "<" in result._repr_html_()
        assert result.methods_sentence().startswith("We computed")
    assert "1 × a" in value.summary()
    assert "matched rows more than" in bounds.sentence()
