"""Whether the minimum tells another story."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.model.result import StatisticAnswer, Verdict
from equipoise.stats.shift import answers, minimum_misleads


@pytest.mark.parametrize(
    ("minima", "ratio", "verdict", "misleads"),
    [
        ((1.0, 0.9), 1.1, "slower", True),
        ((1.0, 1.1), 0.9, "faster", True),
        ((1.0, 0.9), 1.1, "undecided", True),
        ((1.0, 1.1), 1.1, "slower", False),
        ((1.0, 0.995), 1.1, "slower", False),
        ((1.0, 0.9), 1.005, "undecided", False),
        ((1.0, 0.9), 1.0, "equivalent", True),
        ((1.0, 0.995), 1.0, "equivalent", False),
        ((0.0, 0.0), 1.1, "slower", False),
        ((1.0, 0.0), 1.1, "slower", True),
    ],
)
def test_the_minimum_misleads_where_it_names_another_winner(
    minima: tuple[float, float], ratio: float, verdict: Verdict, misleads: bool
) -> None:
    answer = minimum_misleads(*minima, typical=math.log(ratio), verdict=verdict, min_effect=1.0)
    assert answer is misleads


def test_without_a_typical_ratio_nothing_is_contradicted() -> None:
    assert not minimum_misleads(1.0, 0.5, typical=None, verdict="undecided", min_effect=1.0)


def test_every_statistic_says_what_it_would_have_said() -> None:
    generator = np.random.default_rng(1)
    baseline = generator.uniform(1.00, 1.02, 400)
    candidate = np.where(generator.random(400) < 0.3, 0.9, 1.1) * generator.uniform(1.0, 1.01, 400)
    said = {one.statistic: one for one in answers(baseline, candidate, min_effect=1.0)}
    assert list(said) == ["minimum", *(f"p{10 * tenth}" for tenth in range(1, 10)), "mean"]
    assert [said[one].says for one in ("minimum", "p20")] == ["faster", "faster"]
    assert {said[one].says for one in ("p40", "p50", "p90", "mean")} == {"slower"}
    ratio = said["minimum"].ratio
    assert ratio == pytest.approx(candidate.min() / baseline.min())
    assert said["mean"].ratio == pytest.approx(candidate.mean() / baseline.mean())


def test_what_is_within_the_smallest_effect_is_equivalent() -> None:
    costs = np.linspace(1.0, 2.0, 50)
    assert {one.says for one in answers(costs, 1.005 * costs, min_effect=1.0)} == {"equivalent"}


def test_a_timeout_is_slower_than_everything_and_has_no_ratio() -> None:
    said = answers(np.ones(10), np.array([1.0] * 9 + [math.inf]), min_effect=1.0)
    assert said[-1] == StatisticAnswer("mean", None, "slower")
    assert said[0] == StatisticAnswer("minimum", 1.0, "equivalent")
    both = answers(np.full(3, math.inf), np.full(3, math.inf), min_effect=1.0)
    assert {one.says for one in both} == {"equivalent"}
