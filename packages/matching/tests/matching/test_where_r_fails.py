"""Cases in which R's package Matching stops or loses its digits, and our answers.

Each case is in docs/evidence/r-packages.md#not-reproduced.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise_matching.matching.match import match
from packages.matching.tests.matching.r_match import answers_of_r

pytestmark = pytest.mark.live("Rscript", package="r-base-core")

GENERATOR = np.random.default_rng(31)
TREAT = (np.arange(60) % 3 == 0).astype(float)
X = GENERATOR.normal(size=(60, 2))
Z = np.column_stack([X[:, 0], GENERATOR.normal(size=60)])
Y = X.sum(axis=1) + Z[:, 1] + TREAT + GENERATOR.normal(size=60)
WEIGHTS = GENERATOR.uniform(0.2, 2.0, 60)


def answers_for(folder: Path, *questions: dict[str, Any]) -> list[dict[str, Any]]:
    """R's answers to matches of these units, each with its own options."""
    units = {"Y": Y.tolist(), "Tr": TREAT.tolist(), "X": X.tolist()}
    return answers_of_r(
        [{"kind": "match", "asked": units | question} for question in questions], folder
    )


def test_r_stops_at_some_constant_columns(tmp_path: Path) -> None:
    # Its variance is the difference of two moments: for seven rows of 0.1 that is below 0.
    y, treat, x = Y[:7], TREAT[:7], np.full((7, 1), 0.1)
    (answer,) = answers_for(tmp_path, {"Y": y.tolist(), "Tr": treat.tolist(), "X": x.tolist()})
    assert "missing value" in answer["error"]
    for r_compatible in (False, True):
        result = match(y, treat, x, r_compatible=r_compatible)
        assert result.estimate == pytest.approx(y[treat == 1].mean() - y[treat == 0].mean())


def test_r_loses_the_digits_of_a_column_far_from_zero(tmp_path: Path) -> None:
    far = X + [1e8, 0.0]
    answer, near = answers_for(tmp_path, {"X": far.tolist()}, {})
    plain = match(Y, TREAT, X)
    assert plain.estimate == pytest.approx(near["est"], rel=1e-8)
    assert answer.get("est") != pytest.approx(near["est"], rel=1e-8)
    for r_compatible in (False, True):
        assert match(Y, TREAT, far, r_compatible=r_compatible).estimate == plain.estimate


def test_r_has_no_error_where_a_weight_is_zero(tmp_path: Path) -> None:
    weights = WEIGHTS.copy()
    weights[:2] = 0.0
    (answer,) = answers_for(tmp_path, {"weights": weights.tolist()})
    assert answer["se"] == "NaN"
    for r_compatible in (False, True):
        result = match(Y, TREAT, X, weights=weights, r_compatible=r_compatible)
        assert result.estimate == pytest.approx(answer["est"], rel=1e-8)
        assert result.se is not None
        assert result.se > 0


def test_r_stops_where_restrictions_name_rows_that_common_support_takes(tmp_path: Path) -> None:
    x = X.copy()
    x[1, 0] = 99.0
    partner = int(np.flatnonzero(TREAT == 0)[-1])
    options = {"X": x.tolist(), "CommonSupport": True, "restrict": [[1, partner + 1, -1.0]]}
    (answer,) = answers_for(tmp_path, options)
    assert "Index out of range" in answer["error"]
    triples = [(0, partner, -1.0)]
    as_in_r = match(Y, TREAT, x, common_support=True, restrict=triples, r_compatible=True)
    unrestricted = match(Y, TREAT, x, common_support=True, r_compatible=True)
    assert as_in_r.estimate == unrestricted.estimate


def test_r_reports_the_weight_of_dropped_units_and_we_their_number(tmp_path: Path) -> None:
    (answer,) = answers_for(tmp_path, {"weights": WEIGHTS.tolist(), "caliper": 0.3})
    for r_compatible in (False, True):
        result = match(Y, TREAT, X, weights=WEIGHTS, caliper=0.3, r_compatible=r_compatible)
        assert result.n_dropped == len(result.dropped_index) > 0
        if r_compatible:
            assert WEIGHTS[result.dropped_index].sum() == pytest.approx(answer["ndrops"])


def test_a_repeated_column_does_not_move_the_slopes_but_r_s_a_little(
    tmp_path: Path,
) -> None:
    copied = np.column_stack([Z, Z[:, 0]])
    adjusted = {"BiasAdjust": True, "Z": Z.tolist()}
    regular, singular = answers_for(tmp_path, adjusted, adjusted | {"Z": copied.tolist()})
    plain = match(Y, TREAT, X, bias_adjust=True, covariates=Z, r_compatible=True)
    assert plain.estimate == pytest.approx(regular["est"], rel=1e-8)
    # A ridge of 1.5e-8 on the diagonal: the rest depends on rounding.
    assert singular["est"] == pytest.approx(regular["est"], rel=1e-5)
    for r_compatible in (False, True):
        result = match(Y, TREAT, X, bias_adjust=True, covariates=copied, r_compatible=r_compatible)
        assert result.estimate == pytest.approx(plain.estimate, rel=1e-10)


def test_the_unit_of_a_column_does_not_move_the_slopes_but_r_s(tmp_path: Path) -> None:
    scaled = Z * [1e-9, 1e9]
    (answer,) = answers_for(tmp_path, {"BiasAdjust": True, "Z": scaled.tolist()})
    plain = match(Y, TREAT, X, bias_adjust=True, covariates=Z)
    assert answer["est"] != pytest.approx(plain.estimate, rel=1e-3)
    for r_compatible in (False, True):
        result = match(Y, TREAT, X, bias_adjust=True, covariates=scaled, r_compatible=r_compatible)
        assert result.estimate == pytest.approx(plain.estimate, rel=1e-8)


def test_r_stops_where_an_arm_weighs_less_than_m(tmp_path: Path) -> None:
    light = WEIGHTS / WEIGHTS[TREAT == 0].sum() * 2.5
    (answer,) = answers_for(tmp_path, {"weights": light.tolist(), "M": 3})
    assert "dimension in Matrix" in answer["error"]
    for r_compatible in (False, True):
        result = match(Y, TREAT, X, m=3, weights=light, r_compatible=r_compatible)
        assert len(result.weights) == TREAT.sum() * (1 - TREAT).sum()
