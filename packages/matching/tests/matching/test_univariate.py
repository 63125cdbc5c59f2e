"""The balance of one covariate, by hand and at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise_matching.matching.univariate import UnivariateBalance, balance_uv
from equipoise_matching.shared.errors import UnusableInput

VALUES = st.lists(st.integers(-50, 50), min_size=2, max_size=10)


def test_unmatched_samples_by_hand() -> None:
    balance = balance_uv([1, 2, 3], [2, 4, 6, 8], ks=False)
    assert (balance.mean_treated, balance.mean_control) == (2.0, 5.0)
    assert balance.variance_treated == pytest.approx(1.0)
    assert balance.variance_control == pytest.approx(20 / 3)
    assert balance.variance_ratio == pytest.approx(3 / 20)
    assert balance.sdiff == pytest.approx(-300.0)
    assert balance.sdiff_pooled == pytest.approx(-300 / math.sqrt((1 + 20 / 3) / 2))
    welch = stats.ttest_ind([1, 2, 3], [2, 4, 6, 8], equal_var=False)
    assert balance.t_p_value == pytest.approx(welch.pvalue, rel=1e-12)
    assert balance.ks is None


def test_pairs_by_hand() -> None:
    balance = balance_uv([1, 2, 4], [1, 4, 3], matched=True, ks=False)
    # Differences 0, -2, 1: mean -1/3, sum of squares 14/3; over 3 and once more over 3.
    t = (-1 / 3) / math.sqrt(14 / 27)
    assert balance.t_p_value == pytest.approx(2 * stats.t.sf(abs(t), 2), rel=1e-12)
    assert balance.variance_treated == pytest.approx(14 / 9)
    assert balance.sdiff == pytest.approx(100 * (-1 / 3) / math.sqrt(14 / 6))


def test_pairs_may_be_tested_as_two_samples() -> None:
    first, second = [1.0, 2.0, 4.0, 4.0], [1.0, 4.0, 3.0, 2.0]
    balance = balance_uv(first, second, matched=True, paired=False, ks=False)
    welch = stats.ttest_ind(first, second, equal_var=False)
    assert balance.t_p_value == pytest.approx(welch.pvalue, rel=1e-12)


def test_the_controls_of_atc_have_the_standard_deviation() -> None:
    balance = balance_uv([1, 2, 3], [2, 4, 6, 8], estimand="ATC", ks=False)
    assert balance.sdiff == pytest.approx(-300 / math.sqrt(20 / 3))


def test_r_pools_no_variances_of_pairs_and_we_do() -> None:
    pairs = ([1.0, 2.0, 4.0], [1.0, 9.0, 3.0])
    ours = balance_uv(*pairs, matched=True, ks=False)
    r = balance_uv(*pairs, matched=True, ks=False, r_compatible=True)
    assert r.sdiff_pooled == r.sdiff == ours.sdiff
    of_controls = balance_uv(*pairs, matched=True, ks=False, estimand="ATC", r_compatible=True)
    assert of_controls.sdiff_pooled == r.sdiff_pooled, "the treated's, whatever the estimand"
    assert of_controls.sdiff != r.sdiff
    expected = 100 * (7 / 3 - 13 / 3) / math.sqrt((7 / 3 + 52 / 3) / 2)
    assert ours.sdiff_pooled == pytest.approx(expected)


def test_r_ignores_weights_in_qq_and_ks_and_we_do_not() -> None:
    first, second, weights = [1.0, 2.0, 4.0], [1.5, 9.0, 3.0], [1.0, 0.5, 0.5]
    ours = balance_uv(first, second, matched=True, weights_treated=weights, boot=0)
    r = balance_uv(first, second, matched=True, weights_treated=weights, boot=0, r_compatible=True)
    plain = balance_uv(first, second, matched=True, boot=0)
    assert r.ecdf_differences == plain.ecdf_differences != ours.ecdf_differences
    assert r.quantile_differences == plain.quantile_differences != ours.quantile_differences
    assert r.ks == plain.ks != ours.ks


def test_a_treated_unit_with_tied_controls_counts_once() -> None:
    # One unit has two tied controls of weight 1/2 each; as single controls in two pairs of
    # weight 1/2 it must look the same as before by every weighted measure of the treated.
    balance = balance_uv([1, 1, 5], [1, 1, 5], matched=True, weights_treated=[0.5, 0.5, 1], boot=0)
    assert balance.mean_treated == 3.0
    assert balance.variance_treated == 4.0
    assert balance.ecdf_differences.max == 0.0


def test_one_constant_is_balanced_and_two_are_infinitely_apart() -> None:
    same = balance_uv([0.1] * 7, [0.1] * 5, boot=0)
    assert (same.sdiff, same.sdiff_pooled, same.t_p_value) == (0.0, 0.0, 1.0)
    assert math.isnan(same.variance_ratio)
    apart = balance_uv([0.1] * 7, [0.3] * 5, boot=0)
    assert (apart.sdiff, apart.t_p_value) == (-math.inf, 0.0)
    pairs = balance_uv([0.1] * 7, [0.1] * 7, matched=True, boot=0)
    assert (pairs.sdiff, pairs.t_p_value) == (0.0, 1.0)


def test_one_treated_unit_has_no_spread_to_test_with() -> None:
    balance = balance_uv([3.0], [1.0, 2.0, 4.0], boot=0)
    assert balance.mean_treated == 3.0
    assert math.isnan(balance.t_p_value)
    assert math.isnan(balance.sdiff)
    assert balance.ks is not None and balance.ks.p_value == 1.0
    pair = balance_uv([3.0], [1.0], matched=True, boot=0)
    assert math.isnan(pair.t_p_value), "nor does the only pair"


def assert_alike(expected_balance: UnivariateBalance, balance: UnivariateBalance) -> None:
    for name in ("variance_ratio", "sdiff", "sdiff_pooled", "t_p_value"):
        expected = getattr(expected_balance, name)
        assert getattr(balance, name) == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)
    assert balance.ecdf_differences == expected_balance.ecdf_differences
    assert balance.ks == expected_balance.ks


@settings(max_examples=60, deadline=None)
@given(VALUES, VALUES, st.sampled_from([1e-12, 1e12]))
def test_scale_and_order_change_nothing(first: list[int], second: list[int], scale: float) -> None:
    plain = balance_uv(first, second, boot=0)
    assert_alike(
        plain, balance_uv(np.array(first[::-1]) * scale, np.array(second[::-1]) * scale, boot=0)
    )


@settings(max_examples=60, deadline=None)
@given(VALUES, VALUES)
def test_exchanging_the_groups_mirrors_everything(first: list[int], second: list[int]) -> None:
    balance = balance_uv(first, second, boot=0)
    exchanged = balance_uv(second, first, estimand="ATC", boot=0)
    assert exchanged.sdiff == pytest.approx(-balance.sdiff)
    assert exchanged.t_p_value == pytest.approx(balance.t_p_value)
    assert exchanged.ecdf_differences == balance.ecdf_differences
    assert balance.ks is not None and exchanged.ks is not None
    assert exchanged.ks.p_value == pytest.approx(balance.ks.p_value, abs=1e-12)


def test_unequal_lengths_are_not_pairs() -> None:
    with pytest.raises(UnusableInput, match="2 treated and 1 controls are not pairs"):
        balance_uv([1, 2], [1], matched=True)


@pytest.mark.parametrize("scale", [1e-170, 1e-12, 1e12, 1e160, 1e300])
@pytest.mark.parametrize("matched", [False, True])
def test_the_scale_of_a_covariate_does_not_matter(scale: float, matched: bool) -> None:
    random = np.random.default_rng(6)
    treated, control = random.normal(0.3, 1.0, 30), random.normal(0.0, 2.0, 30)
    plain = balance_uv(treated, control, matched=matched, boot=20, seed=1)
    scaled = balance_uv(scale * treated, scale * control, matched=matched, boot=20, seed=1)
    for name in ("variance_ratio", "sdiff", "sdiff_pooled", "t_p_value"):
        assert getattr(scaled, name) == pytest.approx(getattr(plain, name)), name
    assert scaled.ks == plain.ks
    assert scaled.mean_treated == pytest.approx(scale * plain.mean_treated)
    assert scaled.quantile_differences.max == pytest.approx(scale * plain.quantile_differences.max)
