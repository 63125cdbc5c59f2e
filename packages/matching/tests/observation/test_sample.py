"""The sample: the rows of each version, and their outcomes in one unit."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise_matching.observation.sample import read_arms, read_outcomes
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.observation.logs import question


def arms_in(
    versions: list[object], values_option: str, **more: object
) -> tuple[str, str, int, int]:
    log = {"version": np.array(versions, dtype=object)}
    arms = read_arms(log, question(values=values_option, **more))
    rows = int(arms.is_candidate.sum()), int(arms.is_baseline.sum())
    return arms.candidate, arms.baseline, *rows


def test_the_candidate_is_named_before_the_colon() -> None:
    assert arms_in(["a", "b", "b"], "b:a") == ("b", "a", 2, 1)


def test_names_may_hold_colons_where_only_one_split_names_two_values() -> None:
    assert arms_in(["img:2", "img:1"], "img:2:img:1")[:2] == ("img:2", "img:1")


def test_whole_numbers_are_named_without_their_point() -> None:
    log = {"treat": np.array([0.0, 1.0, 1.0])}
    arms = read_arms(log, question(treatment="treat", values="1:0"))
    assert arms.is_candidate.tolist() == [False, True, True]


def test_a_third_version_is_refused_with_the_option_that_leaves_it_out() -> None:
    with pytest.raises(UnusableInput, match="3 values: 1.0, 1.1, 2.0") as refused:
        arms_in(["1.0", "1.1", "2.0"], "2.0:1.0")
    assert "leave_others_out=True" in str(refused.value.hint)
    assert arms_in(["1.0", "1.1", "2.0"], "2.0:1.0", leave_others_out=True)[2:] == (1, 1)


@pytest.mark.parametrize(
    ("versions", "values_option", "message"),
    [
        (["1.0", "2.0"], "3.0:1.0", "no row has 3.0"),
        (["1.0", "2.0"], "2.0", "is not CANDIDATE:BASELINE"),
        (["1.0", "2.0"], "1.0:1.0", "twice"),
        (["a", "b:c", "a:b", "c"], "a:b:c", "several ways"),
        (["1.0", None, "2.0"], "2.0:1.0", "version is missing in row 1"),
    ],
)
def test_a_treatment_that_does_not_name_two_values_is_refused(
    versions: list[object], values_option: str, message: str
) -> None:
    with pytest.raises(UnusableInput, match=message):
        arms_in(versions, values_option, leave_others_out=":b" in values_option)


TIMES = np.random.default_rng(1).lognormal(0.0, 0.3, 400)


def test_milliseconds_among_seconds_are_refused_unless_declared_as_one_unit() -> None:
    mixed = TIMES.copy()
    mixed[::5] *= 1000.0
    with pytest.raises(UnusableInput, match=r"mixed units: 320 values .* and 80 .* 1,000"):
        read_outcomes({"wall_s": mixed}, question())
    assert (read_outcomes({"wall_s": mixed}, question(one_unit=True)).raw_scale == mixed).all()


@pytest.mark.parametrize("spread", [0.1, 1.0, 2.5])
def test_wide_times_of_one_unit_are_not_taken_for_two(spread: float) -> None:
    wide = np.random.default_rng(2).lognormal(0.0, spread, 2000)
    assert (read_outcomes({"wall_s": wide}, question()).raw_scale == wide).all()


def test_a_few_timeouts_are_not_taken_for_a_second_unit() -> None:
    slow = TIMES.copy()
    slow[:2] *= 1000.0
    assert (read_outcomes({"wall_s": slow}, question()).raw_scale == slow).all()


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ({"wall_s": [1.0, 2.0], "time_unit": ["ms", "s"]}, "column time_unit has ms, s"),
        ({"wall_s": ["12 ms", "1.2 s"]}, "mixed units: ms, s"),
    ],
)
def test_several_units_are_refused(log: dict[str, list[object]], message: str) -> None:
    columns = {name: np.array(values, dtype=object) for name, values in log.items()}
    with pytest.raises(UnusableInput, match=message):
        read_outcomes(columns, question())


def test_a_ratio_of_an_outcome_of_zero_is_refused_with_its_rows() -> None:
    with pytest.raises(UnusableInput, match="0 or less in row 1") as refused:
        read_outcomes({"wall_s": np.array([1.0, 0.0, 2.0])}, question())
    assert "ratio=False" in str(refused.value.hint)
