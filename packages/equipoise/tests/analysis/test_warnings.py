"""Warnings appear when they matter, and only then."""

from __future__ import annotations

import random

import msgspec.structs
import pytest

from equipoise.analysis.comparisons import primary_comparisons
from equipoise.analysis.warnings import warnings_of
from equipoise.model.plan import Stopping
from equipoise.model.record import CampaignWarning, Draw, RecordedWarning, RunRecord, Segment, Trial
from equipoise.model.result import CarryOver, Comparison, RatioSegment, StatisticAnswer
from packages.equipoise.tests.documents import comparison_of
from packages.equipoise.tests.plans import plan_of, trial_of

CALM = comparison_of("old", "new", 1.10, 20)


def record(
    blocks: int = 20,
    warnings: tuple[RecordedWarning, ...] = (),
    stopped: str = "verdict",
    **stopping: float,
) -> RunRecord:
    stopping = {"min_seconds": 0.0, **stopping}
    return RunRecord(
        id="r",
        plan=plan_of(stopping=Stopping(**stopping)),  # type: ignore[arg-type]
        started_at=0.0,
        segments=(Segment(0.0, {}, ended_at=10.0, stopped_because=stopped),),
        draws=tuple(Draw("measured", number, (0, 1), 0) for number in range(1, blocks + 1)),
        trials=(),
        warnings=warnings,
    )


def codes(comparison: Comparison, cut: int = 0, given: RunRecord | None = None) -> list[str]:
    given = given or record()
    complete: dict[int, tuple[Trial, ...]] = dict.fromkeys(range(len(given.draws) - cut), ())
    return [warning.code for warning in warnings_of(given, [comparison], None, complete)]


def test_a_calm_campaign_has_none() -> None:
    assert codes(CALM) == []


def test_over_five_percent_of_interrupted_blocks_give_a_warning() -> None:
    assert codes(CALM, cut=1) == []
    assert codes(CALM, cut=2) == ["cut_blocks"]


def test_the_warning_about_carry_over_has_a_hint() -> None:
    carried = CarryOver(ratio=1.03, ratio_ci=(1.025, 1.035), trials=100)
    touched = msgspec.structs.replace(CALM, carry_over=carried)
    warned = warnings_of(record(blocks=0), [touched], None, {})
    assert [warning.code for warning in warned] == ["carry_over"]
    assert "1.030 times" in warned[0].summary
    assert "washout=True" in warned[0].hint


def test_a_carry_over_that_is_lost_in_noise_gives_no_warning() -> None:
    carried = CarryOver(ratio=1.03, ratio_ci=(0.99, 1.07), trials=100)
    assert codes(msgspec.structs.replace(CALM, carry_over=carried)) == []


def test_a_misleading_minimum_gives_a_warning() -> None:
    assert codes(msgspec.structs.replace(CALM, minimum_misleads=True)) == ["minimum_misleads"]


def test_the_minimum_contradicts_no_question_that_is_open() -> None:
    undecided = msgspec.structs.replace(CALM, verdict="undecided", minimum_misleads=True)
    assert codes(undecided) == ["minimum_misleads"]
    assert codes(msgspec.structs.replace(undecided, ratio_ci=(0.99, 1.12))) == []


def test_an_estimate_whose_interval_almost_contains_1_has_a_warning_of_inflation() -> None:
    touching = msgspec.structs.replace(CALM, ratio=1.05, ratio_ci=(1.002, 1.10))
    assert codes(touching) == ["inflated"]
    mirrored = msgspec.structs.replace(
        CALM, ratio=0.95, ratio_ci=(1 / 1.10, 1 / 1.002), verdict="faster"
    )
    assert codes(mirrored) == ["inflated"]


def test_the_factor_of_an_overstatement_is_an_average_and_never_a_bound() -> None:
    touching = msgspec.structs.replace(CALM, ratio=1.05, ratio_ci=(1.002, 1.10))
    (warning,) = warnings_of(record(blocks=0), [touching], None, {})
    assert "up to" not in warning.summary
    assert "on average" in warning.summary


def test_the_factor_known_for_one_percent_is_not_named_for_a_large_effect() -> None:
    large = msgspec.structs.replace(CALM, ratio=1.5, ratio_ci=(1.05, 2.1))
    (warning,) = warnings_of(record(blocks=0), [large], None, {})
    assert "overstated" in warning.summary
    assert "1 %" not in warning.summary


def test_a_sentence_with_the_least_factor_has_no_warning_of_overstatement() -> None:
    slower = msgspec.structs.replace(CALM, ratio=3.0, ratio_ci=(1.1, 9.0))
    faster = msgspec.structs.replace(CALM, ratio=0.3, ratio_ci=(0.1, 0.95), verdict="faster")
    assert codes(slower) == codes(faster) == []


def test_the_warning_about_a_changing_ratio_names_its_change_point() -> None:
    stretches = (RatioSegment(1, 1.2), RatioSegment(12, 1.0))
    changed = msgspec.structs.replace(CALM, ratio_is_constant=False, ratio_segments=stretches)
    (warning,) = warnings_of(record(blocks=0), [changed], None, {})
    assert warning.code == "no_constant_ratio"
    assert "before block 12 +20.0 %" in warning.summary


