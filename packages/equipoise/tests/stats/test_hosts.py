"""Claims over several hosts: each number tests its own null, at every interim analysis."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec.structs import replace

from equipoise.model.errors import UnusableInput
from equipoise.stats.hosts import (
    SHARE_OF_HOSTS,
    CampaignState,
    FleetClaims,
    HostBlocks,
    Roster,
    Rounds,
    claims_of_fleet,
    rosters_of,
    share_of_roster,
)
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import judge, running_interval
from packages.equipoise.tests.stats.simulated import (
    NOISES,
    FloatArray,
    Noise,
    at_least,
    at_most,
    campaign,
    white,
)

ALPHA = 0.05
TWO_PERCENT = white(0.02)


def host_of(
    place: int,
    hosts: int,
    effect: float = 0.0,
    *,
    blocks: int = 80,
    noise: Noise = TWO_PERCENT,
    seed: int = 0,
) -> HostBlocks:
    """Return one of several equally weighted hosts with its own noise and coin."""
    measured = campaign(noise, np.random.default_rng([seed, place]), blocks, effect)
    return HostBlocks(f"host{place}", f"{place:032x}", measured, 1.0 / hosts)


def fleet_of(
    effects: list[float] | FloatArray,
    *,
    blocks: int = 80,
    noise: Noise = TWO_PERCENT,
    seed: int = 0,
) -> list[HostBlocks]:
    count = len(effects)
    return [
        host_of(place, count, float(effect), blocks=blocks, noise=noise, seed=seed)
        for place, effect in enumerate(effects)
    ]


def first_blocks(host: HostBlocks, count: int) -> HostBlocks:
    """Return the same host after ``count`` blocks."""
    whole = host.blocks
    blocks = PairedBlocks(whole.baseline[:count], whole.candidate[:count], whole.orders[:count])
    return replace(host, blocks=blocks)


def answers_of(hosts: list[HostBlocks], *, min_effect: float = 1.0) -> FleetClaims:
    return claims_of_fleet(hosts, min_effect=min_effect, alpha=ALPHA, planned_count=len(hosts))


def of_differences(differences: list[float], orders: list[int] | None = None) -> PairedBlocks:
    """Blocks with the given log ratios."""
    coins = orders or [1, -1] * (len(differences) // 2) + [1] * (len(differences) % 2)
    return PairedBlocks([1.0] * len(differences), np.exp(differences), coins)


def even_host(
    differences: list[float], end: CampaignState = "measuring", *, weight: float = 1.0
) -> HostBlocks:
    """A host whose blocks have the given log ratios."""
    return HostBlocks("host", "host", of_differences(differences), weight, end)


def test_a_level_whose_equivalence_interval_would_cover_nothing_has_an_answer() -> None:
    for hosts in (fleet_of([0.0]), fleet_of([0.0, 0.0])):
        result = claims_of_fleet(hosts, min_effect=1.0, alpha=0.7, planned_count=len(hosts)).mean
        assert result.equivalence.level < 1.0
        assert result.bounds.low <= result.equivalence.low <= result.equivalence.high


def test_effects_of_opposite_sign_are_found_and_their_mean_is_zero() -> None:
    result = answers_of(fleet_of([0.03, -0.03, 0.03, -0.03]))
    assert result.e_value > 1.0 / ALPHA
    assert result.mean.verdict in ("undecided", "equivalent")
    assert result.mean.bounds.low < 0.0 < result.mean.bounds.high
    assert [host.direction for host in result.hosts] == ["slower", "faster", "slower", "faster"]


def test_a_fleet_of_one_host_is_judged_as_the_campaign_of_that_host() -> None:
    (host,) = fleet_of([0.01], blocks=60)
    alone = judge([host.blocks], min_effect=1.0, alpha=ALPHA)[0]
    mean = answers_of([host]).mean
    assert (mean.verdict, mean.bounds.low, mean.bounds.high) == (
        alone.verdict,
        alone.low,
        alone.high,
    )
    assert mean.equivalence.low == alone.equivalence_low


def test_no_host_differs_has_the_mean_of_the_e_values() -> None:
    hosts = fleet_of([0.0, 0.01, 0.02])
    mean = np.mean([math.exp(host.blocks.engine.ln_e_value()) for host in hosts])
    assert answers_of(hosts).e_value == pytest.approx(float(mean), rel=1e-12)


def test_the_interval_by_hosts_is_the_weighted_mean_of_their_sequences() -> None:
    measured = [host_of(0, 2, 0.02).blocks, host_of(1, 2, 0.04).blocks]
    weights = [0.25, 0.75]
    hosts = [
        HostBlocks(f"{place}", f"{place}", blocks, weight)
        for place, (blocks, weight) in enumerate(zip(measured, weights, strict=True))
    ]
    ends = [running_interval(trial.engine, 0.1 * ALPHA / 2)[0] for trial in measured]
    result = answers_of(hosts)
    assert result.mean.by_hosts.low == pytest.approx(0.25 * ends[0][0] + 0.75 * ends[1][0])
    assert result.mean.by_hosts.high == pytest.approx(0.25 * ends[0][1] + 0.75 * ends[1][1])
    centres = [trial.engine.centre() for trial in measured]
    assert centres[0] is not None
    assert centres[1] is not None
    assert result.mean.ln_ratio == pytest.approx(0.25 * centres[0][0] + 0.75 * centres[1][0])


def test_the_shares_of_hosts_and_rosters_add_up_to_alpha() -> None:
    rosters = sum(map(share_of_roster, range(1, 10_000)))
    assert SHARE_OF_HOSTS + rosters == pytest.approx(1.0, abs=1e-4)


def test_unplanned_hosts_have_shares_that_add_up_whatever_their_number() -> None:
    hosts = fleet_of([0.0, 0.0, 0.0])
    result = claims_of_fleet(hosts, min_effect=1.0, alpha=ALPHA, planned_count=None)
    levels = [host.bounds.level for host in result.hosts]
    assert levels == pytest.approx([ALPHA / 4, ALPHA / 12, ALPHA / 24])
    assert result.mean.by_rounds is None
    assert result.mean.bounds.low == result.mean.by_hosts.low
    assert result.new_host.unknown_because is not None
    assert "not fixed" in result.new_host.unknown_because


def test_a_round_is_one_block_of_the_weighted_mean() -> None:
    first, second = [0.01, 0.02, 0.03, 0.04], [0.05, 0.01, 0.01, 0.09]
    rounds = Rounds([even_host(first, weight=0.25), even_host(second, weight=0.75)])
    (roster,) = rounds.rosters
    means = [0.25 * value + 0.75 * other for value, other in zip(first, second, strict=True)]
    by_hand = of_differences(means).engine
    assert rounds.mean_sequence(roster).ln_e_value() == pytest.approx(by_hand.ln_e_value())
    alone = rounds.mean_sequence(roster, without=0)
    assert alone.ln_e_value() == pytest.approx(of_differences(second).engine.ln_e_value())


def test_a_round_that_will_never_be_complete_ends_the_roster() -> None:
    hosts = [even_host([0.01] * 5, "finished"), even_host([0.01] * 9, "finished")]
    hosts.append(even_host([0.01] * 20))
    assert rosters_of(hosts) == (
        Roster(1, (0, 1, 2), (0, 0, 0), 5),
        Roster(2, (1, 2), (5, 5), 4),
        Roster(3, (2,), (9,), 11),
    )


def test_a_straggler_delays_the_rounds_and_ends_no_roster() -> None:
    measuring = [even_host([0.01] * count) for count in (5, 9)]
    assert rosters_of(measuring) == (Roster(1, (0, 1), (0, 0), 5),)
    finished = [measuring[0], even_host([0.01] * 9, "finished")]
    assert rosters_of(finished) == (Roster(1, (0, 1), (0, 0), 5),)


def test_a_host_withdrawn_because_of_others_does_not_select_their_blocks() -> None:
    hosts = [
        replace(even_host([0.01] * 5, "lost"), known_at_end=(5, 12, 8)),
        even_host([0.01] * 20),
        even_host([0.01] * 10),
    ]
    assert rosters_of(hosts) == (
        Roster(1, (0, 1, 2), (0, 0, 0), 5),
        Roster(2, (1, 2), (12, 8), 2),
    )


def test_the_mean_over_hosts_that_stayed_differs_from_that_over_asked_hosts() -> None:
    hosts = fleet_of([0.0, 0.0, 0.12])
    gone = HostBlocks("slow", "2", PairedBlocks(), hosts[2].weight, "lost")
    result = answers_of([hosts[0], hosts[1], gone])
    assert result.mean.ln_ratio is None
    assert result.mean.verdict == "undecided"
    assert result.mean.bounds.unknown_because == "slow: no bound yet after 0 blocks"
    assert result.mean_of_remaining is not None
    assert result.mean_of_remaining.host_indices == (0, 1)
    assert result.mean_of_remaining.verdict in ("equivalent", "undecided")
    assert math.isfinite(result.mean_of_remaining.bounds.low)
    assert result.new_host.unknown_because is not None
    assert "the fleet lost slow" in result.new_host.unknown_because


def test_the_sequence_of_a_host_that_left_is_frozen_and_the_mean_over_the_asked_goes_on() -> None:
    whole = fleet_of([0.0, 0.02, 0.04], blocks=200)

    def after(blocks: int) -> FleetClaims:
        first = [first_blocks(host, blocks) for host in whole[:2]]
        gone = first_blocks(whole[2], 30)
        return answers_of([*first, HostBlocks("left", "2", gone.blocks, gone.weight, "lost")])

    sooner, later = after(60), after(200)
    assert later.hosts[2].bounds == sooner.hosts[2].bounds
    assert later.mean.by_rounds == sooner.mean.by_rounds
    assert sooner.mean.by_hosts.low <= later.mean.by_hosts.low < 0.02
    assert 0.02 < later.mean.by_hosts.high <= sooner.mean.by_hosts.high
    for result in (sooner, later):
        assert result.mean.host_indices == (0, 1, 2)
        assert result.mean_of_remaining is not None
        assert result.mean_of_remaining.host_indices == (0, 1)


def test_three_hosts_hold_a_new_one_with_a_chance_of_a_half_less_alpha() -> None:
    hosts = fleet_of([0.0, 0.02, 0.04])
    result = answers_of(hosts)
    ends = [host.blocks.engine.running_interval(ALPHA / 3) for host in hosts]
    assert result.new_host.chance == pytest.approx(0.5 - ALPHA)
    assert result.new_host.low == min(low for low, _ in ends)
    assert result.new_host.high == max(high for _, high in ends)
    assert result.median_of_hosts.chance == pytest.approx(0.75 - ALPHA)


def test_the_normal_prediction_of_three_hosts_reaches_4_97_spreads_of_their_first_blocks() -> None:
    hosts = fleet_of([0.0, 0.02, 0.04])
    first = answers_of([first_blocks(host, 7) for host in hosts])
    spread = float(np.std(np.array([host.ln_ratio for host in first.hosts], dtype=float), ddof=1))
    predicted = answers_of(hosts).new_host_if_normal
    assert (predicted.high - predicted.low) / 2.0 == pytest.approx(4.97 * spread, rel=1e-3)
    assert predicted == first.new_host_if_normal
    early = answers_of([first_blocks(host, 6) for host in hosts]).new_host_if_normal
    assert early.unknown_because == "host0, host1, host2: fewer than 7 blocks"


def test_campaigns_side_by_side_on_one_host_have_no_claims_between_hosts() -> None:
    hosts = [
        HostBlocks(f"place {place}", "0", host_of(place, 3, 0.05).blocks, 1.0 / 3.0)
        for place in range(3)
    ]
    result = answers_of(hosts)
    assert result.mean.verdict == "slower"
    because = "all campaigns ran on one host: nothing is known between hosts"
    between = (result.new_host, result.median_of_hosts, result.new_host_if_normal)
    assert all(answer.unknown_because == because and answer.chance is None for answer in between)
    assert result.variance.unknown_because == because
    assert all(host.direction is None for host in result.hosts)


def test_the_variance_between_hosts_is_separate_from_that_within() -> None:
    effects = np.linspace(-0.06, 0.06, 7)
    between, within = answers_of(fleet_of(effects)).variance.components
    assert between.level == "host"
    assert math.sqrt(between.variance) == pytest.approx(float(np.std(effects, ddof=1)), rel=0.1)
    assert math.sqrt(within.variance) == pytest.approx(0.02 * math.sqrt(2.0), rel=0.1)


def test_timeouts_leave_a_reason_and_never_a_number() -> None:
    forever = PairedBlocks([1.0] * 40, [math.inf] * 40, [1, -1] * 20)
    result = answers_of(
        [*fleet_of([0.0, 0.0, 0.0])[:2], HostBlocks("stuck", "x", forever, 1.0 / 3.0)]
    )
    assert result.mean.ln_ratio is None
    assert result.mean.by_hosts.unknown_because == "stuck: timeouts exclude every ratio"
    assert result.variance.unknown_because is not None
    assert result.new_host_if_normal.chance is None


def test_a_order_effect_does_not_widen_the_rounds() -> None:
    def width(noise: Noise) -> float:
        by_rounds = answers_of(fleet_of([0.02] * 3, blocks=120, noise=noise)).mean.by_rounds
        assert by_rounds is not None
        return by_rounds.high - by_rounds.low

    assert width(NOISES["order effect of 5 %"]) < 1.3 * width(white(0.02))


@pytest.mark.parametrize("weights", [(0.5, 0.6), (1.0, 0.0)])
def test_weights_are_above_0_and_add_up_to_1(weights: tuple[float, float]) -> None:
    hosts = [HostBlocks(f"{weight}", f"{weight}", PairedBlocks(), weight) for weight in weights]
    with pytest.raises(UnusableInput, match="weights"):
        answers_of(hosts)


def test_the_blocks_known_at_an_end_are_those_of_every_host() -> None:
    first, second = fleet_of([0.0, 0.0])
    with pytest.raises(UnusableInput, match="known_at_end"):
        answers_of([replace(first, state="lost", known_at_end=(3,)), second])


def test_every_planned_host_is_given() -> None:
    with pytest.raises(UnusableInput, match="3 hosts were planned"):
        claims_of_fleet(fleet_of([0.0, 0.0]), min_effect=1.0, alpha=ALPHA, planned_count=3)


FLEETS = 120


def test_the_mean_over_hosts_with_unequal_blocks_misses_in_at_most_alpha() -> None:
    rng = np.random.default_rng(11)
    by_hosts = by_rounds = both = new = 0
    for _ in range(FLEETS):
        effects = rng.normal(0.0, 0.03, 4)
        measured = [
            campaign(NOISES["drift of 1 % per run"], rng, int(rng.integers(20, 100)), effect)
            for effect in effects
        ]
        result = answers_of(
            [
                HostBlocks(f"{at}", f"{at}", trial, 0.25, "finished")
                for at, trial in enumerate(measured)
            ]
        )
        truth = float(effects.mean())
        assert result.mean.by_rounds is not None
        intervals = (result.mean.by_hosts, result.mean.by_rounds, result.mean.bounds)
        misses = [not interval.low <= truth <= interval.high for interval in intervals]
        by_hosts, by_rounds, both = by_hosts + misses[0], by_rounds + misses[1], both + misses[2]
        new += result.new_host.low <= rng.normal(0.0, 0.03) <= result.new_host.high
    assert by_hosts <= at_most(FLEETS, SHARE_OF_HOSTS * ALPHA)
    assert by_rounds <= at_most(FLEETS, share_of_roster(1) * ALPHA)
    assert both <= at_most(FLEETS, ALPHA)
    assert new >= at_least(FLEETS, 3.0 / 5.0 - ALPHA)


def test_hosts_that_leave_because_of_their_own_blocks_raise_no_false_alarm() -> None:
    rng = np.random.default_rng(12)
    asked = stayed = otherwise = differs = 0
    for _ in range(FLEETS):
        hosts = []
        for at in range(4):
            whole = campaign(TWO_PERCENT, rng, 60)
            numbers = np.arange(1, 61)
            bad = np.cumsum(whole.differences) > 1.5 * 0.02 * np.sqrt(2.0 * numbers)
            bad[:9] = False
            host = HostBlocks(f"{at}", f"{at}", whole, 0.25, "finished")
            if bad.any():
                host = replace(first_blocks(host, int(np.argmax(bad)) + 1), state="lost")
            hosts.append(host)
        result = answers_of(hosts)
        asked += not result.mean.bounds.low <= 0.0 <= result.mean.bounds.high
        if result.mean_of_remaining is not None:
            bounds = result.mean_of_remaining.bounds
            stayed += not bounds.low <= 0.0 <= bounds.high
        otherwise += any(host.direction is not None for host in result.hosts)
        differs += result.e_value >= 1.0 / ALPHA
    assert max(asked, stayed, otherwise, differs) <= at_most(FLEETS, ALPHA)


def test_a_fleet_names_the_host_that_differs() -> None:
    named = [
        [host.direction for host in answers_of(fleet_of([0.04, 0.0, 0.0, 0.0], seed=seed)).hosts]
        for seed in range(20)
    ]
    # The others are truly faster than the mean over the rest, which includes the first.
    right = [first == "slower" and "slower" not in others for first, *others in named]
    assert right.count(True) >= 18
