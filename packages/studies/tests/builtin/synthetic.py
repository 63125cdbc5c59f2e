"""Results of studies with known answers: nothing in them was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np
from msgspec.structs import replace

from equipoise.model.result import SCHEMA, ConditionResult, ResultDocument, RunInfo, TrialRow
from equipoise.stats.describe import describe
from packages.equipoise.tests.documents import row_of

Values = Callable[[dict[str, str]], Mapping[str, float]]
"""The true values of a condition's metrics, by its levels; none for a condition that is not run."""


def study_document(
    study: str,
    factors: Mapping[str, Sequence[str]],
    values: Values,
    *,
    blocks: int = 20,
    noise: float = 0.01,
    iterated: Sequence[str] = (),
) -> ResultDocument:
    """A finished campaign of a study.

    Parameters
    ----------
    values
        Their noise is log-normal, and the same draw for all metrics of a trial.
    iterated
        Metrics that have three iterations in each trial.
    """
    generator = np.random.default_rng(11)
    settings = [
        levels
        for choice in product(*factors.values())
        if values(levels := dict(zip(factors, choice, strict=True)))
    ]
    names = [" ".join(levels.values()) for levels in settings]
    values_of: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    trials: list[TrialRow] = []
    for block in range(1, blocks + 1):
        for position, place in enumerate(generator.permutation(len(names))):
            disturbance = math.exp(noise * generator.normal())
            metrics = {
                metric: value * disturbance if metric.endswith("_s") else value
                for metric, value in values(settings[place]).items()
            }
            for metric, value in metrics.items():
                values_of[names[place]].setdefault(metric, []).append(value)
            iterations = {name: [0.9 * metrics[name], metrics[name]] for name in iterated}
            row = row_of(names[place], None, metrics=metrics, iterations=iterations)
            trials.append(replace(row, block=block, position=position))
    return ResultDocument(
        schema=SCHEMA,
        run=RunInfo(
            *("20260301-101500-ab12", study, "2026-03-01T10:15:00Z", None, 1, blocks, None),
            command_line=f"equipoise run {study} --seed 1",
        ),
        environment={},
        conditions=tuple(
            ConditionResult(
                name,
                levels,
                ("program",),
                blocks,
                0,
                {
                    metric: describe(np.array(listed), seed=1)
                    for metric, listed in values_of[name].items()
                },
            )
            for name, levels in zip(names, settings, strict=True)
        ),
        comparisons=(),
        control=None,
        why=(),
        warnings=(),
        trials=tuple(trials),
    )
