"""The behaviour of `match` besides its numbers: progress, interrupts, summaries, errors."""

from __future__ import annotations

import signal
import threading
from typing import Any

import numpy as np
import pytest

from equipoise_matching import match, match_by
from equipoise_matching.shared.errors import UnusableInput

GENERATOR = np.random.default_rng(21)
TREAT = (np.arange(300) % 3 == 0).astype(float)
X = GENERATOR.normal(size=(300, 3))
Y = X.sum(axis=1) + TREAT


def test_progress_reports_up_to_the_end() -> None:
    reports: list[tuple[int, int]] = []
    match(Y, TREAT, X, threads=1, progress=lambda done, of: reports.append((done, of)))
    assert reports[-1] == (100, 100)
    assert reports == sorted(reports)


@pytest.mark.parametrize("options", [{}, {"estimand": "ATE"}, {"replace": False}], ids=str)
def test_an_error_of_progress_stops_the_search_at_once(options: dict[str, Any]) -> None:
    calls = []

    def stop(done: int, of: int) -> None:
        calls.append(done)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        match(Y, TREAT, X, threads=1, progress=stop, **options)
    by = np.arange(300) // 6
    with pytest.raises(ZeroDivisionError):
        match_by(Y, TREAT, X, by, threads=1, progress=stop, **options)
    assert len(calls) == 2


def test_progress_of_both_arms_rises_once() -> None:
    reports: list[tuple[int, int]] = []
    report = reports.append
    match(Y, TREAT, X, estimand="ATE", threads=1, progress=lambda done, of: report((done, of)))
    assert reports == sorted(reports)
    assert reports[-1] == (300, 300)


def test_an_interrupt_stops_the_search_without_a_progress_function() -> None:
    x = np.random.default_rng(2).normal(size=(30_000, 12))
    treat = np.arange(30_000) % 2
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            match(None, treat, x, estimand="ATE", threads=2)
    timer.join()


def test_the_summary_has_the_effect_and_the_numbers_of_units() -> None:
    result = match(Y, TREAT, X, caliper=0.5)
    lines = dict(line.split("  ", 1) for line in result.summary().splitlines())
    assert float(lines["Estimate"]) == pytest.approx(result.estimate, rel=1e-4)
    assert int(lines["Dropped"].strip()) == result.n_dropped == len(result.dropped_index)
    assert lines["Treated"].strip() == "100"


def test_the_frame_has_a_row_for_each_pair() -> None:
    result = match(Y, TREAT, X, m=2)
    frame = result.to_frame()
    assert len(frame) == len(result.weights) == 200
    assert frame["weight"].sum() == pytest.approx(result.n_weighted)


def test_treated_index_is_treated_and_control_index_is_not_whatever_the_estimand() -> None:
    for estimand in ("ATT", "ATC", "ATE"):
        result = match(Y, TREAT, X, estimand=estimand)
        assert TREAT[result.treated_index].all()
        assert not TREAT[result.control_index].any()


def test_without_replacement_no_control_serves_twice() -> None:
    result = match(Y, TREAT, X, replace=False, m=2)
    assert len(np.unique(result.control_index)) == len(result.control_index) == 200


def test_the_same_seed_gives_the_same_random_ties_and_another_gives_others() -> None:
    x = np.round(X[:, 0])
    first, same, other = (match(Y, TREAT, x, ties=False, seed=seed) for seed in (1, 1, 2))
    assert list(first.control_index) == list(same.control_index)
    assert list(first.control_index) != list(other.control_index)


@pytest.mark.parametrize("estimand", ["ATT", "ATC", "ATE"])
def test_an_earlier_match_serves_another_outcome(estimand: Any) -> None:
    options: dict[str, Any] = {"estimand": estimand, "caliper": 0.5, "variance_neighbors": 2}
    earlier = match(None, TREAT, X, **options)
    result, fresh = match(Y, TREAT, X, reuse=earlier, **options), match(Y, TREAT, X, **options)
    for name in ("estimate", "se", "se_standard", "n_dropped", "n_weighted"):
        assert getattr(result, name) == getattr(fresh, name), name
    assert list(result.treated_index) == list(fresh.treated_index)
    assert list(result.dropped_index) == list(fresh.dropped_index)


