"""How often intervals contain the truth (benchmarks/observe/simulate.py has more logs)."""

from __future__ import annotations

import importlib
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from benchmarks.observe.simulate import SCENARIOS, tally
from equipoise_matching.observation.effects import ABADIE_IMBENS, match_sample
from equipoise_matching.observation.question import Question
from equipoise_matching.observation.sample import read_sample

LOGS = 60


def count_answers(place: int, logs: int = LOGS) -> Counter[str]:
    counts: Counter[str] = Counter()
    for number in range(logs):
        counts.update(tally(SCENARIOS[place], "mahalanobis", number))
    return counts


def lower_limit(share: float, logs: int) -> float:
    """Return the count that lies four standard errors of a share below it."""
    return logs * (share - 4.0 * math.sqrt(share * (1.0 - share) / logs))


def test_intervals_hold_the_truth_where_versions_run_for_a_while_and_errors_last() -> None:
    counts = count_answers(0)
    assert counts["answered"] > 0.9 * LOGS
    assert counts["clusters"] >= lower_limit(0.95, counts["answered"])
    # The error of independent rows misses the truth in a third of the logs.
    assert counts["abadie-imbens"] < lower_limit(0.95, counts["answered"])
    assert counts["naive"] == 0
    assert counts["placebo warns"] <= counts["answered"] - lower_limit(0.95, counts["answered"])


@pytest.mark.parametrize("place", [3, 4])
def test_bounds_at_the_strength_of_the_hidden_factor_hold_the_truth(place: int) -> None:
    counts = count_answers(place)
    assert counts["answered"] == LOGS
    assert counts["odds x2"] >= lower_limit(0.95, LOGS)
    assert counts["odds x1"] < lower_limit(0.95, LOGS)


def test_a_placebo_outcome_warns_of_a_hidden_factor() -> None:
    logs = 15
    counts = count_answers(2, logs)
    assert counts["placebo warns"] > 0.5 * counts["answered"]


def log_with_noisy_baseline(draw: np.random.Generator, rows: int = 600) -> dict[str, Any]:
    """A log of independent rows; version 1.0 runs in 3 of 10, with three times the noise."""
    load = draw.uniform(1.0, 3.0, rows)
    chance = 1.0 / (1.0 + np.exp(-0.85 - 0.5 * (load - 2.0)))
    candidate = draw.random(rows) < chance
    noise = np.where(candidate, 0.02, 0.06) * draw.normal(size=rows)
    return {
        "version": np.where(candidate, "2.0", "1.0").astype(object),
        "wall_s": np.exp(1.0 + 0.1 * load - 0.03 * candidate + noise),
        "load": load,
    }


@pytest.mark.parametrize(("neighbors", "holds"), [(None, True), (0, False)])
def test_the_interval_of_independent_rows_holds_the_truth_where_the_baseline_is_noisier(
    neighbors: int | None, holds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one variance of all rows it does not."""
    if neighbors is not None:
        module = importlib.import_module("equipoise_matching.matching.match")
        monkeypatch.setattr(module, "VARIANCE_NEIGHBORS", neighbors)
    question = Question(
        "version", "2.0:1.0", "wall_s", covariates=("load",), cluster=(), method="mahalanobis"
    )
    draw, logs, hits = np.random.default_rng(17), 500, 0
    for _ in range(logs):
        sample = read_sample(log_with_noisy_baseline(draw), question, {})
        effect = match_sample(sample, lambda _: None).effects.answer_scale
        assert effect.interval_method == ABADIE_IMBENS
        assert effect.estimate.interval is not None
        low, high = effect.estimate.interval
        hits += low <= -0.03 <= high
    assert (hits >= lower_limit(0.95, logs)) == holds
