"""R's package Matching gives the same answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from equipoise_matching.matching.match import MatchResult, match
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.matching.golden import answers, columns, options

RANDOM_OPTIONS = ("replace", "ties")


def label(case: dict[str, Any]) -> str:
    return f"{case['id']}-{case['data']}"


ALL = [case for case in answers("match") if case["x"] != "propensity"]
NONE_VALID = [case for case in ALL if "error" in case["result"]]
SETTLED = [
    case
    for case in ALL
    if case not in NONE_VALID and not any(name in case["options"] for name in RANDOM_OPTIONS)
]
RANDOM = [case for case in ALL if any(name in case["options"] for name in RANDOM_OPTIONS)]


def matched(case: dict[str, Any], **more: Any) -> MatchResult:
    data = columns(case["data"])
    x = np.column_stack([data[name] for name in case["x"]])
    return match(data["y"], data["treat"], x, **(options(case, data) | more))


def pairs(result: MatchResult) -> list[tuple[int, int, float]]:
    return sorted(zip(result.treated_index, result.control_index, result.weights, strict=True))


def pairs_of_r(answer: dict[str, Any]) -> list[tuple[int, int, float]]:
    treated = np.array(answer["index_treated"]) - 1
    control = np.array(answer["index_control"]) - 1
    return sorted(zip(treated, control, answer["weights"], strict=True))


def numbers(values: object) -> list[float]:
    return list(np.atleast_1d(np.asarray(values, dtype=np.float64)))


@pytest.mark.parametrize("case", SETTLED, ids=label)
def test_pairs_and_numbers_are_those_of_r(case: dict[str, Any]) -> None:
    result, answer = matched(case), case["result"]
    expected = pairs_of_r(answer)
    assert [pair[:2] for pair in pairs(result)] == [pair[:2] for pair in expected]
    np.testing.assert_allclose(
        [pair[2] for pair in pairs(result)], [pair[2] for pair in expected], rtol=1e-11
    )
    assert list(result.dropped_index) == [row - 1 for row in numbers(answer["index_dropped"])]
    ours = [result.estimate, result.estimate_unadjusted, result.se, result.se_standard]
    theirs = [answer[name] for name in ("est", "est_noadj", "se", "se_standard")]
    np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=1e-8)
    # A difference of two variances: its precision follows from theirs.
    np.testing.assert_allclose(
        numbers(result.se_conditional)[0] ** 2, answer["se_cond"] ** 2, rtol=1e-8, atol=1e-13
    )
    assert result.n_weighted == pytest.approx(answer["wnobs"], rel=1e-12)
    assert result.n == answer["orig_nobs"]
    assert result.n_dropped == answer["ndrops"]


@pytest.mark.parametrize("case", NONE_VALID, ids=label)
def test_no_valid_match_is_an_error_where_r_gives_none(case: dict[str, Any]) -> None:
    assert case["result"]["error"] == "no valid matches"
    with pytest.raises(UnusableInput, match="no unit has a valid match"):
        matched(case)


@pytest.mark.parametrize("case", RANDOM, ids=label)
def test_r_s_answer_is_among_ours_where_ties_are_random(case: dict[str, Any]) -> None:
    answer = case["result"]
    expected = [pair[:2] for pair in pairs_of_r(answer)]
    for seed in range(64):
        result = matched(case, seed=seed)
        if [pair[:2] for pair in pairs(result)] == expected:
            break
    else:
        pytest.fail("no seed gave the pairs of R")
    assert result.estimate == pytest.approx(answer["est"], rel=1e-8)
    assert result.se_standard == pytest.approx(answer["se_standard"], rel=1e-8)
    assert result.se is None
    assert list(result.dropped_index) == [row - 1 for row in numbers(answer["index_dropped"])]