def test_a_match_of_other_units_cannot_be_reused() -> None:
    earlier = match(None, TREAT[:200], X[:200])
    with pytest.raises(UnusableInput, match="reuse is a match of 200 rows"):
        match(Y, TREAT, X, reuse=earlier)


def test_two_neighbours_give_each_variance_unless_r_compatible() -> None:
    default, two, common = (match(Y, TREAT, X, variance_neighbors=some) for some in (None, 2, 0))
    assert default.se == two.se != common.se
    assert (default.variance_neighbors, common.variance_neighbors) == (2, 0)
    assert match(Y, TREAT, X, r_compatible=True).se == common.se
    assert match(Y, TREAT, X, r_compatible=True, variance_neighbors=2).variance_neighbors == 2
    by = np.arange(300) % 2
    default, two, common = (
        match_by(Y, TREAT, X, by, variance_neighbors=some) for some in (None, 2, 0)
    )
    assert default.se == two.se != common.se
    as_in_r = match_by(Y, TREAT, X, by, ties=True, r_compatible=True)
    assert as_in_r.se == common.se
    assert match(None, TREAT, X).variance_neighbors is None


@pytest.mark.parametrize("variance", ["population", "sample"])
def test_the_default_error_is_that_of_the_formula(variance: Any) -> None:
    """Abadie and Imbens 2006, equation 14 and theorems 6 and 7, by NumPy."""
    result = match(Y, TREAT, X, variance=variance)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    apart = ((scaled[:, None] - scaled[None]) ** 2).sum(axis=2)
    apart[TREAT[:, None] != TREAT[None]] = np.inf
    itself_and_nearest = np.argsort(apart, axis=1)[:, :3]
    variances = Y[itself_and_nearest].var(axis=1, ddof=1)
    served = np.bincount(result.control_index, result.weights, 300)
    squares = np.bincount(result.control_index, result.weights**2, 300)
    effects = Y[result.treated_index] - Y[result.control_index]
    total = (variances * (TREAT + served) ** 2).sum()
    if variance == "population":
        total = (variances * (served**2 - squares)).sum() + (effects - effects.mean()) @ (
            effects - effects.mean()
        )
    assert result.se == pytest.approx(np.sqrt(total) / 100)


def test_units_without_a_neighbour_share_one_variance_and_are_counted() -> None:
    """Half of the cells have a single unit of each arm, the others have two."""
    cell = np.concatenate([np.repeat(np.arange(20), 2), np.repeat(np.arange(20, 40), 4)])
    treat = (np.arange(120) % 2).astype(float)
    y = GENERATOR.normal(size=120)
    result = match(y, treat, cell, exact=True)
    assert result.n_without_neighbors == 40
    lines = dict(line.split("  ", 1) for line in result.summary().splitlines())
    assert lines["Variance"].strip() == "each unit's, from 2 neighbours"
    assert lines["Without neighbours"].strip() == "40 (one variance for all)"
    by_strata = match_by(y, treat, GENERATOR.normal(size=120), cell)
    assert by_strata.n_without_neighbors == 40
    alone = match(y[:40], treat[:40], cell[:40], exact=True)
    assert alone.n_without_neighbors == 40
    common = match(y[:40], treat[:40], cell[:40], exact=True, variance_neighbors=0)
    assert alone.se == common.se
    assert common.n_without_neighbors == 0
    assert "one for all units" in common.summary()


def test_a_small_arm_does_not_take_neighbours_from_the_large_one_except_in_r() -> None:
    """One control: R then takes one neighbour for the treated too."""
    treat = np.ones(60)
    treat[0] = 0.0
    one, two, many = (
        match(Y[:60], treat, X[:60], estimand="ATE", variance_neighbors=some) for some in (1, 2, 3)
    )
    assert len({one.se_conditional, two.se_conditional, many.se_conditional}) == 3
    assert two.n_without_neighbors == 1
