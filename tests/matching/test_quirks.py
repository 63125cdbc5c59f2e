"""Where R's package differs from what is right, both are there to be had (docs/matching.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from equipoise.matching.match import match
from equipoise.matching.result import MatchResult
from equipoise.model.errors import UnusableInput

GENERATOR = np.random.default_rng(8)
TREAT = (np.arange(80) % 4 == 0).astype(float)
X = GENERATOR.normal(size=(80, 2))
Y = X.sum(axis=1) + TREAT + GENERATOR.normal(size=80)
WEIGHTS = GENERATOR.uniform(0.2, 3.0, 80)


def both(**more: Any) -> tuple[MatchResult, MatchResult]:
    arguments: dict[str, Any] = {"y": Y, "treat": TREAT, "X": X} | more
    return match(**arguments), match(**arguments, r_compatible=True)


def test_common_support_tells_rows_as_they_were_given_but_r_those_that_are_left() -> None:
    right, as_in_r = both(common_support=True)
    low = max(X[TREAT == arm, 0].min() for arm in (0, 1)) - 1e-5
    high = min(X[TREAT == arm, 0].max() for arm in (0, 1)) + 1e-5
    left = np.flatnonzero((X[:, 0] >= low) & (X[:, 0] <= high))
    assert len(left) < 80
    assert list(left[as_in_r.treated_index]) == list(right.treated_index)
    assert list(left[as_in_r.control_index]) == list(right.control_index)
    assert right.n == as_in_r.n == len(left)


def test_values_that_differ_by_less_than_the_tolerance_are_equal_only_in_r() -> None:
    x = np.where(TREAT == 1, 1.0, 1.0 + 1e-6)
    found = match(Y, TREAT, x, exact=True, r_compatible=True)
    assert found.n_dropped == 0
    with pytest.raises(UnusableInput, match="no unit has a valid match"):
        match(Y, TREAT, x, exact=True)


def test_a_tiny_column_counts_in_full_but_not_in_r() -> None:
    small = X * [1.0, 1e-12]
    right, as_in_r = both(X=small)
    assert list(right.control_index) == list(match(Y, TREAT, X).control_index)
    assert list(as_in_r.control_index) == list(match(Y, TREAT, X[:, 0]).control_index)


def test_collinear_columns_keep_the_mahalanobis_metric_but_not_in_r() -> None:
    doubled = np.column_stack([X, X[:, 0]])
    right, as_in_r = both(X=doubled, metric="mahalanobis")
    plain = match(Y, TREAT, X, metric="mahalanobis")
    assert list(right.control_index) == list(plain.control_index)
    assert list(as_in_r.control_index) == list(match(Y, TREAT, doubled).control_index)


def test_r_leaves_the_weights_out_of_the_numerator_of_the_caliper() -> None:
    right, as_in_r = both(caliper=0.5, weights=WEIGHTS)
    mean = WEIGHTS @ X / WEIGHTS.sum()
    squares = (X - mean) ** 2
    total = WEIGHTS.sum()
    assert right.effective_caliper == pytest.approx(0.5 * np.sqrt(WEIGHTS @ squares / total))
    assert as_in_r.effective_caliper == pytest.approx(0.5 * np.sqrt(squares.sum(axis=0) / total))


def test_lots_never_drop_a_nearer_match_except_in_r() -> None:
    treat = np.array([1.0, 0, 0, 0, 0])
    y = np.array([5.0, 1, 2, 3, 4])
    x = np.array([0.0, 0.1, 1.0, 1.0, 1.0])
    right, as_in_r = set(), set()
    for seed in range(40):
        right |= {1 in match(y, treat, x, m=2, ties=False, seed=seed).control_index}
        found = match(y, treat, x, m=2, ties=False, seed=seed, r_compatible=True)
        as_in_r |= {1 in found.control_index}
    assert right == {True}
    assert as_in_r == {True, False}


def test_ties_broken_by_lot_have_an_error_but_not_in_r() -> None:
    right, as_in_r = both(ties=False)
    assert right.se is not None
    assert as_in_r.se is None
    assert right.estimate == as_in_r.estimate


def test_an_exhausted_pool_names_who_got_no_match_but_not_in_r() -> None:
    right, as_in_r = both(estimand="ATC", replace=False)
    assert right.n_dropped == as_in_r.n_dropped == len(right.dropped_index) == 40
    assert len(as_in_r.dropped_index) == 0


def test_too_few_neighbours_within_the_caliper_mean_no_variance_only_in_r() -> None:
    right, as_in_r = both(caliper=0.4, variance_neighbors=6)
    assert right.estimate == as_in_r.estimate
    assert (right.se or 0.0) > (as_in_r.se or 0.0)


def test_a_weight_of_zero_leaves_a_column_out_in_both() -> None:
    right, as_in_r = both(metric=[1.0, 0.0])
    alone = match(Y, TREAT, X[:, 0])
    assert list(right.control_index) == list(alone.control_index)
    assert list(as_in_r.control_index) == list(alone.control_index)
