"""Covariates that are associated with a mode are named, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.stats.associations import (
    Covariate,
    mode_associations,
    strongest_association,
)
from packages.equipoise.tests.stats.planted import FloatArray, autoregressive
from packages.equipoise.tests.stats.simulated import at_least, at_most

SIMULATIONS = 150


def observed(name: str, values: FloatArray, *, named: bool = False) -> Covariate:
    """A covariate that was not drawn at random."""
    return Covariate(name, values, is_categorical=named, is_independent=False)


def in_order(trials: int) -> Covariate:
    """The time as a covariate: the position of each trial."""
    return Covariate(
        "time", np.arange(trials, dtype=np.float64), is_categorical=False, is_independent=True
    )


@pytest.mark.parametrize("dependence", [0.0, 0.7, 0.9])
@pytest.mark.parametrize("trials", [20, 100])
def test_unrelated_covariates_are_named_in_at_most_alpha(dependence: float, trials: int) -> None:
    generator = np.random.default_rng(1)
    named = 0
    for _ in range(SIMULATIONS):
        modes = (autoregressive(generator, trials, dependence) > 0.5).astype(np.int64)
        covariates = [
            observed(f"load {index}", autoregressive(generator, trials, dependence))
            for index in range(8)
        ]
        cpu = np.floor(2.0 * autoregressive(generator, trials, dependence))
        named += bool(mode_associations(modes, [*covariates, observed("cpu", cpu, named=True)]))
    assert named <= at_most(SIMULATIONS, 0.05)


def test_the_cpu_that_most_trials_follow_is_named() -> None:
    generator = np.random.default_rng(2)
    associations = 0
    for _ in range(SIMULATIONS):
        cpu = generator.integers(0, 4, 60).astype(np.float64)
        stray = generator.random(60) < 0.1
        modes = ((cpu == 2.0) ^ stray).astype(np.int64)
        named = mode_associations(modes, [observed("cpu", cpu, named=True), in_order(60)])
        associations += bool(named) and (named[0].covariate, named[0].value) == ("cpu", 2.0)
    assert associations >= at_least(SIMULATIONS, 0.95)


def test_a_late_mode_is_associated_with_the_time() -> None:
    modes = (np.arange(40) > 25).astype(np.int64)
    (association,) = mode_associations(modes, [in_order(40)])
    assert (association.covariate, association.mode, association.value) == ("time", 1, None)
    assert association.correlation > 0.7
    assert association.p_value < 1e-4


def test_each_of_three_modes_is_tested_against_every_covariate() -> None:
    generator = np.random.default_rng(3)
    cpu = generator.integers(0, 3, 90).astype(np.float64)
    associations = mode_associations(cpu.astype(np.int64), [observed("cpu", cpu, named=True)])
    assert {(association.mode, association.value) for association in associations} == {
        (0, 0.0),
        (1, 1.0),
        (2, 2.0),
    }


def test_constant_and_incomplete_covariates_are_left_out() -> None:
    modes = np.arange(40) % 2
    unknown = np.where(np.arange(40) == 7, np.nan, modes)
    constant = np.ones(40)
    covariates = [observed("unknown", unknown), observed("constant", constant)]
    assert mode_associations(modes, [*covariates, observed("pinned", constant, named=True)]) == ()


def test_few_trials_or_one_mode_give_no_associations() -> None:
    modes = np.arange(19) % 2
    assert mode_associations(modes, [observed("same", modes.astype(np.float64))]) == ()
    assert mode_associations(np.zeros(50, dtype=np.int64), [in_order(50)]) == ()


@pytest.mark.parametrize("trials", [7, 15])
def test_an_unrelated_amount_is_named_in_at_most_alpha(trials: int) -> None:
    generator = np.random.default_rng(11)
    named = 0
    for _ in range(SIMULATIONS):
        values = np.exp(generator.normal(0.0, 0.1, trials))
        covariates = [observed(f"load {index}", generator.random(trials)) for index in range(6)]
        cpu = observed("cpu", generator.integers(0, 2, trials).astype(np.float64), named=True)
        named += strongest_association(values, [*covariates, cpu, in_order(trials)]) is not None
    assert named <= at_most(SIMULATIONS, 0.05)


def test_an_amount_that_follows_a_covariate_or_the_time_names_it() -> None:
    generator = np.random.default_rng(12)
    steal = generator.random(9)
    associations = strongest_association(1.0 + steal, [observed("steal_s", steal), in_order(9)])
    assert associations is not None and (
        associations.covariate,
        associations.correlation > 0.9,
    ) == ("steal_s", True)
    later = strongest_association(1.1 ** np.arange(9.0), [observed("steal_s", steal), in_order(9)])
    assert later is not None and later.covariate == "time"


def test_six_values_or_equal_values_have_no_associations() -> None:
    assert strongest_association(np.arange(6.0), [in_order(6)]) is None
    assert strongest_association(np.ones(9), [in_order(9)]) is None


def test_a_draw_per_layout_counts_once_per_layout() -> None:
    generator = np.random.default_rng(8)
    named = 0
    for _ in range(SIMULATIONS):
        layouts = np.tile(np.arange(8), 12)
        modes = generator.permutation([0, 0, 0, 0, 0, 1, 1, 1])[layouts]
        sizes = generator.normal(0.0, 1.0, 8)[layouts]
        size = Covariate(
            "environment_bytes", sizes, is_categorical=False, is_independent=True, draw_count=8
        )
        named += bool(mode_associations(modes, [size]))
    assert named <= at_most(SIMULATIONS, 0.05)


def test_random_addresses_of_a_layout_are_named_if_the_mode_depends_on_them() -> None:
    layouts = np.tile(np.arange(12), 6)
    coins = (layouts % 2).astype(np.float64)
    addresses = Covariate(
        "random_addresses", coins, is_categorical=True, is_independent=True, draw_count=12
    )
    (association,) = mode_associations(coins.astype(np.int64), [addresses])
    assert (association.covariate, association.value) == ("random_addresses", 1.0)


CAMPAIGNS = 1000
