"""The intervals of Abadie and Imbens contain the truth at their level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from equipoise_matching import MatchResult, match, match_by

DRAWS = 800
# Four standard errors of a share of 95 % among so many draws.
WITHIN = 4 * (0.95 * 0.05 / DRAWS) ** 0.5


def covers(result: MatchResult, truth: float) -> bool:
    """Return whether the 95 % interval of the effect contains the truth."""
    assert result.estimate is not None
    assert result.se is not None
    return abs(result.estimate - truth) < 1.959964 * result.se


@pytest.mark.parametrize(
    "more",
    [
        {"estimand": "ATT"},
        {"estimand": "ATE"},
        {"estimand": "ATE", "m": 4},
        {"estimand": "ATC", "variance_neighbors": 3},
        {"estimand": "ATT", "variance_neighbors": 2, "m": 2},
    ],
    ids=str,
)
def test_ninety_five_per_cent_of_the_intervals_hold_the_effect(more: dict[str, Any]) -> None:
    """One covariate, a constant effect, equal variances: the case of the theory."""
    generator = np.random.default_rng(11)
    hits = 0
    for _ in range(DRAWS):
        x = generator.uniform(-1, 1, 300)
        treat = (generator.random(300) < 1 / (1 + np.exp(-0.5 * x))).astype(float)
        y = x**2 + x + 1.5 * treat + generator.normal(size=300)
        result = match(y, treat, x, threads=1, **more)
        hits += covers(result, 1.5)
    assert hits / DRAWS == pytest.approx(0.95, abs=WITHIN)


@pytest.mark.parametrize(
    "more",
    [{"estimand": "ATT"}, {"estimand": "ATC", "variance_neighbors": 2}, {"estimand": "ATE"}],
    ids=str,
)
def test_intervals_over_strata_hold_the_effect_though_some_strata_are_skipped(
    more: dict[str, Any],
) -> None:
    """The stratum moves treatment and outcome; in the last one nobody is treated."""
    generator = np.random.default_rng(13)
    hits = 0
    for _ in range(DRAWS):
        stratum = generator.integers(0, 6, 360)
        x = generator.uniform(-1, 1, 360)
        chance = np.array([0.2, 0.3, 0.4, 0.5, 0.6, 0.0])[stratum]
        treat = (generator.random(360) < chance).astype(float)
        y = x + 3.0 * stratum + 1.5 * treat + generator.normal(size=360)
        result = match_by(y, treat, x, stratum, threads=1, **more)
        assert [skipped.values for skipped in result.skipped] == [(5,)]
        hits += covers(result, 1.5)
    assert hits / DRAWS == pytest.approx(0.95, abs=WITHIN)


def test_the_error_among_these_units_covers_the_effect_on_them() -> None:
    generator = np.random.default_rng(12)
    hits = 0
    for _ in range(DRAWS):
        x = generator.uniform(-1, 1, 300)
        treat = (generator.random(300) < 0.5).astype(float)
        effect = 1.0 + 2.0 * x
        y = x + effect * treat + generator.normal(size=300)
        result = match(y, treat, x, variance="sample", variance_neighbors=2, threads=1)
        hits += covers(result, float(effect[treat == 1].mean()))
    assert hits / DRAWS == pytest.approx(0.95, abs=WITHIN)


def test_the_bias_adjusted_interval_covers_with_several_covariates() -> None:
    """Abadie and Imbens 2011: the matches' own differences would bias it beyond one covariate."""
    generator = np.random.default_rng(13)
    hits, biased = 0, 0
    for _ in range(DRAWS):
        x = generator.uniform(-1, 1, (300, 3))
        treat = (generator.random(300) < 1 / (1 + np.exp(-1.5 * x[:, 0] - x[:, 1]))).astype(float)
        y = 3 * x[:, 0] + 2 * x[:, 1] + x[:, 2] + 1.5 * treat + generator.normal(size=300)
        result = match(y, treat, x, bias_adjust=True, variance_neighbors=2, threads=1)
        hits += covers(result, 1.5)
        assert result.estimate_unadjusted is not None
        assert result.se is not None
        biased += abs(result.estimate_unadjusted - 1.5) < 1.959964 * result.se
    assert hits / DRAWS == pytest.approx(0.95, abs=WITHIN)
    assert biased / DRAWS < 0.95 - WITHIN


def test_the_interval_covers_when_the_spread_of_the_outcome_depends_on_the_covariate() -> None:
    generator = np.random.default_rng(14)
    hits = 0
    for _ in range(DRAWS):
        x = generator.uniform(-1, 1, 300)
        treat = (generator.random(300) < 0.4).astype(float)
        y = x + (1.0 + x) * treat + np.exp(x) * (0.5 + treat) * generator.normal(size=300)
        result = match(y, treat, x, estimand="ATE", variance_neighbors=2, threads=1)
        hits += covers(result, 1.0)
    assert hits / DRAWS == pytest.approx(0.95, abs=WITHIN)


def noisy_controls(
    generator: np.random.Generator, rows: int, share_of_controls: float
) -> tuple[np.ndarray[Any, Any], ...]:
    """Outcome, treatment and covariate; the controls are three times as noisy."""
    x = generator.uniform(-1, 1, rows)
    odds = (1.0 / share_of_controls - 1.0) * np.exp(0.5 * x)
    treat = (generator.random(rows) < odds / (1.0 + odds)).astype(float)
    y = x + 1.5 * treat + np.where(treat == 1, 1.0, 3.0) * generator.normal(size=rows)
    return y, treat, x


@pytest.mark.parametrize(
    ("rows", "share_of_controls"), [(600, 0.5), (1000, 0.2)], ids=["half controls", "few controls"]
)
@pytest.mark.parametrize("by_strata", [False, True])
def test_the_default_covers_where_controls_are_noisier_and_one_variance_of_all_does_not(
    rows: int, share_of_controls: float, by_strata: bool
) -> None:
    generator = np.random.default_rng(15)
    hits = {"default": 0, "one variance": 0, "as in R": 0}
    options: dict[str, dict[str, Any]] = {
        "default": {},
        "one variance": {"variance_neighbors": 0},
        "as in R": {"r_compatible": True, "ties": True},
    }
    for _ in range(DRAWS):
        y, treat, x = noisy_controls(generator, rows, share_of_controls)
        for name, more in options.items():
            if by_strata:
                result: MatchResult = match_by(y, treat, x, np.sign(x), threads=1, **more)
            else:
                result = match(y, treat, x, threads=1, **more)
            hits[name] += covers(result, 1.5)
    assert hits["default"] / DRAWS == pytest.approx(0.95, abs=WITHIN)
    assert hits["one variance"] / DRAWS < 0.95 - WITHIN
    assert hits["as in R"] == hits["one variance"]
