"""Words that a manager can read."""

from __future__ import annotations

import pytest

from equipoise.model.observation_result import Contribution, Effect, HiddenBias
from equipoise.observation.words import answer_words, hidden_words, size_words


def ratio(value: float, low: float, high: float) -> Effect:
    return Effect(value, (low, high), value - 1.0, (low - 1.0, high - 1.0))


def hidden(gamma: float | None) -> HiddenBias:
    return HiddenBias("pairs", 100, (), gamma, "")


LOAD = (Contribution("load", 0.19, 0.2), Contribution("cache", 0.01, 0.01))


def test_the_example_of_the_design() -> None:
    assert answer_words(
        ratio(1.18, 1.15, 1.21), ratio(0.97, 0.95, 0.99), LOAD, hidden(2.0), "wall_s", "2.0"
    ) == (
        "Naively 18 % slower. Among comparable runs 3 % faster [1, 5]: the difference was load. "
        "A hidden factor would have to double the odds of running 2.0 to change this."
    )


def test_where_the_naive_answer_lies_in_the_interval_nothing_made_a_difference() -> None:
    words = answer_words(
        ratio(0.96, 0.9, 1.0), ratio(0.97, 0.95, 0.99), LOAD, hidden(1.5), "wall_s", "2.0"
    )
    assert "the difference was" not in words
    assert words.endswith("multiply the odds of running 2.0 by 1.5 to change this.")


def test_what_is_not_shown_is_not_called_faster_and_has_nothing_hidden_to_change() -> None:
    words = answer_words(
        ratio(1.18, 1.15, 1.21), ratio(0.99, 0.96, 1.02), LOAD, hidden(None), "wall_s", "2.0"
    )
    assert "no difference is shown [from 4 % faster to 2 % slower]" in words
    assert "hidden" not in words


def test_several_columns_share_the_difference_where_none_is_most_of_it() -> None:
    shares = (Contribution("load", 0.08, 0.1), Contribution("cache", 0.07, 0.1))
    words = answer_words(
        ratio(1.18, 1.15, 1.21), ratio(0.97, 0.95, 0.99), shares, None, "wall_s", "2.0"
    )
    assert "the difference was load and cache most of all" in words


def test_a_difference_has_no_percent() -> None:
    found = Effect(None, None, 1794.0, (471.0, 3116.0))
    naive = Effect(None, None, -8497.5, (-9000.0, -8000.0))
    words = answer_words(naive, found, (), None, "re78", "1")
    assert words == "Naively 8,498 less. Among comparable runs 1,794 more [471, 3,116]."


@pytest.mark.parametrize(
    ("value", "outcome", "words"),
    [
        (1.004, "latency", "0.4 % slower"),
        (0.5, "wall_s", "50 % faster"),
        (3.0, "wall_s", "3 times as slow"),
        (3.0, "max_rss_bytes", "3 times as much"),
        (0.9, "max_rss_bytes", "10 % less"),
    ],
)
def test_sizes(value: float, outcome: str, words: str) -> None:
    assert size_words(ratio(value, value, value), outcome) == words


def test_a_paired_test_that_shows_nothing_is_said() -> None:
    assert "even without a hidden factor" in hidden_words(hidden(None), "2.0")


def test_beyond_what_is_looked_for_more_is_said_and_not_that_much() -> None:
    assert "by more than 100 to change" in hidden_words(hidden(100.0), "2.0")
