"""Input that cannot be used ends in one line with a hint, and random input never in a crash."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from equipoise_matching import aipw_effects, robustness_value, rosenbaum_bounds
from equipoise_matching.effects.estimate import effects_of, subgroup_effects_of
from equipoise_matching.effects.sample import DesignRows
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.effects.samples import data_of, design_of

DATA = data_of(51)
SEPARATING = np.column_stack([DATA.x[:, 0], DATA.binary * 2.0 - 1.0])


def with_value(values: Any, row: int, value: float) -> Any:
    changed = np.array(values, dtype=float)
    changed[row] = value
    return changed


@pytest.mark.parametrize(
    ("y", "design", "options", "message"),
    [
        (DATA.number[:-1], {}, {}, "y has 119 rows and the design has 120"),
        (with_value(DATA.number, 3, np.nan), {}, {}, r"y is missing in row 3 \(from 0\)"),
        (with_value(DATA.number, 4, np.inf), {}, {}, "y is infinite in row 4"),
        (DATA.number[:, None] * [1.0, 2.0], {}, {}, r"y has shape \(120, 2\)"),
        (["a"] * 120, {}, {}, "y is not a number"),
        (DATA.number, {"weights": with_value(DATA.weights, 5, np.inf)}, {}, "weight is not finite"),
        (DATA.number, {"weights": with_value(DATA.weights, 6, -1.0)}, {}, "weight is negative"),
        (DATA.number, {"weights": DATA.weights * DATA.treat}, {}, "no row of the arm control"),
        (DATA.number, {}, {"covariates": "all"}, "covariates is 'all'"),
        (DATA.number, {}, {"covariates": DATA.x[:-1]}, "covariates has 119 rows"),
        (DATA.number, {}, {"scale": "log"}, "no scale 'log'"),
        (DATA.number, {}, {"scale": "risk ratio"}, "other values than 0 and 1"),
        (-DATA.events, {}, {"scale": "rate ratio"}, "negative values"),
        (DATA.number, {}, {"model": "logistic"}, "logistic model needs an outcome of 0 and 1"),
        (DATA.number, {}, {"model": "poisson"}, "Poisson model needs"),
        (DATA.number, {}, {"model": "probit"}, "no model 'probit'"),
        (DATA.number, {}, {"error": "wild"}, "no error 'wild'"),
        (DATA.number, {}, {"variance": "all"}, "no variance 'all'"),
        (DATA.number, {}, {"confidence": 95}, "confidence is 95"),
        (DATA.number, {}, {"seed": -1}, "seed is -1"),
        (DATA.number, {}, {"replications": 1}, "replications is 1"),
        (DATA.number, {}, {"colour": 1}, "no option colour"),
        (DATA.number, {}, {"redesign": design_of}, "only for the bootstrap"),
        (DATA.number, {}, {"clusters": np.zeros(119)}, "clusters has 119 rows"),
        (DATA.number, {}, {"clusters": np.zeros(120)}, "1 cluster, which gives no standard error"),
        (DATA.number, {"strata": None}, {"error": "clusters"}, "weights without strata"),
        (DATA.number, {}, {"target": 5}, "target is 5, which is not an arm"),
        (DATA.binary, {}, {"covariates": SEPARATING}, "x1 separates the values of the outcome"),
        (0.0 * DATA.binary, {}, {"scale": "risk ratio", "covariates": None}, "no risk ratio"),
        (0.0 * DATA.binary + 1, {}, {"scale": "odds ratio", "covariates": None}, "no odds ratio"),
        (
            0.0 * DATA.events,
            {},
            {"scale": "rate ratio"},
            "rows of control is always 0",
        ),
        (
            DATA.number,
            {},
            {"covariates": np.random.default_rng(1).normal(size=(120, 80))},
            "too few for 80 covariates",
        ),
    ],
)
def test_unusable_input_is_one_line_with_a_hint(
    y: Any, design: Any, options: Any, message: str
) -> None:
    with pytest.raises(UnusableInput, match=message) as raised:
        effects_of(y, design_of(DATA, **design), options)
    assert raised.value.hint
    assert "\n" not in raised.value.what


def test_a_grouping_with_a_value_for_each_row_is_refused() -> None:
    with pytest.raises(UnusableInput, match="1000 different values"):
        subgroup_effects_of(np.zeros(1000), np.arange(1000), design_of(data_of(52, rows=1000)), {})


NUMBERS = st.one_of(
    st.floats(-3, 3),
    st.sampled_from([0.0, 1.0, 1e-300, 1e300, -1e300, 1e-9]),
)


@settings(
    max_examples=150,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(data=st.data(), rows=st.integers(4, 16), columns=st.integers(0, 3))
def test_random_input_gives_finite_effects_or_an_error_with_a_hint(
    data: Any, rows: int, columns: int
) -> None:
    def draw(values: Any) -> Any:
        return np.array(data.draw(st.lists(values, min_size=rows, max_size=rows)))

    scale = data.draw(
        st.sampled_from(
            ["difference", "risk ratio", "odds ratio", "rate ratio", "hazard ratio",
             "survival difference"]
        )
    )  # fmt: skip
    is_binary = scale in ("risk ratio", "odds ratio")
    outcome = draw(st.integers(0, 1) if is_binary else NUMBERS)
    arm = draw(st.integers(0, 1)).astype(np.int64)
    options: Any = {"scale": scale, "error": data.draw(st.sampled_from(["design", "rows"]))}
    if scale in ("hazard ratio", "survival difference"):
        options["event"] = draw(st.integers(0, 1))
        outcome = np.abs(outcome)
    if scale == "survival difference":
        options["at"] = 1.0
    design = DesignRows(
        arm,
        (0, 1),
        draw(st.sampled_from([0.0, 0.5, 1.0, 1e-200, 1e200])),
        data.draw(st.sampled_from(["ATT", "ATC", "ATE", "ATO"])),
        draw(st.integers(0, 4)) if data.draw(st.booleans()) else None,
        tuple(f"x{index}" for index in range(columns)),
        np.column_stack([draw(NUMBERS) for _ in range(columns)])
        if columns
        else np.empty((rows, 0)),
    )
    try:
        (effect,) = effects_of(outcome.astype(float), design, options)
    except UnusableInput as error:
        assert error.hint
        return
    assert math.isfinite(effect.se)
    assert 0.0 <= effect.p_value <= 1.0
    assert effect.interval[0] <= effect.estimate <= effect.interval[1]
    assert effect.summary()


@settings(
    max_examples=100,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(data=st.data(), rows=st.integers(2, 14), columns=st.integers(1, 3))
def test_random_input_gives_a_sensitivity_or_an_error_with_a_hint(
    data: Any, rows: int, columns: int
) -> None:
    def draw(values: Any) -> Any:
        return np.array(data.draw(st.lists(values, min_size=rows, max_size=rows)))

    y, treat = draw(NUMBERS), draw(st.integers(0, 1))
    try:
        bounds = rosenbaum_bounds(y, treat, draw(st.integers(-1, 4)), gammas=[1.0, 3.0])
        assert all(0.0 <= row.p_value <= 1.0 for row in bounds.rows)
        assert bounds.summary()
    except UnusableInput as error:
        assert error.hint
    X = {f"x{index}": draw(NUMBERS) for index in range(columns)}
    try:
        value = robustness_value(y, treat, X, benchmarks=["x0"])
        assert 0.0 <= value.value_of_interval <= value.value <= 1.0
        assert value.summary()
    except UnusableInput as error:
        assert error.hint


@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(data=st.data(), rows=st.integers(4, 14))
def test_random_input_gives_an_augmented_estimate_or_an_error_with_a_hint(
    data: Any, rows: int
) -> None:
    def draw(values: Any) -> Any:
        return np.array(data.draw(st.lists(values, min_size=rows, max_size=rows)))

    treat = draw(st.integers(0, 2))
    try:
        for effect in aipw_effects(draw(NUMBERS), treat, draw(NUMBERS), folds=2):
            assert math.isfinite(effect.se)
    except UnusableInput as error:
        assert error.hint
