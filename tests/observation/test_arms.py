"""Which rows are the candidate's and which the baseline's."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.model.errors import UnusableInput
from equipoise.observation.arms import arms_of
from tests.observation.logs import question


def arms_in(values: list[object], asked: str, **more: object) -> tuple[str, str, int, int]:
    log = {"version": np.array(values, dtype=object)}
    found = arms_of(log, question(values=asked, **more))
    return (
        found.candidate,
        found.baseline,
        int(found.is_candidate.sum()),
        int(found.is_baseline.sum()),
    )


def test_the_candidate_stands_before_the_colon() -> None:
    assert arms_in(["a", "b", "b"], "b:a") == ("b", "a", 2, 1)


def test_names_may_hold_colons_where_only_one_split_names_two_values() -> None:
    assert arms_in(["img:2", "img:1"], "img:2:img:1")[:2] == ("img:2", "img:1")


def test_a_split_that_could_be_meant_twice_is_refused() -> None:
    with pytest.raises(UnusableInput, match="several ways"):
        arms_in(["a", "b:c", "a:b", "c"], "a:b:c", leave_others_out=True)


def test_whole_numbers_are_named_without_their_point() -> None:
    log = {"treat": np.array([0.0, 1.0, 1.0])}
    found = arms_of(log, question(treatment="treat", values="1:0"))
    assert found.is_candidate.tolist() == [False, True, True]


def test_a_third_version_is_refused_with_the_option_that_leaves_it_out() -> None:
    with pytest.raises(UnusableInput, match="3 values: 1.0, 1.1, 2.0") as refused:
        arms_in(["1.0", "1.1", "2.0"], "2.0:1.0")
    assert "--leave-others-out" in str(refused.value.hint)
    assert arms_in(["1.0", "1.1", "2.0"], "2.0:1.0", leave_others_out=True)[2:] == (1, 1)


@pytest.mark.parametrize(
    ("asked", "words"),
    [("3.0:1.0", "no row has 3.0"), ("2.0", "not CANDIDATE:BASELINE"), ("1.0:1.0", "twice")],
)
def test_what_names_no_two_values_is_refused(asked: str, words: str) -> None:
    with pytest.raises(UnusableInput, match=words):
        arms_in(["1.0", "2.0"], asked)


def test_a_missing_version_is_refused_with_its_row() -> None:
    with pytest.raises(UnusableInput, match="version: missing in row 1"):
        arms_in(["1.0", None, "2.0"], "2.0:1.0")
