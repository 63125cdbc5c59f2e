"""Several imputed data sets: Rubin's rules, and coverage where values are missing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec.structs import replace

from equipoise_matching import effect_of_imputations, pool_effects
from equipoise_matching.effects.estimate import effect_of
from equipoise_matching.effects.result import EffectEstimate
from equipoise_matching.effects.sample import DesignRows
from equipoise_matching.shared.errors import UnusableInput

EFFECT = EffectEstimate(
    estimate=2.0, se=0.5, interval=(1.0, 3.0), p_value=0.01, scale="difference", estimand="ATE",
    contrast=("treated", "control"), method="g-computation", error="robust", rows=100,
    degrees_of_freedom=96.0,
)  # fmt: skip


def test_variance_and_degrees_of_freedom_are_those_of_the_rules_by_hand() -> None:
    pooled = pool_effects([replace(EFFECT, estimate=value) for value in (1.0, 2.0, 3.0)])
    # U = 0.25 and B = 1, so T = 0.25 + 4/3, and λ = (4/3)/T.
    total = 0.25 + 4.0 / 3.0
    share = (4.0 / 3.0) / total
    observed = 97.0 / 99.0 * 96.0 * (1.0 - share)
    assert pooled.effect.estimate == 2.0
    assert pooled.effect.se == pytest.approx(math.sqrt(total))
    assert pooled.missing_information == pytest.approx(share)
    assert pooled.effect.degrees_of_freedom == pytest.approx(
        1.0 / (share**2 / 2.0 + 1.0 / observed)
    )


def test_equal_estimates_keep_their_error() -> None:
    pooled = pool_effects([EFFECT, EFFECT])
    assert pooled.effect.se == pytest.approx(0.5)
    assert pooled.missing_information == 0.0
    assert pooled.effect.degrees_of_freedom == pytest.approx(97.0 / 99.0 * 96.0)


def test_ratios_are_pooled_as_logarithms() -> None:
    ratios = [replace(EFFECT, estimate=value, scale="risk ratio") for value in (1.0, 4.0)]
    assert pool_effects(ratios).effect.estimate == pytest.approx(2.0)


def test_effects_of_different_kinds_are_not_pooled() -> None:
    with pytest.raises(UnusableInput, match="differ in their estimand"):
        pool_effects([EFFECT, replace(EFFECT, estimand="ATT")])
    with pytest.raises(UnusableInput, match="at least 2"):
        pool_effects([EFFECT])


def test_an_error_names_the_data_set() -> None:
    def estimate(number: int) -> EffectEstimate:
        if number == 7:
            raise UnusableInput("seven", hint="another")
        return EFFECT

    with pytest.raises(UnusableInput, match="data set 1: seven"):
        effect_of_imputations([6, 7], estimate)


def test_a_pooled_effect_describes_itself() -> None:
    pooled = effect_of_imputations([1.0, 3.0], lambda value: replace(EFFECT, estimate=value))
    assert "Imputations" in pooled.summary() == str(pooled)
    assert "Rubin's rules" in pooled.methods_sentence()
    assert "<table" in pooled._repr_html_()


def test_intervals_cover_where_a_covariate_is_missing_at_random() -> None:
    """The imputations are draws from the true distribution given treatment and outcome."""
    generator = np.random.default_rng(3)
    draws, rows, hits = 200, 150, 0
    for _ in range(draws):
        x = generator.normal(size=rows)
        treat = (generator.random(rows) < 1.0 / (1.0 + np.exp(-x))).astype(np.int64)
        y = 1.0 * treat + x + generator.normal(size=rows)
        missing = generator.random(rows) < 0.4

        def imputed(
            x: np.ndarray = x, y: np.ndarray = y, treat: np.ndarray = treat,
            missing: np.ndarray = missing,
        ) -> np.ndarray:  # fmt: skip
            # Given y and treat, x has the prior N(0, 1) times the logistic likelihood: rejection.
            mean, filled = (y - treat) / 2.0, x.copy()
            todo = np.flatnonzero(missing)
            while len(todo):
                value = mean[todo] + math.sqrt(0.5) * generator.normal(size=len(todo))
                chance = 1.0 / (1.0 + np.exp(-value))
                accepted = generator.random(len(todo)) < np.where(treat[todo], chance, 1 - chance)
                filled[todo[accepted]] = value[accepted]
                todo = todo[~accepted]
            return filled

        def estimate(
            filled: np.ndarray, y: np.ndarray = y, treat: np.ndarray = treat
        ) -> EffectEstimate:  # fmt: skip
            matrix = filled[:, None]
            design = DesignRows(treat, (0, 1), np.ones(rows), "ATE", None, ("x",), matrix)
            return effect_of(y, design, {})

        pooled = effect_of_imputations([imputed() for _ in range(5)], estimate).effect
        hits += pooled.interval[0] < 1.0 < pooled.interval[1]
    assert hits / draws == pytest.approx(0.95, abs=3.5 * math.sqrt(0.95 * 0.05 / draws))
