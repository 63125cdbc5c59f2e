"""Simulated campaigns of interventions with known shares; the judge draws and stops."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec.structs
import numpy as np

from equipoise.campaign.interim import judge_for
from equipoise.design.coin import draw_block
from equipoise.kinds.explain.outcome import tested_causes
from equipoise.kinds.explain.terms import ExperimentPlan, PlannedIntervention
from equipoise.model.plan import Judgement, Plan, Stopping
from equipoise.model.record import Draw, RunRecord, Trial
from equipoise.model.why import Explanation, InterventionOutcome
from packages.equipoise.tests.plans import plan_of, trial_of

ALPHA = 0.05
BASELINE_S = 0.010

Noise = Callable[[np.random.Generator], Iterator[float]]
"""Logarithms of the noise of each trial, one after the other."""


def normal(generator: np.random.Generator) -> Iterator[float]:
    """Independent, 3 %."""
    while True:
        yield from generator.normal(0.0, 0.03, 1000)


def heavy(generator: np.random.Generator) -> Iterator[float]:
    """Student's t with three degrees of freedom, 2 %."""
    while True:
        yield from 0.02 * generator.standard_t(3, 1000)


def drift(generator: np.random.Generator) -> Iterator[float]:
    """Each trial takes half a percent longer than the one before it."""
    for trial in itertools.count():
        yield 0.005 * trial + float(generator.normal(0.0, 0.02))


NOISES: dict[str, Noise] = {"normal": normal, "heavy": heavy, "drift": drift}


@dataclass(frozen=True)
class Truth:
    """True effect of an intervention on a baseline of 10 ms and a slower candidate."""

    share: float
    """Fraction of the gap, as a ratio, that the intervention closes."""
    machinery_s: float = 0.0
    """Seconds that it costs both conditions."""
    has_sham: bool = False
    """Whether the arm without it bears the same cost."""
    weight: float = 1.0


def cause_of(name: str) -> Explanation:
    """A cause that evidence suggests."""
    return Explanation(
        cause=name,
        kind="allocation",
        evidence={"size_bytes": 35_600},
        status="open",
        share_of_gap=0.9,
        share_ci=(0.8, 1.0),
        summary=f"{name} suggests itself, as observed and not tested",
        seconds=0.013,
    )


def plan_and_seconds(
    gap: float, truths: Sequence[Truth], *, stopping: Stopping, alpha: float = ALPHA, seed: int
) -> tuple[Plan, tuple[float, ...]]:
    """A plan that tries the interventions, and how long each of its conditions takes."""
    names, seconds = ["A", "B"], [BASELINE_S, gap * BASELINE_S]
    attempts: list[PlannedIntervention] = []
    for number, truth in enumerate(truths):
        # Both bear the machinery's cost with the intervention, and with its sham.
        baseline_s, slower_s = (second + truth.machinery_s for second in seconds[:2])
        without = (0, 1)
        if truth.has_sham:
            without = (len(names), len(names) + 1)
            names += [f"A, with a sham of {number}", f"B, with a sham of {number}"]
            seconds += [baseline_s, slower_s]
        names += [f"A, with {number}", f"B, with {number}"]
        left = math.log(slower_s / baseline_s) * (1.0 - truth.share)
        seconds += [baseline_s, baseline_s * math.exp(left)]
        attempts.append(
            PlannedIntervention(
                intervention=f"intervention {number}",
                summary=f"intervention {number}",
                causes=(f"cause {number}",),
                baseline_with=len(names) - 2,
                candidate_with=len(names) - 1,
                baseline_without=without[0],
                candidate_without=without[1],
                weight=truth.weight,
            )
        )
    stopping = msgspec.structs.replace(stopping, min_seconds=0.0)
    plan = plan_of(*names, stopping=stopping, judgement=Judgement(alpha=alpha), seed=seed)
    causes = tuple(cause_of(f"cause {number}") for number in range(len(truths)))
    explains = ExperimentPlan("20260301-101500-ab12", causes, tuple(attempts))
    return (
        msgspec.structs.replace(
            plan, study="why", terms=explains, chosen_contrasts=plan.contrasts[:1]
        ),
        tuple(seconds),
    )


def campaign(
    plan: Plan, seconds: Sequence[float], noise: Noise, generator: np.random.Generator
) -> RunRecord:
    """Run blocks as a segment does, until the judge is settled or the plan's last block."""
    judge = judge_for(plan, plan.stopping)
    noises = noise(generator)
    draws: list[Draw] = []
    trials: list[Trial] = []
    for block in range(1, (plan.stopping.blocks or 200) + 1):
        draw = draw_block(plan, "measured", block, judge.needed_conditions("measured", block))
        ran = tuple(
            trial_of(draw, place, seconds[condition] * math.exp(next(noises)))
            for place, condition in enumerate(draw.order)
        )
        draws.append(draw)
        trials.extend(ran)
        judge.add(ran)
        judge.analyse()
        if judge.stop_reason() is not None:
            break
    return RunRecord("run", plan, 1.7e9, (), tuple(draws), tuple(trials), ())


def outcomes(record: RunRecord) -> tuple[InterventionOutcome, ...]:
    """Return the outcome of each attempt."""
    return tuple(test for cause in tested_causes(record) for test in cause.tested)


def simulated(
    gap: float,
    truths: Sequence[Truth],
    noise: Noise,
    generator: np.random.Generator,
    *,
    blocks: int = 80,
    alpha: float = ALPHA,
) -> tuple[InterventionOutcome, ...]:
    """Run a new campaign; return the outcome of each attempt."""
    plan, seconds = plan_and_seconds(
        gap,
        truths,
        stopping=Stopping(blocks=blocks),
        alpha=alpha,
        seed=int(generator.integers(2**62)),
    )
    return outcomes(campaign(plan, seconds, noise, generator))


def misses(test: InterventionOutcome, share: float) -> bool:
    """Return whether the interval excludes the true share; without a share there is none."""
    low, high = test.share_ci
    return test.share is not None and (
        (low is not None and share < low) or (high is not None and share > high)
    )


def is_wrong(test: InterventionOutcome, share: float) -> bool:
    """Return whether the outcome is false; a half-closed gap makes both outcomes false."""
    return (test.outcome == "confirmed" and share <= 0.5) or (
        test.outcome == "refuted" and abs(share) > 0.2
    )