def test_a_chosen_precision_removes_the_inflation() -> None:
    touching = msgspec.structs.replace(CALM, ratio=1.05, ratio_ci=(1.002, 1.10))
    assert codes(touching, given=record(precision=1.0)) == []


def test_notices_of_the_campaign_appear_once() -> None:
    warning = RecordedWarning("left_processes", "b left processes behind", "let it wait", 1)
    assert codes(CALM, given=record(warnings=(warning, warning))) == ["left_processes"]


TOUCHING = msgspec.structs.replace(CALM, ratio=1.05, ratio_ci=(1.002, 1.10))


def test_only_a_stop_at_the_verdict_overstates_an_effect() -> None:
    for stopped in ("budget", "block limit", "interrupted"):
        assert codes(TOUCHING, given=record(stopped=stopped)) == []
    # A candidate that left stopped at its verdict, although the campaign continued for another one.
    left = msgspec.structs.replace(TOUCHING, blocks=12)
    going_on = record(stopped="budget", leave_out_decided=True)
    assert codes(left, given=going_on) == ["inflated"]
    assert codes(TOUCHING, given=going_on) == []


def several(*comparisons: Comparison) -> list[CampaignWarning]:
    complete: dict[int, tuple[Trial, ...]] = dict.fromkeys(range(20), ())
    return [*warnings_of(record(), comparisons, None, complete)]


def test_a_warning_about_several_conditions_appears_once_and_names_them() -> None:
    named = [msgspec.structs.replace(TOUCHING, candidate=name) for name in ("b", "c", "d")]
    (warning,) = several(*named)
    assert warning.summary.startswith("the effects of b, c and d are probably overstated: ")
    minimum = StatisticAnswer("minimum", 0.96, "faster")
    misled = [
        msgspec.structs.replace(
            comparison, ratio_ci=(1.08, 1.12), minimum_misleads=True, answers=(minimum,)
        )
        for comparison in named
    ]
    (warning,) = several(*misled[:2])
    assert warning.summary == (
        "the minima contradict the distributions: by the minimum b is faster than old (-4.00 %); "
        "by the minimum c is faster than old (-4.00 %)"
    )
    assert len(several(*misled, *misled)) == 1
    assert several(*misled, *misled)[0].summary.endswith("; and 3 more")


def test_carry_over_and_changing_ratios_of_several_conditions_share_a_warning() -> None:
    carried = CarryOver(ratio=1.03, ratio_ci=(1.025, 1.035), trials=100)
    stretches = (RatioSegment(1, 1.2), RatioSegment(12, 1.0))
    both = [
        msgspec.structs.replace(
            CALM,
            candidate=name,
            carry_over=carried,
            ratio_is_constant=False,
            ratio_segments=stretches,
        )
        for name in ("b", "c")
    ]
    changing, carry = several(*both)
    assert [changing.code, carry.code] == ["no_constant_ratio", "carry_over"]
    assert changing.summary.count("before block 12") == 2
    assert carry.summary == (
        "a trial takes 1.030 times as long after b as after old; a trial takes 1.030 times as long "
        "after c as after old. Each ratio is wrong by about half of this carry-over"
    )


def test_the_same_notice_about_several_conditions_appears_once() -> None:
    warnings = tuple(
        RecordedWarning("left_processes", f"{name} left processes behind", "let it wait", place)
        for place, name in enumerate(("a", "b"))
    )
    (warning,) = warnings_of(record(blocks=0, warnings=warnings), [CALM], None, {})
    assert warning.summary == "a and b left processes behind"


@pytest.mark.parametrize(
    ("stopped", "hint"),
    [
        ("interrupted", "run `equipoise resume r` to measure more blocks"),
        ("a condition failed", "correct the condition that failed, and measure again"),
    ],
)
def test_a_short_time_has_a_hint_that_fits_how_the_campaign_ended(stopped: str, hint: str) -> None:
    short = record(blocks=0, stopped=stopped, min_seconds=1.0)
    short_time_warnings = [
        warning for warning in warnings_of(short, [CALM], None, {}) if warning.code == "short_time"
    ]
    assert [warning.hint for warning in short_time_warnings] == [hint]


def test_change_points_of_a_ratio_are_numbers_of_blocks_not_of_pairs() -> None:
    # Every second block was interrupted, or did not contain both conditions.
    generator = random.Random(5)
    blocks = {
        number: tuple(
            trial_of(Draw("measured", number, (0, 1), 0), place, time * generator.gauss(1.0, 0.01))
            for place, time in enumerate((1.0, 1.2 if number < 203 else 1.0))
        )
        for number in range(3, 403, 2)
    }
    (comparison,) = primary_comparisons(plan_of("old", "new"), blocks)
    assert [segment.first_block for segment in comparison.ratio_segments] == [3, 203]
    warning, *_ = warnings_of(record(blocks=0), [comparison], None, {})
    assert "before block 203" in warning.summary
