"""One history by the shipped engine: all commits in one campaign, or one more each night."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from benchmarks.history.machines import COMMITS, SD, Truth, machine, planted
from equipoise.kinds.history.statistics import History
from packages.equipoise.tests.kinds.history.histories import names_of, run_night
from packages.equipoise.tests.stats.simulated import FloatArray

ALPHA = 0.05
MIN_EFFECT = 1.0
"""Percent."""
MOMENTS = 2600
"""Trials over which the machine drifts: about as many as a whole history takes."""
MAX_BLOCKS = 3000
NAMES = names_of(COMMITS)


class Outcome(Struct, frozen=True):
    """What came of one history."""

    right: bool
    """Whether each change was named, to its commit and the one before it, and confirmed."""
    others: int
    """Number of other names."""
    named_after: int | None
    """Trials until both were named; ``None`` if they never were."""
    trials: int
    """Trials until nothing was left to ask."""
    is_over: bool


def at_once(kind: str, seed: int) -> Outcome:
    """Return the outcome of one campaign over all commits."""
    return _conducted(kind, seed, [COMMITS])


def night_by_night(kind: str, seed: int) -> Outcome:
    """Return the outcome of a campaign each night, which asks only about the newest commit."""
    return _conducted(kind, seed, range(1, COMMITS + 1))


def truth_of(kind: str, seed: int) -> tuple[np.random.Generator, Truth]:
    """Return the source of all that is random in a history, and its commits."""
    rng = np.random.default_rng([seed, zlib.crc32(kind.encode())])
    return rng, planted(rng)


class _Trials:
    """The noise of the machine, from trial to trial and from night to night."""

    def __init__(self, kind: str, rng: np.random.Generator) -> None:
        self._by_machine = machine(kind, MOMENTS, rng)
        self.ran = 0
        """Trials so far."""

    def __call__(self, generator: np.random.Generator, trials: int) -> FloatArray:
        moments = np.minimum(self.ran + np.arange(trials), MOMENTS - 1)
        return self._by_machine[moments] + generator.normal(0.0, SD, trials)


def _conducted(kind: str, seed: int, nights: Sequence[int]) -> Outcome:
    """Return the outcome of a campaign on each night; ``nights`` has the newest commit of each."""
    rng, truth = truth_of(kind, seed)
    history = History(alpha=ALPHA, min_effect=MIN_EFFECT)
    noise = _Trials(kind, rng)
    right = {(NAMES[one - 1], NAMES[one]) for one in truth.changed}
    trials, is_over = 0, True
    named_after: int | None = None
    built: set[int] = set()
    for newest in nights:
        history.begin_campaign(NAMES[: newest + 1], range(newest + 1), "gcc 14", only_new=True)
        for _ in range(MAX_BLOCKS):
            night = run_night(history, truth.levels, noise, rng, blocks=1, built=built)
            built.update(*night.blocks)
            trials += night.trials
            noise.ran = trials
            if night.is_over:
                break
            if named_after is None and right <= confirmed_in(history):
                named_after = trials
        else:
            is_over = False
    changes = history.state().changes
    return Outcome(
        right=right <= confirmed_in(history),
        others=sum((one.pair.earlier_hash, one.pair.later_hash) not in right for one in changes),
        named_after=named_after,
        trials=trials,
        is_over=is_over,
    )


def confirmed_in(history: History) -> set[tuple[str, str]]:
    """Return the changes that are named to a commit and the one before it."""
    return {
        (one.pair.earlier_hash, one.pair.later_hash)
        for one in history.state().changes
        if one.is_confirmed
    }
