"""A distribution in one line: tall where values are many, never empty where one is."""

from __future__ import annotations

import math

from equipoise.report.renderers.terminal import BARS, text_histogram


def test_the_fullest_bin_is_the_tallest() -> None:
    drawn = text_histogram([1.0] * 10 + [2.0], 0.0, 4.0, width=4)
    assert drawn == f" {BARS[-1]}{BARS[1]} "


def test_a_rare_value_is_still_seen() -> None:
    drawn = text_histogram([0.0] * 100_000 + [1.0], 0.0, 1.0, width=5)
    assert drawn[-1] == BARS[1]


def test_equal_values_stand_in_the_middle() -> None:
    assert text_histogram([3.0, 3.0], 3.0, 3.0, width=3) == f" {BARS[-1]} "


def test_trials_that_timed_out_are_not_drawn() -> None:
    assert text_histogram([math.inf], 0.0, 1.0, width=3) == "   "
