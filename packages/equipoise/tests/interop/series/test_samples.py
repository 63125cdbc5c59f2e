"""Series in real files of each tool; samples/ORIGIN.md names their origins."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.interop.series.shared import SAMPLES, series_of

SCALE_1, SCALE_2 = (f"benchmarks.Suite.time_loop(scale={scale})" for scale in (1, 2))
ROUNDS = "benchmarks.track_rounds"


def test_asv_gives_a_series_for_each_combination_of_parameters() -> None:
    series = {series.benchmark: series for series in series_of(SAMPLES / "asv")}
    assert set(series) == {SCALE_1, SCALE_2, ROUNDS}
    whole = series[SCALE_1]
    assert (whole.tool, whole.metric, whole.unit) == ("asv", "time", "seconds")
    assert whole.setting == "here, existing-py_tmp_t-series_asv_bin_python"
    assert [point.date for point in whole.points] == [
        f"2026-03-{day:02d}T12:00:00Z" for day in range(1, 25)
    ]
    assert all(len(point.commit) == 40 for point in whole.points)
    assert [point.value for point in series[ROUNDS].points] == [
        *[2000.0] * 4,
        2001.0,
        *[2000.0] * 7,
        *[4000.0] * 12,
    ]


def test_failed_benchmark_leaves_a_gap_with_a_remark() -> None:
    series = {series.benchmark: series for series in series_of(SAMPLES / "asv")}
    assert len(series[SCALE_2].points) == 23
    assert series[SCALE_2].notes == ("Left out: 1 value of failed benchmarks.",)
    assert not series[SCALE_1].notes


def test_a_project_of_asv_has_its_results_in_a_folder(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "asv", tmp_path / "results")
    assert [series.points for series in series_of(tmp_path)] == [
        series.points for series in series_of(SAMPLES / "asv")
    ]


def test_another_version_of_a_benchmark_of_asv_does_not_count(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(SAMPLES / "asv", folder)
    known = json.loads((folder / "benchmarks.json").read_text())
    known[ROUNDS]["version"] = "another"
    (folder / "benchmarks.json").write_text(json.dumps(known))
    series = series_of(folder)
    assert {each_series.benchmark for each_series in series} == {SCALE_1, SCALE_2}
    assert series[0].notes[0] == "Left out: 24 results of another version of a benchmark."


def test_old_results_of_asv_are_brought_up_to_date_first(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(SAMPLES / "asv", folder)
    (folder / "here" / "old.json").write_text('{"version": 1, "results": {}}')
    with pytest.raises(UnusableInput, match="the version of the file is '1', not 2") as refusal:
        series_of(folder)
    assert "asv update" in str(refusal.value.hint)


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="no values of commits"):
        series_of(tmp_path)
    with pytest.raises(UnusableInput, match=r"contains benchmarks\.json"):
        series_of(tmp_path, form="asv")
    with pytest.raises(UnusableInput, match="this is a folder"):
        series_of(SAMPLES / "asv", form="csv")
    with pytest.raises(UnusableInput, match="this is a file"):
        series_of(SAMPLES / "asv" / "benchmarks.json", form="asv")


def test_pyperf_values_have_the_commit_of_the_metadata_in_date_order() -> None:
    files = sorted((SAMPLES / "pyperf").glob("*.json"))
    (series,) = series_of(*files)
    assert (series.tool, series.benchmark, series.setting) == ("pyperf 2.10.0", "loop", "vm")
    assert (series.metric, series.unit) == ("time_s", "seconds")
    assert series.source == f"{files[0]} and 13 more files"
    # 9 o'clock two hours east of Greenwich; by name, 10.json stands before 2.json.
    assert [point.date for point in series.points] == [
        f"2026-04-{day:02d}T07:00:00Z" for day in range(1, 15)
    ]
    first = json.loads((SAMPLES / "pyperf" / "1.json").read_text())
    means = [sum(run["values"]) / 3 for run in first["benchmarks"][0]["runs"]]
    assert series.points[0].value == pytest.approx(sum(means) / 2)
    assert series.points[0].commit == first["metadata"]["commit_id"]


def test_pyperf_without_a_commit_is_named_after_its_revision(tmp_path: Path) -> None:
    whole = json.loads((SAMPLES / "pyperf" / "1.json").read_text())
    del whole["metadata"]["commit_id"], whole["metadata"]["commit_date"]
    for name in ("v1.10.json", "v1.9.json"):
        (tmp_path / name).write_text(json.dumps(whole))
    (series,) = series_of(tmp_path / "v1.9.json", tmp_path / "v1.10.json")
    assert [point.commit for point in series.points] == ["v1.9", "v1.10"]


def test_bencher_gives_a_series_for_each_benchmark_by_version() -> None:
    parse, sort = series_of(SAMPLES / "bencher_perf.json")
    assert (parse.benchmark, sort.benchmark) == ("parse", "sort")
    assert (sort.metric, sort.unit) == ("Latency", "nanoseconds (ns)")
    assert sort.setting == "ci-box, main"
    assert len(sort.points) == 39
    assert sort.notes == ("Left out: 2 values without the hash of a commit.",)


def test_a_file_in_the_metric_format_of_bencher_is_named_after_its_revision(
    tmp_path: Path,
) -> None:
    for number in (1, 2):
        measures = {"latency": {"value": 80.0 + number, "lower_value": 80.0}}
        (tmp_path / f"v{number}.json").write_text(json.dumps({"parse": measures}))
    (series,) = series_of(tmp_path / "v1.json", tmp_path / "v2.json")
    assert [(point.commit, point.value) for point in series.points] == [("v1", 81.0), ("v2", 82.0)]
    assert (series.tool, series.metric, series.unit) == ("Bencher", "latency", "nanoseconds")


def test_conbench_values_are_in_the_order_of_commit_times() -> None:
    (series,) = series_of(SAMPLES / "conbench_history.json")
    assert (series.tool, series.benchmark, series.unit) == ("Conbench", "case c0ffee", "s")
    assert [point.date for point in series.points] == [
        f"2026-03-{day:02d}T01:02:51Z" for day in range(1, 21)
    ]


def test_results_of_conbench_have_tags_and_may_lack_a_commit() -> None:
    read, write = series_of(SAMPLES / "conbench_results.json")
    assert read.benchmark == "file-read(compression=snappy, cpu_count=2)"
    assert read.setting == "box, org:main"
    assert [point.value for point in read.points] == [0.1, 1.1]
    assert [point.value for point in write.points] == [0.1]
    assert read.notes == ("Left out: 2 values of unknown commits.",)
