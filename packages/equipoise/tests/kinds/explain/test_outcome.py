"""The sentence about the outcomes of interventions."""

from __future__ import annotations

from msgspec.structs import replace

from equipoise.kinds.explain.outcome import outcomes_sentence
from packages.equipoise.tests import documents

CLOSED = replace(documents.CLOSED, summary="keeping freed memory (mmap_max=0)")
LEFT = replace(
    CLOSED,
    summary="pinning",
    outcome="refuted",
    share=-0.001,
    share_ci=(-0.03, 0.02),
    share_of_seconds=0.0,
)


def test_several_interventions_make_one_sentence() -> None:
    assert outcomes_sentence([CLOSED, LEFT]) == (
        "Keeping freed memory (mmap_max=0) closes 97 % [94, 99] of the gap; "
        "pinning closes 0 % [-3, 2] of the gap."
    )


def test_no_outcome_gives_no_sentence() -> None:
    assert outcomes_sentence([]) == ""


def test_where_the_ratio_and_the_seconds_disagree_both_are_given() -> None:
    additive = replace(
        CLOSED,
        summary="answering fsync at once",
        outcome="open",
        share=0.26,
        share_ci=(0.2, 0.3),
        share_of_seconds=0.0,
        share_of_seconds_ci=(-0.1, 0.1),
    )
    assert outcomes_sentence([additive]) == (
        "Answering fsync at once closes 26 % [20, 30] of the gap as a ratio, but 0 % [-10, 10] "
        "of it in seconds."
    )


def test_a_gap_closed_by_slowing_the_faster_one_is_marked() -> None:
    other_end = replace(CLOSED, outcome="open", from_candidate=0.0, from_baseline=0.97)
    assert outcomes_sentence([other_end]).endswith(
        "closes 97 % [94, 99] of the gap by slowing the faster condition."
    )


def test_a_share_that_is_not_known_has_its_reason() -> None:
    unknown = replace(CLOSED, share=None, unknown_because="a condition with this change failed")
    assert outcomes_sentence([unknown]) == (
        "Keeping freed memory (mmap_max=0): a condition with this change failed."
    )
