"""A history runs a coarse grid first, then changing stretches, then the rest of its curve."""

from __future__ import annotations

import math
from collections.abc import Mapping

from equipoise.kinds.history.schedule import MAX_BUILDS, MAX_COMMITS_OF_BLOCK, PairState, Schedule
from equipoise.revisions.terms import IndexPair

LEFT = PairState("equivalent", 30)
EVERY = tuple(range(33))


def schedule(
    states: Mapping[IndexPair, PairState],
    *,
    runnable: tuple[int, ...] = EVERY,
    curve_commits: tuple[int, ...] = EVERY,
    start: int = 0,
) -> Schedule:
    measured = sorted({0, *(commit for pair in states for commit in pair)} & set(runnable))
    return Schedule(
        runnable=runnable,
        curve_commits=curve_commits,
        measured=tuple(measured),
        states=states,
        start=start,
    )


def left_stretches(*ends: int) -> dict[IndexPair, PairState]:
    return dict.fromkeys(zip(ends, ends[1:], strict=False), LEFT)


def test_the_first_blocks_are_of_the_grid_and_wait_for_few_builds() -> None:
    first = schedule({}).next_block({0}, 10.0)
    assert first == (0, 4, 8, 12)
    assert len(first) == 1 + MAX_BUILDS
    assert schedule({}).next_block(EVERY, 10.0) == tuple(range(0, 33, 4))
    assert len(schedule({}).next_block(EVERY, 10.0)) == 1 + MAX_COMMITS_OF_BLOCK


def test_a_changing_stretch_comes_before_undecided_ones_and_is_halved() -> None:
    states = left_stretches(*range(0, 33, 4)) | {
        (8, 12): PairState("suspect", 10),
        (20, 24): PairState("undecided", 10),
    }
    assert schedule(states).next_block(EVERY, 1.0) == (8, 10, 12)
    halves = states | {(8, 10): PairState("undecided", 3), (10, 12): PairState("undecided", 3)}
    assert schedule(halves).next_block(EVERY, 1.0) == (8, 10, 12)
    is_weak_suspect = halves | {(8, 10): PairState("undecided", 5, is_weak_suspect=True)}
    assert schedule(is_weak_suspect).next_block(EVERY, 1.0) == (8, 9, 10)


def test_a_weak_suspect_alone_is_not_refined() -> None:
    states = left_stretches(*range(0, 33, 4)) | {
        (8, 12): PairState("undecided", 10, is_weak_suspect=True)
    }
    assert schedule(states).next_block(EVERY, 1.0) == (0, 8, 12)


def test_a_parent_and_its_commit_run_alone_until_the_step_is_known() -> None:
    states = left_stretches(0, 8, 9, 10, 32) | {(8, 9): PairState("changed", 20)}
    assert schedule(states).next_block(EVERY, 1.0) == (8, 9)
    known = states | {(8, 9): PairState("changed", 40, is_settled=True)}
    assert schedule(known).next_block(EVERY, 1.0) != (8, 9)


def test_a_commit_that_is_built_is_preferred_near_the_middle_if_builds_cost_much() -> None:
    states = left_stretches(0, 16, 32) | {(16, 32): PairState("suspect", 10)}
    assert schedule(states).next_block({0, 16, 21, 32}, 10.0) == (16, 21, 32)
    assert schedule(states).next_block({0, 16, 21, 32}, 1.0) == (16, 24, 32)
    assert schedule(states).next_block({0, 16, 17, 32}, 10.0) == (16, 24, 32)


def test_commits_that_do_not_run_are_passed_over() -> None:
    runnable = tuple(place for place in EVERY if place not in (9, 10, 11))
    states = left_stretches(0, 8, 12, 32) | {(8, 12): PairState("suspect", 10)}
    assert schedule(states, runnable=runnable, curve_commits=(0, 8, 12, 32)).next_block(
        EVERY, 1.0
    ) == (8, 12)


def test_the_rest_of_the_curve_is_halved_where_it_is_widest() -> None:
    states = left_stretches(0, 1, 2, 3, 4, 5, 6, 7, 8, 32)
    wanted = (*range(9), 16, 24, 32)
    assert schedule(states, curve_commits=wanted).next_block(EVERY, 1.0) == (0, 8, 16, 32)


def test_an_undecided_pair_waits_until_the_curve_is_complete_and_goes_on_then() -> None:
    undecided = left_stretches(0, 8, 32) | {(8, 32): PairState("undecided", 40)}
    assert schedule(undecided, curve_commits=(0, 8, 16, 32)).next_block(EVERY, 1.0) == (
        0,
        8,
        16,
        32,
    )
    assert schedule(undecided, curve_commits=(0, 8, 32)).next_block(EVERY, 1.0) == (0, 8, 32)


def test_only_commits_after_the_first_commit_of_interest_are_measured() -> None:
    states = left_stretches(0, 8, 16)
    assert schedule(states, start=16).next_block(EVERY, 1.0)[:2] == (0, 16)
    old = {(0, 8): PairState("undecided", 10), (8, 16): LEFT}
    wanted = (0, 8, 16)
    assert schedule(old, start=16, curve_commits=wanted).next_block(EVERY, 1.0) == ()
    suspect = {(0, 8): LEFT, (8, 16): PairState("suspect", 10)}
    assert schedule(suspect, start=16, curve_commits=wanted).next_block(EVERY, 1.0) == (8, 12, 16)


def test_without_a_commit_that_runs_nothing_is_measured() -> None:
    assert schedule({}, runnable=(0,), curve_commits=(0,)).next_block({0}, 1.0) == ()
    assert schedule({}, runnable=(0,), curve_commits=(0,)).blocks_to_go() == 0


def test_the_forecast_uses_the_width_of_intervals_so_far() -> None:
    wide = dict.fromkeys(
        zip(range(32), range(1, 33), strict=True), PairState("undecided", 60, expected_blocks=6000)
    )
    assert schedule(wide).blocks_to_go() == 32 * (6000 - 60) / MAX_COMMITS_OF_BLOCK
    one_is_left = wide | {pair: LEFT for pair in wide if pair != (4, 5)}
    assert schedule(one_is_left).blocks_to_go() == math.ceil((6000 - 60) / MAX_COMMITS_OF_BLOCK)
