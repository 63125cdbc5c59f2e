"""Hazard ratios and chances of survival: enumeration, statsmodels, and known cases."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from equipoise_matching.effects.estimate import effect_of, effects_of
from equipoise_matching.effects.survival import log_hazard_ratio
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.effects.samples import data_of, design_of

duration: Any = importlib.import_module("statsmodels.duration.hazard_regression")

DATA = data_of(31)
NAMES = ("treated", "control")


def test_with_equal_weights_the_hazard_ratio_is_that_of_statsmodels() -> None:
    fitted = duration.PHReg(
        DATA.time, DATA.treat[:, None].astype(float), status=DATA.event, ties="efron"
    ).fit()
    contrast = log_hazard_ratio(DATA.time, DATA.event == 1, np.ones(120), DATA.treat == 1, NAMES)
    assert contrast.value == pytest.approx(fitted.params[0], rel=1e-6)


def test_whole_weights_are_copies_of_rows_if_times_differ() -> None:
    generator = np.random.default_rng(2)
    time = generator.exponential(size=60)
    copies = generator.integers(1, 4, 60)
    treated, event = np.arange(60) % 2 == 1, generator.random(60) < 0.8
    weighted = log_hazard_ratio(time, event, copies.astype(float), treated, NAMES)
    # Copies of a row would be ties; tiny differences of their times remove them (Breslow).
    fitted = duration.PHReg(
        np.repeat(time, copies),
        np.repeat(treated, copies)[:, None].astype(float),
        status=np.repeat(event, copies).astype(float),
        ties="breslow",
    ).fit()
    assert weighted.value == pytest.approx(fitted.params[0], rel=1e-6)


def test_the_influence_on_the_hazard_ratio_is_its_derivative_by_the_weight_of_a_row() -> None:
    arguments = (DATA.time, DATA.event == 1)
    treated = DATA.treat == 1
    contrast = log_hazard_ratio(*arguments, DATA.weights, treated, NAMES)
    for row in (0, 7, 40):
        step = 1e-5 * DATA.weights[row]
        moved = [DATA.weights.copy(), DATA.weights.copy()]
        moved[0][row] += step
        moved[1][row] -= step
        high, low = (log_hazard_ratio(*arguments, w, treated, NAMES).value for w in moved)
        derivative = (high - low) / (2 * step)
        if DATA.event[row] and np.sum(DATA.time == DATA.time[row]) > 1:
            continue  # Efron's mean weight of ties is held fixed, as in R.
        assert contrast.influence[row] == pytest.approx(DATA.weights[row] * derivative, rel=1e-4)


def test_the_chance_of_survival_without_censoring_is_the_weighted_share() -> None:
    everyone = np.ones(120)
    effect = effect_of(
        DATA.time,
        design_of(DATA),
        {"event": everyone, "scale": "survival difference", "at": 0.7, "error": "rows"},
    )
    shares = [
        np.average(DATA.time[rows] > 0.7, weights=DATA.weights[rows])
        for rows in (DATA.treat == 1, DATA.treat == 0)
    ]
    assert effect.arm_values == pytest.approx(shares)
    errors = []
    for rows, share in zip((DATA.treat == 1, DATA.treat == 0), shares, strict=True):
        weights = DATA.weights[rows] / DATA.weights[rows].sum()
        errors.append((weights * ((DATA.time[rows] > 0.7) - share) ** 2 * weights).sum())
    assert effect.se == pytest.approx(np.sqrt(sum(errors)))


def test_several_arms_have_a_hazard_ratio_of_each_pair() -> None:
    data = data_of(32, rows=300, arms=3)
    effects = effects_of(data.time, design_of(data, "ATE", strata=None), {"event": data.event})
    rows = data.treat != 1
    pair = log_hazard_ratio(
        data.time[rows], data.event[rows] == 1, data.weights[rows], data.treat[rows] == 2, NAMES
    )
    assert np.log(effects[1].estimate) == pytest.approx(pair.value)
    assert effects[1].scale == "hazard ratio"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"event": DATA.event * (DATA.treat == 0)}, "treated has no event"),
        ({"event": DATA.event + 1.0}, "event is neither 0 nor 1"),
        ({"event": DATA.event, "scale": "difference"}, "takes no event"),
        ({"scale": "hazard ratio"}, "needs an event"),
        ({"event": DATA.event, "scale": "survival difference"}, "needs a time"),
        ({"event": DATA.event, "scale": "survival difference", "at": 1e6}, "longest time"),
    ],
)
def test_a_survival_effect_that_does_not_exist_is_refused(changes: Any, message: str) -> None:
    with pytest.raises(UnusableInput, match=message):
        effect_of(DATA.time, design_of(DATA), changes)


def test_arms_that_are_never_at_risk_together_are_refused() -> None:
    time = np.where(DATA.treat == 1, 0.1 + DATA.time, 1000.0 + DATA.time)
    with pytest.raises(UnusableInput, match="no hazard ratio"):
        effect_of(time, design_of(DATA), {"event": np.ones(120)})
