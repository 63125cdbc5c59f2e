"""A CSV of values over commits, and how values become series."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.interop.series import reading
from equipoise.interop.series.reading import utc_time, utc_time_of_seconds
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.imports import written
from packages.equipoise.tests.interop.series.shared import series_of, table


def test_rows_are_joined_by_benchmark_and_setting(tmp_path: Path) -> None:
    text = (
        "commit,date,value,benchmark,setting,unit,remark\n"
        "b,2026-01-02,2.0,parse,box,s,x\n"
        "a,2026-01-01T12:00:00+02:00,1.0,parse,box,s,x\n"
        "a,2026-01-01T12:00:00+02:00,3.0,parse,box,s,x\n"
        "a,2026-01-01T12:00:00+02:00,9.0,parse,laptop,s,x\n"
        "a,2026-01-01T12:00:00+02:00,9.0,sort,box,s,x\n"
    )
    parse, laptop, sort = series_of(written(tmp_path, "log.csv", text))
    assert [(point.commit, point.date, point.value) for point in parse.points] == [
        ("a", "2026-01-01T10:00:00Z", 2.0),
        ("b", "2026-01-02T00:00:00Z", 2.0),
    ]
    assert (parse.benchmark, parse.setting, parse.unit) == ("parse", "box", "s")
    assert laptop.setting == "laptop"
    assert sort.benchmark == "sort"
    assert parse.notes == ("Columns that are not used: 'remark'.",)


def test_without_dates_the_order_is_that_of_the_rows(tmp_path: Path) -> None:
    (series,) = series_of(table(tmp_path, [3.0, 1.0, 2.0]))
    assert [point.commit for point in series.points] == ["v1", "v2", "v3"]
    assert (series.benchmark, series.metric, series.unit) == ("loop", "value", None)
    assert not series.notes
    text = "commit,date,wall_s\nb,2026-01-02,1\na,,2\n"
    (series,) = series_of(written(tmp_path, "half.csv", text))
    assert [point.commit for point in series.points] == ["b", "a"]
    assert series.notes == ("1 commit without a date: commits are in the order of the file.",)
    assert series.unit == "seconds"


def test_row_without_a_ratio_is_left_out_with_a_remark(tmp_path: Path) -> None:
    (series,) = series_of(table(tmp_path, [1.0, 0.0, -2.0, 4.0]))
    assert [point.commit for point in series.points] == ["v1", "v4"]
    assert series.notes == ("Left out: 2 values of 0 or less, which have no ratio.",)
    with pytest.raises(UnusableInput, match="no value is finite and greater than 0"):
        series_of(table(tmp_path, [0.0]))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("commit,value\na,fast\n", "line 2: 'fast' is not a number"),
        # A throughput is neither a cost nor in seconds.
        ("commit,requests_per_s\na,1\n", "does not name the columns commit and value"),
        ("commit,value\na,nan\n", "line 2: 'nan' is not a number"),
        ("commit,value\na\n", "line 2 does not have the 2 columns"),
        ("commit,date,value\na,soon,1\n", "line 2: 'soon' is not a date"),
        ("commit,value,value\na,1,2\n", "once each"),
        ("commit,value\n", "has no value of a commit"),
        ("commit,value\n--output=x,1\n", "'--output=x' does not name a commit"),
        ("commit,value\n$(reboot),1\n", "does not name a commit"),
        ("commit,value\n,1\n", "'' does not name a commit"),
    ],
)
def test_unusable_table_is_refused_with_its_path(text: str, what: str, tmp_path: Path) -> None:
    path = written(tmp_path, "log.csv", text)
    with pytest.raises(UnusableInput) as refusal:
        series_of(path, form="csv")
    assert what in refusal.value.what
    assert str(path) in refusal.value.what
    assert refusal.value.hint


def test_too_many_series_or_commits_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_SERIES", 1)
    monkeypatch.setattr(reading, "MAX_COMMITS", 2)
    with pytest.raises(UnusableInput, match="has 3 commits, more than the maximum of 2"):
        series_of(table(tmp_path, [1.0, 1.0, 1.0]))
    with pytest.raises(UnusableInput, match="2 series are more than the maximum of 1"):
        series_of(table(tmp_path, [1.0]), table(tmp_path, [1.0], "other.csv"))


def test_time_is_utc_or_none() -> None:
    assert utc_time("2026-07-31") == "2026-07-31T00:00:00Z"
    assert utc_time("0001-01-01T00:00:00+14:00") is None
    assert utc_time("yesterday") is None
    assert utc_time(None) is None
    assert utc_time_of_seconds(0.0) == "1970-01-01T00:00:00Z"
    assert utc_time_of_seconds(1e300) is None
    assert utc_time_of_seconds(float("nan")) is None
