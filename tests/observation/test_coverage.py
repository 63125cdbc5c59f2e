"""How often answers hold, over logs of known truth (benchmarks/observe/simulate.py has more)."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from benchmarks.observe.simulate import SCENARIOS, tally

LOGS = 60


def told(place: int, logs: int = LOGS) -> Counter[str]:
    whole: Counter[str] = Counter()
    for number in range(logs):
        whole.update(tally(SCENARIOS[place], "mahalanobis", number))
    return whole


def least(share: float, logs: int) -> float:
    """Four standard errors of a share below it."""
    return logs * (share - 4.0 * math.sqrt(share * (1.0 - share) / logs))


def test_intervals_hold_the_truth_where_versions_run_for_a_while_and_errors_last() -> None:
    found = told(0)
    assert found["answered"] > 0.9 * LOGS
    assert found["clusters"] >= least(0.95, found["answered"])
    # As if rows were independent, it would be missed in a third of the logs.
    assert found["abadie-imbens"] < least(0.95, found["answered"])
    assert found["naive"] == 0
    assert found["placebo warns"] <= found["answered"] - least(0.95, found["answered"])


@pytest.mark.parametrize("place", [3, 4])
def test_bounds_at_the_strength_of_the_hidden_factor_hold_the_truth(place: int) -> None:
    found = told(place)
    assert found["answered"] == LOGS
    assert found["odds x2"] >= least(0.95, LOGS)
    assert found["odds x1"] < least(0.95, LOGS)


def test_a_placebo_outcome_warns_of_what_is_hidden() -> None:
    logs = 15
    found = told(2, logs)
    assert found["placebo warns"] > 0.5 * found["answered"]
