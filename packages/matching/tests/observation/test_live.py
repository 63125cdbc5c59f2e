"""The experiment of benchmarks/observe/live.py, with a scripted machine instead of this one."""

from __future__ import annotations

import math
import random

import pytest

from benchmarks.observe.live import NEW, OLD, Site, conduct, held

TRUTH = -0.06


def scripted(seed: int) -> Site:
    """Time grows with the load; the new program takes 6 % less."""
    draw = random.Random(seed)
    load = [0]

    def run(program: str) -> float:
        slow = 0.25 * load[0] + (TRUTH if program == NEW else 0.0)
        return math.exp(slow + draw.gauss(0.0, 0.03))

    def set_load(level: int) -> None:
        load[0] = level

    return Site(run, set_load, lambda: float(load[0]), (0, 1, 2, 4))


@pytest.mark.parametrize("seed", [1, 2])
def test_the_log_misleads_and_comparable_rows_agree_with_the_experiment(seed: int) -> None:
    windows = conduct(scripted(seed), 100, seed, lambda _: None)
    assert set(windows.log["version"]) == {NEW, OLD}
    outcome = held(windows, threads=1)
    assert outcome.naive_is_wrong
    assert outcome.interval_covers
    assert outcome.experiment == pytest.approx(TRUTH, abs=5 * outcome.experiment_error)
