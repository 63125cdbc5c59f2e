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


def test_progress_is_told_up_to_the_end() -> None:
    told: list[tuple[int, int]] = []
    match(Y, TREAT, X, threads=1, progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (100, 100)
    assert told == sorted(told)


@pytest.mark.parametrize("options", [{}, {"estimand": "ATE"}, {"replace": False}], ids=str)
def test_an_error_of_progress_stops_the_search_at_once(options: dict[str, Any]) -> None:
    told = []

    def stop(done: int, of: int) -> None:
        told.append(done)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        match(Y, TREAT, X, threads=1, progress=stop, **options)
    by = np.arange(300) // 6
    with pytest.raises(ZeroDivisionError):
        match_by(Y, TREAT, X, by, threads=1, progress=stop, **options)
    assert len(told) == 2


def test_progress_of_both_arms_goes_up_once() -> None:
    told: list[tuple[int, int]] = []
    tell = told.append
    match(Y, TREAT, X, estimand="ATE", threads=1, progress=lambda done, of: tell((done, of)))
    assert told == sorted(told)
    assert told[-1] == (300, 300)


def test_an_interrupt_stops_the_search_though_nobody_is_told_of_progress() -> None:
    x = np.random.default_rng(2).normal(size=(30_000, 12))
    treat = np.arange(30_000) % 2
    began = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    began.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            match(None, treat, x, estimand="ATE", threads=2)
    began.join()


def test_the_summary_tells_the_effect_and_what_it_rests_on() -> None:
    found = match(Y, TREAT, X, caliper=0.5)
    lines = dict(line.split("  ", 1) for line in found.summary().splitlines())
    assert float(lines["Estimate"]) == pytest.approx(found.estimate, rel=1e-4)
    assert int(lines["Dropped"].strip()) == found.n_dropped == len(found.dropped_index)
    assert lines["Treated"].strip() == "100"


def test_the_frame_has_a_row_for_each_pair() -> None:
    found = match(Y, TREAT, X, m=2)
    frame = found.to_frame()
    assert len(frame) == len(found.weights) == 200
    assert frame["weight"].sum() == pytest.approx(found.n_weighted)


def test_treated_index_is_treated_and_control_index_is_not_whatever_the_estimand() -> None:
    for estimand in ("ATT", "ATC", "ATE"):
        found = match(Y, TREAT, X, estimand=estimand)
        assert TREAT[found.treated_index].all()
        assert not TREAT[found.control_index].any()


def test_without_replacement_nobody_serves_twice() -> None:
    found = match(Y, TREAT, X, replace=False, m=2)
    assert len(np.unique(found.control_index)) == len(found.control_index) == 200


def test_the_same_seed_gives_the_same_lots_and_another_gives_others() -> None:
    x = np.round(X[:, 0])
    first, again, other = (match(Y, TREAT, x, ties=False, seed=seed) for seed in (1, 1, 2))
    assert list(first.control_index) == list(again.control_index)
    assert list(first.control_index) != list(other.control_index)


@pytest.mark.parametrize("estimand", ["ATT", "ATC", "ATE"])
def test_an_earlier_match_serves_another_outcome(estimand: Any) -> None:
    options: dict[str, Any] = {"estimand": estimand, "caliper": 0.5, "variance_neighbors": 2}
    earlier = match(None, TREAT, X, **options)
    found, anew = match(Y, TREAT, X, reuse=earlier, **options), match(Y, TREAT, X, **options)
    for name in ("estimate", "se", "se_standard", "n_dropped", "n_weighted"):
        assert getattr(found, name) == getattr(anew, name), name
    assert list(found.treated_index) == list(anew.treated_index)
    assert list(found.dropped_index) == list(anew.dropped_index)


def test_a_match_of_other_units_cannot_be_reused() -> None:
    earlier = match(None, TREAT[:200], X[:200])
    with pytest.raises(UnusableInput, match="reuse is a match of 200 rows"):
        match(Y, TREAT, X, reuse=earlier)
