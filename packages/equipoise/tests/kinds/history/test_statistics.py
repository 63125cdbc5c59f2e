"""A history names the commits that changed something, and hardly ever another one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.kinds.history.statistics import Change, History, _disjoint_count
from equipoise.model.errors import UnusableInput
from equipoise.stats.resolution import Resolution
from packages.equipoise.tests.kinds.bisect.bisected import steps
from packages.equipoise.tests.kinds.history.histories import Night, name_of, names_of, run_night
from packages.equipoise.tests.stats.simulated import FloatArray, Noise, at_most, white

ALPHA = 0.05
DRIFT = 0.2


def drifting(generator: np.random.Generator, trials: int) -> FloatArray:
    """A machine that gets 20 % slower in the course of a night."""
    return np.linspace(0.0, math.log1p(DRIFT), trials) + generator.normal(0.0, 0.01, trials)


def history_of(count: int) -> History:
    history = History(alpha=ALPHA, min_effect=1.0)
    history.begin_campaign(names_of(count), range(count + 1), "gcc 14")
    return history


def measured_history(
    effects: dict[int, float], *, count: int = 16, seed: int = 1, noise: Noise = drifting
) -> tuple[History, Night]:
    history = history_of(count)
    generator = np.random.default_rng(seed)
    night = run_night(history, steps(count, effects), noise, generator, blocks=4000)
    return history, night


def spans(history: History, count: int) -> dict[tuple[int, int], Change]:
    places = {name: place for place, name in enumerate(names_of(count))}
    return {
        (places[change.pair.earlier_hash], places[change.pair.later_hash]): change
        for change in history.state().changes
    }


def test_both_changes_are_named_to_their_commit_and_nothing_else_is() -> None:
    history, night = measured_history({5: 0.05, 12: -0.04})
    changes = spans(history, 16)
    assert night.is_over
    assert set(changes) == {(4, 5), (11, 12)}
    for span, effect in (((4, 5), 0.05), ((11, 12), -0.04)):
        change = changes[span]
        low, high = change.pair.ratio_ci
        assert change.is_confirmed and change.not_built == ()
        assert change.pair.e_value >= change.threshold
        assert low is not None and high is not None and low <= math.exp(effect) <= high


def test_the_curve_has_each_selected_commit_with_intervals_that_hold_together() -> None:
    history, _ = measured_history({5: 0.05})
    revisions = history.state().revisions
    assert [revision.hash for revision in revisions] == list(names_of(16))
    levels = [
        revision.significance_level
        for revision in revisions
        if revision.significance_level is not None
    ]
    assert len(levels) == 16 and sum(levels) < ALPHA
    for place, revision in enumerate(revisions):
        low, high = revision.ratio_ci
        assert low is not None and high is not None
        assert low <= math.exp(0.05 * (place >= 5)) <= high


def test_the_same_blocks_make_the_same_state() -> None:
    history, again = history_of(8), history_of(8)
    generator = np.random.default_rng(3)
    for _ in range(60):
        conditions = history.next_block({0}, 5.0)
        assert conditions == again.next_block({0}, 5.0)
        order = generator.permutation(conditions).tolist()
        costs = {commit: math.exp(generator.normal(0.03 * (commit > 2), 0.01)) for commit in order}
        history.add(costs, order)
        again.add(costs, order)
    assert history.state() == again.state()


def test_a_night_of_new_commits_measures_only_them() -> None:
    history, _ = measured_history({5: 0.05}, noise=white(0.01))
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
    assert (change.pair.earlier_hash, change.pair.later_hash) == (names[4], names[7])
    assert change.is_confirmed and change.not_built == (names[5], names[6])
    assert state.withdrawn == (names[5], names[6], names[12])


def test_a_change_on_a_rewritten_branch_stays_with_that_of_the_new_branch() -> None:
    history, _ = measured_history({5: 0.05}, count=8, noise=white(0.01))
    names = (*names_of(4), *(name_of(commit, "rewritten") for commit in range(5, 9)))
    history.begin_campaign(names, range(9), "gcc 14")
    generator = np.random.default_rng(6)
    run_night(history, steps(8, {5: 0.05}), white(0.01), generator, blocks=2000)
    until = [change.pair.later_hash for change in history.state().changes]
    assert sorted(until) == sorted([name_of(5), names[5]])
    assert {revision.hash for revision in history.state().revisions} == set(names)


def test_in_a_new_era_only_undecided_pairs_are_measured_and_names_stay() -> None:
    history = history_of(8)
    generator = np.random.default_rng(7)
    levels = steps(8, {3: 0.1})
    run_night(history, levels, white(0.01), generator, blocks=60)
    before = history.state()
    assert spans(history, 8).keys() == {(2, 3)}
    decided = {
        (pair.earlier_hash, pair.later_hash) for pair in before.pairs if pair.status != "undecided"
    }
    assert len(decided) > 1
    history.begin_campaign(names_of(8), range(9), "gcc 15")
    history.add(dict.fromkeys((0, 7, 8), 1.0), (7, 0, 8))
    after = history.state()
    assert after.eras == 2
    assert after.pairs[: len(before.pairs)] == before.pairs
    assert [revision.era for revision in after.revisions[1:]] == [1, 1, 1, 1, 1, 1, 2, 2]
    assert after.changes == before.changes
    night = run_night(history, levels, white(0.01), generator, blocks=2000)
    assert night.is_over
    asked = {
        (pair.earlier_hash, pair.later_hash) for pair in history.state().pairs if pair.era == 2
    }
    assert asked.isdisjoint(decided)
    assert history.state().changes == before.changes


def test_a_pair_counts_only_blocks_since_it_was_opened() -> None:
    history = history_of(4)
    for _ in range(3):
        history.add({0: 1.0, 4: 1.0}, (0, 4))
    history.add({0: 1.0, 2: 1.0, 4: 1.0}, (2, 0, 4))
    names = names_of(4)
    pairs = [
        (pair.pair_number, pair.earlier_hash, pair.later_hash, pair.blocks)
        for pair in history.state().pairs
    ]
    assert pairs == [
        (1, names[0], names[4], 4),
        (2, names[0], names[2], 1),
        (3, names[2], names[4], 1),
    ]


def test_a_name_takes_the_e_value_of_its_rank_and_of_the_changes_so_far() -> None:
    history, _ = measured_history({5: 0.05, 12: -0.04})
    changes = history.state().changes
    assert len(changes) >= 2
    for change in changes:
        assert change.pair.e_value >= change.threshold
        bar = change.pair.pair_number * (change.pair.pair_number + 1) / ALPHA
        assert change.threshold == pytest.approx(bar / round(bar / change.threshold))


def test_nested_names_count_as_one_change() -> None:
    assert _disjoint_count([(0, 8), (0, 4), (2, 4)]) == 1
    assert _disjoint_count([(0, 2), (2, 4), (1, 3)]) == 2
    assert _disjoint_count([(0, 8), (1, 2), (5, 6), (5, 8)]) == 2
    assert _disjoint_count([]) == 0


def test_the_remaining_blocks_are_forecast_until_the_end() -> None:
    history = history_of(8)
    generator = np.random.default_rng(8)
    left = [history.state().blocks_to_go]
    night = run_night(history, steps(8, {}), white(0.005), generator, blocks=20)
    left.append(history.state().blocks_to_go)
    assert not night.is_over
    night = run_night(history, steps(8, {}), white(0.005), generator, blocks=2000)
    left.append(history.state().blocks_to_go)
    assert night.is_over
    assert left[0] > left[1] > left[2] == 0


def test_pairs_at_the_smallest_effect_are_hardly_ever_named() -> None:
    campaigns, pairs, blocks = 12, 10, 30
    margin = math.log1p(0.01)
    generator = np.random.default_rng(9)
    false = 0
    for _ in range(campaigns):
        history = history_of(pairs)
        costs = np.exp(generator.normal(0.0, 0.01, (pairs, blocks, 2)))
        costs[:, :, 1] *= math.exp(margin)
        orders = generator.integers(0, 2, (pairs, blocks))
        for pair in range(pairs):
            for block in range(blocks):
                ends = (pair, pair + 1)
                order = ends if orders[pair, block] else ends[::-1]
                history.add(dict(zip(ends, costs[pair, block].tolist(), strict=True)), order)
        false += bool(history.state().changes)
    assert false <= at_most(campaigns, ALPHA)


def test_the_resolution_counts_from_the_first_block_with_a_finite_cost() -> None:
    history = history_of(2)
    history.add({0: math.inf, 2: math.inf}, (0, 2))
    history.set_resolution(Resolution(1.0))
    for _ in range(40):
        history.add({0: 10.0, 2: 11.0}, (2, 0))
    history.set_resolution(Resolution(0.0))
    (pair,) = history.state().pairs
    assert pair.status == "undecided"
    assert pair.e_value == pytest.approx(1.0)


@pytest.mark.parametrize("order", [(0,), (0, 1), (0, 2, 2), (0, 9)])
def test_a_block_has_the_conditions_of_its_order(order: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="cannot have"):
        history_of(2).add({0: 1.0, 2: 1.0} if 9 not in order else {0: 1.0, 9: 1.0}, order)


def test_a_history_needs_a_smallest_effect_and_a_commit_after_its_baseline() -> None:
    with pytest.raises(UnusableInput, match="smallest effect"):
        History(alpha=ALPHA, min_effect=0.0)
    with pytest.raises(UnusableInput, match="no commit after"):
        History(alpha=ALPHA, min_effect=1.0).begin_campaign(names_of(0), (), "")
    with pytest.raises(UnusableInput, match="baseline"):
        history_of(3).withdraw(0)
    with pytest.raises(UnusableInput, match="is not the baseline of this history"):
        history_of(3).begin_campaign(names_of(3)[1:], (), "")
