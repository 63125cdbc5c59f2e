"""Numbers are shown with the unit and the digits that people read."""

from __future__ import annotations

import math

import pytest

from equipoise.report.units import (
    byte_count,
    duration,
    percent_change,
    seconds_left,
    significant,
)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (12.345, "12.3 s"),
        (0.012345, "12.3 ms"),
        (0.000_001_5, "1.50 µs"),
        (3e-9, "3.00 ns"),
        (0.0, "0 ns"),
        (math.inf, "timed out"),
    ],
)
def test_a_duration_gets_the_largest_unit_that_it_fills(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_bytes_are_counted_in_thousands() -> None:
    assert [byte_count(n) for n in (999, 2_100_000, 3e9)] == ["999 B", "2.10 MB", "3.00 GB"]


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (1.031, "+3.10 %"),
        (0.5, "-50.0 %"),
        (1.25, "+25.0 %"),
        (210.4, "×210"),
        (0.001, "-99.9 %"),
    ],
)
def test_a_ratio_reads_as_a_change_until_it_doubles(ratio: float, words: str) -> None:
    assert percent_change(ratio) == words


def test_significant_digits_do_not_hide_the_size() -> None:
    assert significant(123456.0) == "123456"
    assert significant(1e12) == "1.00e+12"
    assert significant(0.012345) == "0.0123"
    assert significant(9.9996) == "10.0"


def test_the_time_left_is_the_sooner_of_budget_and_blocks() -> None:
    assert seconds_left(10.0, 60.0, 10, 20) == "0:10"
    assert seconds_left(10.0, 100.0, 1, 200) == "1:30"
    assert seconds_left(0.0, 90.0, 0, 200) == "1:30"
