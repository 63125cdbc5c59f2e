"""The effect over pairs, and its error by clusters."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest

from equipoise_matching import match
from equipoise_matching.observation import effects
from equipoise_matching.observation.effects import (
    changes_without_each_cluster,
    cluster_error,
    effect_over_pairs,
    estimate_by_clusters,
    regress,
    row_weights,
)

models: Any = importlib.import_module("statsmodels.api")

DRAW = np.random.default_rng(5)
ROWS = 300
X = DRAW.normal(size=(ROWS, 2))
TREATED = DRAW.random(ROWS) < 1.0 / (1.0 + np.exp(-X[:, 0]))
CODE = np.repeat(np.arange(30), 10)
Y = X @ [0.5, 0.2] + 0.3 * TREATED + DRAW.normal(size=ROWS) + DRAW.normal(size=30)[CODE]
PAIRS = match(None, TREATED, X)
ALONE = np.zeros(ROWS, dtype=np.int64)


def test_the_effect_is_the_bias_adjusted_one_of_the_matching_engine() -> None:
    effect = effect_over_pairs(Y, X, ALONE, PAIRS)
    assert effect.effect == pytest.approx(
        match(Y, TREATED, X, reuse=PAIRS, bias_adjust=True).estimate, rel=1e-10
    )
    assert effect.scores.sum() == pytest.approx(0.0, abs=1e-12)


def test_without_covariates_the_effect_is_the_mean_over_the_pairs() -> None:
    effect = effect_over_pairs(Y, X[:, :0], ALONE, PAIRS)
    assert effect.effect == pytest.approx(match(Y, TREATED, X, reuse=PAIRS).estimate, rel=1e-10)


def test_the_error_of_many_clusters_is_that_of_statsmodels_for_the_mean_of_the_scores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(effects, "MAX_REFITS", 0)
    effect = effect_over_pairs(Y, X, ALONE, PAIRS)
    rows = effect.rows
    fitted = models.OLS(effect.scores[rows] * len(rows), np.ones(len(rows))).fit(
        cov_type="cluster",
        cov_kwds={"groups": CODE[rows], "use_correction": False},
    )
    groups = len(np.unique(CODE[rows]))
    assert cluster_error(changes_without_each_cluster(effect, CODE)) == pytest.approx(
        float(fitted.bse[0]) * math.sqrt(groups / (groups - 1))
    )


@pytest.mark.parametrize("columns", [0, 1, 2])
def test_the_jackknife_is_that_of_leaving_each_cluster_out_by_hand(columns: int) -> None:
    x = X[:, :columns]
    treated, serving = row_weights(PAIRS, ROWS)
    effect = effect_over_pairs(Y, x, ALONE, PAIRS)
    without_cluster = []
    for cluster in np.unique(CODE[(treated > 0) | (serving > 0)]):
        candidates, baselines = treated * (CODE != cluster), serving * (CODE != cluster)
        residual = regress(Y, x, ALONE, baselines).residual
        without_cluster.append(
            (candidates * residual).sum() / candidates.sum()
            - (baselines * residual).sum() / baselines.sum()
        )
    count = len(without_cluster)
    spread = ((np.array(without_cluster) - effect.effect) ** 2).sum()
    assert cluster_error(changes_without_each_cluster(effect, CODE)) == pytest.approx(
        math.sqrt((count - 1) / count * spread), rel=1e-9
    )


def test_degrees_of_freedom_are_those_of_the_version_with_fewer_clusters() -> None:
    code = np.where(TREATED, 0, 1 + CODE)
    effect = effect_over_pairs(Y, X, ALONE, PAIRS)
    assert estimate_by_clusters(effect, code).interval is None
    code = np.where(TREATED, CODE % 12, 100 + CODE)
    assert effect.fewest_clusters(code) == 12
    assert estimate_by_clusters(effect, code).interval is not None


def test_strata_have_means_of_their_own() -> None:
    stratum = (np.arange(ROWS) % 2).astype(np.int64)
    pairs = match(None, TREATED, np.column_stack([X, stratum]), exact=[False, False, True])
    plain = effect_over_pairs(Y, X, stratum, pairs)
    moved = effect_over_pairs(Y + 100.0 * stratum, X, stratum, pairs)
    assert moved.effect == pytest.approx(plain.effect)
    assert moved.scores == pytest.approx(plain.scores)


def test_several_intervals_that_hold_together_are_wider() -> None:
    effect = effect_over_pairs(Y, X, ALONE, PAIRS)
    single = estimate_by_clusters(effect, CODE).interval
    five = estimate_by_clusters(effect, CODE, intervals=5).interval
    assert single is not None
    assert five is not None
    assert five[0] < single[0] < single[1] < five[1]
