"""Whether the minimum tells another story."""

from __future__ import annotations

import math

import pytest

from equipoise.model.result import Verdict
from equipoise.stats.minimum import minimum_misleads


@pytest.mark.parametrize(
    ("minima", "ratio", "verdict", "misleads"),
    [
        ((1.0, 0.9), 1.1, "slower", True),
        ((1.0, 1.1), 0.9, "faster", True),
        ((1.0, 0.9), 1.1, "undecided", True),
        ((1.0, 1.1), 1.1, "slower", False),
        ((1.0, 0.995), 1.1, "slower", False),
        ((1.0, 0.9), 1.005, "undecided", False),
        ((1.0, 0.9), 1.0, "equivalent", True),
        ((1.0, 0.995), 1.0, "equivalent", False),
        ((0.0, 0.0), 1.1, "slower", False),
        ((1.0, 0.0), 1.1, "slower", True),
    ],
)
def test_the_minimum_misleads_where_it_names_another_winner(
    minima: tuple[float, float], ratio: float, verdict: Verdict, misleads: bool
) -> None:
    answer = minimum_misleads(*minima, typical=math.log(ratio), verdict=verdict, min_effect=1.0)
    assert answer is misleads


def test_without_a_typical_ratio_nothing_is_contradicted() -> None:
    assert not minimum_misleads(1.0, 0.5, typical=None, verdict="undecided", min_effect=1.0)
