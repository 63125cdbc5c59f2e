"""Outcomes are numbers in one unit, above 0 for a ratio."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.model.errors import UnusableInput
from equipoise.observation.outcome import logarithm_of, outcome_of
from tests.observation.logs import question

TIMES = np.random.default_rng(1).lognormal(0.0, 0.3, 400)


def test_milliseconds_among_seconds_are_refused_and_may_be_insisted_on() -> None:
    mixed = TIMES.copy()
    mixed[::5] *= 1000.0
    with pytest.raises(UnusableInput, match=r"mixed units: 320 values .* and 80 .* 1,000"):
        outcome_of({"wall_s": mixed}, question())
    assert (outcome_of({"wall_s": mixed}, question(one_unit=True)) == mixed).all()


@pytest.mark.parametrize("spread", [0.1, 1.0, 2.5])
def test_wide_times_of_one_unit_are_not_taken_for_two(spread: float) -> None:
    wide = np.random.default_rng(2).lognormal(0.0, spread, 2000)
    assert (outcome_of({"wall_s": wide}, question()) == wide).all()


def test_a_few_timeouts_are_no_unit_of_their_own() -> None:
    slow = TIMES.copy()
    slow[:2] *= 1000.0
    assert (outcome_of({"wall_s": slow}, question()) == slow).all()


def test_a_column_that_says_several_units_is_refused() -> None:
    units = np.array(["ms", "s"] * 200, dtype=object)
    with pytest.raises(UnusableInput, match="column time_unit has ms, s"):
        outcome_of({"wall_s": TIMES, "time_unit": units}, question())


def test_units_in_the_cells_are_named() -> None:
    cells = np.array(["12 ms", "1.2 s"], dtype=object)
    with pytest.raises(UnusableInput, match="mixed units: ms, s"):
        outcome_of({"wall_s": cells}, question())


def test_a_ratio_of_what_is_not_above_zero_is_refused_with_its_rows() -> None:
    with pytest.raises(UnusableInput, match="0 or less in row 1") as refused:
        logarithm_of(np.array([1.0, 0.0, 2.0]), "wall_s")
    assert "--difference" in str(refused.value.hint)
