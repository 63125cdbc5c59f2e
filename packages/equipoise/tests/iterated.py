"""Campaigns whose trials report iterations."""

from __future__ import annotations

from collections.abc import Callable

import msgspec.structs
import numpy as np
from numpy.typing import NDArray

from equipoise.analysis.result import analyse_campaign
from equipoise.model.record import Better, Draw, RunRecord, Sample, Trial
from equipoise.model.result import Mode, ResultDocument, State
from equipoise.stats.warm_up import MIN_ITERATIONS
from packages.equipoise.tests.plans import plan_of, trial_of

FloatArray = NDArray[np.float64]
METRIC = "request_s"
Series = Callable[[np.random.Generator, int], FloatArray]
"""The iterations of the trial of one block."""


def steady(level: float, *, warm_up: int = 10, count: int = 40) -> Series:
    """Three times as long at first, then on a level."""

    def draw(generator: np.random.Generator, block: int) -> FloatArray:
        levels = np.where(np.arange(count) < warm_up, 3.0 * level, level)
        return levels * np.exp(0.01 * generator.normal(size=count) + 0.01 * generator.normal())

    return draw


def restless(generator: np.random.Generator, block: int) -> FloatArray:
    """Slower at the very end."""
    return steady(1.0, warm_up=0)(generator, block) * np.where(np.arange(40) < 34, 1.0, 2.0)


def short(generator: np.random.Generator, block: int) -> FloatArray:
    """Too few to be classed."""
    return np.ones(MIN_ITERATIONS - 1)


def record_of(
    *conditions: Series,
    names: tuple[str, ...] = (),
    metric: str = METRIC,
    blocks: int = 20,
    seed: int = 1,
    better: Better = "lower",
) -> RunRecord:
    """A campaign whose trials report iterations, in blocks of random order."""
    generator = np.random.default_rng(seed)
    draws = tuple(
        Draw("measured", block, tuple(generator.permutation(len(conditions)).tolist()), 0)
        for block in range(1, blocks + 1)
    )
    trials: list[Trial] = []
    for draw in draws:
        for place, condition in enumerate(draw.order):
            series = conditions[condition](generator, draw.block).tolist()
            samples = tuple(
                Sample(metric, value, iteration=number, better=better)
                for number, value in enumerate(series, 1)
            )
            made = trial_of(draw, place, abs(float(sum(series))))
            trials.append(msgspec.structs.replace(made, samples=samples))
    usual = tuple(chr(ord("a") + place) for place in range(len(conditions)))
    return RunRecord("r", plan_of(*(names or usual)), 0.0, (), draws, tuple(trials), ())


def shaped_document() -> ResultDocument:
    """A result with two modes, a change of state, a warm-up and no steady state."""
    document = analyse_campaign(
        record_of(steady(0.01), steady(0.0105, warm_up=0), restless, blocks=30)
    )
    first = document.conditions[0]
    wall = first.metrics["wall_s"]
    changed = msgspec.structs.replace(
        wall,
        modes=(Mode(wall.p05, 0.7), Mode(wall.p95, 0.3)),
        states=(State(0, wall.p25), State(12, wall.p75)),
    )
    changed_first = msgspec.structs.replace(first, metrics={**first.metrics, "wall_s": changed})
    return msgspec.structs.replace(document, conditions=(changed_first, *document.conditions[1:]))
