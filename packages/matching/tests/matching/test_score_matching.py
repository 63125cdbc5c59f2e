"""Matching on the propensity score: R's answers and published numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise_matching.matching.match import match
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.matching.golden import answers, columns
from packages.matching.tests.matching.nsw import lalonde

Floats = NDArray[np.float64]


def score(treat: Floats, covariates: list[Floats]) -> Floats:
    """Fitted probabilities of a logistic regression, by Newton's steps to convergence."""
    scaled = [(column - column.mean()) / column.std() for column in covariates]
    design = np.column_stack([np.ones(len(treat)), *scaled])
    slopes = np.zeros(design.shape[1])
    for _ in range(30):
        fitted = 1 / (1 + np.exp(-design @ slopes))
        information = design.T @ (design * (fitted * (1 - fitted))[:, np.newaxis])
        slopes = slopes + np.linalg.solve(information, design.T @ (treat - fitted))
    return np.asarray(1 / (1 + np.exp(-design @ slopes)))


@pytest.mark.parametrize(
    "case",
    [case for case in answers("match") if case["x"] == "propensity"],
    ids=lambda case: case["data"],
)
def test_the_score_of_r_gives_the_effect_of_r(case: dict[str, Any]) -> None:
    data = columns(case["data"])
    names = [name for name in data if name not in ("treat", "y", "w")]
    fitted = score(data["treat"], [data[name] for name in names])
    answer = case["result"]
    assert fitted[:10] == pytest.approx(answer["pscore_head"], rel=1e-6)
    result = match(data["y"], data["treat"], fitted, r_compatible=True)
    assert result.estimate == pytest.approx(answer["est"], rel=1e-8)
    assert result.se == pytest.approx(answer["se"], rel=1e-8)
    assert result.n_weighted == pytest.approx(answer["wnobs"])


EIGHT = ("age", "educ", "black", "hisp", "married", "nodegr", "re74", "re75")


def test_the_score_of_sekhon_2011() -> None:
    data = lalonde()
    fitted = score(data["treat"], [data[name] for name in EIGHT])
    result = match(data["re78"], data["treat"], fitted, r_compatible=True)
    assert result.estimate == pytest.approx(2624.279, rel=1e-5)
    assert result.se == pytest.approx(802.1877, rel=1e-5)
    assert result.se_standard == pytest.approx(638.1548, rel=1e-5)
    assert result.t == pytest.approx(3.2714, abs=1e-4)
    assert result.p_value == pytest.approx(0.0010702, abs=1e-6)
    assert len(result.weights) == 344


def dehejia_wahba(data: dict[str, Floats]) -> Floats:
    """The score of Dehejia and Wahba (1999), as R's package has it."""
    squared = [data[name] ** 2 for name in ("age", "educ", "re74", "re75")]
    names = (*EIGHT, "u74", "u75")
    return score(data["treat"], [data[name] for name in names] + squared)


def test_the_score_of_dehejia_and_wahba() -> None:
    data = lalonde()
    result = match(data["re78"], data["treat"], dehejia_wahba(data), r_compatible=True)
    assert result.estimate == pytest.approx(2153.3060196911, rel=2e-5)
    assert result.se == pytest.approx(825.3980679880, rel=2e-5)
    assert result.se_standard == pytest.approx(678.0923848565, rel=2e-5)
    assert result.p_value == pytest.approx(0.0090858, abs=1e-5)
    assert len(result.weights) == 346


def test_a_caliper_on_the_score_of_dehejia_and_wahba() -> None:
    data = lalonde()
    fitted = dehejia_wahba(data)
    result = match(data["re78"], data["treat"], fitted, caliper=0.05, r_compatible=True)
    assert result.estimate == pytest.approx(2240.07851817, rel=2e-5)
    assert result.se == pytest.approx(797.50428214, rel=2e-5)
    assert (result.n_dropped, len(result.weights)) == (12, 334)


def test_four_neighbours_for_the_variance_on_the_score_of_dehejia_and_wahba() -> None:
    data = lalonde()
    fitted = dehejia_wahba(data)
    result = match(data["re78"], data["treat"], fitted, variance_neighbors=4, r_compatible=True)
    assert result.se == pytest.approx(794.71642661, rel=2e-5)


def greedy_by_hand(scores: Floats, treat: Floats, order: str) -> list[tuple[int, int]]:
    """Return the pairs of MatchIt's nearest matching without replacement."""
    queue = [int(row) for row in np.flatnonzero(treat == 1)]
    if order != "data":
        queue.sort(key=lambda row: scores[row], reverse=order == "largest")
    left = [int(row) for row in np.flatnonzero(treat == 0)]
    pairs = []
    for row in queue:
        nearest = min(left, key=lambda other: abs(scores[other] - scores[row]))
        left.remove(nearest)
        pairs.append((row, nearest))
    return pairs


@pytest.mark.parametrize("order", ["data", "largest", "smallest"])
def test_the_order_of_the_scores_is_the_order_of_the_matches(order: Any) -> None:
    draw = np.random.default_rng(5)
    scores, treat = draw.random(90), (np.arange(90) % 3 == 0).astype(float)
    result = match(None, treat, scores, replace=False, order=order, distance_tolerance=0.0)
    pairs = [*zip(result.treated_index.tolist(), result.control_index.tolist(), strict=True)]
    assert pairs == greedy_by_hand(scores, treat, order)
    restricted = match(
        None, treat, scores, replace=False, order=order, restrict=[(*pairs[0], -1.0)]
    )
    indices = (restricted.treated_index.tolist(), restricted.control_index.tolist())
    assert pairs[0] not in zip(*indices, strict=True)


def test_the_order_changes_the_rows_of_no_dropped_unit_and_no_reused_match() -> None:
    draw = np.random.default_rng(6)
    scores, treat = draw.random(60), (np.arange(60) % 2 == 0).astype(float)
    y = draw.random(60)
    result = match(y, treat, scores, replace=False, order="largest", caliper=0.02)
    assert set(result.dropped_index) | set(result.treated_index) == set(np.flatnonzero(treat == 1))
    repeated = match(y, treat, scores, replace=False, order="largest", caliper=0.02, reuse=result)
    assert repeated.estimate == pytest.approx(result.estimate)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "random"}, "there is no order 'random'"),
        ({"order": "largest", "r_compatible": True}, "R matches in the order of the data"),
    ],
)
def test_an_order_that_does_not_fit_is_refused(options: dict[str, Any], message: str) -> None:
    treat = np.arange(10) % 2
    with pytest.raises(UnusableInput, match=message):
        match(None, treat, np.arange(10.0), replace=False, **options)
    with pytest.raises(UnusableInput, match="2 columns"):
        match(None, treat, np.eye(10)[:, :2], replace=False, order="largest")
