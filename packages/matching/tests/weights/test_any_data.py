"""Any data give finite weights, or an error of one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise_matching.designs.design import Design
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.weights.covariate_balancing import covariate_balancing_score
from equipoise_matching.weights.energy_balance import energy_balance
from equipoise_matching.weights.entropy_balance import entropy_balance
from equipoise_matching.weights.inverse_probability import (
    inverse_probability_weights,
    overlap_weights,
)

CALLS: dict[str, Callable[..., Design]] = {
    "inverse_probability": inverse_probability_weights,
    "entropy": lambda treat, X, **options: entropy_balance(treat, X, moments=2, **options),
    "covariate_balancing": covariate_balancing_score,
    "over_identified": lambda treat, X, **options: covariate_balancing_score(
        treat, X, over_identified=True, **options
    ),
    "energy": energy_balance,
    "overlap": lambda treat, X, **_: overlap_weights(treat, X),
}
CELLS = st.one_of(
    st.integers(-2, 2).map(float), st.floats(-5, 5, width=32), st.floats(allow_nan=True)
)


@st.composite
def data(draw: st.DrawFn) -> tuple[list[int], list[list[float]], dict[str, Any]]:
    """A treatment with up to three arms, up to three covariates, and an estimand."""
    rows, columns = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    treat = draw(st.lists(st.integers(0, draw(st.integers(0, 2))), min_size=rows, max_size=rows))
    row = st.lists(CELLS, min_size=columns, max_size=columns)
    matrix = draw(st.lists(row, min_size=rows, max_size=rows))
    options: dict[str, Any] = {"estimand": draw(st.sampled_from(["ATT", "ATC", "ATE"]))}
    if len(set(treat)) > 2 and options["estimand"] == "ATT":
        options["focal"] = draw(st.sampled_from(sorted(set(treat))))
    return treat, matrix, options


@pytest.mark.parametrize("name", list(CALLS))
@settings(max_examples=60, deadline=None)
@given(case=data())
def test_any_data_give_weights_or_one_line(
    name: str, case: tuple[list[int], list[list[float]], dict[str, Any]]
) -> None:
    if name == "energy":
        pytest.importorskip("piqp", reason="needs piqp: pip install equipoise-matching[energy]")
    treat, matrix, options = case
    try:
        design = CALLS[name](treat, matrix, **options)
    except UnusableInput as error:
        assert "\n" not in error.what
        return
    assert np.isfinite(design.weights).all()
    assert (design.weights >= 0).all()
    assert len(design.weights) == len(treat)


def test_a_treatment_with_a_million_values_is_refused_with_their_number() -> None:
    rows = np.arange(1_000_000)
    with pytest.raises(UnusableInput, match="treat has 1000000 different values"):
        entropy_balance(rows, rows % 7)
