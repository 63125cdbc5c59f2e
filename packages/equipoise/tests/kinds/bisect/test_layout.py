"""A step that persists is named; differences by layouts of single commits hardly ever are."""

from __future__ import annotations

import math

import numpy as np

from equipoise.kinds.bisect.layout import (
    CandidateStep,
    LayoutBlock,
    difference_of,
    persistent_steps,
    step_trends,
)
from equipoise.kinds.bisect.search import Bisection, BisectionState
from packages.equipoise.tests.kinds.bisect.bisected import one_step, search
from packages.equipoise.tests.stats.simulated import FloatArray, at_least, at_most, white

ALPHA = 0.05
COUNT = 64
MARGIN = math.log(1.01)


def searched_commits(
    seed: int, spread: float, *, step: float = 0.03, prose: tuple[int, ...] = ()
) -> tuple[int, BisectionState]:
    """Search a step among commits with their own layouts; return its place and the last state."""
    rng = np.random.default_rng(seed)
    culprit = int(rng.integers(1, COUNT + 1))
    levels = one_step(COUNT, step, culprit) + rng.normal(0.0, spread, COUNT + 1)
    bisection = Bisection(COUNT, alpha=ALPHA, min_effect=1.0, documentation_commits=prose)
    search(levels, white(0.01), rng, bisection, blocks=4000)
    return culprit, bisection.state()


def test_layouts_of_a_fifth_of_the_step_name_hardly_any_wrong_commit() -> None:
    wrong = right = candidates = 0
    for seed in range(40):
        culprit, state = searched_commits(seed, 0.006)
        named = {step.last for step in state.named_steps}
        wrong += not named <= {culprit}
        right += culprit in named
        candidates += any(step.step.last != culprit for step in state.unconfirmed_steps)
    assert wrong <= at_most(40, ALPHA)
    assert right >= at_least(40, 0.8)
    # The bets alone find the difference of two builds in many of these searches.
    assert candidates >= at_least(40, 0.25)


def test_an_unconfirmed_commit_has_its_reason() -> None:
    states = [searched_commits(seed, 0.006)[1] for seed in range(40)]
    reasons = {step.reason for state in states for step in state.unconfirmed_steps}
    assert reasons == {"min_effect", "layouts"}
    for state in states:
        named = {step.last for step in state.named_steps}
        assert named.isdisjoint(step.step.last for step in state.unconfirmed_steps)
        assert not (state.verdict == "culprit") or len(named) == 1


def test_a_commit_that_changes_only_prose_is_never_named() -> None:
    culprit, state = searched_commits(3, 0.0)
    assert [step.last for step in state.named_steps] == [culprit] and state.verdict == "culprit"
    culprit, state = searched_commits(3, 0.0, prose=(culprit,))
    assert state.named_steps == () and state.verdict == "searching"
    assert [(step.step.last, step.reason) for step in state.unconfirmed_steps] == [
        (culprit, "documentation")
    ]
    assert not state.excluded[culprit - 1]


def test_a_step_near_the_smallest_effect_is_not_named() -> None:
    for seed in range(10):
        _, state = searched_commits(seed, 0.0, step=math.log(1.01))
        assert state.named_steps == ()


