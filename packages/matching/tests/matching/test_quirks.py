"""Where R's package differs from the right result, both results are available.

See docs/evidence/r-packages.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from equipoise_matching.matching.match import MatchResult, match
from equipoise_matching.shared.errors import UnusableInput

GENERATOR = np.random.default_rng(8)
TREAT = (np.arange(80) % 4 == 0).astype(float)
X = GENERATOR.normal(size=(80, 2))
Y = X.sum(axis=1) + TREAT + GENERATOR.normal(size=80)
WEIGHTS = GENERATOR.uniform(0.2, 3.0, 80)


def both(**more: Any) -> tuple[MatchResult, MatchResult]:
    arguments: dict[str, Any] = {"y": Y, "treat": TREAT, "X": X} | more
    return match(**arguments), match(**arguments, r_compatible=True)


def test_common_support_reports_rows_of_the_input_but_r_remaining_rows() -> None:
    right, as_in_r = both(common_support=True)
    low = max(X[TREAT == arm, 0].min() for arm in (0, 1)) - 1e-5
    high = min(X[TREAT == arm, 0].max() for arm in (0, 1)) + 1e-5
    rows = np.flatnonzero((X[:, 0] >= low) & (X[:, 0] <= high))
    assert len(rows) < 80
    assert list(rows[as_in_r.treated_index]) == list(right.treated_index)
    assert list(rows[as_in_r.control_index]) == list(right.control_index)
    assert right.n == as_in_r.n == len(rows)


def test_values_that_differ_by_less_than_the_tolerance_are_equal_only_in_r() -> None:
    x = np.where(TREAT == 1, 1.0, 1.0 + 1e-6)
    result = match(Y, TREAT, x, exact=True, r_compatible=True)
    assert result.n_dropped == 0
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


def test_random_ties_never_drop_a_nearer_match_except_in_r() -> None:
    treat = np.array([1.0, 0, 0, 0, 0])
    y = np.array([5.0, 1, 2, 3, 4])
    x = np.array([0.0, 0.1, 1.0, 1.0, 1.0])
    right, as_in_r = set(), set()
    for seed in range(40):
        right |= {1 in match(y, treat, x, m=2, ties=False, seed=seed).control_index}
        result = match(y, treat, x, m=2, ties=False, seed=seed, r_compatible=True)
        as_in_r |= {1 in result.control_index}
    assert right == {True}
    assert as_in_r == {True, False}


def test_ties_broken_at_random_have_an_error_but_not_in_r() -> None:
    right, as_in_r = both(ties=False)
    assert right.se is not None
    assert as_in_r.se is None
    assert right.estimate == as_in_r.estimate


def test_an_exhausted_pool_names_the_units_without_a_match_but_not_in_r() -> None:
    right, as_in_r = both(estimand="ATC", replace=False)
    assert right.n_dropped == as_in_r.n_dropped == len(right.dropped_index) == 40
    assert len(as_in_r.dropped_index) == 0


def test_too_few_neighbours_within_the_caliper_give_no_variance_only_in_r() -> None:
    right, as_in_r = both(caliper=0.4, variance_neighbors=6)
    assert right.estimate == as_in_r.estimate
    assert (right.se or 0.0) > (as_in_r.se or 0.0)


def test_a_weight_of_zero_leaves_a_column_out_in_both() -> None:
    right, as_in_r = both(metric=[1.0, 0.0])
    alone = match(Y, TREAT, X[:, 0])
    assert list(right.control_index) == list(alone.control_index)
    assert list(as_in_r.control_index) == list(alone.control_index)


def test_a_unit_that_is_dropped_but_serves_is_named_but_not_by_r() -> None:
    right, as_in_r = both(estimand="ATE", caliper=0.5, m=3)
    assert right.estimate == as_in_r.estimate
    assert right.n_dropped == as_in_r.n_dropped == len(right.dropped_index)
    pairs = zip(right.treated_index, right.control_index, right.matched_treated, strict=True)
    serving = {control if of_treated else treated for treated, control, of_treated in pairs}
    dropped = set(right.dropped_index)
    assert dropped & serving
    assert set(as_in_r.dropped_index) == dropped - serving


def test_a_unit_that_restrictions_leave_without_a_match_is_named_but_not_by_r() -> None:
    forbidden = [(0, row, -1.0) for row in np.flatnonzero(TREAT == 0)]
    right, as_in_r = both(restrict=forbidden)
    assert list(right.dropped_index) == [0]
    assert list(as_in_r.dropped_index) == []
    assert right.n_dropped == as_in_r.n_dropped == 1


def test_restrictions_name_rows_of_the_input_but_r_takes_remaining_rows() -> None:
    x = X.copy()
    x[1, 0] = 99.0  # a control beyond the common support: the rows after it move up
    treated = 40
    plain = match(Y, TREAT, x, common_support=True)
    partner = plain.control_index[plain.treated_index == treated][0]
    forbidden = [(treated, partner, -1.0)]
    right, as_in_r = both(X=x, common_support=True, restrict=forbidden)
    assert partner not in right.control_index[right.treated_index == treated]
    rows = np.flatnonzero(np.isin(np.arange(80), rows_in_support(x)))
    of_treated = rows[as_in_r.treated_index] == treated
    assert list(rows[as_in_r.control_index[of_treated]]) == [partner]


def rows_in_support(x: Any) -> Any:
    low = max(x[TREAT == arm, 0].min() for arm in (0, 1)) - 1e-5
    high = min(x[TREAT == arm, 0].max() for arm in (0, 1)) + 1e-5
    return np.flatnonzero((x[:, 0] >= low) & (x[:, 0] <= high))


def test_common_support_has_no_tolerance_except_in_r() -> None:
    x = X.copy()
    x[:, 0] = np.where(TREAT == 1, np.clip(x[:, 0], -1, 1), x[:, 0])
    x[0, 0], x[4, 0], x[1, 0] = -1.0, 1.0, 1.0 + 5e-6
    right, as_in_r = both(X=x, common_support=True)
    assert as_in_r.n == right.n + 1


def test_an_eigenvalue_of_zero_stays_zero_but_r_lifts_it() -> None:
    x = np.column_stack([np.round(X[:, 0]), X[:, 1]])
    right, as_in_r = both(X=x, metric=[1.0, 0.0], distance_tolerance=0.0)
    assert len(right.weights) == len(match(Y, TREAT, x[:, 0], distance_tolerance=0.0).weights)
    assert len(as_in_r.weights) < len(right.weights)


def test_weights_count_in_the_mahalanobis_metric_but_r_sums_without_them() -> None:
    x = np.column_stack([X[:, 0], X[:, 0] + X[:, 1], X[:, 1] ** 2])
    right, as_in_r = both(X=x, metric="mahalanobis", weights=WEIGHTS, m=3)
    mean = WEIGHTS @ x / WEIGHTS.sum()
    spread = np.sqrt(WEIGHTS @ (x - mean) ** 2 / WEIGHTS.sum() * 80 / 79)
    scaled = (x - mean) / spread
    weighted = np.linalg.inv(scaled.T @ (scaled * WEIGHTS[:, np.newaxis]) / WEIGHTS.sum())
    plain = np.linalg.inv(scaled.T @ scaled / 80)
    for result, metric in ((right, weighted), (as_in_r, plain)):
        same = match(Y, TREAT, x, metric=metric, weights=WEIGHTS, m=3)
        assert list(result.control_index) == list(same.control_index)
    assert list(right.control_index) != list(as_in_r.control_index)


def test_variances_with_weights_are_unbiased_except_in_r() -> None:
    # All weigh 2: the nearest of the same arm and the unit itself, Σw - Σw²/Σw = 2, Σw - 1 = 3.
    options: dict[str, Any] = {"variance": "sample", "weights": np.full(80, 2.0)}
    right, as_in_r = both(variance_neighbors=2, **options)
    plain = match(Y, TREAT, X, variance="sample", variance_neighbors=1)
    assert right.se == pytest.approx(plain.se)
    assert as_in_r.se == pytest.approx((right.se or 0.0) * np.sqrt(2 / 3))


def test_too_few_units_for_the_regression_are_an_error_but_r_leaves_it_out() -> None:
    two_treated = np.zeros(80)
    two_treated[:2] = 1
    z = GENERATOR.normal(size=(80, 4))
    with pytest.raises(UnusableInput, match="too few"):
        match(Y, two_treated, X, bias_adjust=True, covariates=z)
    as_in_r = match(Y, two_treated, X, bias_adjust=True, covariates=z, r_compatible=True)
    assert as_in_r.estimate == as_in_r.estimate_unadjusted


def test_the_caliper_of_an_exact_column_is_reported_as_used_but_not_by_r() -> None:
    x = np.column_stack([np.round(X[:, 0]), X[:, 1]])
    right, as_in_r = both(X=x, exact=[True, False])
    assert right.effective_caliper is not None
    assert as_in_r.effective_caliper is not None
    assert right.effective_caliper[0] <= 8 * np.finfo(float).eps * np.abs(x[:, 0]).max()
    assert as_in_r.effective_caliper[0] == pytest.approx(1.490116e-8, rel=1e-6)


def test_fifteen_thirds_are_five_where_r_asks_whether_a_regression_has_enough_units() -> None:
    treat = np.repeat([1.0, 0.0], [5, 40])
    y, z = GENERATOR.normal(size=45), GENERATOR.normal(size=(45, 5))
    result = match(y, treat, z[:, 0], m=3, bias_adjust=True, covariates=z, r_compatible=True)
    assert len(result.weights) == 15
    assert result.estimate != result.estimate_unadjusted
