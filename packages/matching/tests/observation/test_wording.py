"""Sentences of the answer."""

from __future__ import annotations

import pytest

from equipoise_matching.observation.result import (
    Contribution,
    Effect,
    HiddenBias,
    ObservationQuestion,
)
from equipoise_matching.observation.wording import (
    answer_sentences,
    effect_clause,
    hidden_factor_sentence,
)


def ratio(value: float, low: float, high: float) -> Effect:
    return Effect(value, (low, high), value - 1.0, (low - 1.0, high - 1.0))


def bias_at(gamma: float | None) -> HiddenBias:
    return HiddenBias("pairs", 100, (), gamma, "")


def about(outcome: str, treatment: str = "version", candidate: str = "2.0") -> ObservationQuestion:
    return ObservationQuestion(
        "ci.csv", treatment, candidate, "1.0", outcome, ("load",), (), "genetic", 0
    )


WALL = about("wall_s")
LOAD = (Contribution("load", 0.19, 0.2), Contribution("cache", 0.01, 0.01))
SLOWER, FASTER = ratio(1.18, 1.15, 1.21), ratio(0.97, 0.95, 0.99)


def test_an_answer_has_both_effects_the_reason_and_the_hidden_factor() -> None:
    assert answer_sentences(WALL, SLOWER, FASTER, LOAD, bias_at(2.0)) == (
        "Without matching, the log suggests that version 2.0 is 18 % slower. "
        "Among comparable rows, version 2.0 is 3 % faster (95 % interval 1 % to 5 %); "
        "most of the raw difference comes from load. "
        "If the listed columns act as modelled, a hidden factor would have to double the odds of "
        "version 2.0 to change this."
    )


def test_a_naive_answer_inside_the_interval_needs_no_reason() -> None:
    sentences = answer_sentences(WALL, ratio(0.96, 0.9, 1.0), FASTER, LOAD, bias_at(1.5))
    assert "raw difference" not in sentences
    assert sentences.endswith("multiply the odds of version 2.0 by 1.5 to change this.")


def test_an_effect_that_is_not_shown_is_not_faster_and_needs_no_hidden_factor() -> None:
    sentences = answer_sentences(WALL, SLOWER, ratio(0.99, 0.96, 1.02), LOAD, bias_at(None))
    assert "Among comparable rows, no effect can be shown (-4 % to +2 %); most of" in sentences
    assert "hidden" not in sentences


def test_several_columns_share_the_difference_where_none_is_most_of_it() -> None:
    parts = (Contribution("load", 0.08, 0.1), Contribution("cache", 0.07, 0.1))
    sentences = answer_sentences(WALL, SLOWER, FASTER, parts)
    assert "the raw difference comes mainly from load and cache" in sentences


def test_a_difference_has_no_percent() -> None:
    matched = Effect(None, None, 1794.0, (471.0, 3116.0))
    naive = Effect(None, None, -8497.5, (-9000.0, -8000.0))
    assert answer_sentences(about("re78", "treat", "1"), naive, matched) == (
        "Without matching, the log suggests that treat 1 lowers re78 by 8,498. "
        "Among comparable rows, treat 1 raises re78 by 1,794 (95 % interval 471 to 3,116)."
    )


@pytest.mark.parametrize(
    ("value", "outcome", "clause"),
    [
        (1.004, "latency", "is 0.4 % slower"),
        (0.5, "wall_s", "is 50 % faster"),
        (3.0, "wall_s", "is 3 times as slow"),
        (3.0, "max_rss_bytes", "multiplies max_rss_bytes by 3"),
        (0.9, "max_rss_bytes", "lowers max_rss_bytes by 10 %"),
        (1.1, "max_rss_bytes", "raises max_rss_bytes by 10 %"),
    ],
)
def test_an_effect_is_described_by_its_size_and_its_outcome(
    value: float, outcome: str, clause: str
) -> None:
    assert effect_clause(ratio(value, value, value), about(outcome)) == f"version 2.0 {clause}"


def test_a_large_ratio_has_an_interval_of_times() -> None:
    assert "is 3 times as slow (95 % interval 2.5 to 3.5 times)" in answer_sentences(
        WALL, SLOWER, ratio(3.0, 2.5, 3.5)
    )


def test_the_sentence_names_a_paired_test_that_shows_no_effect() -> None:
    assert "even without a hidden factor" in hidden_factor_sentence(bias_at(None), WALL)


def test_the_largest_factor_that_is_tried_is_a_lower_limit() -> None:
    assert "by more than 100 to change" in hidden_factor_sentence(bias_at(100.0), WALL)
