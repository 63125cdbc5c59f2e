"""A match as a design: the same weights, the same effect, and refusal of other rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pytest

from equipoise_matching.designs.comparison import compare_designs
from equipoise_matching.designs.matches import design_of_match
from equipoise_matching.matching.balance import match_balance
from equipoise_matching.matching.match import match
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.designs.designs import confounded, weighted


@pytest.mark.parametrize("estimand", ["ATT", "ATC", "ATE"])
@pytest.mark.parametrize("m", [1, 3])
def test_the_weighted_means_of_the_design_differ_by_the_effect_of_the_match(
    estimand: Any, m: int
) -> None:
    X, treat = confounded(200)
    y = np.random.default_rng(5).normal(size=200) + X["age"]
    result = match(y, treat, pandas.DataFrame(X), estimand=estimand, m=m)
    design = design_of_match(result, treat, X)
    treated, weights = design.units.treated, design.weights
    means = [np.average(y[arm], weights=weights[arm]) for arm in (treated, ~treated)]
    assert means[0] - means[1] == pytest.approx(result.estimate, rel=1e-9)
    assert design.estimand == estimand
    assert len(design.pairs()) == len(result.weights)


def test_the_balance_of_the_design_has_the_means_of_match_balance() -> None:
    X, treat = confounded(150)
    result = match(None, treat, pandas.DataFrame(X))
    design = design_of_match(result, treat, X)
    for name in ("age", "income", "married"):
        after = match_balance(X, treat, result, boot=0).of(name)[1]
        assert after is not None
        ours = design.balance().of(name)[0].after
        assert ours.mean_control == pytest.approx(after.mean_control, rel=1e-12)
        assert ours.mean_treated == pytest.approx(after.mean_treated, rel=1e-12)


def test_a_match_is_compared_with_other_designs() -> None:
    X, treat = confounded(150)
    result = match(None, treat, pandas.DataFrame(X))
    comparison = compare_designs([weighted(treat, X), design_of_match(result, treat, X)])
    assert [design.name for design in comparison.designs] == ["match", "weighted"]


def test_a_match_of_other_rows_is_refused() -> None:
    X, treat = confounded(150)
    result = match(None, treat, pandas.DataFrame(X))
    with pytest.raises(UnusableInput, match="disagree on who is treated"):
        design_of_match(result, 1 - treat, X)
    number: Any = 3
    with pytest.raises(UnusableInput, match="not the result of a match"):
        design_of_match(number, treat, X)
