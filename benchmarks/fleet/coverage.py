"""What each interval of one fleet covers, and how wide it is.

Sequences only shrink: what one leaves out at any look, it leaves out at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from benchmarks.fleet.fleets import (
    ALPHA,
    Scenario,
    answers,
    blocks_of,
    effects_of,
    first_blocks,
    hosts_of,
)
from equipoise._native import BettingSequence, student_quantile
from equipoise.stats.hosts import Bounds, Prediction
from equipoise.stats.sequence import PairedBlocks

LOOKS = (10, 20, 40, 80)
"""Blocks of each host at the looks of a prediction that is made anew."""


class Covered(Struct, frozen=True):
    """One fleet: what was missed at any look, what was covered, and the widths in per cent."""

    misses_by_hosts: bool
    misses_by_rounds: bool
    misses: bool
    wrong_verdict: bool
    width_by_hosts: float
    width_by_rounds: float
    width: float
    covers_new: bool
    covers_median: bool


def covered(scenario: Scenario, seed: int) -> Covered:
    """Return what the intervals of one fleet cover."""
    rng = scenario.generator(seed)
    effects = effects_of(scenario, rng, scenario.hosts)
    new = float(effects_of(scenario, rng, 1)[0])
    blocks = blocks_of(scenario, rng, effects)
    result = answers(hosts_of(blocks))
    truth = float(np.mean(effects))
    mean = result.mean
    assert mean.by_rounds is not None, "every host has a block"
    return Covered(
        misses_by_hosts=not _holds(mean.by_hosts, truth),
        misses_by_rounds=not _holds(mean.by_rounds, truth),
        misses=not _holds(mean.bounds, truth),
        wrong_verdict=_is_wrong(mean.verdict, truth),
        width_by_hosts=_width(mean.by_hosts),
        width_by_rounds=_width(mean.by_rounds),
        width=_width(mean.bounds),
        covers_new=_holds(result.new_host, new),
        covers_median=_holds(result.median_of_hosts, 0.0),
    )


def _holds(interval: Bounds | Prediction, truth: float) -> bool:
    return interval.low <= truth <= interval.high


def _width(bounds: Bounds) -> float:
    return 100.0 * math.expm1(bounds.high - bounds.low)


def _is_wrong(verdict: str, truth: float) -> bool:
    margin = math.log1p(0.01)
    return (
        (verdict == "slower" and truth <= 0.0)
        or (verdict == "faster" and truth >= 0.0)
        or (verdict == "equivalent" and abs(truth) >= margin)
    )


class Predicted(Struct, frozen=True):
    """Student's prediction of a new host in one fleet."""

    covers: bool
    """Whether the shipped one does, which is from the first blocks of every host."""
    covers_at_looks: bool
    """Whether one from all blocks so far would at each of ``LOOKS``."""
    reach: float
    """Half of the shipped interval, in per cent."""


def predicted(scenario: Scenario, seed: int) -> Predicted:
    """Return what the normal predictions of one fleet cover."""
    rng = scenario.generator(seed)
    effects = effects_of(scenario, rng, scenario.hosts)
    new = float(effects_of(scenario, rng, 1)[0])
    blocks = blocks_of(scenario, rng, effects)
    first = [first_blocks(one, LOOKS[0]) for one in blocks]
    shipped = answers(hosts_of(first)).new_host_if_normal
    return Predicted(
        covers=_holds(shipped, new),
        covers_at_looks=all(_student_holds(blocks, look, new) for look in LOOKS),
        reach=50.0 * (shipped.high - shipped.low),
    )


def _student_holds(blocks: Sequence[PairedBlocks], look: int, new: float) -> bool:
    centres = []
    for one in blocks:
        parts = (one.differences[:look], one.orders[:look], one.tolerances[:look])
        centre = BettingSequence(*parts).centre()
        assert centre is not None, "no trial timed out"
        centres.append(centre[0])
    reach = student_quantile(1.0 - ALPHA / 2.0, len(centres) - 1)
    reach *= float(np.std(centres, ddof=1)) * math.sqrt(1.0 + 1.0 / len(centres))
    return abs(float(np.mean(centres)) - new) <= reach


class Widths(Struct, frozen=True):
    """Widths in per cent of (a) and (b), each with the whole of alpha for itself."""

    by_hosts: float
    by_rounds: float


def widths_alone(hosts: int, blocks: int, sd: float, seed: int) -> Widths:
    """Return the widths as the reference has them: without sharing alpha between the two."""
    rng = np.random.default_rng([seed, hosts])
    differences = rng.normal(0.0, sd * math.sqrt(2.0), (hosts, blocks))
    orders = rng.choice(np.array([-1, 1], dtype=np.int8), (hosts, blocks))
    ties = np.zeros(blocks)

    def width(logs: np.ndarray, coins: np.ndarray, level: float) -> float:
        low, high = BettingSequence(logs, coins, ties).running_interval(level)
        return 100.0 * math.expm1(high - low)

    each = [width(*one, ALPHA / hosts) for one in zip(differences, orders, strict=True)]
    means = differences.mean(axis=0)
    return Widths(float(np.mean(each)), width(means, orders[0], ALPHA))
