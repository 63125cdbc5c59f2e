"""Hosts that come and go by chance, and hosts that leave because of what they show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from benchmarks.fleet.fleets import (
    ALPHA,
    MIN_EFFECT,
    SD,
    Scenario,
    answers,
    effects_of,
    first_blocks,
)
from equipoise._native import student_quantile
from equipoise.stats.arrays import FloatArray, IntArray
from equipoise.stats.hosts import (
    FleetMean,
    HostBlocks,
    Roster,
    Rounds,
    claims_of_fleet,
    share_of_roster,
)
from equipoise.stats.sequence import PairedBlocks
from packages.equipoise.tests.stats.simulated import campaign, white

HOSTS = 8
BLOCKS = 80
NOISE = white(SD)
MIN_BLOCKS_TO_JUDGE = 10
"""Blocks before a host can look slow to itself."""


class Left(Struct, frozen=True):
    """One fleet of which some hosts left."""

    left: int
    asked_is_bounded: bool
    asked_misses: bool
    """Whether the interval of the mean over the asked hosts misses it."""
    stayed_misses: bool
    """Whether that of the mean over those that stayed misses their mean."""
    stayed_misses_asked: bool
    """Whether the latter misses the mean over those asked, for which it is no interval."""
    student_misses_asked: bool
    """Whether Student's 95 % interval from the estimates of those that stayed misses it."""
    shift: float
    """Mean over those that stayed less that over those asked, in per cent."""


def by_chance(seed: int) -> Left:
    """Return a fleet with a spread of 2 %: in each block a host leaves with a chance of 1 in 80."""
    rng = np.random.default_rng([seed, 1])
    effects = effects_of(Scenario(HOSTS, 0.02), rng, HOSTS)
    counts = np.minimum(rng.geometric(1.0 / BLOCKS, HOSTS), BLOCKS)
    return _left(effects, [campaign(NOISE, rng, int(n), e) for n, e in _pairs(counts, effects)])


def slow_ones(after: int, seed: int) -> Left:
    """Return a fleet with a spread of 3 %: a host with a log ratio above 1.5 % leaves early."""
    rng = np.random.default_rng([seed, 2, after])
    effects = effects_of(Scenario(HOSTS, 0.03), rng, HOSTS)
    counts = np.where(effects > 0.015, after, BLOCKS)
    return _left(effects, [campaign(NOISE, rng, int(n), e) for n, e in _pairs(counts, effects)])


def on_bad_news(seed: int) -> Left:
    """Return a fleet without any effect: a host that looks slow to itself leaves."""
    rng = np.random.default_rng([seed, 3])
    whole = [campaign(NOISE, rng, BLOCKS, 0.0) for _ in range(HOSTS)]
    return _left(np.zeros(HOSTS), [first_blocks(one, _first_bad_news(one)) for one in whole])


def _first_bad_news(whole: PairedBlocks) -> int:
    """Return the blocks after which a host is 1.5 standard errors slower; all if it never is."""
    numbers = np.arange(1, len(whole) + 1)
    errors = SD * np.sqrt(2.0 * numbers)
    is_bad = (np.cumsum(whole.differences) > 1.5 * errors) & (numbers >= MIN_BLOCKS_TO_JUDGE)
    return int(np.argmax(is_bad)) + 1 if is_bad.any() else len(whole)


def _pairs(counts: IntArray, effects: FloatArray) -> list[tuple[int, float]]:
    return list(zip(counts.tolist(), effects.tolist(), strict=True))


