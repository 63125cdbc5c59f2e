"""The Kolmogorov-Smirnov test against enumeration, its limits, and itself."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstwobign

from equipoise_matching import _native
from equipoise_matching.matching import distributions
from equipoise_matching.matching.distributions import ks_boot
from equipoise_matching.shared.errors import UnusableInput

SMALL = st.lists(st.integers(0, 4), min_size=1, max_size=5)


def distance(first: list[int], second: list[int]) -> float:
    """The largest difference of the empirical distribution functions, by definition."""
    return max(
        abs(sum(x <= at for x in first) / len(first) - sum(x <= at for x in second) / len(second))
        for at in first + second
    )


@settings(max_examples=60, deadline=None)
@given(SMALL, SMALL)
def test_the_exact_p_value_with_ties_is_the_share_of_all_splits(
    first: list[int], second: list[int]
) -> None:
    pooled = first + second
    observed = distance(first, second)
    reaching = total = 0
    for chosen in combinations(range(len(pooled)), len(first)):
        sample = [pooled[k] for k in chosen]
        other = [pooled[k] for k in range(len(pooled)) if k not in chosen]
        reaching += distance(sample, other) >= observed - 1e-12
        total += 1
    test = ks_boot(first, second, boot=0)
    assert test.statistic == pytest.approx(observed, abs=1e-15)
    assert test.p_value == pytest.approx(reaching / total, abs=1e-13)


def test_samples_far_apart_have_an_exact_p_value_that_keeps_its_digits() -> None:
    test = ks_boot(np.arange(40.0), np.arange(100.0, 140.0), boot=0)
    assert test.p_value == pytest.approx(2 / math.comb(80, 40), rel=1e-12)


def test_r_stops_the_asymptotic_series_in_the_sixth_decimal() -> None:
    ours, r = _native.kolmogorov_p_value(0.99, False), _native.kolmogorov_p_value(0.99, True)
    assert ours != r
    assert ours == pytest.approx(r, abs=1e-4)


def test_large_samples_take_the_asymptotic_p_value() -> None:
    first, second = np.arange(100.0), np.arange(100.0) + 10.5
    test = ks_boot(first, second, boot=0)
    assert test.statistic == pytest.approx(0.11)
    assert test.p_value == pytest.approx(kstwobign.sf(0.11 * math.sqrt(50)), rel=1e-12)


def test_the_bootstrap_agrees_with_the_exact_test_on_continuous_data() -> None:
    random = np.random.default_rng(5)
    first, second = random.normal(size=60), random.normal(size=80) + 0.35
    test = ks_boot(first, second, boot=20_000, seed=1)
    assert test.boot_p_value is not None
    # The bootstrap draws with replacement; four standard errors of 20,000 draws, and that.
    assert test.boot_p_value == pytest.approx(test.p_value, abs=0.03)


def test_the_bootstrap_rejects_a_true_null_at_its_level() -> None:
    random = np.random.default_rng(9)
    small = sum(
        (
            ks_boot(
                random.integers(0, 4, 40), random.integers(0, 4, 50), boot=99, seed=random
            ).boot_p_value
            or 0.0
        )
        <= 0.1
        for _ in range(300)
    )
    assert 300 * 0.1 - 4 * math.sqrt(27) < small < 300 * 0.1 + 4 * math.sqrt(27)


def test_one_seed_gives_one_p_value_however_many_draws_are_made_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(2)
    first, second = random.normal(size=31), random.normal(size=42) + 0.4
    weights = random.uniform(0.2, 1.0, size=31)
    whole = ks_boot(first, second, boot=200, seed=3)
    weighted = ks_boot(first, second, boot=200, seed=3, weights_treated=weights)
    monkeypatch.setattr(distributions, "_MAX_DRAWS_PER_BATCH", 150)
    assert ks_boot(first, second, boot=200, seed=3) == whole
    assert ks_boot(first, second, boot=200, seed=3, weights_treated=weights) == weighted


def test_a_row_of_weight_two_counts_as_two_rows() -> None:
    first, second = [1.0, 2.0, 5.0], [2.0, 3.0, 4.0, 9.0]
    weighted = ks_boot(first, second, boot=0, weights_treated=[2, 1, 1])
    assert weighted.statistic == ks_boot([1, *first], second, boot=0).statistic


def test_weights_of_one_change_nothing() -> None:
    first, second = [1.0, 2.0, 5.0], [2.0, 3.0, 4.0, 9.0]
    plain = ks_boot(first, second, boot=50, seed=1)
    assert ks_boot(first, second, boot=50, seed=1, weights_control=[1, 1, 1, 1]) == plain


@settings(max_examples=50, deadline=None)
@given(SMALL, SMALL, st.sampled_from([2.0**-40, 2.0**40]))
def test_order_and_scale_change_nothing(first: list[int], second: list[int], scale: float) -> None:
    plain = ks_boot(first, second, boot=0)
    turned = ks_boot(np.array(first[::-1]) * scale, np.array(second[::-1]) * scale, boot=0)
    assert turned == plain


def test_samples_of_one_constant_do_not_differ() -> None:
    test = ks_boot([0.1] * 7, [0.1] * 9, boot=20, seed=1)
    assert (test.statistic, test.p_value, test.boot_p_value) == (0.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, math.nan, math.inf], [1.0]), "treated is missing in row 1"),
        (([1.0], [2.0, math.nan]), "control is missing in row 1"),
        (([], [1.0]), "treated: a list of at least one number"),
        ((["a"], [1.0]), "treated: not numbers"),
    ],
)
def test_an_unusable_sample_is_named_with_its_rows(
    arguments: tuple[list[float], list[float]], message: str
) -> None:
    with pytest.raises(UnusableInput, match=message):
        ks_boot(*arguments)


def test_too_few_bootstrap_samples_are_refused() -> None:
    with pytest.raises(UnusableInput, match="boot=5"):
        ks_boot([1.0], [2.0], boot=5)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "1 weights for 2 values"),
        ([1.0, -1.0], "negative in row 1"),
        ([0.0, 0.0], "every weight is zero"),
    ],
)
def test_unusable_weights_are_refused(weights: list[float], message: str) -> None:
    with pytest.raises(UnusableInput, match=message):
        ks_boot([1.0, 2.0], [2.0], weights_treated=weights)


@pytest.mark.parametrize("seed", [-1, 1.5, "a"])
def test_a_seed_that_is_not_a_whole_number_is_named(seed: Any) -> None:
    with pytest.raises(UnusableInput, match="seed is"):
        ks_boot([1.0, 2.0], [1.0, 3.0], boot=10, seed=seed)
