"""The scenarios: what noise a machine may have, and what Equipoise claims under it.

Sizes are relative: 0.02 is 2 % of a run's time. Each scenario is one line in ``SCENARIOS``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from scipy.signal import lfilter

from benchmarks.validity.machine import FloatArray, Machine

Draw = Callable[[Generator, int], Machine]
"""Draws the machine of one campaign, good for so many runs."""

MAX_LOG = 50.0
"""Cauchy noise is cut here: e^50 times the usual is still a number."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of noise.

    What is claimed: rule 1 of CONTRIBUTING.md, and docs/methods/interval.md.
    """

    name: str
    words: str
    draw: Draw
    claims_error_rate: bool = True
    """Without a difference: false alarms at most alpha. It takes that exchanging the two
    conditions would change no time, in this trial or later."""
    claims_coverage: bool = True
    """With a difference: the interval covers it. It takes a constant ratio besides."""
    probability_slower: float | None = 0.5
    """P(candidate slower in a block) without an effect; its interval is claimed to cover that.
    ``None`` where it is not the same in every block."""
    has_no_difference: bool = True
    """Whether a call without an effect is a false one."""
    is_equivalent: bool = True
    """Whether `equivalent` without an effect is right; else it is claimed in at most alpha."""
    covered_percent: float = 3.0
    """True effect whose coverage is claimed."""
    why_not: str = ""
    """Why something is not claimed."""


def white(size: float) -> Draw:
    """Independent normal noise."""
    return lambda random, runs: _same(size * random.standard_normal(runs))


def autoregressive(persistence: float, size: float) -> Draw:
    """AR(1) noise with stationary standard deviation ``size``."""

    def draw(random: Generator, runs: int) -> Machine:
        shocks = size * random.standard_normal(runs)
        shocks[1:] *= np.sqrt(1.0 - persistence**2)
        return _same(lfilter([1.0], [1.0, -persistence], shocks))

    return draw


def random_walk(step: float, size: float) -> Draw:
    """A random walk and independent noise on top."""
    return lambda random, runs: _same(
        np.cumsum(step * random.standard_normal(runs)) + size * random.standard_normal(runs)
    )


def drift(per_run: float, size: float) -> Draw:
    """Each run takes longer than the one before it."""
    return lambda random, runs: _same(
        np.log1p(per_run) * np.arange(runs) + size * random.standard_normal(runs)
    )


def two_modes(apart: float, size: float) -> Draw:
    """Half of the runs are in a slower mode."""
    return lambda random, runs: _same(
        np.log1p(apart) * random.integers(0, 2, runs) + size * random.standard_normal(runs)
    )


def student(freedom: int, size: float) -> Draw:
    """Heavy tails: Student's t; with 1 degree of freedom Cauchy's distribution."""
    return lambda random, runs: _same(
        np.clip(size * random.standard_t(freedom, runs), -MAX_LOG, MAX_LOG)
    )


def lognormal_tail(size: float) -> Draw:
    """A floor, and a lognormal time on top of it."""
    return lambda random, runs: _same(np.log1p(size * random.lognormal(size=runs)))


def exponential_tail(size: float) -> Draw:
    """A floor, and an exponential time on top of it."""
    return lambda random, runs: _same(np.log1p(size * random.exponential(size=runs)))


def periodic(period: int, extra: float, size: float) -> Draw:
    """The last of every ``period`` runs takes longer, whatever it runs."""
    return lambda random, runs: _same(
        np.log1p(extra) * (np.arange(runs) % period == period - 1)
        + size * random.standard_normal(runs)
    )


def spikes(share: float, extra: float, size: float) -> Draw:
    """A share of the runs takes much longer."""
    return lambda random, runs: _same(
        np.log1p(extra) * (random.random(runs) < share) + size * random.standard_normal(runs)
    )


def carried_over(after_baseline: float, after_candidate: float, size: float) -> Draw:
    """What ran before slows a run down."""
    noise = white(size)
    carried = (float(np.log1p(after_baseline)), float(np.log1p(after_candidate)))
    return lambda random, runs: replace(noise(random, runs), carried=carried)


def ticks(count: int, size: float) -> Draw:
    """A clock that counts about ``count`` ticks in a run, and says so."""
    quantum = 1.0 / count
    silent = ticks_untold(count, size)
    return lambda random, runs: replace(silent(random, runs), quantum_told=quantum)


def ticks_untold(count: int, size: float) -> Draw:
    """The same clock, but the metric comes without its resolution."""
    noise = white(size)
    return lambda random, runs: replace(
        noise(random, runs), quantum=1.0 / count, quantum_told=None, phases=random.random(runs)
    )


def timeouts(freedom: int, size: float, limit: float) -> Draw:
    """Heavy tails, cut by a time limit."""
    noise = student(freedom, size)
    return lambda random, runs: replace(noise(random, runs), time_limit=limit)


def mixture(fast: float, slow: float, share_slow: float, size: float) -> Draw:
    """The baseline takes 1; the candidate mostly ``fast`` and sometimes ``slow``."""

    def draw(random: Generator, runs: int) -> Machine:
        noise = size * random.standard_normal((2, runs))
        noise[1] += np.where(random.random(runs) < share_slow, np.log(slow), np.log(fast))
        return Machine(noise)

    return draw


def unequal_spreads(baseline: float, candidate: float) -> Draw:
    """Normal noise of equal means of the times, and of other spreads."""

    def draw(random: Generator, runs: int) -> Machine:
        sizes = np.array([[baseline], [candidate]])
        return Machine(sizes * random.standard_normal((2, runs)) - sizes**2 / 2.0)

    return draw


def _same(noise: FloatArray) -> Machine:
    """The run takes the same, whichever condition it is."""
    return Machine(np.broadcast_to(noise, (2, len(noise))))


NOT_CONSTANT = "the ratio is not constant"

SCENARIOS = (
    Scenario("Gauss 0.5 %", "independent, log sd 0.5 %", white(0.005)),
    Scenario("Gauss 2 %", "independent, log sd 2 %", white(0.02)),
    Scenario("Gauss 5 %", "independent, log sd 5 %", white(0.05)),
    Scenario("AR(1) 0.6", "sd 2 %, correlation 0.6 from run to run", autoregressive(0.6, 0.02)),
    Scenario("AR(1) 0.9", "sd 2 %, correlation 0.9 from run to run", autoregressive(0.9, 0.02)),
    Scenario("random walk", "steps of sd 1 %, and independent 1 %", random_walk(0.01, 0.01)),
    Scenario("drift", "1 % longer at every run, and independent 2 %", drift(0.01, 0.02)),
    Scenario("two modes", "10 % apart, equal shares, sd 1 % in each", two_modes(0.10, 0.01)),
    Scenario("t2", "Student's t with 2 degrees of freedom, scale 2 %", student(2, 0.02)),
    Scenario("Cauchy", "scale 2 %", student(1, 0.02)),
    Scenario("lognormal tail", "1 + 3 % · e^N(0, 1)", lognormal_tail(0.03)),
    Scenario("exponential tail", "1 + Exp(5 %)", exponential_tail(0.05)),
    Scenario("slot 5 %", "every second run 5 % longer, and sd 2 %", periodic(2, 0.05, 0.02)),
    Scenario("period 3", "every third run 5 % longer, and sd 2 %", periodic(3, 0.05, 0.02)),
    Scenario("spikes", "1 run in 10 takes 50 % longer, sd 1 %", spikes(0.1, 0.5, 0.01)),
    Scenario(
        "equal carry-over",
        "both slow what follows by 3 %, sd 2 %",
        carried_over(0.03, 0.03, 0.02),
    ),
    Scenario("10 ticks", "a run takes 10 ticks of the clock, sd 2 %", ticks(10, 0.02)),
    Scenario(
        "5 ticks",
        "a run takes 5 ticks of the clock, sd 30 %; the true effect is ×2",
        ticks(5, 0.30),
        covered_percent=100.0,
    ),
    Scenario(
        "3 ticks",
        "a run takes 3 ticks of the clock, sd 30 %; the true effect is ×2",
        ticks(3, 0.30),
        covered_percent=100.0,
    ),
    Scenario(
        "10 ticks untold",
        "the same, but the metric does not report its resolution",
        ticks_untold(10, 0.02),
        claims_coverage=False,
        why_not="the ratio that is read is not constant",
    ),
    Scenario(
        "timeouts",
        "t2, scale 5 %; a run is ended at 1.25 (2 % are) and counts as slowest",
        timeouts(2, 0.05, 1.25),
        claims_coverage=False,
        why_not="the ratio with the limit is not constant",
    ),
    Scenario(
        "unequal carry-over",
        "the baseline slows what follows by 3 %, the candidate does not; sd 2 %",
        carried_over(0.03, 0.0, 0.02),
        claims_error_rate=False,
        claims_coverage=False,
        probability_slower=None,
        why_not="exchanging the two would change the times after them",
    ),
    Scenario(
        "equal means",
        "baseline 1; candidate 0.95 in 80 % of runs and 1.2 in 20 %; sd 0.5 %",
        mixture(0.95, 1.2, 0.2, 0.005),
        claims_error_rate=False,
        claims_coverage=False,
        probability_slower=0.2,
        why_not=NOT_CONSTANT,
    ),
    Scenario(
        "rare slow runs",
        "the candidate takes three times as long in 10 % of runs, else the same; sd 0.3 %",
        mixture(1.0, 3.0, 0.1, 0.003),
        claims_error_rate=False,
        claims_coverage=False,
        probability_slower=None,
        has_no_difference=False,
        is_equivalent=False,
        why_not=NOT_CONSTANT,
    ),
    Scenario(
        "unequal spreads",
        "equal means; baseline sd 2 %, candidate sd 30 %",
        unequal_spreads(0.02, 0.30),
        claims_error_rate=False,
        claims_coverage=False,
        probability_slower=None,
        why_not=NOT_CONSTANT,
    ),
    Scenario(
        "90/10 shapes",
        "baseline 1; candidate 0.9 in 90 % of runs and 5 in 10 %; sd 1 %",
        mixture(0.9, 5.0, 0.1, 0.01),
        claims_error_rate=False,
        claims_coverage=False,
        probability_slower=0.1,
        has_no_difference=False,
        why_not=NOT_CONSTANT,
    ),
)
