"""The intervals of variance components cover the true values, and advice is a number of units."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from equipoise.model.errors import UnusableInput
from equipoise.model.result import VarianceComponent
from equipoise.stats.levels import Levels, advice, describe_advice, plural_of, variance_by_level
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import judge
from packages.equipoise.tests.stats.planted import NESTED, Nested
from packages.equipoise.tests.stats.simulated import at_least, at_most

SIMULATIONS = 100


@pytest.mark.parametrize("design", NESTED, ids=lambda design: f"{design.counts} {design.lost}")
def test_components_are_recovered_and_covered(design: Nested) -> None:
    generator = np.random.default_rng(1)
    truth = np.square(design.sds)
    estimates, covered, mean_covered = [], np.zeros(len(truth)), 0
    for seed in range(SIMULATIONS):
        values, units = design.draw(generator)
        found = variance_by_level(values, units, design.names, seed=seed)
        estimates.append([component.variance for component in found.components])
        covered += [
            component.variance_ci[0] <= true <= component.variance_ci[1]
            for component, true in zip(found.components, truth, strict=True)
        ]
        mean_covered += found.across_ci[0] <= 100.0 <= found.across_ci[1]
    spread = np.std(estimates, axis=0, ddof=1) / np.sqrt(SIMULATIONS)
    assert (np.abs(np.mean(estimates, axis=0) - truth) < 4.0 * spread).all()
    assert (covered >= at_least(SIMULATIONS, 0.92)).all()
    assert mean_covered >= at_least(SIMULATIONS, 0.93)


def test_a_balanced_design_gives_the_textbook_estimates() -> None:
    values, units = Nested(("trial", "iteration"), (6, 9), (2.0, 1.0)).draw(
        np.random.default_rng(2)
    )
    table = values.reshape(6, 9)
    within = float(table.var(axis=1, ddof=1).mean())
    between = float(table.mean(axis=1).var(ddof=1)) - within / 9
    found = variance_by_level(values, units, ("trial", "iteration"), seed=1)
    assert [component.variance for component in found.components] == pytest.approx(
        [between, within]
    )
    assert [component.units for component in found.components] == [6, 54]
    assert sum(component.share for component in found.components) == pytest.approx(1.0)
    assert found.mean == pytest.approx(float(values.mean()))
    half = stats.t.ppf(0.975, 5) * table.mean(axis=1).std(ddof=1) / np.sqrt(6)
    assert found.across_ci == pytest.approx((found.mean - half, found.mean + half), rel=1e-3)


def test_the_claim_about_this_campaign_is_narrower_than_the_one_across_layouts() -> None:
    design = Nested(("layout", "process", "iteration"), (5, 8, 8), (3.0, 0.5, 0.5))
    values, units = design.draw(np.random.default_rng(3))
    found = variance_by_level(values, units, design.names, seed=1)
    within = found.within_ci[1] - found.within_ci[0]
    across = found.across_ci[1] - found.across_ci[0]
    assert within < across / 5


def test_both_scopes_are_valid_although_the_verdict_may_end_the_campaign() -> None:
    layouts, most = 8, 40
    generator = np.random.default_rng(6)
    campaigns, these, across, wrong = 120, 0, 0, 0
    for seed in range(campaigns):
        effects = generator.normal(0.0, 0.03, layouts)
        rounds = [generator.permutation(layouts) for _ in range(most // layouts)]
        numbers = np.concatenate(rounds)
        noise = generator.normal(0.0, 0.02, (most, 2))
        orders = generator.choice(np.array([-1, 1], dtype=np.int8), most)
        above = noise[:, 1] + effects[numbers]
        verdict, ended = "undecided", most
        for blocks in range(2 * layouts, most + 1, 2):
            pairs = PairedBlocks(np.exp(noise[:blocks, 0]), np.exp(above[:blocks]), orders[:blocks])
            (judged,) = judge([pairs], min_effect=0.0, alpha=0.05)
            verdict, ended = judged.verdict, blocks
            if verdict != "undecided":
                break
        found = variance_by_level(
            (above - noise[:, 0])[:ended], [numbers[:ended]], ("layout", "trial"), seed=seed
        )
        these += found.within_ci[0] <= effects.mean() <= found.within_ci[1]
        across += found.across_ci[0] <= 0.0 <= found.across_ci[1]
        wrong += verdict == ("slower" if effects.mean() < 0 else "faster")
    # The verdict is about these layouts; it must not reverse the sign of their mean effect.
    assert wrong <= at_most(campaigns, 0.05)
    assert these >= at_least(campaigns, 0.95)
    assert across >= at_least(campaigns, 0.93)


def test_units_are_distinct_within_the_unit_above() -> None:
    values, units = Nested(("boot", "trial", "iteration"), (4, 5, 6), (1.0, 1.0, 1.0)).draw(
        np.random.default_rng(4)
    )
    again = [units[0], units[1] % 5]
    names = ("boot", "trial", "iteration")
    assert variance_by_level(values, again, names, seed=1) == variance_by_level(
        values, units, names, seed=1
    )


def test_a_level_without_replication_is_refused_by_name() -> None:
    with pytest.raises(UnusableInput, match="there is only one host"):
        variance_by_level(np.arange(6.0), [np.zeros(6, dtype=np.int64)], ("host", "trial"), seed=1)
    with pytest.raises(UnusableInput, match="no trial has two iterations"):
        variance_by_level(np.arange(6.0), [np.arange(6)], ("trial", "iteration"), seed=1)


def levels_of(*components: tuple[str, int, float]) -> Levels:
    """Levels with so many units and variances."""
    return Levels(
        mean=1.0,
        components=tuple(
            VarianceComponent(name, units, variance, (0.0, 1.0), 0.0)
            for name, units, variance in components
        ),
        within_ci=(0.9, 1.1),
        across_ci=(0.8, 1.2),
    )


def test_advice_has_the_effect_of_one_more_minute_at_each_level() -> None:
    levels = levels_of(("process", 20, 1.0), ("iteration", 200, 0.5))
    found = advice(levels, (1.0, 0.1))
    # A process with its ten iterations takes 2 s: 30 more processes, or 600 more iterations.
    now = 1.0 / 20 + 0.5 / 200
    new_processes = 1.0 / 50 + 0.5 / 500
    more_iterations = 1.0 / 20 + 0.5 / 800
    assert [advice.level for advice in found] == ["process", "iteration"]
    assert found[0].narrowed_fraction == pytest.approx(1 - np.sqrt(new_processes / now))
    assert found[1].narrowed_fraction == pytest.approx(1 - np.sqrt(more_iterations / now))
    assert describe_advice(found) == (
        "one more minute on new processes narrows the interval by 37 %, on more iterations by 2 %"
    )


def test_a_negative_component_counts_as_0() -> None:
    found = advice(levels_of(("layout", 4, -0.1), ("trial", 40, 1.0)), (5.0, 1.5))
    assert found[0].level == "trial"
    assert found[0].narrowed_fraction == pytest.approx(1 - np.sqrt(1 / 2))


@pytest.mark.parametrize("costs", [(1.0,), (1.0, 0.0), (-1.0, 1.0)])
def test_costs_that_make_no_sense_are_refused(costs: tuple[float, ...]) -> None:
    with pytest.raises(UnusableInput):
        advice(levels_of(("process", 20, 1.0), ("iteration", 200, 0.5)), costs)


def test_levels_have_plurals() -> None:
    assert (plural_of("process"), plural_of("layout")) == ("processes", "layouts")
