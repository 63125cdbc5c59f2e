"""How often answers hold, over logs of known truth (benchmarks/observe/simulate.py has more)."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from benchmarks.observe.simulate import SCENARIOS, tally

LOGS = 60


def tallied(place: int, logs: int = LOGS) -> Counter[str]:
    whole: Counter[str] = Counter()
    for number in range(logs):
        whole.update(tally(SCENARIOS[place], "mahalanobis", number))
    return whole


def lower_limit(share: float, logs: int) -> float:
    """Four standard errors of a share below it."""
    return logs * (share - 4.0 * math.sqrt(share * (1.0 - share) / logs))


def test_intervals_hold_the_truth_where_versions_run_for_a_while_and_errors_last() -> None:
    counts = tallied(0)
    assert counts["answered"] > 0.9 * LOGS
    assert counts["clusters"] >= lower_limit(0.95, counts["answered"])
    # As if rows were independent, it would be missed in a third of the logs.
    assert counts["abadie-imbens"] < lower_limit(0.95, counts["answered"])
    assert counts["naive"] == 0
    assert counts["placebo warns"] <= counts["answered"] - lower_limit(0.95, counts["answered"])


@pytest.mark.parametrize("place", [3, 4])
def test_bounds_at_the_strength_of_the_hidden_factor_hold_the_truth(place: int) -> None:
    counts = tallied(place)
    assert counts["answered"] == LOGS
    assert counts["odds x2"] >= lower_limit(0.95, LOGS)
    assert counts["odds x1"] < lower_limit(0.95, LOGS)


def test_a_placebo_outcome_warns_of_what_is_hidden() -> None:
    logs = 15
    counts = tallied(2, logs)
    assert counts["placebo warns"] > 0.5 * counts["answered"]
