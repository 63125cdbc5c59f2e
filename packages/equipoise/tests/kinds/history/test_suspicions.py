"""Suspicions of imported series, and the lines that confirm them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from equipoise.kinds.history.analysis import series_result
from equipoise.model.series import ImportedSeries, SeriesPoint, SeriesResult

STEP = (*[100.0] * 12, *[104.0] * 12)


def series_named(
    name: str, values: Sequence[float], metric: str = "time", prefix: str = "v"
) -> ImportedSeries:
    """A series of these values, for the commits v1, v2, …"""
    points = [SeriesPoint(f"{prefix}{n}", None, value) for n, value in enumerate(values, start=1)]
    return ImportedSeries("log.csv", "CSV", name, metric, None, "", tuple(points))


def result_of(*series: ImportedSeries, **settings: Any) -> SeriesResult:
    """The result of these series."""
    return series_result(series, min_effect=1.0, command_line="again", **settings)


def test_a_suspicion_names_both_commits_and_the_line_that_measures_them() -> None:
    result = result_of(series_named("parse", STEP), command=("./bench", "a b"), build="make -j2")
    (suspicion,) = result.series[0].suspicions
    assert (suspicion.last_old_commit, suspicion.first_new_commit) == ("v12", "v13")
    assert suspicion.summary == "parse: +4.0 % at about v13, between v12 and v13."
    assert suspicion.confirm_command == (
        "equipoise bisect --good v12 --bad v13 --build 'make -j2' -- ./bench 'a b'"
    )
    assert result.summary == (
        "1 suspicion in 1 imported benchmark (parse): the program or the machine changed."
    )


def test_without_a_command_its_place_is_left_open() -> None:
    (suspicion,) = result_of(series_named("parse", STEP)).series[0].suspicions
    assert suspicion.confirm_command is not None and suspicion.confirm_command.endswith(
        " -- COMMAND"
    )


def test_a_peak_of_memory_is_confirmed_by_memory() -> None:
    (suspicion,) = result_of(series_named("parse", STEP, "peakmemory")).series[0].suspicions
    assert (
        suspicion.confirm_command is not None
        and "--metrics max_rss_bytes" in suspicion.confirm_command
    )


def test_a_hash_is_shown_short_and_given_whole_and_a_large_change_is_a_factor() -> None:
    series = series_named("parse", (*[1.0] * 12, *[3.0] * 12), prefix="0123456789abcdef")
    (suspicion,) = result_of(series).series[0].suspicions
    assert (
        suspicion.summary == "parse: ×3.00 at about 0123456789, between 0123456789 and 0123456789."
    )
    assert suspicion.confirm_command is not None
    assert "--good 0123456789abcdef12 --bad 0123456789abcdef13" in suspicion.confirm_command


def test_series_with_suspicions_come_first_and_short_ones_are_marked() -> None:
    flat, short = series_named("flat", [1.0] * 30), series_named("short", STEP[8:16])
    result = result_of(flat, short, series_named("parse", STEP))
    assert [each.benchmark for each in result.series] == ["parse", "flat", "short"]
    assert [each.summary for each in result.series] == [
        "parse: 1 suspicion over 24 commits.",
        "flat: no suspicion over 30 commits.",
        "short: 8 commits, fewer than the 10 that a change of level needs.",
    ]
    assert result_of(flat).summary == (
        "No suspicion in 1 imported benchmark: no level changed clearly."
    )


def test_only_some_of_many_benchmarks_are_named() -> None:
    many = [replace(series_named("x", STEP), benchmark=f"b{place}") for place in range(8)]
    assert result_of(*many).summary == (
        "8 suspicions in 8 imported benchmarks (b0, b1, b2, b3, b4 and 3 more): the program or "
        "the machine changed."
    )
