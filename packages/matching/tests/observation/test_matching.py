"""Matching until covariates are balanced, and the result if they cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from equipoise_matching.matching.gen_match import GenMatchResult, gen_match
from equipoise_matching.matching.units import Floats, Truths
from equipoise_matching.observation import matching
from equipoise_matching.observation.covariates import read_covariates
from equipoise_matching.observation.matching import BalancedMatch, match_until_balanced
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.observation.logs import Log, loaded_log, question


def matched(log: Log, method: str = "mahalanobis", exact: tuple[str, ...] = ()) -> BalancedMatch:
    names = tuple(name for name in ("load", "unmoved") if name in log)
    request = question(covariates=names, exact=exact, method=method, seed=1)
    treated = log["version"] == "2.0"
    return match_until_balanced(read_covariates(log, request), treated, request, lambda _: None)


@pytest.mark.parametrize("method", ["genetic", "mahalanobis", "propensity"])
def test_every_method_balances_overlapping_rows_and_drops_only_rows_with_extreme_odds(
    method: str,
) -> None:
    best = matched(loaded_log(), method)
    assert best.is_balanced
    assert best.method in (method, "genetic")
    assert best.caliper is None
    assert set(best.pairs.dropped_index) == set(np.flatnonzero(best.model.is_left_out))


def log_without_overlap() -> Log:
    """Return a log in which a quarter of the new version's rows have a load without old rows."""
    log = loaded_log()
    new = log["version"] == "2.0"
    beyond = np.flatnonzero(new)[::4]
    log["load"] = log["load"].copy()
    log["load"][beyond] += 40.0
    return log


def test_rows_without_a_similar_row_are_dropped() -> None:
    log = log_without_overlap()
    best = matched(log)
    assert best.is_balanced
    assert best.model.is_left_out.any()
    assert (log["load"][best.pairs.dropped_index] > 30.0).any()
    matched_rows = np.setdiff1d(np.flatnonzero(log["version"] == "2.0"), best.pairs.dropped_index)
    assert (log["load"][matched_rows] < 30.0).all()


def test_without_balance_the_nearest_match_is_returned() -> None:
    draw = np.random.default_rng(1)
    new = np.arange(200) < 100
    log = {
        "version": np.where(new, "2.0", "1.0").astype(object),
        "load": np.where(new, 10.0, 0.0) + draw.random(200),
    }
    best = matched(log)
    assert not best.is_balanced
    assert best.max_mean_difference > 1.0


def test_exact_columns_keep_rows_apart() -> None:
    log = loaded_log()
    pairs = matched(log, exact=("host_type",)).pairs
    hosts = log["host_type"]
    assert (hosts[pairs.treated_index] == hosts[pairs.control_index]).all()


def test_a_log_without_a_single_comparable_pair_is_refused_with_the_columns() -> None:
    log = loaded_log()
    log["host_type"] = np.where(log["version"] == "2.0", "arm", "amd").astype(object)
    with pytest.raises(UnusableInput, match="no comparable pair of rows: no value of host_type"):
        matched(log, exact=("host_type",))


def test_pairs_for_the_bounds_use_each_row_once() -> None:
    log = loaded_log()
    pairs = matched(log).without_replacement()
    assert len(np.unique(pairs.treated_index)) == len(pairs.treated_index)
    assert len(np.unique(pairs.control_index)) == len(pairs.control_index)


def test_weights_of_many_rows_are_searched_on_some_of_both_versions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searched: list[tuple[Truths, Floats]] = []

    def search(treat: Truths, x: Floats, *others: Any, **options: Any) -> GenMatchResult:
        searched.append((treat, x))
        return gen_match(treat, x, *others, **options)

    monkeypatch.setattr(matching, "MAX_SEARCHED_PAIRS", 2_000)
    monkeypatch.setattr(matching, "gen_match", search)
    assert all(matched(loaded_log(), "genetic").is_balanced for _ in range(2))
    (new, points), (_, same_points) = searched[0], searched[-1]
    assert 1_500 < np.count_nonzero(new) * np.count_nonzero(~new) < 2_500
    assert (points == same_points).all()
