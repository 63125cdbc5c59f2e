"""Numbers are shown with the unit and the digits that people read."""

from __future__ import annotations

import math

import pytest

from equipoise.report.units import (
    byte_count,
    duration,
    estimate_and_interval,
    in_one_unit,
    interval_text,
    percent_change,
    significant,
    time_left_text,
    with_coverage,
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
        (0.51, "-49.0 %"),
        (0.5, "÷2.00"),
        (1.25, "+25.0 %"),
        (210.4, "×210"),
        (0.001, "÷1000"),
    ],
)
def test_a_ratio_reads_as_a_change_until_it_doubles(ratio: float, words: str) -> None:
    assert percent_change(ratio) == words


def test_ratios_that_are_read_together_have_one_unit() -> None:
    assert in_one_unit(1.5, 2.3) == ("×1.50", "×2.30")
    assert in_one_unit(0.5, None, 1.9) == ("-50.0 %", "unlimited", "+90.0 %")
    assert interval_text((1.5, 2.3)) == "×1.50 to ×2.30"
    assert interval_text((1.02, None), "still unlimited") == "+2.00 % to unlimited"
    assert interval_text((None, None), "still unlimited") == "still unlimited"


def test_an_estimate_has_the_unit_of_its_interval() -> None:
    assert estimate_and_interval(1.9, (1.5, 2.4)) == ("×1.90", "×1.50 to ×2.40")
    assert estimate_and_interval(1.1, (1.0, 1.2)) == ("+10.0 %", "+0.00 % to +20.0 %")
    assert estimate_and_interval(None, (None, None)) == ("not known yet", "still unlimited")


def test_a_factor_below_one_has_the_unit_of_its_estimate() -> None:
    assert estimate_and_interval(0.3, (0.2, 0.6)) == ("÷3.33", "÷5.00 to ÷1.67")
    assert estimate_and_interval(0.7, (0.4, 0.9)) == ("-30.0 %", "-60.0 % to -10.0 %")


def test_an_estimate_outside_of_its_interval_is_not_shown_beside_it() -> None:
    estimate, interval = estimate_and_interval(1.0019, (1.004, 1.0078))
    assert (estimate, interval) == ("no single ratio", "+0.40 % to +0.78 %")
    assert estimate_and_interval(1.1, (None, 1.05))[0] == "no single ratio"


def test_a_shared_level_is_described_as_the_level_over_all() -> None:
    assert with_coverage("a to b", 0.05, 0.05) == "95 % interval a to b"
    shared = with_coverage("a to b", 0.05 / 3.0, 0.05)
    assert shared == "interval a to b (95 % over the comparisons reported)"


def test_significant_digits_do_not_hide_the_size() -> None:
    assert significant(123456.0) == "123456"
    assert significant(1e12) == "1.00e+12"
    assert significant(0.012345) == "0.0123"
    assert significant(9.9996) == "10.0"


def test_the_time_left_is_the_sooner_of_budget_and_blocks() -> None:
    assert time_left_text(10.0, 60.0, 10, 20) == "0:10"
    assert time_left_text(10.0, 100.0, 1, 200) == "1:30"
    assert time_left_text(0.0, 90.0, 0, 200) == "1:30"
