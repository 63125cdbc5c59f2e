"""A bisection names the commits that made a difference, and hardly ever another one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise._native import BisectionSearch
from equipoise.kinds.bisect.search import Bisection, BisectionState
from equipoise.kinds.bisect.stretch import OwnPairs, share_of_gap
from equipoise.model.errors import UnusableInput
from equipoise.stats.resolution import Resolution
from packages.equipoise.tests.kinds.bisect.bisected import EndedSearch, one_step, search, steps
from packages.equipoise.tests.stats.simulated import (
    Noise,
    at_least,
    at_most,
    autoregressive,
    drift,
    order_effect,
    random_walk,
    student,
    two_modes,
    white,
)

ALPHA = 0.05


def names(state: BisectionState) -> set[int]:
    return {commit for step in state.named_steps for commit in range(step.first, step.last + 1)}


def is_named(bisection: Bisection) -> bool:
    return bool(bisection.named_steps)


def searched_state(
    effects: dict[int, float],
    *,
    count: int = 32,
    noise: Noise | None = None,
    seed: int = 1,
    blocks: int = 600,
    broken: frozenset[int] = frozenset(),
    prior: list[float] | None = None,
    min_effect: float = 1.0,
    to_the_end: bool = False,
) -> EndedSearch:
    bisection = Bisection(count, alpha=ALPHA, min_effect=min_effect, prior=prior)
    return search(
        steps(count, effects),
        white(0.01) if noise is None else noise,
        np.random.default_rng(seed),
        bisection,
        blocks=blocks,
        broken=broken,
        until=(lambda _: False) if to_the_end else is_named,
    )


def test_the_commit_is_named_with_its_step_and_its_share_of_the_gap() -> None:
    state = searched_state({20: 0.05}, to_the_end=True).bisection.state()
    (named,) = state.named_steps
    assert state.verdict == "culprit"
    assert (named.first, named.last) == (20, 20)
    bar = named.pair_number * (named.pair_number + 1) / ALPHA
    assert named.e_value >= bar
    assert named.significance_level == pytest.approx(1 / bar)
    low, high = named.ratio_ci
    assert low is not None and high is not None and named.ratio is not None
    assert low <= math.exp(0.05) <= high and low <= named.ratio <= high
    assert named.share_of_gap == pytest.approx(1.0, abs=0.4)
    share_low, share_high = named.share_ci
    assert share_low is not None and share_low < 1
    assert share_high is None or share_high > 1
    left = [commit for commit, out in enumerate(state.excluded, start=1) if not out]
    assert left == [20]
    assert state.margin == pytest.approx(0.005, abs=0.002)
    assert sum(state.chances) == pytest.approx(1.0)


@pytest.mark.parametrize("at", [1, 2, 31, 32])
def test_the_first_and_the_last_commit_can_be_the_culprit(at: int) -> None:
    assert names(searched_state({at: -0.1}).bisection.state()) == {at}


def test_a_faster_commit_is_found_as_well() -> None:
    state = searched_state({20: -0.05}).bisection.state()
    (named,) = state.named_steps
    assert named.first == 20
    assert named.ratio is not None and named.ratio < 1
    assert named.share_of_gap is not None and named.share_of_gap > 0
    assert state.margin is not None and state.margin > 0


def test_equal_ends_have_no_difference_and_an_excluded_size() -> None:
    ran = searched_state({}, to_the_end=True)
    state = ran.bisection.state()
    assert state.verdict == "no difference"
    assert ran.bisection.next_pair({0, 32}, 1.0) is None
    low, high = state.gap.equivalence_ci
    assert low is not None and high is not None and 0.99 < low < 1 < high < 1.01
    assert state.named_steps == () and state.margin is None


def test_the_own_pair_runs_on_until_the_step_has_an_interval() -> None:
    for seed in range(10):
        state = searched_state({20: 0.05}, seed=seed, noise=white(0.02), to_the_end=True)
        for named in state.bisection.named_steps:
            low, high = named.ratio_ci
            assert low is not None and high is not None
            assert low > 1


def test_remainders_of_the_gap_are_searched() -> None:
    state = searched_state({20: 0.05}, to_the_end=True).bisection.state()
    assert state.verdict == "culprit" and names(state) == {20}
    left = [(stretch.first, stretch.last, stretch.verdict) for stretch in state.stretches[1:]]
    assert left == [(0, 19, "no difference"), (20, 32, "no difference")]


def test_two_steps_are_both_named_and_no_other() -> None:
    for seed in range(5):
        state = searched_state({8: 0.03, 23: 0.04}, seed=seed, to_the_end=True).bisection.state()
        assert names(state) == {8, 23}, seed
        assert state.verdict == "several"
        ranks = [step.pair_number for step in state.named_steps]
        assert sorted(set(ranks)) == ranks


def test_steps_at_neighbours_are_separated() -> None:
    state = searched_state({8: 0.05, 9: 0.05}, to_the_end=True).bisection.state()
    assert names(state) == {8, 9}


def test_commits_that_do_not_build_are_named_with_the_next_that_does() -> None:
    state = searched_state({8: 0.05}, broken=frozenset({7, 8, 9, 20})).bisection.state()
    (named,) = state.named_steps
    assert (named.first, named.last) == (7, 10)
    left = [commit for commit, out in enumerate(state.excluded, start=1) if not out]
    assert left == [7, 8, 9, 10]


def test_a_commit_that_fails_before_its_first_block_costs_nothing_elsewhere() -> None:
    state = searched_state({8: 0.05}, broken=frozenset({20, 21, 22, 23})).bisection.state()
    (named,) = state.named_steps
    assert (named.first, named.last) == (8, 8)


def test_the_ends_must_run() -> None:
    bisection = Bisection(4, alpha=ALPHA)
    for commit, option in ((0, "--good"), (4, "--bad")):
        with pytest.raises(UnusableInput) as raised:
            bisection.withdraw(commit)
        assert option in str(raised.value.hint)


def test_a_remainder_whose_end_fails_later_stays_undecided() -> None:
    ran = searched_state({20: 0.05})
    bisection = ran.bisection
    bisection.withdraw(19)
    pair = bisection.next_pair({0}, 1.0)
    assert pair == (20, 32)
    assert bisection.state().stretches[1].verdict == "undecided"


def test_a_program_that_never_ends_from_a_commit_on_is_found() -> None:
    bisection = Bisection(64, alpha=ALPHA, min_effect=1.0)
    generator = np.random.default_rng(1)
    built = {0, 64}
    for _ in range(200):
        pair = bisection.next_pair(built, 10.0)
        if pair is None or bisection.named_steps:
            break
        built.update(pair)
        times = [
            math.inf if commit >= 41 else math.exp(generator.normal(0.0, 0.02)) for commit in pair
        ]
        bisection.add(pair, (times[0], times[1]), int(generator.choice((-1, 1))))
    state = bisection.state()
    assert names(state) == {41}
    assert state.gap.ratio is None and state.named_steps[0].ratio is None
    assert state.named_steps[0].share_of_gap is None


def test_a_resolution_counts_from_the_first_finite_cost_on() -> None:
    """Times of a coarse clock are ties, so their steps prove nothing."""
    bisection = Bisection(2, alpha=ALPHA)
    bisection.set_resolution(Resolution(1.0))
    for block in range(40):
        bisection.add((0, 2), (2.0, 3.0), 1 if block % 2 else -1)
        bisection.set_resolution(Resolution(0.0))
    assert bisection.verdict == "confirming"


def test_a_coarse_clock_names_no_commit() -> None:
    wrong = 0
    for seed in range(40):
        generator = np.random.default_rng(seed)
        bisection = Bisection(16, alpha=ALPHA, min_effect=1.0, resolution=Resolution(None))
        built = {0, 16}
        bisection.set_resolution(Resolution(0.01))
        for _ in range(250):
            pair = bisection.next_pair(built, 10.0)
            if pair is None or bisection.named_steps:
                break
            built.update(pair)
            times = [
                0.2 * (1.15 if commit >= 5 else 1.0) * math.exp(generator.normal(0.0, 0.05))
                for commit in pair
            ]
            read = [math.floor(100 * time + generator.random()) / 100 for time in times]
            bisection.add(pair, (read[0], read[1]), int(generator.choice((-1, 1))))
        wrong += not names(bisection.state()) <= {5}
    assert wrong <= at_most(40, 0.01)


def test_a_prior_speeds_up_the_search_and_a_wrong_one_names_no_commit() -> None:
    sure, wrong = [0.0] * 32, [0.0] * 32
    sure[19], wrong[4] = 1.0, 1.0
    trials = {}
    for name, prior in (("even", None), ("sure", sure), ("wrong", wrong)):
        ran = [searched_state({20: 0.05}, prior=prior, seed=seed) for seed in range(20)]
        assert all(names(search.bisection.state()) == {20} for search in ran)
        trials[name] = np.mean([search.trials for search in ran])
    assert trials["sure"] < trials["even"] < trials["wrong"]


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([0.5], "not 3 finite weights from 0 up: 0.5"),
        ([1.0, math.nan, 0.0], "1.0, nan, 0.0"),
        ([1.0, -1.0, 0.0], "-1.0"),
    ],
)
def test_a_prior_must_have_a_weight_for_each_commit(prior: list[float], message: str) -> None:
    with pytest.raises(UnusableInput, match=message):
        Bisection(3, alpha=ALPHA, prior=prior)


def test_there_must_be_a_commit_and_an_error_rate() -> None:
    with pytest.raises(UnusableInput, match="no commit after"):
        Bisection(0, alpha=ALPHA)
    with pytest.raises(UnusableInput, match="alpha"):
        Bisection(3, alpha=1.5)


def test_an_invalid_block_is_refused() -> None:
    bisection = Bisection(3, alpha=ALPHA)
    with pytest.raises(UnusableInput, match="order"):
        bisection.add((0, 3), (1.0, 1.0), 0)
    with pytest.raises(UnusableInput, match="a cost must be 0 or more"):
        bisection.add((0, 3), (1.0, -1.0), 1)
    with pytest.raises(ValueError, match="not the pair"):
        bisection.add((0, 2), (1.0, 1.0), 1)
    assert bisection.state().blocks == 0


def test_a_bisection_that_ended_takes_no_block() -> None:
    bisection = searched_state({}, to_the_end=True).bisection
    with pytest.raises(ValueError, match="has ended"):
        bisection.add((0, 32), (1.0, 1.0), 1)


def test_a_pair_outside_of_the_remaining_commits_is_refused() -> None:
    bisection = searched_state({20: 0.05}).bisection
    while bisection.next_pair({0, 32}, 1.0) == (19, 20):
        bisection.add((19, 20), (1.0, 1.05), 1)
    assert bisection.next_pair({0, 32}, 1.0) == (0, 19)
    with pytest.raises(ValueError, match="not the pair"):
        bisection.add((3, 32), (1.0, 1.0), 1)


def test_reading_the_blocks_back_gives_the_same_state_at_every_block() -> None:
    levels = steps(24, {6: 0.03, 17: 0.05})
    generator = np.random.default_rng(5)
    live, again = (Bisection(24, alpha=ALPHA, min_effect=1.0) for _ in range(2))
    built = {0, 24}
    blocks = 0
    while (pair := live.next_pair(built, 10.0)) is not None and blocks < 400:
        if 11 in pair:
            live.withdraw(11)
            again.withdraw(11)
            pair = live.next_pair(built, 10.0)
            assert pair is not None
        built.update(pair)
        first, second = (math.exp(levels[commit] + generator.normal(0.0, 0.01)) for commit in pair)
        order = int(generator.choice((-1, 1)))
        for bisection in (live, again):
            bisection.add(pair, (first, second), order)
        blocks += 1
        assert live.next_pair(built, 10.0) == again.next_pair(built, 10.0)
        if blocks % 20 == 0:  # Asking for the state, or not, changes nothing.
            live.state()
    assert live.state() == again.state()
    assert names(live.state()) == {6, 17}


def test_bisections_that_share_their_counter_need_more_evidence() -> None:
    own_pairs = OwnPairs()
    ranks: list[int] = []
    for seed in range(3):
        bisection = Bisection(8, alpha=ALPHA, min_effect=1.0, own_pairs=own_pairs)
        search(
            one_step(8, 0.1, 3),
            white(0.01),
            np.random.default_rng(seed),
            bisection,
            blocks=200,
            until=is_named,
        )
        (named,) = bisection.state().named_steps
        ranks.append(named.pair_number)
        assert named.e_value >= named.pair_number * (named.pair_number + 1) / ALPHA
    assert ranks == sorted(set(ranks)) and own_pairs.count >= 3


@pytest.mark.parametrize(
    ("step", "gap", "share", "interval"),
    [
        ((0.03, (0.02, 0.04)), (0.03, (0.025, 0.05)), 1.0, (0.4, 1.6)),
        ((-0.03, (-0.04, -0.02)), (-0.03, (-0.05, -0.025)), 1.0, (0.4, 1.6)),
        ((0.01, (-0.01, 0.03)), (0.02, (0.01, 0.03)), 0.5, (-1.0, 3.0)),
        ((0.03, (0.02, 0.04)), (0.03, (-0.01, 0.05)), 1.0, (0.4, None)),
        ((0.03, (0.02, math.inf)), (0.03, (0.01, math.inf)), 1.0, (0.0, None)),
        ((math.inf, (math.inf, math.inf)), (0.03, (0.01, 0.05)), None, (None, None)),
        ((0.03, (0.02, 0.04)), (None, (-math.inf, math.inf)), None, (None, None)),
    ],
)
def test_the_interval_of_the_share_has_every_quotient_of_step_and_gap(
    step: tuple[float, tuple[float, float]],
    gap: tuple[float | None, tuple[float, float]],
    share: float | None,
    interval: tuple[float | None, float | None],
) -> None:
    estimate, ends = share_of_gap(*step, *gap)
    assert estimate == (share if share is None else pytest.approx(share))
    for end, expected in zip(ends, interval, strict=True):
        assert end == (expected if expected is None else pytest.approx(expected))


PROFILES = {
    "one step": {20: 0.03},
    "two steps": {8: 0.03, 23: 0.03},
    "a revert": {8: 0.03, 16: -0.03, 24: 0.03},
    "a creep": dict.fromkeys(range(1, 33), 0.002),
}
NOISES: dict[str, Noise] = {
    "independent": white(0.02),
    "drift": drift,
    "autoregressive": autoregressive,
    "random walk": random_walk,
    "two modes": two_modes,
    "order effect": order_effect,
}


@pytest.mark.parametrize("profile", PROFILES)
def test_hardly_any_name_is_wrong_for_any_steps_and_noise(profile: str) -> None:
    effects, campaigns, wrong = PROFILES[profile], 0, 0
    for noise in NOISES.values():
        for seed in range(12):
            ran = searched_state(effects, noise=noise, seed=seed, blocks=200, to_the_end=True)
            campaigns += 1
            wrong += not names(ran.bisection.state()) <= set(effects)
    assert wrong <= at_most(campaigns, ALPHA)


@pytest.mark.parametrize("noise", NOISES)
def test_blind_pairs_hardly_ever_exclude_the_culprit(noise: str) -> None:
    """The guarantee of the set holds for all pairs, however long the search goes on."""
    campaigns, missed = 40, 0
    for seed in range(campaigns):
        generator = np.random.default_rng(seed)
        culprit = int(generator.integers(1, 17))
        levels = one_step(16, 0.03, culprit)
        by_trial = NOISES[noise](generator, 320)
        bisection = Bisection(16, alpha=ALPHA)
        for block in range(160):
            pair = bisection.next_pair({0, 16}, 1.0)
            if pair is None or bisection.named_steps:
                break
            if bisection.verdict == "searching":
                before, after = sorted(generator.choice(17, 2, replace=False).tolist())
                pair = (before, after)
            order = int(generator.choice((-1, 1)))
            slots = by_trial[2 * block : 2 * block + 2][::order]
            first, second = (
                levels[commit] + slot for commit, slot in zip(pair, slots, strict=True)
            )
            bisection.add(pair, (math.exp(first), math.exp(second)), order)
        missed += bisection.state().excluded[culprit - 1]
    assert missed <= at_most(campaigns, ALPHA)


@pytest.mark.parametrize("noise", [white(0.02), student(0.02, 2.0), two_modes])
def test_a_commit_that_is_just_the_margin_slower_is_hardly_ever_proven(noise: Noise) -> None:
    """The claim about names in the hardest case: every block is the commit's own pair."""
    campaigns, proven = 200, 0
    bar = math.log(2 / ALPHA)
    for seed in range(campaigns):
        generator = np.random.default_rng(seed)
        orders = generator.choice((-1.0, 1.0), 220)
        by_trial = noise(generator, 440).reshape(-1, 2)
        deviations = (orders * (by_trial[:, 1] - by_trial[:, 0])).tolist()
        confirming = [(0.03 + deviation, 1.0) for deviation in deviations[:20]]
        bets = BisectionSearch(16, ALPHA, 1.0, confirming, [])
        for number, deviation in enumerate(deviations[20:], start=1):
            bets.add((9, 10), bets.margin() + deviation, orders[19 + number], 0.0, number, 1)
            if bets.own_ln_e_value(10) >= bar:
                proven += 1
                break
    assert proven <= at_most(campaigns, ALPHA / 2)


def test_most_single_steps_are_named() -> None:
    campaigns = 60
    right = 0
    for seed in range(campaigns):
        culprit = 1 + seed % 32
        state = searched_state({culprit: 0.03}, seed=seed, blocks=400).bisection.state()
        right += names(state) == {culprit}
    assert right >= at_least(campaigns, 0.97)
