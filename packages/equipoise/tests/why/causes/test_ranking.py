"""Causes, their order, and the fraction of the gap of each cause."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from equipoise.why.causes.ranking import MIN_FRACTION, RULES, suggested_causes
from equipoise.why.causes.unclaimed import Cause, UnclaimedTime
from equipoise.why.differences.changes import sum_of
from packages.equipoise.tests.why.causes.example_differences import (
    calls,
    cause_ids,
    change,
    difference_with,
    function,
    wait,
)

WORK, OTHER = function("work"), function("other")


def test_the_most_seconds_come_first() -> None:
    difference = difference_with(
        functions={WORK: change(0.0, 0.3, 0.1), OTHER: change(0.0, 0.6, 0.1)}
    )
    assert [cause.evidence["function"] for cause in suggested_causes(difference)] == [
        "other",
        "work",
    ]


def test_a_gap_that_is_not_certain_has_no_causes() -> None:
    functions = {WORK: change(0.0, 0.9, 0.1)}
    assert cause_ids(difference_with(functions=functions)) == ["more_time_in_function"]
    assert cause_ids(difference_with(functions=functions, wall_time=change(1.0, 2.0, 1.1))) == []


def test_sources_that_see_no_difference_name_nothing() -> None:
    equal = difference_with(
        functions={WORK: change(1.0, 1.01, 0.02)},
        entry_points={"write": change(1.0, 1.01, 0.02)},
        calls={"write": calls(100, 100)},
        waits={wait("read"): change(1.0, 1.0, 0.1)},
    )
    assert suggested_causes(equal) == ()


def test_cause_too_small_to_matter_is_not_named() -> None:
    small = MIN_FRACTION - 0.01
    assert cause_ids(difference_with(functions={WORK: change(0.0, small, 0.001)})) == []
    assert cause_ids(difference_with(functions={WORK: change(0.0, small + 0.02, 0.001)})) != []


def test_uncertain_cause_is_not_named() -> None:
    assert cause_ids(difference_with(functions={WORK: change(0.0, 0.9, 0.91)})) == []
    unknown = replace(change(0.0, 0.9), extra_ci=(None, None))
    assert cause_ids(difference_with(functions={WORK: unknown})) == []


def test_the_slower_condition_may_be_the_baseline() -> None:
    faster = difference_with(
        slower="baseline",
        wall_time=replace(change(2.0, 1.0), extra=1.0, extra_ci=(0.9, 1.1)),
        functions={WORK: replace(change(1.0, 0.1), extra=0.9, extra_ci=(0.8, 1.0))},
    )
    (cause,) = suggested_causes(faster)
    assert cause.evidence["seconds"] == {"baseline": 1.0, "candidate": 0.1}
    assert cause.share_of_gap == pytest.approx(0.9)


def test_shares_and_their_intervals_come_from_the_seconds() -> None:
    (cause,) = suggested_causes(difference_with(functions={WORK: change(0.1, 0.6, 0.2)}))
    assert cause.share_of_gap == pytest.approx(0.5)
    assert cause.share_ci == pytest.approx((0.3, 0.7))
    assert cause.status == "open"
    assert "50 % of the extra time, as observed and not tested" in cause.summary


def test_no_share_is_above_the_whole() -> None:
    (cause,) = suggested_causes(difference_with(functions={WORK: change(0.1, 1.4, 0.2)}))
    assert cause.share_of_gap == 1.0
    assert cause.share_ci[1] == 1.0


def test_threads_side_by_side_count_once() -> None:
    difference = difference_with(
        threads=change(5, 5),
        on_processor=change(4.0, 8.0),
        functions={WORK: change(4.0, 7.0, 0.1), OTHER: change(0.0, 1.0, 0.1)},
    )
    shares = [cause.share_of_gap for cause in suggested_causes(difference)]
    assert shares == pytest.approx([0.75, 0.25])


def test_seconds_of_a_specific_rule_are_not_counted_again() -> None:
    def claiming(unclaimed: UnclaimedTime) -> tuple[Cause, ...]:
        return (unclaimed.claim(functions=(WORK,)).cause("function", ""),)

    difference = difference_with(
        functions={WORK: change(0.0, 0.5, 0.1), OTHER: change(0.0, 0.3, 0.1)}
    )
    causes = suggested_causes(difference, {"mine": claiming, **RULES})
    assert [cause.cause for cause in causes] == ["mine", "more_time_in_function"]
    assert [cause.evidence.get("function") for cause in causes] == [None, "other"]


def test_two_calls_of_one_rule_share_the_waiting_time() -> None:
    difference = difference_with(
        threads=change(3, 3),
        waits={wait("accept"): change(0.0, 0.9, 0.1), wait("msgrcv"): change(0.0, 0.8, 0.1)},
        calls={"accept": calls(1, 100), "msgrcv": calls(1, 100)},
    )
    shares = [cause.share_of_gap for cause in suggested_causes(difference)]
    assert shares == pytest.approx([0.9, 0.1])


def test_a_sum_is_as_uncertain_as_its_parts_together() -> None:
    total = sum_of([change(0.0, 1.0, 0.3), change(0.0, 2.0, 0.4)])
    assert total.extra == pytest.approx(3.0)
    assert total.extra_ci == pytest.approx((2.5, 3.5))
    unknown = replace(change(0.0, 1.0), extra_ci=(None, None))
    assert sum_of([unknown]).extra_ci == pytest.approx((0.0, 2.0))
