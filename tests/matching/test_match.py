"""What a caller of `match` sees besides the numbers."""

from __future__ import annotations

import signal
import threading
from typing import Any

import numpy as np
import pytest

from equipoise.matching import match, match_by
from equipoise.model.errors import UnusableInput

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


def test_without_replacement_nobody_serves_twice() -> None:
    result = match(Y, TREAT, X, replace=False, m=2)
    assert len(np.unique(result.control_index)) == len(result.control_index) == 200


def test_the_same_seed_gives_the_same_lots_and_another_gives_others() -> None:
    x = np.round(X[:, 0])
    first, same, other = (match(Y, TREAT, x, ties=False, seed=seed) for seed in (1, 1, 2))
    assert list(first.control_index) == list(same.control_index)
    assert list(first.control_index) != list(other.control_index)


@pytest.mark.parametrize("estimand", ["ATT", "ATC", "ATE"])
def test_an_earlier_match_serves_another_outcome(estimand: Any) -> None:
    options: dict[str, Any] = {"estimand": estimand, "caliper": 0.5, "variance_neighbors": 2}
    earlier = match(None, TREAT, X, **options)
    result, anew = match(Y, TREAT, X, reuse=earlier, **options), match(Y, TREAT, X, **options)
    for name in ("estimate", "se", "se_standard", "n_dropped", "n_weighted"):
        assert getattr(result, name) == getattr(anew, name), name
    assert list(result.treated_index) == list(anew.treated_index)
    assert list(result.dropped_index) == list(anew.dropped_index)


def test_a_match_of_other_units_cannot_be_reused() -> None:
    earlier = match(None, TREAT[:200], X[:200])
    with pytest.raises(UnusableInput, match="reuse is a match of 200 rows"):
        match(Y, TREAT, X, reuse=earlier)