def blocks_of(levels: FloatArray, each: int = 40, sd: float = 0.005) -> list[LayoutBlock]:
    """Blocks of the neighbours of a line, and of its ends."""
    rng = np.random.default_rng(1)
    pairs = [(commit, commit + 1) for commit in range(len(levels) - 1)] + [(0, len(levels) - 1)]
    return [
        LayoutBlock(before, after, float(levels[after] - levels[before] + rng.normal(0, sd)), order)
        for before, after in pairs
        for order in (1, -1) * (each // 2)
    ]


def steps_of(levels: FloatArray, *commits: int, withdrawn: tuple[int, ...] = ()) -> tuple[int, ...]:
    candidates = [CandidateStep(commit, 0.025) for commit in commits]
    return persistent_steps(blocks_of(levels), candidates, margin=MARGIN, withdrawn=withdrawn)


def test_a_step_persists_and_the_layout_of_one_commit_does_not() -> None:
    levels = one_step(12, 0.05, 6)
    assert steps_of(levels, 6) == (6,)
    slow = levels.copy()
    slow[9] += 0.05
    # It is slower than the one before, and the next one is not slower than that.
    assert steps_of(slow, 9) == ()
    assert steps_of(slow, 6, 9) in ((), (6,))


def test_two_steps_are_judged_together() -> None:
    levels = one_step(12, 0.05, 4) + one_step(12, 0.03, 9)
    assert steps_of(levels, 4, 9) == (4, 9)
    assert steps_of(levels, 9, 4) == (4, 9)
    assert steps_of(levels, 4, 6, 9) == (4, 9)


def test_a_step_in_another_place_is_not_named() -> None:
    levels = one_step(12, 0.05, 6)
    assert steps_of(levels, 8) == ()


def test_a_faster_step_is_judged_in_the_same_way() -> None:
    assert steps_of(one_step(12, -0.05, 6), 6) == (6,)


def growing_blocks(
    levels: FloatArray, step: int, growth: float, sd: float = 0.01
) -> list[LayoutBlock]:
    """Blocks of ever closer pairs around a step, which grows by so much from the first one on."""
    rng = np.random.default_rng(3)
    pairs = [
        (max(0, step - reach), min(len(levels) - 1, step - 1 + reach)) for reach in (8, 4, 2, 1)
    ]
    return [
        LayoutBlock(
            before,
            after,
            float(levels[after] - levels[before] + growth * block / 80 + rng.normal(0, sd)),
            int(rng.choice((-1, 1))),
        )
        for block, (before, after) in enumerate(pair for pair in pairs for _ in range(20))
    ]


def test_a_step_that_grows_or_fades_has_a_trend_in_either_direction() -> None:
    levels = one_step(16, 0.02, 9)
    (grown,) = step_trends(growing_blocks(levels, 9, 0.03), [9], [9])
    assert grown is not None and grown.chance < 0.001
    assert math.log(grown.first_ratio) < 0.03 < 0.04 < math.log(grown.last_ratio)
    (faded,) = step_trends(growing_blocks(-levels, 9, 0.015, sd=0.005), [9], [9])
    assert faded is not None and faded.chance < 0.01
    assert faded.first_ratio < faded.last_ratio < 1.0


def test_different_layouts_of_early_and_late_pairs_are_not_a_trend() -> None:
    levels = one_step(16, 0.03, 9)
    levels[[8, 9]] += (-0.003, 0.003)
    assert step_trends(growing_blocks(levels, 9, 0.0), [9], [9]) == (None,)


def test_only_blocks_with_one_step_are_in_its_trend() -> None:
    levels = one_step(16, 0.02, 9) + one_step(16, 0.05, 7)
    blocks = growing_blocks(levels, 9, 0.06)
    # The pairs of the first forty blocks contain both steps.
    trends = step_trends(blocks, [7, 9], [7, 9])
    assert trends[0] is None and trends[1] is not None
    assert math.log(trends[1].first_ratio) > 0.04
    assert step_trends(blocks[:49], [7, 9], [7, 9]) == (None, None)


def test_no_blocks_and_no_candidates_have_no_steps() -> None:
    assert persistent_steps([], [CandidateStep(1, 0.025)], margin=MARGIN) == ()
    assert steps_of(one_step(12, 0.05, 6)) == ()
    everything = tuple(range(13))
    assert steps_of(one_step(12, 0.05, 6), 6, withdrawn=everything) == ()


def test_a_timeout_has_an_infinite_difference_and_two_have_none() -> None:
    assert difference_of((1.0, math.inf)) == math.inf
    assert difference_of((math.inf, 1.0)) == -math.inf
    assert math.isnan(difference_of((math.inf, math.inf)))
    assert difference_of((0.0, 0.0)) == 0.0 and difference_of((0.0, 1.0)) == math.inf
    assert difference_of((1.0, math.e)) == 1.0
    levels = one_step(12, 0.05, 6)
    blocks = [*blocks_of(levels), *[LayoutBlock(2, 3, math.inf, 1)] * 2]
    blocks += [LayoutBlock(2, 3, math.nan, 1)] * 5
    assert persistent_steps(blocks, [CandidateStep(6, 0.025)], margin=MARGIN) == (6,)
