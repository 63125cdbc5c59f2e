"""Propensity scores against R's glm, and at the edges."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from equipoise_matching.matching.propensity import propensity_score
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.matching.r_balance import data

R_SCORES = {
    "cont": (
        "treat ~ x1 + x2 + x3 + x4 + x5",
        [
            0.4349010835641,
            0.4004042852191,
            0.2544912550809,
            0.5391523287242,
            0.327341342225,
            0.5624188859004,
            0.2018917381899,
            0.2920254941407,
            0.2913996121386,
            0.3717450122617,
        ],
    ),
    "disc": (
        "treat ~ a + b + c + d",
        [
            0.3183449983354,
            0.2485541771259,
            0.5797546220851,
            0.4336571722783,
            0.5505720402085,
            0.2981149993342,
            0.4291588643643,
            0.4999598214226,
            0.4273831413122,
            0.4691593555894,
        ],
    ),
}


@pytest.mark.parametrize("name", list(R_SCORES))
def test_the_scores_are_those_of_r(name: str) -> None:
    formula, expected = R_SCORES[name]
    # R stops its iterations at a change of 1e-8 in the deviance.
    assert propensity_score(formula, data(name)).score[:10] == pytest.approx(expected, abs=1e-8)


def test_score_and_linear_predictor_belong_together() -> None:
    fitted = propensity_score("treat ~ a + c", data("disc"))
    assert fitted.score == pytest.approx(1 / (1 + np.exp(-fitted.linear)))
    assert fitted.names == ("a", "c")


def test_the_mean_score_is_the_share_of_the_treated() -> None:
    frame = data("disc")
    score = propensity_score(frame[["a", "b", "c"]], frame["treat"]).score
    assert score.mean() == pytest.approx(frame["treat"].mean(), rel=1e-10)


def test_scales_far_apart_give_the_same_scores() -> None:
    frame = data("cont")
    scaled = frame.assign(x1=frame["x1"] * 1e-12, x2=frame["x2"] * 1e12, x3=frame["x3"] + 1e6)
    formula = "treat ~ x1 + x2 + x3"
    ours, theirs = (propensity_score(formula, rows).score for rows in (frame, scaled))
    assert theirs == pytest.approx(ours, rel=1e-8)


def test_constant_and_repeated_columns_change_nothing() -> None:
    frame = data("disc").assign(one=0.1, repeated=lambda rows: 2 * rows["a"])
    plain = propensity_score("treat ~ a + b", frame)
    more = propensity_score("treat ~ a + b + one + repeated", frame)
    assert more.score == pytest.approx(plain.score, rel=1e-9)
    assert "one" not in more.names


def test_a_covariate_that_decides_the_treatment_is_refused() -> None:
    frame = pandas.DataFrame({"t": [0, 0, 0, 1, 1, 1], "x": [1.0, 2, 3, 4, 5, 6]})
    with pytest.raises(UnusableInput, match="there is no propensity score"):
        propensity_score("t ~ x", frame)