def _left(effects: FloatArray, blocks: Sequence[PairedBlocks]) -> Left:
    """Return what the statistics say where hosts without all of their blocks have left."""
    gone = [len(one) < BLOCKS for one in blocks]
    result = answers(
        [
            HostBlocks(str(place), str(place), one, 1.0 / HOSTS, "lost" if is_gone else "finished")
            for place, (one, is_gone) in enumerate(zip(blocks, gone, strict=True))
        ]
    )
    asked, stayed = float(effects.mean()), effects[~np.array(gone)]
    of_stayed = result.mean_of_remaining if any(gone) and not all(gone) else result.mean
    centres = np.array([one.ln_ratio for one in result.hosts], dtype=np.float64)[~np.array(gone)]
    assert of_stayed is not None, "some have left and some have stayed"
    return Left(
        left=sum(gone),
        asked_is_bounded=bool(np.isfinite([result.mean.bounds.low, result.mean.bounds.high]).all()),
        asked_misses=_misses(result.mean, asked),
        stayed_misses=bool(len(stayed)) and _misses(of_stayed, float(stayed.mean())),
        stayed_misses_asked=_misses(of_stayed, asked),
        student_misses_asked=_student_misses(centres, asked),
        shift=100.0 * (float(stayed.mean()) - asked) if len(stayed) else 0.0,
    )


def _misses(mean: FleetMean, truth: float) -> bool:
    return not mean.bounds.low <= truth <= mean.bounds.high


def _student_misses(centres: FloatArray, truth: float) -> bool:
    if len(centres) < 2:
        return False
    reach = student_quantile(1.0 - ALPHA / 2.0, len(centres) - 1)
    reach *= float(np.std(centres, ddof=1)) / len(centres) ** 0.5
    return bool(abs(float(centres.mean()) - truth) > reach)


class Joined(Struct, frozen=True):
    """Hosts that joined as they came, each with a number of blocks by chance."""

    ever_misses: bool
    """Whether the interval of the mean over the hosts so far missed it at any of their numbers."""
    is_bounded: bool
    """Whether that over all of them has both bounds."""
    width: float
    """Of that interval, in per cent; infinite without a bound."""


def joined(seed: int) -> Joined:
    """Return what is said of 2, 3, … 8 hosts whose number was not fixed; spread 2 %."""
    rng = np.random.default_rng([seed, 4])
    effects = effects_of(Scenario(HOSTS, 0.02), rng, HOSTS)
    hosts = [
        HostBlocks(str(place), str(place), campaign(NOISE, rng, count, effect), 1.0, "finished")
        for place, (count, effect) in enumerate(_pairs(rng.integers(20, 141, HOSTS), effects))
    ]
    misses, bounds = False, None
    for count in range(2, HOSTS + 1):
        weighted = [
            HostBlocks(one.name, one.identity, one.blocks, 1.0 / count, one.state)
            for one in hosts[:count]
        ]
        mean = claims_of_fleet(
            weighted, min_effect=MIN_EFFECT, alpha=ALPHA, planned_count=None
        ).mean
        misses |= _misses(mean, float(effects[:count].mean()))
        bounds = mean.bounds
    assert bounds is not None, "there are at least two hosts"
    width = bounds.high - bounds.low
    return Joined(misses, bool(np.isfinite(width)), 100.0 * float(np.expm1(width)))


class Withdrawn(Struct, frozen=True):
    """A straggler that an operator withdraws at the block that suits a claim best; no effect."""

    aligned: bool
    """Whether the next roster ever excludes 0 if it begins with the round that broke."""
    after_known: bool
    """Whether it does if it begins after the blocks that the operator knew."""


def withdrawn(seed: int) -> Withdrawn:
    """Return what the next roster says; the operator sees 200 blocks of the two other hosts.

    They run 200 more. The straggler may be withdrawn after any tenth block from the 10th to the
    180th.
    """
    rng = np.random.default_rng([seed, 5])
    whole = [campaign(NOISE, rng, 400, 0.0) for _ in range(2)]
    straggler = PairedBlocks([1.0] * 180, [1.0] * 180, [1] * 180)
    blocks = enumerate((straggler, *whole))
    rounds = Rounds(
        [HostBlocks(str(at), str(at), one, 1.0 / 3.0, "finished") for at, one in blocks]
    )
    level = ALPHA * share_of_roster(2)

    def excludes(start: int, until: int) -> bool:
        # Each with a number of its own: the rounds of a roster are kept by its number.
        roster = Roster(1000 * start + until, (1, 2), (start, start), until - start)
        low, high = rounds.mean_sequence(roster).running_interval(level)
        return not low <= 0.0 <= high

    choices = [start for start in range(10, 181, 10) if excludes(start, 200)]
    return Withdrawn(bool(choices), excludes(200, 400))
