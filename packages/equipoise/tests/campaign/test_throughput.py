"""Metrics that are better when higher are judged by their inverse, but described directly."""

from __future__ import annotations

import msgspec.structs
import numpy as np
import pytest

from equipoise.analysis.comparisons import Blocks, other_comparisons, primary_comparisons
from equipoise.model.plan import Judgement, Plan
from equipoise.model.record import Draw, Sample, Trial
from packages.equipoise.tests.plans import plan_of, trial_of

CAMPAIGNS = 20
BLOCKS = 12


def plan() -> Plan:
    judgement = Judgement(
        min_effect=2.0, primary_metric="throughput_per_s", other_metrics=("latency_p99_s",)
    )
    return plan_of(judgement=judgement)


def lives(slowdown: float, seed: int, blocks: int = BLOCKS) -> Blocks:
    """Lives of two servers, with an sd of 3 %; the second is slower by this factor."""
    generator = np.random.default_rng(seed)
    found: dict[int, tuple[Trial, ...]] = {}
    for number in range(1, blocks + 1):
        draw = Draw("measured", number, tuple(map(int, generator.permutation(2))), 0)
        trials: list[Trial] = []
        for place, condition in enumerate(draw.order):
            cost = (slowdown if condition else 1.0) * float(np.exp(0.03 * generator.normal()))
            samples = (
                Sample("throughput_per_s", 1000.0 / cost, better="higher"),
                Sample("latency_p99_s", 0.004 * cost),
            )
            trials.append(msgspec.structs.replace(trial_of(draw, place, 1.0), samples=samples))
        found[number] = tuple(trials)
    return found


def test_a_server_that_was_slowed_down_is_slower_in_throughput_and_in_latency() -> None:
    blocks = lives(1.3, seed=1, blocks=20)
    (throughput,), ((latency,), unknown) = (
        primary_comparisons(plan(), blocks),
        other_comparisons(plan(), blocks),
    )
    assert unknown == ()
    assert (throughput.verdict, latency.verdict) == ("slower", "slower")
    assert throughput.ratio == pytest.approx(1.3, rel=0.03)


def test_two_lives_of_the_same_server_are_rarely_called_different() -> None:
    verdicts = [
        primary_comparisons(plan(), lives(1.0, seed))[0].verdict for seed in range(CAMPAIGNS)
    ]
    different = sum(verdict not in ("equivalent", "undecided") for verdict in verdicts)
    # At a true rate of 0.05, fewer than 3 of 1000 such tests exceed 4 of 20.
    assert different <= 4
