"""A history names the commits that changed something, and hardly ever another one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.model.errors import UnusableInput
from equipoise.stats.history import Change, History
from tests.stats.bisected import steps
from tests.stats.histories import Night, names_of, run_night
from tests.stats.simulated import FloatArray, Noise, white

ALPHA = 0.05
DRIFT = 0.2


def drifting(generator: np.random.Generator, trials: int) -> FloatArray:
    """A machine that gets 20 % slower in the course of a night."""
    return np.linspace(0.0, math.log1p(DRIFT), trials) + generator.normal(0.0, 0.01, trials)


def history_of(count: int) -> History:
    history = History(alpha=ALPHA, min_effect=1.0)
    history.begin_campaign(names_of(count), range(count + 1), "gcc 14")
    return history


def measured(
    effects: dict[int, float], *, count: int = 16, seed: int = 1, noise: Noise = drifting
) -> tuple[History, Night]:
    history = history_of(count)
    generator = np.random.default_rng(seed)
    night = run_night(history, steps(count, effects), noise, generator, blocks=4000)
    return history, night


def spans(history: History, count: int) -> dict[tuple[int, int], Change]:
    places = {name: place for place, name in enumerate(names_of(count))}
    return {
        (places[one.pair.after], places[one.pair.until]): one for one in history.state().changes
    }


def test_both_changes_are_named_to_their_commit_and_nothing_else_is() -> None:
    history, night = measured({5: 0.05, 12: -0.04})
    changes = spans(history, 16)
    assert night.is_over
    assert set(changes) == {(4, 5), (11, 12)}
    for span, effect in (((4, 5), 0.05), ((11, 12), -0.04)):
        change = changes[span]
        low, high = change.pair.ratio_ci
        assert change.is_confirmed and change.not_built == ()
        assert change.pair.threshold is not None
        assert change.pair.e_value >= change.pair.threshold
        assert low is not None and high is not None and low <= math.exp(effect) <= high


def test_the_curve_has_each_selected_commit_with_intervals_that_hold_together() -> None:
    history, _ = measured({5: 0.05})
    revisions = history.state().revisions
    assert [one.name for one in revisions] == list(names_of(16))
    levels = [one.level for one in revisions if one.level is not None]
    assert len(levels) == 16 and sum(levels) < ALPHA
    for place, one in enumerate(revisions):
        low, high = one.ratio_ci
        assert low is not None and high is not None
        assert low <= math.exp(0.05 * (place >= 5)) <= high


def test_the_same_blocks_make_the_same_state() -> None:
    history, again = history_of(8), history_of(8)
    generator = np.random.default_rng(3)
    for _ in range(60):
        conditions = history.next_block({0}, 5.0)
        assert conditions == again.next_block({0}, 5.0)
        order = generator.permutation(conditions).tolist()
        costs = {one: math.exp(generator.normal(0.03 * (one > 2), 0.01)) for one in order}
        history.add(costs, order)
        again.add(costs, order)
    assert history.state() == again.state()


def test_a_night_of_new_commits_asks_only_about_them() -> None:
    history, _ = measured({5: 0.05}, noise=white(0.01))
    history.begin_campaign(names_of(18), range(19), "gcc 14", only_new=True)
    generator = np.random.default_rng(4)
    levels = steps(18, {5: 0.05, 18: 0.05})
    night = run_night(history, levels, white(0.01), generator, blocks=2000)
    assert night.is_over
    assert set().union(*night.blocks) == {0, 16, 17, 18}
    assert set(spans(history, 18)) == {(4, 5), (17, 18)}


def test_commits_that_do_not_build_are_passed_over_and_make_a_group() -> None:
    history = history_of(12)
    generator = np.random.default_rng(5)
    levels = steps(12, {6: 0.05})
    night = run_night(history, levels, white(0.01), generator, blocks=4000, broken={5, 6, 12})
    state = history.state()
    (change,) = state.changes
    names = names_of(12)
    assert night.is_over
    assert (change.pair.after, change.pair.until) == (names[4], names[7])
    assert change.is_confirmed and change.not_built == (names[5], names[6])
    assert state.withdrawn == (names[5], names[6], names[12])


def test_a_history_wants_a_smallest_effect_and_a_commit_after_its_baseline() -> None:
    with pytest.raises(UnusableInput, match="smallest effect"):
        History(alpha=ALPHA, min_effect=0.0)
    with pytest.raises(UnusableInput, match="no commit after"):
        History(alpha=ALPHA, min_effect=1.0).begin_campaign(names_of(0), (), "")
    with pytest.raises(UnusableInput, match="baseline"):
        history_of(3).withdraw(0)
